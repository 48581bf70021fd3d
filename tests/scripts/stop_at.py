"""Runs statements of an Iceberg client on threads, each of which stops at a moment of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from threading import Thread

from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat
from sessions import local_builder, reader_jars

warehouse, classes, work = sys.argv[1:]
# Of each: what comes before, the statement, the path that it stops at, and what is there by then.
tasks: list[dict[str, str]] = json.loads(work)
testing = "org.icebergwritercompat.testing"
builder = (
    local_builder(Path(warehouse))
    .config("spark.jars", reader_jars())
    .config("spark.driver.extraClassPath", classes)
    .config("spark.hadoop.fs.file.impl", f"{testing}.StoppingFs")
    # It writes the log by the same file system.
    .config("spark.delta.logStore.file.impl", "io.delta.storage.LocalLogStore")
    .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.ice.catalog-impl", "org.icebergwritercompat.DeltaIcebergCatalog")
    # Its lock is held by a thread that has stopped, and may be that of another table.
    .config("spark.sql.catalog.ice.cache-enabled", "false")
    .config("spark.sql.codegen.wholeStage", "false")
)
for number, task in enumerate(tasks):
    builder = builder.config(f"spark.hadoop.test.stop.{number}", f"{task['at']} {task['there']}")
spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for task in tasks:
    for statement in filter(None, task["before"].split(";")):
        spark.sql(statement)
threads = [Thread(target=spark.sql, args=(task["statement"],)) for task in tasks]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("nothing stopped", flush=True)
