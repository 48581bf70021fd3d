"""Tables whose files Iceberg readers cannot read, rewritten and read by them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

import oracle
from conftest import Table, rows, session_conf, to_be_killed
from iceberg_writer_compat import enable_iceberg_writer_compat, publish, verify
from test_publish import by_delta, by_pyiceberg

COLUMNS = (
    "id BIGINT, h SMALLINT, t TINYINT, f FLOAT, d DOUBLE, m DECIMAL(9, 2), n DECIMAL(38, 9), "
    "s STRING, b BINARY, z BOOLEAN, day DATE, ts TIMESTAMP, local TIMESTAMP_NTZ, "
    "st STRUCT<x: SMALLINT, y: STRUCT<z: TINYINT>>, l ARRAY<TINYINT>, "
    "k MAP<SMALLINT, STRUCT<v: TINYINT>>, p SMALLINT, q STRING"
)
ROWS = (
    "1, 32767S, 127Y, CAST('NaN' AS FLOAT), CAST('-Infinity' AS DOUBLE), 9999999.99, "
    "99999999999999999999999999999.999999999, 'Zürich 北', X'00FF', true, DATE'9999-12-31', "
    "TIMESTAMP'2026-01-01 00:00:00.123456', TIMESTAMP_NTZ'2026-03-29 02:30:00.000001', "
    "named_struct('x', 32767S, 'y', named_struct('z', -128Y)), array(1Y, null, -128Y), "
    "map(-32768S, named_struct('v', 1Y)), 7S, 'a b/ü=%'",
    "2, -32768S, -128Y, CAST('-0.0' AS FLOAT), 4.9E-324D, -9999999.99, "
    "-0.000000001, '', X'', false, DATE'0001-01-01', TIMESTAMP'0001-01-03 00:00:00', "
    "TIMESTAMP_NTZ'0001-01-01 00:00:00', named_struct('x', null, 'y', null), array(), map(), "
    "-7S, 'x=1'",
    "3, null, null, null, null, null, null, null, null, null, DATE'1582-10-04', "
    "TIMESTAMP'1582-10-04 01:02:03.4', null, null, array(null), map(1S, null), null, null",
)
LEGACY = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
}


def data_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def test_all_that_older_writers_did_otherwise(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p, q)")
    for row in ROWS:
        spark.sql(f"INSERT INTO {table} SELECT {row} FROM range(0, 2, 1, 1)")
        with session_conf(spark, LEGACY):
            spark.sql(f"INSERT INTO {table} VALUES ({row})")
    spark.sql(f"UPDATE {table} SET id = 9 WHERE id = 1 AND f IS NOT NULL")
    schemas = [parquet.read_schema(file) for file in data_files(table.folder)]
    assert {str(schema.field("ts").type) for schema in schemas} >= {"timestamp[ns]"}
    before = by_delta(spark.table(table.name))
    version, old = table.log.version, data_files(table.folder)

    with pytest.raises(UnsupportedOperationException, match="REWRITE"):
        enable_iceberg_writer_compat(spark, table.name)
    assert table.log.version == version and data_files(table.folder) == old
    result = enable_iceberg_writer_compat(spark, table.name, rewrite=True)
    assert verify(spark, table.name).compliant
    assert (result.mode, result.files_kept) == ("rewrite", 0)
    assert result.files_rewritten is not None and result.files_rewritten > 3

    assert by_delta(spark.table(table.name)) == before
    assert oracle.check(table.folder) == []
    kinds = spark.table(table.name).schema.simpleString()
    assert "smallint" not in kinds and "tinyint" not in kinds
    assert by_delta(spark.read.option("versionAsOf", version).table(table.name)) == before
    assert by_pyiceberg(publish(spark, table.name).metadata_location) == before


@pytest.mark.parametrize("written", [1, 15])
def test_killed_while_files_are_written_and_called_again(
    spark: SparkSession, tmp_path: Path, written: int
) -> None:
    folder = tmp_path / "table"
    name = f"delta.`{folder}`"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, p INT, l ARRAY<BIGINT>) USING delta")
    for first in (0, 10):
        spark.range(first, first + 10, 1, 10).selectExpr(
            "id", "CAST(id % 3 AS INT) AS p", "array(id) AS l"
        ).write.format("delta").mode("append").save(str(folder))
    before, versions, files = rows(spark, name), oracle.versions(folder), data_files(folder)
    assert len(files) == 20
    with to_be_killed("enable.py", tmp_path / "warehouse", folder) as printed:
        assert printed.readline() == "ready\n"
        while len(data_files(folder)) < len(files) + written:
            time.sleep(0.001)
    (orphan,) = (path.name for path in folder.glob("rewritten-*"))
    assert oracle.versions(folder) == versions
    assert rows(spark, name) == before and files <= data_files(folder)

    result = enable_iceberg_writer_compat(spark, folder, rewrite=True)
    assert (result.files_rewritten, result.orphans) == (20, (orphan,))
    assert rows(spark, name) == before
    assert oracle.check(folder) == []
    with session_conf(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    live = {folder / file.add["path"] for file in oracle.read_log(folder).files}
    assert data_files(folder) == live and orphan not in {path.parent.name for path in live}
    assert rows(spark, name) == before


def with_vector(table: Table) -> list[tuple[object, ...]]:
    """Makes a table with a deletion vector in one file of three; answers with its rows."""
    properties = "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'"
    table.spark.sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ({properties})")
    for first in (0, 10, 20):
        table.spark.sql(f"INSERT INTO {table} SELECT id FROM range({first}, {first + 10}, 1, 1)")
    table.spark.sql(f"DELETE FROM {table} WHERE id IN (13, 17)")
    assert ["deletionVector" in file.add for file in table.log.files].count(True) == 1
    return table.rows()


def test_deletion_vectors_leave_in_time(table: Table) -> None:
    spark, before = table.spark, with_vector(table)
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT low CHECK (id < 100)")
    drop = ["deletion-vectors", "constraints"]
    version = table.log.version

    report = enable_iceberg_writer_compat(spark, table.name, drop=drop, dry_run=True)
    assert report.plan is not None
    (waiting,) = (step.what for step in report.plan.steps if step.name == "wait")
    assert "feature deletionVectors" in waiting and "24 hours" in waiting
    with pytest.raises(UnsupportedOperationException, match="REWRITE_NEEDED") as refused:
        enable_iceberg_writer_compat(spark, table.name, drop=drop)
    assert table.log.version == version
    statement = str(refused.value).splitlines()[-1].removeprefix("Run: ")
    scope = {"spark": spark, "enable_iceberg_writer_compat": enable_iceberg_writer_compat}
    for _ in range(2):
        with pytest.raises(UnsupportedOperationException, match=r"DROP_LATER.*24 hours") as refused:
            eval(statement, scope)
        assert str(refused.value).endswith(f"Run: {statement}")
        # Nothing else is taken away while this has to wait.
        assert table.rows() == before and "delta.constraints.low" in table.log.properties
        assert not any("deletionVector" in file.add for file in table.log.files)

    # Two days later.
    for entry in (table.folder / "_delta_log").iterdir():
        past = entry.stat().st_mtime - 2 * 24 * 60 * 60
        os.utime(entry, (past, past))
    result = eval(statement, scope)
    assert (result.changed, result.files_rewritten, result.files_kept) == (True, 0, 3)
    assert table.rows() == before
    assert verify(spark, table.name).compliant
    assert by_pyiceberg(publish(spark, table.name).metadata_location) == by_delta(
        spark.table(table.name)
    )


def test_deletion_vectors_leave_at_once(table: Table) -> None:
    spark, before = table.spark, with_vector(table)
    with session_conf(spark, {"spark.icebergWriterCompat.profile": "rfc-current"}):
        plan = enable_iceberg_writer_compat(
            spark, table.name, rewrite=True, drop=["deletion-vectors"], dry_run=True
        ).plan
        assert plan is not None and (plan.mode, plan.files_to_rewrite) == ("rewrite", 1)
        enable_iceberg_writer_compat(spark, table.name, rewrite=True, drop=["deletion-vectors"])
        assert verify(spark, table.name).compliant
        location = publish(spark, table.name).metadata_location
    assert table.rows() == before
    assert not any("deletionVector" in file.add for file in table.log.files)
    features = set(table.log.protocol["writerFeatures"])
    assert "checkpointProtection" in features and "deletionVectors" not in features
    assert by_pyiceberg(location) == by_delta(spark.table(table.name))
