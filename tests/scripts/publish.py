"""Publishes a table repeatedly, until the process is killed."""

from __future__ import annotations

import sys
from pathlib import Path

from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat, publish
from sessions import local_builder

warehouse, folder = map(Path, sys.argv[1:])
spark = configure_spark_with_iceberg_writer_compat(local_builder(warehouse)).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
print("ready", flush=True)
number = 0
while True:
    for _ in range(3):
        spark.sql(f"INSERT INTO delta.`{folder}` VALUES ({number}, 'x')")
        number += 1
    publish(spark, folder)
    print(number, flush=True)
