"""Enabling many tables at once."""

from __future__ import annotations

import itertools
import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import oracle
from conftest import rows, to_be_killed
from iceberg_writer_compat import (
    EnableResults,
    JournalError,
    Reports,
    TableProgress,
    cli,
    enable_all,
    is_iceberg_writer_compat_enabled,
    tables_in,
)

_numbers = itertools.count()


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    """A schema with a table of each kind."""
    name = f"many{next(_numbers)}"
    spark.sql(f"CREATE SCHEMA {name}")
    by_name = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    spark.sql(f"CREATE TABLE {name}.mapped (a INT) USING delta {by_name}")
    spark.sql(f"INSERT INTO {name}.mapped VALUES (1), (2)")
    spark.sql(f"CREATE TABLE {name}.plain USING delta AS SELECT 1 AS a, array('x') AS l")
    spark.sql(f"CREATE TABLE {name}.checked (a INT) USING delta {by_name}")
    spark.sql(f"ALTER TABLE {name}.checked ADD CONSTRAINT positive CHECK (a > 0)")
    spark.sql(f"CREATE TABLE {name}.other (a INT) USING parquet")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def states(results: EnableResults) -> dict[str, str]:
    return {table.table.split(".")[-1]: table.state for table in results}


def test_plans_of_all_write_nothing(
    spark: SparkSession, schema: str, warehouse: Path, tmp_path: Path
) -> None:
    def listing() -> list[Path]:
        return sorted((warehouse / f"{schema}.db").rglob("*"))

    before = listing()
    journal = tmp_path / "journal"
    plans = enable_all(spark, [f"{schema}.nowhere"], schema=schema, dry_run=True, journal=journal)
    assert isinstance(plans, Reports)
    found = {report.table.split(".")[-1]: report.facts.enabling for report in plans.reports}
    assert {name: enabling.verdict for name, enabling in found.items()} == {
        "checked": "blocked",
        "mapped": "metadata-only",
        "plain": "rewrite",
    }
    assert found["plain"].files_to_rewrite == 1 and found["plain"].exact
    assert [error.table for error in plans.errors] == [f"{schema}.nowhere"]
    assert Reports.from_dict(json.loads(plans.to_json())) == plans
    assert "<script>" in plans.to_html() and str(plans)
    assert listing() == before and not journal.exists()


