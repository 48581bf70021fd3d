"""Publishes tables in the Hive metastore that also holds the Delta tables.

Arguments: a warehouse; the port of the metastore.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from iceberg_writer_compat import (
    check,
    configure_spark_with_iceberg_writer_compat,
    publish,
    status,
)
from sessions import local_builder, reader_jars

warehouse, uri = Path(sys.argv[1]), f"thrift://127.0.0.1:{sys.argv[2]}"
builder = (
    local_builder(warehouse)
    .enableHiveSupport()
    .config("spark.jars", reader_jars())
    # Compiling generated code takes longer than the few small queries.
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    .config("spark.hadoop.hive.metastore.uris", uri)
    # Derby has no tables for Hive's locks.
    .config("spark.hadoop.iceberg.engine.hive.lock-enabled", "false")
    .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.ice.type", "hive")
    .config("spark.sql.catalog.ice.uri", uri)
    .config("spark.sql.catalog.ice.cache-enabled", "false")
)
spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
prefix = "spark.icebergWriterCompat.catalog"
in_hive = {f"{prefix}.type": "hive", f"{prefix}.uri": uri}
in_use = "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.NAME_IN_USE"


def use(settings: dict[str, str]) -> None:
    """Publishes to this catalog from now on."""
    for key in in_hive:
        spark.conf.unset(key)
    for key, value in settings.items():
        spark.conf.set(key, value)


def created(name: str, more: str = "") -> Path:
    """A Delta table in the metastore."""
    spark.sql(
        f"CREATE TABLE {name} (a INT) USING delta "
        f"TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true'{more})"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    place = spark.sql(f"DESCRIBE DETAIL {name}").first()
    assert place is not None
    return Path(str(place["location"]).removeprefix("file:"))


def refused(name: str) -> str:
    """The statement that is offered where the name is in use."""
    with pytest.raises(PySparkException) as error:
        publish(spark, name)
    assert error.value.getCondition() == in_use, error.value
    text = str(error.value)
    assert "is not an Iceberg table" in text, text
    return text.partition('Run: spark.sql("')[2].partition('")')[0]


def rows(name: str) -> list[Any]:
    """The rows of a table."""
    return sorted(tuple(row) for row in spark.table(name).collect())


def assert_published(name: str) -> None:
    """Iceberg's connector finds it in the metastore, and Delta keeps its own table."""
    assert rows(f"ice.{name}_iceberg") == rows(name)
    assert status(spark, name).problems == (), status(spark, name)


def wedge(name: str) -> Path:
    """A table whose metadata was bound to its name by a version that did not look; its folder."""
    folder = created(name)
    use({})
    publish(spark, name)
    first = json.loads((folder / "metadata/v1.metadata.json").read_text())
    first["properties"] |= {"delta-catalog": f"iceberg at {uri}", "delta-catalog-table": name}
    (folder / "metadata/v2.metadata.json").write_text(json.dumps(first))
    (folder / "metadata/version-hint.text").write_text("2")
    (folder / "metadata/.version-hint.text.crc").unlink(missing_ok=True)
    with pytest.raises(PySparkException, match="ELSEWHERE"):
        publish(spark, name)
    return folder


spark.sql("CREATE DATABASE db")
use(in_hive)

# A new table: refused before anything is written; what is offered, works.
folder = created("db.fresh")
offered = refused("db.fresh")
assert not (folder / "metadata").exists()
assert any("NAME_IN_USE" in p.text for p in status(spark, "db.fresh").problems)
assert check(spark, "db.fresh").compliant
spark.sql(offered)
assert publish(spark, "db.fresh").catalog_table == "db.fresh_iceberg"
assert_published("db.fresh")
spark.sql("INSERT INTO db.fresh VALUES (2)")
spark.sql("DELETE FROM db.fresh WHERE a = 1")
assert publish(spark, "db.fresh").snapshots == 2
assert_published("db.fresh")

# After each commit: the commit is made, and the problem is named.
created("db.hooked")
spark.sql("ALTER TABLE db.hooked SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
problems = status(spark, "db.hooked").problems
assert any("NAME_IN_USE" in p.text for p in problems), problems
spark.sql(
    "ALTER TABLE db.hooked SET TBLPROPERTIES "
    "('icebergWriterCompat.publish.table' = 'db.hooked_iceberg')"
)
spark.sql("INSERT INTO db.hooked VALUES (2)")
assert_published("db.hooked")

# From its creation on, when its own name is not in the metastore yet.
folder = created("db.begun", ", 'icebergWriterCompat.publish' = 'true'")
assert rows("db.begun") == [(1,)] and not (folder / "metadata").exists()
assert any("NAME_IN_USE" in p.text for p in status(spark, "db.begun").problems)
spark.sql(refused("db.begun"))
publish(spark, "db.begun")
assert_published("db.begun")

# From its creation on, under a name of its own.
created(
    "db.named",
    ", 'icebergWriterCompat.publish' = 'true', "
    "'icebergWriterCompat.publish.table' = 'db.named_iceberg'",
)
assert_published("db.named")

# One that is wedged gets out by another name.
wedge("db.wedged")
use(in_hive)
spark.sql("INSERT INTO db.wedged VALUES (2)")
spark.sql(refused("db.wedged"))
publish(spark, "db.wedged")
assert_published("db.wedged")
# The line goes on.
line = spark.sql("SELECT * FROM ice.db.wedged_iceberg.snapshots").count()
assert line == 2, line
# One that is registered stays where it is.
spark.sql(
    "ALTER TABLE db.wedged SET TBLPROPERTIES ('icebergWriterCompat.publish.table' = 'db.other')"
)
with pytest.raises(PySparkException, match="ELSEWHERE"):
    publish(spark, "db.wedged")

# One that is wedged gets out by no name, and is then as if there had never been a catalog.
folder = wedge("db.freed")
no_name = "('icebergWriterCompat.publish.table' = 'none')"
spark.sql(f"ALTER TABLE db.freed SET TBLPROPERTIES {no_name}")
with pytest.raises(PySparkException, match="ELSEWHERE"):
    publish(spark, "db.freed")
use(in_hive)
spark.sql("INSERT INTO db.freed VALUES (2)")
assert publish(spark, "db.freed").catalog_table is None
assert status(spark, "db.freed").problems == (), status(spark, "db.freed")
use({})
spark.sql("ALTER TABLE db.freed UNSET TBLPROPERTIES ('icebergWriterCompat.publish.table')")
spark.sql("INSERT INTO db.freed VALUES (3)")
found = publish(spark, "db.freed")
metadata = json.loads(Path(found.metadata_location.removeprefix("file:")).read_text())
assert (
    metadata["table-uuid"]
    == json.loads((folder / "metadata/v1.metadata.json").read_text())["table-uuid"]
)
assert [s["summary"]["delta-version"] for s in metadata["snapshots"]] == ["1", "3", "5"]
assert not any(key.startswith("delta-catalog") for key in metadata["properties"])
seen = spark.read.format("iceberg").load(found.metadata_location)
assert sorted(tuple(row) for row in seen.collect()) == rows("db.freed") == [(1,), (2,), (3,)]
print("done")
