"""Tables of stock Delta that get the feature, judged by log, files and other readers."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result
from pyspark.errors import UnsupportedOperationException

import oracle
from conftest import Table
from iceberg_writer_compat import (
    EnableResult,
    Report,
    check,
    cli,
    disable_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    publish,
    verify,
)
from test_publish import by_delta, by_duckdb, by_pyiceberg, duck

__all__ = ["duck"]

COLUMNS = (
    "id BIGINT, p STRING, m DECIMAL(38, 9), d DATE, t TIMESTAMP, "
    "s STRUCT<x: INT, y: STRUCT<k: STRING>>, l ARRAY<STRUCT<v: INT>>, k MAP<STRING, ARRAY<INT>>"
)
ROW = (
    "{i}, 'p{i}', {i}.000000001BD, DATE'2026-01-0{i}', TIMESTAMP'2026-01-01 00:00:00.12345{i}', "
    "named_struct('x', {i}, 'y', named_struct('k', 'v{i}')), array(named_struct('v', {i})), "
    "map('a', array({i}))"
)
BY_NAME = {"delta.columnMapping.mode": "name"}
V2 = BY_NAME | {"delta.enableIcebergCompatV2": "true"}


def make(table: Table, properties: dict[str, str], partition: str = "") -> list[str]:
    """A table with three files, rows in each; the rows."""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    clause = f"TBLPROPERTIES ({listed})" if listed else ""
    table.spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING delta {partition} {clause}")
    for i in (1, 2, 3):
        table.spark.sql(f"INSERT INTO {table} VALUES ({ROW.format(i=i)})")
    return by_delta(table.spark.table(table.name))


def data_files(table: Table) -> set[Path]:
    return set(table.folder.rglob("*.parquet")) - set((table.folder / "_delta_log").iterdir())


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, list(map(str, arguments)))


@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (p)", "CLUSTER BY (s.x, d)"])
def test_files_stay_and_iceberg_readers_find_the_rows(
    table: Table, duck: duckdb.DuckDBPyConnection, partition: str
) -> None:
    rows = make(table, V2, partition)
    table.spark.sql(f"ALTER TABLE {table} RENAME COLUMN d TO day")
    files = data_files(table)
    plan = enable_iceberg_writer_compat(table.spark, table.name, dry_run=True)
    assert plan.plan is not None
    assert (plan.plan.mode, plan.plan.files_to_rewrite) == ("metadata", 0)
    result = enable_iceberg_writer_compat(table.spark, table.name)
    assert (result.changed, result.mode, result.files_kept) == (True, "metadata", 3)
    assert data_files(table) == files
    assert oracle.check(table.folder) == []
    assert by_delta(table.spark.table(table.name)) == rows
    table.spark.sql(f"INSERT INTO {table} VALUES ({ROW.format(i=4)})")
    rows = by_delta(table.spark.table(table.name))
    assert len(rows) == 4
    published = publish(table.spark, table.name)
    assert by_pyiceberg(published.metadata_location) == rows
    assert by_duckdb(duck, published.metadata_location) == rows
    found = by_pyiceberg(published.metadata_location, row_filter="s.x = 2")
    assert found == [row for row in rows if "'p2'" in row]


@pytest.mark.parametrize("properties", [{}, BY_NAME])
def test_files_are_written_anew_when_asked(
    table: Table, duck: duckdb.DuckDBPyConnection, properties: dict[str, str]
) -> None:
    rows = make(table, properties, "PARTITIONED BY (p)")
    files = data_files(table)
    with pytest.raises(UnsupportedOperationException) as refused:
        enable_iceberg_writer_compat(table.spark, table.name)
    assert str(refused.value.getCondition()).endswith(".REWRITE_NEEDED")
    plan = enable_iceberg_writer_compat(table.spark, table.name, dry_run=True)
    assert Report.from_json(plan.to_json()) == plan
    assert plan.plan is not None
    assert plan.plan.files_to_rewrite == len(files) == plan.facts.enabling.files_to_rewrite
    assert verify(table.spark, table.name).facts.enabling == plan.facts.enabling
    assert data_files(table) == files
    result = enable_iceberg_writer_compat(table.spark, table.name, rewrite=True)
    assert (result.mode, result.files_rewritten) == ("rewrite", 3)
    assert result.bytes_rewritten == plan.plan.bytes_to_rewrite
    assert oracle.check(table.folder) == []
    assert by_delta(table.spark.table(table.name)) == rows
    location = publish(table.spark, table.name).metadata_location
    assert by_pyiceberg(location) == rows
    assert by_duckdb(duck, location) == rows


@pytest.mark.parametrize("has_files", [True, False])
def test_a_blocked_table_is_told_whether_its_files_will_be_rewritten(
    table: Table, has_files: bool
) -> None:
    table.spark.sql(
        f"CREATE TABLE {table} (a SMALLINT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    if has_files:
        table.spark.sql(f"INSERT INTO {table} VALUES (1)")
    last = "files that cannot be kept are rewritten"
    if not has_files:
        last = "types of columns change, and no data file is written"
    files = data_files(table)
    for report in (
        check(table.spark, table.name),
        verify(table.spark, table.name),
        enable_iceberg_writer_compat(table.spark, table.name, dry_run=True),
    ):
        enabling = report.facts.enabling
        assert (enabling.verdict, enabling.types_only) == ("blocked", not has_files)
        assert report.to_do[-1].what == f"Switch the feature on; {last}"
    for step in check(table.spark, table.name).to_do:
        for statement in step.remedy.sql:
            table.spark.sql(statement)
    assert oracle.check(table.folder) == []
    assert table.rows() == ([(1,)] if has_files else [])
    assert len(data_files(table) - files) == has_files


def test_files_from_before_promotions_are_read_by_others(
    table: Table, duck: duckdb.DuckDBPyConnection
) -> None:
    properties = BY_NAME | {"delta.enableTypeWidening": "true"}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    table.spark.sql(
        f"CREATE TABLE {table} (a INT, b TINYINT, s STRUCT<x: SMALLINT>, f FLOAT, m DECIMAL(5, 2)) "
        f"USING delta TBLPROPERTIES ({listed})"
    )
    table.spark.sql(
        f"INSERT INTO {table} VALUES (1, -128, named_struct('x', 300), 0.5, 1.25), "
        "(null, null, null, null, null)"
    )
    for change in ("a BIGINT", "b INT", "s.x BIGINT", "f DOUBLE", "m DECIMAL(20, 2)"):
        name, kind = change.split(" ", 1)
        table.spark.sql(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind}")
    table.spark.sql(
        f"INSERT INTO {table} VALUES (5000000000, 128, named_struct('x', 5000000000), 0.1, 99999.5)"
    )
    rows = by_delta(table.spark.table(table.name))
    assert enable_iceberg_writer_compat(table.spark, table.name).mode == "metadata"
    assert oracle.check(table.folder) == []
    assert by_delta(table.spark.table(table.name)) == rows
    location = publish(table.spark, table.name).metadata_location
    assert by_pyiceberg(location) == rows
    assert by_duckdb(duck, location) == rows


def test_check_says_of_a_table_by_name_that_its_footers_decide(table: Table) -> None:
    make(table, V2)
    enabling = check(table.spark, table.name).facts.enabling
    assert (enabling.verdict, enabling.exact) == ("metadata-only", False)
    enabling = verify(table.spark, table.name).facts.enabling
    assert (enabling.verdict, enabling.exact) == ("metadata-only", True)


def test_a_second_call_and_the_way_back(table: Table) -> None:
    rows = make(table, V2)
    assert enable_iceberg_writer_compat(table.spark, table.name).changed
    versions = oracle.versions(table.folder)
    again = enable_iceberg_writer_compat(table.spark, table.name, rewrite=True)
    assert again == EnableResult(table.name, changed=False)
    assert again.mode == "none"
    assert oracle.versions(table.folder) == versions
    assert disable_iceberg_writer_compat(table.spark, table.name).changed
    assert "icebergWriterCompatV1" not in table.log.protocol["writerFeatures"]
    assert "delta.enableIcebergWriterCompatV1" not in table.log.properties
    assert by_delta(table.spark.table(table.name)) == rows


def test_wrong_calls(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} (a INT) USING delta")
    with pytest.raises(UnsupportedOperationException, match="constraints, change-data-feed"):
        enable_iceberg_writer_compat(table.spark, table.name, drop=["rows"])
    with pytest.raises(TypeError, match="list of names"):
        enable_iceberg_writer_compat(table.spark, table.name, drop="constraints")
    with pytest.raises(TypeError, match="need a table"):
        enable_iceberg_writer_compat(table.spark, rewrite=True)
    assert oracle.versions(table.folder) == [0]


def test_command(table: Table, tmp_path: Path) -> None:
    make(table, {})
    table.spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT positive CHECK (id > 0)")
    versions = oracle.versions(table.folder)
    blocked = run("enable", table, "--dry-run")
    assert blocked.exit_code == 1
    statement = f"ALTER TABLE default.{table} DROP CONSTRAINT positive"
    assert f"        {statement}" in blocked.stdout.splitlines()
    flags = ("--drop", "constraints", "--dry-run")
    assert run("enable", table, *flags).exit_code == 1
    planned = run("enable", table, "--rewrite", *flags, "--format", "json")
    assert planned.exit_code == 0
    (report,) = json.loads(planned.stdout)["tables"]
    assert (report["kind"], report["plan"]["mode"]) == ("plan", "rewrite")
    page = tmp_path / "plan.html"
    run("enable", table, "--rewrite", *flags, "--output", page)
    assert statement in page.read_text(encoding="utf-8")
    assert run("enable", table, "--drop", "rows").exit_code == 2
    assert oracle.versions(table.folder) == versions
    done = run("enable", table, "--rewrite", "--drop", "constraints")
    assert done.stdout == f"{table}: icebergWriterCompatV1 is on, 3 data files rewritten\n"
    assert oracle.check(table.folder) == []