def test_one_failure_stops_no_other(
    spark: SparkSession, schema: str, warehouse: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    names = tables_in(spark, schema)
    before = {name: rows(spark, name) for name in names}
    seen: list[tuple[str, str]] = []
    results = enable_all(
        spark,
        [f"{schema}.nowhere"],
        schema=schema,
        journal=journal,
        notify=lambda table: seen.append((table.table, table.state)),
    )
    assert states(results) == {
        "nowhere": "failed",
        "checked": "failed",
        "mapped": "done",
        "plain": "failed",
    }
    assert not results.succeeded and not results.interrupted and results.left == ()
    assert results.verdict == "4 tables: 1 done, 3 failed"
    conditions = {t.table.split(".")[-1]: t.error.condition for t in results.failed if t.error}
    violation = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION"
    assert conditions == {
        "nowhere": "TABLE_OR_VIEW_NOT_FOUND",
        "checked": f"{violation}.UPGRADE_BLOCKED",
        "plain": f"{violation}.REWRITE_NEEDED",
    }
    assert (f"{schema}.mapped", "done") in seen and (f"{schema}.nowhere", "failed") in seen
    assert [name for name in names if is_iceberg_writer_compat_enabled(spark, name)] == [
        f"{schema}.mapped"
    ]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    steps = [line["state"] for line in lines if line["table"] == f"{schema}.mapped"]
    assert steps == ["planned", "running", "done"]

    # What has failed is tried again, and what is done is not.
    again = enable_all(
        spark, schema=schema, journal=journal, rewrite=True, drop=["constraints"], parallelism=3
    )
    assert again.succeeded and again.verdict == "3 tables: 3 done"
    by_name = {table.table.split(".")[-1]: table for table in again}
    assert by_name["mapped"] == {t.table.split(".")[-1]: t for t in results}["mapped"]
    rewritten = by_name["plain"].result
    assert rewritten is not None and (rewritten.mode, rewritten.files_rewritten) == ("rewrite", 1)
    for name in names:
        folder = warehouse / f"{schema}.db" / name.split(".")[-1]
        assert oracle.check(folder) == []
        assert rows(spark, name) == before[name]
    assert enable_all(spark, schema=schema, journal=journal) == enable_all(
        spark, schema=schema, journal=journal
    )


def many(spark: SparkSession, folder: Path, count: int) -> list[Path]:
    paths = [folder / f"t{number:02}" for number in range(count)]
    for path in paths:
        spark.range(3).selectExpr("id", "array(id) AS l").write.format("delta").save(str(path))
    return paths


def test_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    paths = many(spark, tmp_path / "tables", 4)
    threads: set[int] = set()
    # Nobody is told of the first end before there is another.
    both = threading.Barrier(2, timeout=120)

    def notify(table: TableProgress) -> None:
        threads.add(threading.get_ident())
        if table.state == "done":
            both.wait()

    # The threads act in the session that they are given.
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.write.dataFilesToSubdir", "false")
    results = enable_all(session, paths, mode="rewrite", parallelism=2, notify=notify)
    assert results.succeeded
    assert [table.table for table in results] == [str(path) for path in paths]
    assert len(threads) >= 2
    assert all(oracle.check(path) == [] for path in paths)


def test_killed_and_resumed(spark: SparkSession, tmp_path: Path) -> None:
    paths = many(spark, tmp_path / "tables", 6)
    journal = tmp_path / "journal"
    arguments = [tmp_path / "warehouse", tmp_path / "tables", journal]
    with to_be_killed("enable_all.py", *arguments) as printed:
        assert printed.readline() == "ready\n"
        while printed.readline() != "done\n":
            pass
        time.sleep(random.uniform(0, 1))
    # Each table is as it was or has the feature, and has its rows.
    kept = {path: [(i, [i]) for i in range(3)] for path in paths}
    for path in paths:
        assert rows(spark, f"delta.`{path}`") == kept[path]
        on = is_iceberg_writer_compat_enabled(spark, path)
        assert not on or oracle.check(path) == []
    finished = {
        line["table"]: line["finished"]
        for line in map(json.loads, journal.read_text().splitlines(keepends=True))
        if line["state"] == "done"
    }
    assert finished
    # The machine may have died in the middle of a line.
    with journal.open("a") as file:
        file.write('{"format": 2, "table": "t')
    results = enable_all(spark, paths, mode="rewrite", journal=journal)
    assert results.succeeded
    for table in results:
        if table.table in finished:
            assert table.finished is not None
            assert table.finished.isoformat().replace("+00:00", "Z") == finished[table.table]
    for path in paths:
        assert oracle.check(path) == []
        assert rows(spark, f"delta.`{path}`") == kept[path]
        folders = [folder for folder in path.glob("rewritten-*") if folder.is_dir()]
        live = {
            file.parts[0] for file in (Path(f.add["path"]) for f in oracle.read_log(path).files)
        }
        assert live and live <= {folder.name for folder in folders}
    assert all(json.loads(line)["format"] == 2 for line in journal.read_text().splitlines())


def test_interrupted(spark: SparkSession, tmp_path: Path) -> None:
    paths = many(spark, tmp_path / "tables", 3)
    journal = tmp_path / "journal"

    def notify(table: TableProgress) -> None:
        if table.state == "done":
            # As Ctrl-C does, in the thread that waits.
            signal.raise_signal(signal.SIGINT)
            time.sleep(1)

    results = enable_all(
        spark, paths, mode="rewrite", parallelism=1, journal=journal, notify=notify
    )
    assert results.interrupted and results.verdict.endswith(" left (interrupted)")
    assert 1 <= len(results.done) < 3 and results.failed == ()
    again = enable_all(spark, paths, mode="rewrite", journal=journal)
    assert again.succeeded and not again.interrupted
    assert again.done[: len(results.done)] == results.done


def test_reports(tmp_path: Path) -> None:
    plain = TableProgress("a.`<b>&`")
    results = EnableResults((plain, TableProgress("p", "running")), interrupted=True)
    assert EnableResults.from_dict(json.loads(results.to_json())) == results
    assert json.loads(results.to_json())["counts"] == {"done": 0, "failed": 0, "left": 2}
    page = results.to_html()
    assert "a.`&lt;b&gt;&amp;`" in page and "`<b>" not in page
    assert str(results).splitlines()[-1] == "2 tables: 2 left (interrupted)"
    assert results[0] is plain and len(results) == 2 and results[:1] == (plain,)


def test_journals_that_cannot_be_used(spark: SparkSession, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    for content in ("x\n", '{"format": 9}\n', '{"format": 2, "table": "t"}\n'):
        journal.write_text(content)
        with pytest.raises(JournalError, match=r"Line 1 of the journal .*journal is not a step"):
            enable_all(spark, [], journal=journal)
        assert journal.read_text() == content
    with pytest.raises(JournalError, match="cannot be used"):
        enable_all(spark, [], journal=tmp_path / "nowhere" / "journal")
    fcntl = pytest.importorskip("fcntl")
    journal.write_text("")
    with journal.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match="Another run"):
            enable_all(spark, [], journal=journal)


def test_what_is_asked_wrongly(spark: SparkSession) -> None:
    with pytest.raises(TypeError, match="list"):
        enable_all(spark, "t")
    with pytest.raises(ValueError, match="parallelism must be at least 1"):
        enable_all(spark, [], parallelism=0)
    with pytest.raises(AnalysisException, match="no_such_catalog"):
        enable_all(spark, catalog="no_such_catalog")


def test_a_schema_is_no_catalog(spark: SparkSession, schema: str) -> None:
    with pytest.raises(AnalysisException, match=schema):
        tables_in(spark, catalog=schema)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_command(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    planned = run("enable", "--schema", schema, "--dry-run", "--format", "json")
    assert planned.exit_code == 1
    kinds = [table["kind"] for table in json.loads(planned.stdout)["tables"]]
    assert kinds == ["plan"] * 3
    page, journal = tmp_path / "report.html", tmp_path / "journal"
    arguments = ("--schema", schema, "--journal", journal, "--output", page)
    assert run("enable", *arguments).exit_code == 1
    shown = page.read_text()
    assert "REWRITE_NEEDED" in shown and "3 tables: 1 done, 2 failed" in shown
    assert "iceberg-writer-compat enable" in shown and "enable_iceberg_writer_compat(" not in shown
    names = tmp_path / "names"
    names.write_text(f"# two of them\n{schema}.plain\n\n{schema}.mapped\n")
    done = run("enable", "--from-file", names, "--rewrite", "--parallelism", 1)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines == [
        f"{schema}.plain: icebergWriterCompatV1 is on, 1 data file rewritten",
        f"{schema}.mapped: icebergWriterCompatV1 is on, unchanged",
        "",
        "2 tables: 2 done",
    ]
    assert run("enable", f"{schema}.nowhere", f"{schema}.plain").exit_code == 2
    assert run("enable", "--catalog", "no_such_catalog").exit_code == 2
