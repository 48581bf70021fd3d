"""Creates and publishes tables on S3, as the lines of the standard input ask for.

Argument: the settings of Hadoop, as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat, publish
from sessions import local_builder, store_jars

builder = (
    local_builder(Path(tempfile.mkdtemp()))
    .config("spark.jars", ",".join(map(str, store_jars())))
    .config("spark.ui.enabled", "false")
)
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(f"spark.hadoop.{key}", value)
spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
for line in sys.stdin:
    word, path = line.split()
    if word == "create":
        spark.sql(
            f"CREATE TABLE delta.`{path}` (a INT, b STRING) USING delta "
            "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
        )
        spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'x')")
    elif word == "checkpoint":
        assert spark._jvm is not None
        logs: Any = spark._jvm.org.apache.spark.sql.delta.DeltaLog
        logs.forTable(spark._jsparkSession, path).checkpoint()
    else:
        publish(spark, path)
    print("done", flush=True)
spark.stop()
