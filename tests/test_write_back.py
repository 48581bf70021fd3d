"""Iceberg's own Spark connector writes to Delta tables, and other readers see the same rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import oracle
from conftest import Table, compiled, rows, session_conf, to_be_killed
from iceberg_writer_compat import prove, publish, verify
from iceberg_writer_compat.proving import CHECKS, READERS
from test_prove import COLUMNS, GREATEST, LEAST, NULLS, ODD, ZEROS

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


# --- Every operation, and every reader ------------------------------------------------------------

# By Iceberg's connector (`{i}`) and by Delta (`{t}`); what each makes of the rows is in `prove`.
OPERATIONS = (
    "INSERT INTO {i} VALUES (1, 'x', 'a', 1, 1.5, 1.25, null, map('k', 1), TIMESTAMP'2026-01-01'),"
    " (2, 'a b/c%20=ü&?#:+\\'\"é', 'b', 2, float('NaN'), -1.25, named_struct('a', 1, 'b',"
    " array(named_struct('c', 2))), map(), null), (3, null, null, null, null, null, null, null,"
    " null), (4, 'null', 'd', 4, -0.0, 0, named_struct('a', null, 'b', array()), map('l', null),"
    " TIMESTAMP'0001-01-01')",
    "INSERT INTO {i} SELECT id, 'x', 'many', 7, 0.5, 0.5, null, null, null FROM range(10, 14)",
    "UPDATE {i} SET name = concat(name, '!'), n = n + 1 WHERE id IN (1, 3, 11)",
    "DELETE FROM {i} WHERE id = 12",
    "MERGE INTO {i} t USING (SELECT id, 'merged' AS name FROM range(2, 21, 2)) s ON t.id = s.id"
    " WHEN MATCHED AND t.p = 'x' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name"
    " WHEN NOT MATCHED THEN INSERT (id, p, name) VALUES (s.id, 'y', s.name)",
    "INSERT INTO {t} (id, p, name) VALUES (5, 'x', 'delta'), (6, 'y', 'delta')",
    "OPTIMIZE {t}",
    "INSERT OVERWRITE {i} PARTITION (p = 'y') SELECT 30, 'static', 1, 1.0, 1, null, null, null",
    "SET spark.sql.sources.partitionOverwriteMode=dynamic",
    "INSERT OVERWRITE {i} VALUES (31, 'z', 'dynamic', 1, 1.0, 1, null, null, null),"
    " (32, 'null', 'dynamic', 1, 1.0, 1, null, null, null)",
    "SET spark.sql.sources.partitionOverwriteMode=static",
    "MERGE INTO {t} t USING (SELECT 31 AS id UNION ALL SELECT 40) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET name = 'delta' WHEN NOT MATCHED THEN INSERT (id, p)"
    " VALUES (s.id, 'w')",
    "DELETE FROM {i} WHERE p = 'null'",
    "ALTER TABLE {i} ADD COLUMNS (late DATE COMMENT 'a doc' AFTER id, s.d STRING)",
    "ALTER TABLE {i} ADD COLUMN s.b.element.e ARRAY<INT>",
    "ALTER TABLE {i} RENAME COLUMN s.a TO aa",
    "ALTER TABLE {i} ALTER COLUMN n TYPE BIGINT",
    "ALTER TABLE {i} ALTER COLUMN s.aa TYPE BIGINT",
    "ALTER TABLE {i} ALTER COLUMN f TYPE DOUBLE",
    "ALTER TABLE {i} ALTER COLUMN amount TYPE DECIMAL(20, 2)",
    "ALTER TABLE {i} ALTER COLUMN name COMMENT 'another doc'",
    "ALTER TABLE {i} ALTER COLUMN f AFTER name",
    "ALTER TABLE {i} ALTER COLUMN id DROP NOT NULL",
    "ALTER TABLE {i} DROP COLUMN t",
    "ALTER TABLE {i} ADD COLUMN t STRING",
    "INSERT INTO {i} (id, p, late, n, f, amount, t, s) VALUES (null, 'x', DATE'9999-12-31',"
    " 9223372036854775807, 1.7976931348623157E308, 999999999999999999.99, 'again',"
    " named_struct('aa', 5000000000, 'b', array(named_struct('c', 1, 'e', array(1, null))),"
    " 'd', 'deep'))",
    "INSERT INTO {t} (id, p, t) VALUES (50, 'x', 'by delta'), (51, 'v', null)",
    "CALL ice.system.rewrite_data_files(table => '{n}', options => map('rewrite-all', 'true'))",
    "CALL ice.system.rewrite_manifests('{n}')",
    "UPDATE {t} SET name = 'u' WHERE id = 50",
    "VACUUM {t}",
    "ALTER TABLE {t} ADD COLUMN of_delta ARRAY<STRUCT<q: INT>>",
    "INSERT INTO {i} (id, p, of_delta) VALUES (52, 'v', array(named_struct('q', 1), null))",
    "RESTORE {t} TO VERSION AS OF {mark}",
    "DELETE FROM {i} WHERE id = 11",
    "CALL ice.system.rollback_to_snapshot('{n}', {first})",
    "INSERT INTO {i} (id, p, name) VALUES (60, 'x', 'after')",
    "CREATE OR REPLACE TABLE {i} (id BIGINT, p STRING, other MAP<INT, STRING>) PARTITIONED BY (p)",
    "INSERT INTO {i} VALUES (1, 'x', map(1, 'one')), (2, null, null)",
    "CREATE OR REPLACE TABLE {i} PARTITIONED BY (p) AS"
    " SELECT id, cast(id % 2 AS STRING) AS p, id * 2 AS twice FROM range(0, 6)",
    "TRUNCATE TABLE {i}",
    "INSERT INTO {i} VALUES (7, 'x', 14)",
)


def test_every_operation_is_seen_alike(ice: SparkSession, table: Table) -> None:
    name = f"ice.default.{table}"
    ice.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, p STRING, name STRING, n INT, f FLOAT,"
        " amount DECIMAL(9, 2), s STRUCT<a: INT, b: ARRAY<STRUCT<c: INT>>>, m MAP<STRING, INT>,"
        " t TIMESTAMP) PARTITIONED BY (p)"
    )
    first, mark = 0, 0
    for operation in OPERATIONS:
        words = {"i": name, "t": table, "n": f"default.{table}", "first": first, "mark": mark}
        statement = operation.format(**words)
        before = table.log.version
        ice.sql(statement).collect()
        if statement.startswith("SET"):
            continue
        now = table.log.version
        assert now == before + 1 or "VACUUM" in statement, statement
        assert oracle.check(table.folder) == [], statement
        assert publish(ice, table.name).delta_version == now
        # The rows of each version follow below, when all of them are there.
        proof = prove(ice, table.name, ["pyiceberg", "duckdb"], checks=["schema"])
        assert proof.proven and proof.published_version == now, f"{statement}\n{proof}"
        if not first:
            found = ice.sql(f"SELECT snapshot_id FROM {name}.refs").first()
            assert found is not None
            first = found[0]
        if "by delta" in statement:
            mark = now
    proof = prove(ice, table.name, READERS, versions=None)
    assert proof.proven, str(proof)
    snapshots = ice.sql(f"SELECT summary['delta-version'] AS version FROM {name}.snapshots")
    assert sorted(proof.versions) == sorted(int(row.version) for row in snapshots.collect())
    assert len(proof.versions) > 20
    assert verify(ice, table.name).compliant


def test_every_type_written_by_iceberg(ice: SparkSession, table: Table) -> None:
    name = f"ice.default.{table}"
    ice.sql(f"CREATE TABLE {name} ({COLUMNS})")
    for some in (GREATEST, LEAST, f"{NULLS}), ({ODD}), ({ZEROS}"):
        ice.sql(f"INSERT INTO {name} VALUES ({some})")
    # Promoted and renamed in one commit, which is no statement.
    api: Any = ice._jvm
    types = api.org.apache.iceberg.types.Types
    loaded = api.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(ice._jsparkSession, name)
    update = loaded.updateSchema().renameColumn("int", "wide")
    update.updateColumn("int", types.LongType.get()).renameColumn("float", "double").updateColumn(
        "float", types.DoubleType.get()
    ).updateColumn("dec", types.DecimalType.of(18, 2)).makeColumnOptional("must").commit()
    ice.sql(f"UPDATE {name} SET l = l - 1 WHERE must = 4")
    ice.sql(f"DELETE FROM {table} WHERE must = 3")
    assert oracle.check(table.folder) == []
    publish(ice, table.name)
    proof = prove(ice, table.name, READERS, versions=None)
    assert proof.proven, str(proof)
    assert proof.checks == CHECKS
    assert verify(ice, table.name).compliant


def test_increments_of_iceberg_across_commits_of_delta(
    ice: SparkSession, table: Table, tmp_path: Path
) -> None:
    name = f"ice.default.{table}"
    ice.sql(f"CREATE TABLE {name} (id BIGINT)")
    ice.sql(f"INSERT INTO {name} VALUES (1)")

    def newest() -> int:
        found = ice.sql(f"SELECT snapshot_id FROM {name}.refs WHERE name = 'main'").first()
        assert found is not None
        return int(found[0])

    def streamed() -> list[int]:
        """What a stream has read so far."""
        query = (
            ice.readStream.format("iceberg")
            .load(name)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "read"))
        )
        assert query.awaitTermination(120)
        return sorted(row.id for row in ice.read.parquet(str(tmp_path / "read")).collect())

    assert streamed() == [1]
    before = newest()
    ice.sql(f"INSERT INTO {table} VALUES (2), (3)")
    ice.sql(f"INSERT INTO {name} VALUES (4)")
    ice.sql(f"OPTIMIZE {table}")
    ice.sql(f"INSERT INTO {table} VALUES (5)")
    ice.table(name).collect()
    reader = ice.read.format("iceberg").option("start-snapshot-id", str(before))
    found = reader.option("end-snapshot-id", str(newest())).load(name).collect()
    assert sorted(row.id for row in found) == [2, 3, 4, 5]
    assert streamed() == [1, 2, 3, 4, 5]


# --- Killed processes -----------------------------------------------------------------------------

_CREATED = "CREATE TABLE {i} (id BIGINT); INSERT INTO {i} VALUES (1)"
_INSERT = "INSERT INTO {i} VALUES (2)"
_QUERY = "CREATE TABLE {i} AS SELECT id FROM range(0, 3)"

# Of each moment: what comes before, the statement, the path that is not made any more, and the
# version that is in the log by then.
KILLS = {
    "before_commit": (_CREATED, _INSERT, r"_delta_log/0*2\.json", 1),
    "after_commit": (_CREATED, _INSERT, r"metadata/[^/]*\.metadata\.json", 2),
    "while_publishing": (_CREATED, _INSERT, r"metadata/[^/]*-version-hint\.\w+", 2),
    "create_unnamed": ("", "CREATE TABLE {i} (id BIGINT)", "data", 0),
    "query_before_commit": ("", _QUERY, r"_delta_log/0*0\.json", -1),
    "query_unnamed": ("", _QUERY, "data", 0),
    "query_unpublished": ("", _QUERY, r"metadata/[^/]*\.metadata\.json", 0),
}


def test_killed_at_each_step(
    ice: SparkSession, table: Table, warehouse: Path, tmp_path: Path
) -> None:
    names = {step: f"{table}_{step}" for step in KILLS}
    tasks = [
        {
            "before": before.format(i=f"ice.default.{names[step]}"),
            "statement": statement.format(i=f"ice.default.{names[step]}"),
            "at": f".*/{names[step]}/{at}",
            "there": str(
                warehouse / names[step] / "_delta_log" / f"{version:020}.json"
                if version >= 0
                else warehouse
            ),
        }
        for step, (before, statement, at, version) in KILLS.items()
    ]
    classes = compiled("StoppingFs.java", tmp_path)
    with to_be_killed("stop_at.py", warehouse, classes, json.dumps(tasks)) as printed:
        stopped = [next(printed) for _ in tasks]
        assert all(line.startswith("stopped before") for line in stopped), stopped

    def ours(step: str) -> Table:
        return Table(ice, names[step], warehouse / names[step])

    def named(step: str) -> Table:
        """Another process has the names in its own catalog."""
        ice.sql(f"CREATE TABLE {names[step]} USING delta LOCATION '{warehouse / names[step]}'")
        return ours(step)

    # The version that was not made is made by the statement that is sent again.
    killed = named("before_commit")
    assert oracle.versions(killed.folder) == [0, 1]
    assert assert_same(killed) == [(1,)]
    ice.sql(_INSERT.format(i=f"ice.default.{killed}"))
    assert assert_same(killed) == [(1,), (2,)]

    for step in ("after_commit", "while_publishing"):
        killed = named(step)
        commit = (killed.folder / "_delta_log" / f"{2:020}.json").read_text(encoding="utf-8")
        info = next(
            a["commitInfo"] for a in map(json.loads, commit.splitlines()) if "commitInfo" in a
        )
        (snapshot,) = json.loads(info["tags"]["icebergWriterCompat.snapshots"])["snapshots"]
        # What the client sends again is there.
        _commit_again(ice, killed, snapshot)
        assert oracle.versions(killed.folder) == [0, 1, 2]
        assert assert_same(killed) == [(1,), (2,)]
        found = ice.sql(f"SELECT snapshot_id FROM ice.default.{killed}.refs").collect()
        assert [row.snapshot_id for row in found] == [snapshot["snapshot-id"]]
        ice.sql(f"INSERT INTO ice.default.{killed} VALUES (3)")
        assert assert_same(killed) == [(1,), (2,), (3,)]

    ice.sql(f"CREATE TABLE ice.default.{names['create_unnamed']} (id BIGINT)")
    assert assert_same(ours("create_unnamed")) == []
    for step in ("query_before_commit", "query_unnamed"):
        ice.sql(_QUERY.format(i=f"ice.default.{names[step]}"))
        assert assert_same(ours(step)) == [(0,), (1,), (2,)]
    # It was named, so whoever knows the name has the rows, and makes no other.
    killed = named("query_unpublished")
    with pytest.raises(Exception, match="already exists"):
        ice.sql(_QUERY.format(i=f"ice.default.{killed}"))
    assert assert_same(killed) == [(0,), (1,), (2,)]
    for name in names.values():
        ice.sql(f"DROP TABLE {name}")


def _commit_again(spark: SparkSession, table: Table, snapshot: dict[str, Any]) -> None:
    """Commits a snapshot to the metadata that was published before it."""
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    older = table.folder / "metadata" / "v2.metadata.json"
    catalog = jvm.org.icebergwritercompat.DeltaIcebergCatalog()
    catalog.initialize("again", {})
    identifier = iceberg.catalog.TableIdentifier.parse(f"default.{table}")
    operations = catalog.loadTable(identifier).operations()
    base = iceberg.TableMetadataParser.read(operations.io(), f"file:{older}")
    made = iceberg.SnapshotParser.fromJson(json.dumps(snapshot))
    builder = iceberg.TableMetadata.buildFrom(base)
    operations.commit(base, builder.setBranchSnapshot(made, "main").build())
