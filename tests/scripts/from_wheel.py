"""Starts a session from the installed wheel and makes a table. Argument: a warehouse."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import iceberg_writer_compat

assert sys.prefix in iceberg_writer_compat.__file__, iceberg_writer_compat.__file__
builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.warehouse.dir", sys.argv[1])
)
spark = iceberg_writer_compat.configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
iceberg_writer_compat.enable_iceberg_writer_compat(spark)
spark.sql("CREATE TABLE t USING delta AS SELECT 1 AS a")
spark.sql("ALTER TABLE t ADD COLUMN n INT")
print(iceberg_writer_compat.__version__)
print(spark.table("t").collect())
