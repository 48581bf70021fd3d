"""A JVM that has no jar of this project: no session in it is ever taken for a guarded one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iceberg_writer_compat import (
    NoActiveSessionError,
    NotInstalledError,
    configure_spark_with_iceberg_writer_compat,
    enable_iceberg_writer_compat,
)
from sessions import jars, local_builder

warehouse = Path(sys.argv[1])

# The jar gets lost after configuring; Spark only warns about the missing class.
builder = configure_spark_with_iceberg_writer_compat(local_builder(warehouse))
builder.config("spark.jars", jars(own=False))
with pytest.raises(NotInstalledError, match="does not have the jar") as refused:
    builder.getOrCreate()
for line in (
    "configure_spark_with_iceberg_writer_compat(builder).getOrCreate()",
    "--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension,"
    "org.icebergwritercompat.IcebergWriterCompatExtension",
):
    assert line in str(refused.value)

# It is the user's session, and goes on without the guard.
spark = local_builder(warehouse).getOrCreate()
assert spark.range(3).count() == 3
with pytest.raises(NotInstalledError, match="does not have the jar"):
    enable_iceberg_writer_compat(spark, "t")

# The same JVM cannot get the jar any more, with or without a session.
for _ in range(2):
    again = configure_spark_with_iceberg_writer_compat(local_builder(warehouse))
    with pytest.raises(NotInstalledError, match=r"spark\.jars cannot change while a JVM runs"):
        again.getOrCreate()
    spark.stop()
with pytest.raises(NoActiveSessionError, match="was stopped"):
    enable_iceberg_writer_compat(spark)
print("done")
