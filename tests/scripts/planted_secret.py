"""Lets publishing fail in catalogs whose settings contain a secret, and prints all output."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from iceberg_writer_compat import (
    check,
    configure_spark_with_iceberg_writer_compat,
    publish,
    status,
)
from sessions import local_builder

warehouse, secret = Path(sys.argv[1]), sys.argv[2]
prefix = "spark.icebergWriterCompat.catalog."
catalogs = [
    {
        "type": "jdbc",
        "uri": f"jdbc:postgresql://user:{secret}@127.0.0.1:1/db?user=user&password={secret}",
        "jdbc.password": secret,
    },
    {"type": "rest", "uri": f"http://127.0.0.1:1/{'x' * 8}", "token": secret},
    {"type": "rest", "uri": "http://127.0.0.1:1", "credential": f"me:{secret}"},
    # A driver that repeats its address in errors.
    {"type": "jdbc", "uri": f"jdbc:sqlite::resource:no-such?password={secret}"},
    {"type": "jdbc", "uri": f"jdbc:nobody:db?password={secret}", "jdbc.password": secret},
]
spark = configure_spark_with_iceberg_writer_compat(local_builder(warehouse)).getOrCreate()
spark.sparkContext.setLogLevel("WARN")
assert spark._jvm is not None
configurator = spark._jvm.org.apache.logging.log4j.core.config.Configurator
package = "org.apache.spark.sql.delta.writercompat"
configurator.setLevel(package, spark._jvm.org.apache.logging.log4j.Level.DEBUG)
spark.sql(
    "CREATE TABLE t (a INT) USING delta TBLPROPERTIES "
    "('delta.enableIcebergWriterCompatV1' = 'true', 'icebergWriterCompat.publish' = 'true')"
)
statements: tuple[str, ...] = (
    "SHOW TBLPROPERTIES t",
    "DESCRIBE EXTENDED t",
    "EXPLAIN EXTENDED SELECT * FROM t",
    "EXPLAIN EXTENDED INSERT INTO t VALUES (9)",
    "SELECT * FROM iceberg_writer_compat_check('t')",
)
failed = 0
for number, settings in enumerate(catalogs):
    for key, value in settings.items():
        spark.conf.set(prefix + key, value)
    # The hook reports the failure in Spark's log.
    spark.sql(f"INSERT INTO t VALUES ({number})")
    for door in (publish, status):
        try:
            print(door.__name__, door(spark, "t"))
        except Exception:
            failed += door is publish
            print(traceback.format_exc())
    report = check(spark, "t")
    print(report, report.to_json(), report.to_html())
    for statement in statements:
        print([tuple(row) for row in spark.sql(statement).collect()])
    statements = ()
    try:
        spark.sql("VACUUM t")
    except Exception:
        print(traceback.format_exc())
    for key in settings:
        spark.conf.unset(prefix + key)
print(f"{failed} of {len(catalogs)} failed")
