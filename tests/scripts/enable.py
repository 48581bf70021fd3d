"""Enables a table with a rewrite of its files, until it is done or the process is killed."""

from __future__ import annotations

import sys
from pathlib import Path

from iceberg_writer_compat import (
    configure_spark_with_iceberg_writer_compat,
    enable_iceberg_writer_compat,
)
from sessions import local_builder

warehouse, table = map(Path, sys.argv[1:])
spark = configure_spark_with_iceberg_writer_compat(local_builder(warehouse)).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
print("ready", flush=True)
enable_iceberg_writer_compat(spark, table, rewrite=True)
