"""Sessions that come after another in one process, and extensions in the other order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

import oracle
from iceberg_writer_compat import (
    configure_spark_with_iceberg_writer_compat,
    is_iceberg_writer_compat_enabled,
)
from sessions import DELTA_EXTENSION, OWN_EXTENSION, local_builder, stock_builder

warehouse = Path(sys.argv[1])


def assert_guarded(spark: SparkSession, name: str) -> None:
    """A new table is right, and a bad change is refused."""
    spark.sparkContext.setLogLevel("OFF")
    folder = warehouse / name
    table = f"delta.`{folder}`"
    spark.sql(
        f"CREATE TABLE {table} (a INT, s STRUCT<x: INT>) USING delta "
        "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    )
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s.y INT")
    spark.sql(f"INSERT INTO {table} VALUES (1, named_struct('x', 2, 'y', 3))")
    assert oracle.check(folder) == []
    assert is_iceberg_writer_compat_enabled(spark, folder)
    try:
        spark.sql(f"ALTER TABLE {table} ADD COLUMN n SMALLINT")
    except UnsupportedOperationException as error:
        assert "UNSUPPORTED_DATA_TYPE" in str(error.getCondition())
    else:
        raise AssertionError("a SMALLINT column was not refused")
    assert oracle.versions(folder) == [0, 1, 2]


# The first session lists the extensions in the other order.
spark = (
    stock_builder(warehouse, own_jar=True)
    .config("spark.sql.extensions", f"{OWN_EXTENSION},{DELTA_EXTENSION}")
    .getOrCreate()
)
assert_guarded(spark, "reversed")
# Each thing that is injected beside Delta's works in this order too: the rules of the analyzer, the
# checks of statements, and the table functions.
table = f"delta.`{warehouse / 'injected'}`"
spark.sql(
    f"CREATE TABLE {table} (a INT) USING delta TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
    "'delta.enableIcebergWriterCompatV1' = 'true', 'delta.enableIcebergCompatV2' = 'true')"
)
assert oracle.check(warehouse / "injected") == []
try:
    spark.sql(f"ALTER TABLE {table} DROP FEATURE v2Checkpoint")
except UnsupportedOperationException as error:
    assert "INCOMPATIBLE_TABLE_FEATURE" in str(error.getCondition())
else:
    raise AssertionError("what leaves checkpoint protection behind was not refused")
assert oracle.versions(warehouse / "injected") == [0]
assert (
    spark.sql(f"SELECT * FROM iceberg_writer_compat_check('{warehouse / 'injected'}')").count() == 0
)
# A builder with the helper takes the session that is there.
assert configure_spark_with_iceberg_writer_compat(local_builder(warehouse)).getOrCreate() is spark

spark.stop()
# What a program in Scala gives to a builder is applied before there is a Spark context.
jvm: Any = spark._jvm
extension = jvm.org.icebergwritercompat.IcebergWriterCompatExtension()
try:
    jvm.org.apache.spark.sql.SparkSession.builder().withExtensions(extension).getOrCreate()
except UnsupportedOperationException as error:
    assert error.getCondition() == "ICEBERG_WRITER_COMPAT_NOT_INSTALLED.NO_SPARK_CONTEXT"
    assert str(error).endswith(f"Use: spark.sql.extensions={DELTA_EXTENSION},{OWN_EXTENSION}")
else:
    raise AssertionError("withExtensions was not refused")

spark = configure_spark_with_iceberg_writer_compat(local_builder(warehouse)).getOrCreate()
assert_guarded(spark, "restarted")

# The guard belongs to the JVM: a session that forgets the extension cannot get around it.
spark.stop()
spark = stock_builder(warehouse, own_jar=True).getOrCreate()
assert_guarded(spark, "forgotten")
assert_guarded(spark.newSession(), "new_session")
print("done")
