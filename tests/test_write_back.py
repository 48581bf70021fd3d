"""Iceberg's own Spark connector writes to Delta tables, and other readers see the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from conftest import Table, rows, session_conf
from iceberg_writer_compat import prove, publish, verify

CATALOG = "org.icebergwritercompat.DeltaIcebergCatalog"


@pytest.fixture
def ice(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the Iceberg catalog `ice`, whose tables are the Delta tables."""
    spark.conf.set("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.ice.catalog-impl", CATALOG)
    yield spark


def last_operation(table: Table) -> str:
    return str(table.spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0].operation)


def assert_same(table: Table) -> list[Any]:
    """The rows, if Delta, Iceberg's connector and pyiceberg see the same ones."""
    spark = table.spark
    seen = rows(spark, table.name)
    assert rows(spark, f"ice.default.{table.name}") == seen
    published = publish(spark, table.name)
    scan = StaticTable.from_metadata(published.metadata_location).scan()
    assert len(scan.to_arrow()) == len(seen)
    report = verify(spark, table.name)
    assert report.compliant, str(report)
    return seen


def test_statements_of_iceberg(ice: SparkSession, table: Table) -> None:
    name = f"ice.default.{table.name}"
    ice.sql(f"CREATE TABLE {name} (id BIGINT, name STRING, p INT) PARTITIONED BY (p)")
    assert table.spark.sql(f"DESCRIBE DETAIL {table}").collect()[0].format == "delta"
    ice.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2), (4, 'd', null)")
    assert last_operation(table) == "ICEBERG APPEND"
    assert len(assert_same(table)) == 4
    ice.sql(f"UPDATE {name} SET name = 'B' WHERE id = 2")
    assert (2, "B", 1) in assert_same(table)
    ice.sql(f"DELETE FROM {name} WHERE id = 3")
    assert len(assert_same(table)) == 3
    # Delta in between.
    ice.sql(f"INSERT INTO {table} VALUES (5, 'e', 2), (6, 'f', 3)")
    ice.sql(f"OPTIMIZE {table}")
    assert len(assert_same(table)) == 5
    ice.sql(
        f"MERGE INTO {name} t USING (SELECT 5 AS id, 'E' AS name UNION ALL SELECT 7, 'g') s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
        " WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, 3)"
    )
    merged = assert_same(table)
    assert (5, "E", 2) in merged and (7, "g", 3) in merged
    with session_conf(ice, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        ice.sql(f"INSERT OVERWRITE {name} VALUES (8, 'h', 3)")
    assert [row for row in assert_same(table) if row[2] == 3] == [(8, "h", 3)]
    ice.sql(f"DELETE FROM {name} WHERE p IS NULL")
    assert all(row[2] is not None for row in assert_same(table))
    ice.sql(f"ALTER TABLE {name} ADD COLUMN s STRUCT<x: INT, y: ARRAY<DATE>> COMMENT 'a doc'")
    ice.sql(f"ALTER TABLE {name} ADD COLUMN s.z STRING")
    ice.sql(f"ALTER TABLE {name} ALTER COLUMN s.x TYPE BIGINT")
    ice.sql(f"ALTER TABLE {name} RENAME COLUMN name TO title")
    ice.sql(f"ALTER TABLE {name} ALTER COLUMN title FIRST")
    ice.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('k' = 'v')")
    ice.sql(
        f"INSERT INTO {name} SELECT 'z', 9, 4,"
        " named_struct('x', 5000000000, 'y', array(DATE'2026-01-01'), 'z', 'zz')"
    )
    assert_same(table)
    ice.sql(f"ALTER TABLE {name} DROP COLUMN s")
    ice.sql(f"RESTORE {table} TO VERSION AS OF 2")
    ice.sql(f"INSERT INTO {name} VALUES (10, 'k', 5)")
    assert (10, "k", 5) in assert_same(table)
    ice.sql(f"TRUNCATE TABLE {name}")
    assert assert_same(table) == []


def test_maintenance_by_iceberg(ice: SparkSession, table: Table) -> None:
    name = f"ice.default.{table.name}"
    ice.sql(f"CREATE TABLE {name} (id BIGINT)")
    for i in range(3):
        ice.sql(f"INSERT INTO {name} VALUES ({i})")
    first = ice.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").first()
    assert first is not None
    ice.sql(
        f"CALL ice.system.rewrite_data_files(table => 'default.{table.name}',"
        " options => map('min-input-files', '2'))"
    )
    assert last_operation(table) == "ICEBERG REPLACE"
    assert len(assert_same(table)) == 3
    ice.sql(f"CALL ice.system.rewrite_manifests('default.{table.name}')")
    assert len(assert_same(table)) == 3
    ice.sql(f"CALL ice.system.rollback_to_snapshot('default.{table.name}', {first[0]})")
    assert assert_same(table) == [(0,)]
    ice.sql(f"INSERT INTO {name} VALUES (7)")
    assert assert_same(table) == [(0,), (7,)]


def test_tables_from_queries(ice: SparkSession, table: Table) -> None:
    name = f"ice.default.{table.name}"
    ice.sql(f"CREATE TABLE {name} AS SELECT id, concat('n', id) AS name FROM range(0, 5)")
    assert last_operation(table) == "ICEBERG APPEND"
    assert len(assert_same(table)) == 5
    ice.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT id, id * 2 AS twice FROM range(0, 3)")
    assert assert_same(table) == [(0, 0), (1, 2), (2, 4)]
    proof = prove(ice, table.name, ["pyiceberg", "duckdb"])
    assert proof.proven, str(proof)


def test_refused_by_iceberg(ice: SparkSession, table: Table) -> None:
    name = f"ice.default.{table.name}"
    with pytest.raises(Exception, match=r"COMMIT_REFUSED\.PARTITION_TRANSFORM"):
        ice.sql(f"CREATE TABLE {name} (id BIGINT) PARTITIONED BY (bucket(4, id))")
    with pytest.raises(Exception, match=r"COMMIT_REFUSED\.PARTITION_TRANSFORM"):
        ice.sql(f"CREATE TABLE {name} PARTITIONED BY (bucket(4, id)) AS SELECT 1L AS id")
    assert not table.folder.exists()
    ice.sql(f"CREATE TABLE {name} (id BIGINT)")
    ice.sql(f"INSERT INTO {name} VALUES (1)")
    with pytest.raises(Exception, match=r"COMMIT_REFUSED\.PROPERTY"):
        ice.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    with pytest.raises(Exception, match=r"COMMIT_REFUSED\.BRANCH_OR_TAG"):
        table_of = ice._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(  # type: ignore[union-attr]
            ice._jsparkSession, name
        )
        table_of.manageSnapshots().createTag("t", table_of.currentSnapshot().snapshotId()).commit()
    assert assert_same(table) == [(1,)]
