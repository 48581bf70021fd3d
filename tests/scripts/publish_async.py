"""Commits to a table that is published in the background, and ends at once."""

from __future__ import annotations

import sys
from pathlib import Path

from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat
from sessions import local_builder

warehouse = Path(sys.argv[1])
builder = local_builder(warehouse).config("spark.icebergWriterCompat.publish.async", "true")
spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
folder = warehouse / "t"
spark.sql(
    f"CREATE TABLE delta.`{folder}` (a INT) USING delta TBLPROPERTIES "
    "('delta.enableIcebergWriterCompatV1' = 'true', 'icebergWriterCompat.publish' = 'true')"
)
for number in range(5):
    spark.sql(f"INSERT INTO delta.`{folder}` VALUES ({number})")
spark.stop()
print("done")
