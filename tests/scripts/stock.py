"""A session with Delta alone: what it makes of a guarded table, and how it stays unguarded.

Arguments: a warehouse; the folder of a table with the feature; a folder for plain tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import SparkSession

import plain_tables
from iceberg_writer_compat import (
    NotInstalledError,
    configure_spark_with_iceberg_writer_compat,
    enable_iceberg_writer_compat,
)
from sessions import DELTA_EXTENSION, OWN_EXTENSION, stock_builder

warehouse, guarded, plain = map(Path, sys.argv[1:])
# The jar alone does nothing: a session is guarded by its extension.
spark = stock_builder(warehouse, own_jar=True).getOrCreate()
spark.sparkContext.setLogLevel("OFF")

# The guarded table can be read, but not written.
table = f"delta.`{guarded}`"
print(spark.table(table).collect())
for statement in (
    f"INSERT INTO {table} VALUES (2, 'y')",
    f"DELETE FROM {table}",
    f"ALTER TABLE {table} ADD COLUMN n INT",
    f"UPDATE {table} SET a = 2",
):
    with pytest.raises(Exception, match="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE") as refused:
        spark.sql(statement)
    assert "icebergWriterCompatV1" in str(refused.value)
with pytest.raises(PySparkException, match="DELTA_UNKNOWN_CONFIGURATION"):
    spark.sql(
        "CREATE TABLE t (a INT) USING delta "
        "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    )

# A catalog of procedures without the extension does nothing, and says what is missing.
spark.conf.set(
    "spark.sql.catalog.iceberg_writer_compat",
    "org.icebergwritercompat.sql.WriterCompatProcedures",
)
with pytest.raises(PySparkException) as missing:
    spark.sql(f"CALL iceberg_writer_compat.system.disable(table => '{guarded}')")
assert missing.value.getCondition() == "ICEBERG_WRITER_COMPAT_EXTENSION_MISSING"
assert str(missing.value).endswith(f"Use: spark.sql.extensions={DELTA_EXTENSION},{OWN_EXTENSION}")

plain_tables.make(spark, plain)

# Without the extension, the Python functions say what is missing.
with pytest.raises(NotInstalledError, match=r"is not in spark\.sql\.extensions"):
    enable_iceberg_writer_compat(spark)
with pytest.raises(NotInstalledError, match=r"is not in spark\.sql\.extensions"):
    configure_spark_with_iceberg_writer_compat(SparkSession.builder).getOrCreate()

# Delta's classes are in use by now, so this JVM cannot be guarded any more.
spark.stop()
builder = configure_spark_with_iceberg_writer_compat(stock_builder(warehouse))
with pytest.raises(UnsupportedOperationException) as late:
    builder.getOrCreate()
condition = "ICEBERG_WRITER_COMPAT_NOT_INSTALLED.DELTA_ALREADY_IN_USE"
assert late.value.getCondition() == condition
assert "Start a new process" in str(late.value)
print("done")
