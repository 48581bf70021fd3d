"""A session that has everything but Iceberg's library, which only publishing needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import UnsupportedOperationException

import oracle
from iceberg_writer_compat import publish, status
from sessions import DELTA_EXTENSION, OWN_EXTENSION, stock_builder

warehouse = Path(sys.argv[1])
folder = warehouse / "t"

spark = (
    stock_builder(warehouse, own_jar=True)
    .config("spark.sql.extensions", f"{DELTA_EXTENSION},{OWN_EXTENSION}")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
spark.sql(
    f"CREATE TABLE delta.`{folder}` (a INT) USING delta "
    "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
)
assert oracle.check(folder) == []
ask: Callable[..., object]
for ask in (publish, status):
    try:
        ask(spark, folder)
    except UnsupportedOperationException as error:
        assert error.getCondition() == "ICEBERG_WRITER_COMPAT_ICEBERG_MISSING"
        assert "org.apache.iceberg:iceberg-core:1." in str(error)
    else:
        raise AssertionError("there was an answer without Iceberg")
# Who asks for it is told at once.
publishing = "'icebergWriterCompat.publish' = 'true'"
feature = "'delta.enableIcebergWriterCompatV1' = 'true'"
for statement in (
    f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ({publishing})",
    f"CREATE TABLE delta.`{folder}_2` (a INT) USING delta TBLPROPERTIES ({feature}, {publishing})",
):
    try:
        spark.sql(statement)
    except UnsupportedOperationException as error:
        assert error.getCondition() == "ICEBERG_WRITER_COMPAT_ICEBERG_MISSING"
    else:
        raise AssertionError("it was not refused")
assert oracle.versions(folder) == [0] and not folder.with_name("t_2").exists()
# Where another session has asked for it, a commit does not fail for it, nor does one that keeps it.
log = folder / "_delta_log"
lines = map(json.loads, (log / f"{0:020}.json").read_text().splitlines())
metadata_action = next(line for line in lines if "metaData" in line)
metadata_action["metaData"]["configuration"]["icebergWriterCompat.publish"] = "true"
(log / f"{1:020}.json").write_text(json.dumps(metadata_action) + "\n")
spark.sql(f"INSERT INTO delta.`{folder}` VALUES (1)")
assert oracle.versions(folder) == [0, 1, 2]
assert not (folder / "metadata").exists()
# What somebody else has published is not taken from under its readers.
metadata = folder / "metadata" / "v1.metadata.json"
metadata.parent.mkdir()
metadata.write_text('{"properties": {"delta-version": "1"}}')
try:
    spark.sql(f"VACUUM delta.`{folder}`")
except UnsupportedOperationException as error:
    assert error.getCondition() == "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED"
    assert "spark.jars.packages=org.apache.iceberg:iceberg-core:1." in str(error)
else:
    raise AssertionError("VACUUM ran without Iceberg")
assert metadata.exists()
assert oracle.versions(folder) == [0, 1, 2]
print("done")
