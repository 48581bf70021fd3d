"""What Iceberg's connector for Spark does with Delta tables by a REST catalog.

This JVM has neither Delta nor this project. Arguments: the address of the catalog; the table; a
store with the certificate of the catalog.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from sessions import local_builder, reader_jars
from steps import step

uri, name, trusted = sys.argv[1:]
trust = f"-Djavax.net.ssl.trustStore={trusted} -Djavax.net.ssl.trustStorePassword=changeit"
catalog = "spark.sql.catalog.delta"
spark = (
    local_builder(Path(tempfile.mkdtemp()))
    .config("spark.jars", reader_jars())
    .config(
        "spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    )
    .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
    .config(f"{catalog}.type", "rest")
    .config(f"{catalog}.uri", uri)
    .config(f"{catalog}.token", os.environ["TOKEN"])
    .config(f"{catalog}.cache-enabled", "false")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", trust)
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
assert spark._jvm is not None
with pytest.raises(Exception, match="ClassNotFound"):
    spark._jvm.java.lang.Class.forName("org.icebergwritercompat.IcebergWriterCompat")


def do(what: str, *statements: str) -> None:
    """Runs statements about `{t}`, as one step."""
    for statement in statements:
        spark.sql(statement.format(t=f"delta.{name}"))
    rows = spark.table(f"delta.{name}").collect() if what != "drop" else []
    if what != "drop":
        step(what, name, map(tuple, rows))


do("create", "CREATE TABLE {t} (id BIGINT, name STRING, p INT) PARTITIONED BY (p)")
do("insert", "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2), (4, 'd', null)")
do("update", "UPDATE {t} SET name = 'B' WHERE id = 2")
do("delete", "DELETE FROM {t} WHERE id = 3")
do(
    "merge",
    "MERGE INTO {t} t USING (SELECT 1 AS id, 'A' AS name UNION ALL SELECT 7, 'g') s"
    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
    " WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, 3)",
)
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
do("dynamic overwrite", "INSERT OVERWRITE {t} VALUES (8, 'h', 3)")
do(
    "alter",
    "ALTER TABLE {t} ADD COLUMN s STRUCT<x: INT, y: ARRAY<DATE>>",
    "ALTER TABLE {t} ADD COLUMN s.z STRING",
    "ALTER TABLE {t} ALTER COLUMN s.x TYPE BIGINT",
    "ALTER TABLE {t} RENAME COLUMN name TO title",
    "ALTER TABLE {t} ALTER COLUMN title FIRST",
    "ALTER TABLE {t} SET TBLPROPERTIES ('k' = 'v')",
    "INSERT INTO {t} SELECT 'z', 9, 4, named_struct('x', 5000000000, 'y', array(DATE'2026-01-01'),"
    " 'z', 'zz')",
)
do(
    "maintenance",
    f"CALL delta.system.rewrite_data_files(table => '{name}',"
    " options => map('min-input-files', '2', 'rewrite-all', 'true'))",
    f"CALL delta.system.rewrite_manifests('{name}')",
)
do("drop column", "ALTER TABLE {t} DROP COLUMN s")
for statement, reason in (
    ("ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)", "PARTITION_TRANSFORM"),
    ("ALTER TABLE {t} WRITE ORDERED BY id", "SORT_ORDER"),
    ("ALTER TABLE {t} CREATE TAG x", "BRANCH_OR_TAG"),
):
    with pytest.raises(Exception, match=reason):
        spark.sql(statement.format(t=f"delta.{name}"))
do("truncate", "TRUNCATE TABLE {t}")
do("replace", "CREATE OR REPLACE TABLE {t} PARTITIONED BY (p) AS SELECT 1L AS id, 2 AS p")
do("drop", "DROP TABLE {t}", "CREATE NAMESPACE delta.of_spark", "DROP NAMESPACE delta.of_spark")
spark.stop()
