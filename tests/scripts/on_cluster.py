"""A table on a cluster whose executors are processes of their own.

Arguments: a warehouse; the address of the master.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from iceberg_writer_compat import (
    configure_spark_with_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    prove,
    publish,
    status,
    verify,
)
from sessions import local_builder

warehouse, master = Path(sys.argv[1]), sys.argv[2]
# `prove` needs numpy and pyarrow on the executors.
os.environ["PYSPARK_PYTHON"] = sys.executable
builder = (
    local_builder(warehouse)
    .master(master)
    .config("spark.executor.memory", "512m")
    .config("spark.executor.cores", "1")
    # Over a few statements the optimizing compiler, and generated code, take longer than they save.
    .config("spark.executor.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    .config("spark.ui.enabled", "false")
)
spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
context = spark.sparkContext._jsc.sc()

deadline = time.monotonic() + 60
while context.getExecutorMemoryStatus().size() < 3 and time.monotonic() < deadline:
    time.sleep(0.1)
pids = spark.sql(
    "SELECT DISTINCT reflect('java.lang.ProcessHandle', 'current') AS pid FROM range(0, 16, 1, 16)"
)
assert spark._jvm is not None
driver = str(spark._jvm.java.lang.ProcessHandle.current().pid())
executors = {row.pid for row in pids.collect()}
assert len(executors) == 2 and driver not in executors, (executors, driver)

# A table with the feature from the start.
new = warehouse / "new"
spark.sql(
    f"CREATE TABLE delta.`{new}` (a INT, b STRING, p INT) USING delta PARTITIONED BY (p) "
    "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true', "
    "'icebergWriterCompat.publish' = 'true')"
)
spark.range(0, 40, 1, 4).selectExpr("int(id) a", "string(id) b", "int(id % 3) p").write.format(
    "delta"
).mode("append").save(str(new))
spark.sql(
    f"MERGE INTO delta.`{new}` t USING (SELECT int(id) a FROM range(35, 45)) s ON t.a = s.a "
    "WHEN MATCHED THEN UPDATE SET b = 'merged' "
    "WHEN NOT MATCHED THEN INSERT (a, b, p) VALUES (s.a, 'new', 1)"
)
spark.sql(f"OPTIMIZE delta.`{new}`")

# One that gets it, and whose files are written anew: its columns have no ids.
old = warehouse / "old"
spark.range(0, 40, 1, 4).selectExpr("id", "timestamp_seconds(id) t").write.format("delta").save(
    str(old)
)
result = enable_iceberg_writer_compat(spark, old, rewrite=True)
assert result.files_rewritten == 4, result
publish(spark, old)

# All checks by both readers for one table; the other's files have the same form.
light = {"readers": ["pyiceberg"], "checks": ["schema", "rows", "values"]}
full = {"readers": ["pyiceberg", "duckdb"], "versions": 2}
for folder, count, how in ((new, 45, full), (old, 40, light)):
    assert spark.read.format("delta").load(str(folder)).count() == count
    assert verify(spark, folder).compliant
    found = status(spark, folder)
    assert (found.lag, found.problems) == (0, ()), found
    proof = prove(spark, folder, **how)
    assert proof.proven, proof
spark.stop()
print("done")
