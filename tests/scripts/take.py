"""Appends the commits of an Iceberg writer to a Delta table, unless the process is killed."""

from __future__ import annotations

import sys
from pathlib import Path

from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat, publish
from sessions import local_builder

warehouse, folder, catalog, snapshot = sys.argv[1:]
builder = (
    local_builder(Path(warehouse))
    .config("spark.icebergWriterCompat.catalog.type", "jdbc")
    .config("spark.icebergWriterCompat.catalog.uri", catalog)
)
spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
print("ready", flush=True)
publish(spark, Path(folder), take_snapshot=int(snapshot))
