"""What the reports say about real tables, and that asking changes nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, ShortType, StructType

import oracle
from conftest import PROPERTY, Table
from iceberg_writer_compat import (
    Report,
    Reports,
    TableError,
    UnreadableTableError,
    check,
    enable_iceberg_writer_compat,
    explain,
    history,
    rules,
    tables_in,
    verify,
    would_break,
)

Ask = Callable[[SparkSession, "str | Path"], Report]


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, with its time and its bytes."""
    return {
        str(file.relative_to(folder)): (file.stat().st_mtime_ns, file.read_bytes())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def broken_rules(report: Report) -> set[str]:
    return {finding.rule for finding in report.violations}


def append_commit(table: Table, *actions: dict[str, Any]) -> int:
    """Commits as another engine would; answers with the version."""
    log = table.folder / "_delta_log"
    version = max(int(commit.stem) for commit in log.glob("*.json")) + 1
    info = {"commitInfo": {"timestamp": 1_790_000_000_000 + version, "operation": "OTHER"}}
    lines = "".join(json.dumps(action) + "\n" for action in (info, *actions))
    (log / f"{version:020}.json").write_text(lines, encoding="utf-8")
    return version


def with_property(table: Table, key: str, value: str) -> dict[str, Any]:
    """The metadata of a table, with one property more."""
    metadata: dict[str, Any] = {}
    for commit in sorted((table.folder / "_delta_log").glob("*.json")):
        for line in commit.read_text(encoding="utf-8").splitlines():
            metadata = json.loads(line).get("metaData", metadata)
    configuration = metadata["configuration"] | {key: value}
    return {"metaData": metadata | {"configuration": configuration}}


# --- check ----------------------------------------------------------------------------------------


def test_a_compliant_table(table: Table) -> None:
    table.create("a INT NOT NULL, l ARRAY<STRUCT<x: STRING>>", "PARTITIONED BY (p DATE)")
    table.spark.sql(f"INSERT INTO {table} VALUES (1, array(struct('x')), DATE'2026-01-01')")
    for named in (table.name, str(table.folder), table.folder):
        report = check(table.spark, named)
        assert report.violations == ()
        assert report.compliant
        assert report.enabled
        assert report.verdict.startswith("compliant")
        assert (report.kind, report.version, report.profile) == ("check", 1, "rfc")
        assert report.timestamp is not None
        assert report.facts.files == 1
        assert report.facts.rows == 1
        assert report.facts.bytes > 0
        assert report.facts.column_mapping_mode == "id"
        assert report.facts.partition_columns == ("p",)
        assert report.facts.enabling.verdict == "enabled"
        features = {feature.name: feature for feature in report.facts.features}
        assert features["icebergWriterCompatV1"].supported
        assert features["icebergWriterCompatV1"].active
        columns = {column.path: column for column in report.columns}
        assert list(columns) == [("a",), ("l",), ("l", "element"), ("l", "element", "x"), ("p",)]
        assert not columns["a",].nullable
        assert columns["p",].partition
        assert columns["l", "element"].role == "element"
        assert columns["a",].physical_name == f"col-{columns['a',].id}"
        assert all(column.id is not None for column in report.columns)


def test_every_violation_is_listed(table: Table) -> None:
    table.spark.sql(
        f"CREATE TABLE {table} (a SMALLINT, s STRUCT<b: TINYINT, _x: INT>) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    table.spark.sql(f"INSERT INTO {table} VALUES (1, NULL)")
    report = check(table.spark, table.name)
    assert not report.compliant
    assert not report.enabled
    places = {finding.place.name for finding in report.findings if finding.rule == "C7"}
    assert places == {"a", "s.b"}
    assert "B7" in {finding.rule for finding in report.findings}
    assert report.facts.enabling.verdict in ("rewrite", "blocked")
    known = {rule.rule for rule in rules()}
    for finding in report.findings:
        assert finding.rule in known
        assert finding.clauses
        for text in (finding.found, finding.required, finding.why):
            assert text
    frame = report.to_df()
    assert frame.where("rule = 'C7'").count() == 2
    assert frame.count() == len(report.findings)


@pytest.mark.parametrize(
    "columns", ["a SMALLINT, i BIGINT GENERATED ALWAYS AS IDENTITY", "v VARIANT"]
)
def test_what_to_do_is_enough(table: Table, columns: str) -> None:
    spark = table.spark
    spark.sql(
        f"CREATE TABLE {table} (id INT, g INT GENERATED ALWAYS AS (id + 1), d INT, {columns}) "
        "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.feature.allowColumnDefaults' = 'supported')"
    )
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN d SET DEFAULT 3")
    spark.sql(f"INSERT INTO {table} (id, d) VALUES (1, 2), (2, DEFAULT)")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT positive CHECK (id > 0)")
    before = spark.sql(f"SELECT id, g, d FROM {table} ORDER BY id").collect()
    report = verify(spark, table.name)
    assert not report.compliant
    names = {"spark": spark, "enable_iceberg_writer_compat": enable_iceberg_writer_compat}
    steps = report.to_do
    for step in steps:
        for statement in step.remedy.python:
            exec(statement, names)
    fixed = [id(finding) for step in steps for finding in step.findings]
    assert sorted(fixed) == sorted(map(id, report.findings))
    copied = "VARIANT" in columns
    assert len(steps) == (1 if copied else 4)
    result = f"{table}_iceberg" if copied else table.name
    try:
        assert oracle.check(table.folder.with_name(result)) == []
        assert verify(spark, result).compliant
        assert spark.sql(f"SELECT id, g, d FROM {result} ORDER BY id").collect() == before
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {table}_iceberg")


def test_what_to_do_about_an_empty_table_is_enough(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} (a SMALLINT, `b-c` TINYINT, _row_id SMALLINT) USING delta")
    steps = check(spark, table.name).to_do
    assert [next(iter(step.rules)) for step in steps] == ["N2", "C7"]
    assert "no data file is written" in steps[-1].what
    for step in steps:
        for statement in step.remedy.sql:
            spark.sql(statement)
    spark.sql(f"INSERT INTO {table} VALUES (1, 2, 3)")
    assert oracle.check(table.folder) == []
    assert verify(spark, table.name).compliant
    assert spark.table(table.name).dtypes == [("a", "int"), ("b-c", "int"), ("row_id", "int")]


def test_a_version(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} (a INT) USING delta")
    table.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{PROPERTY}' = 'true')")
    old = check(table.spark, table.name, version=0)
    assert not old.enabled
    # A statement would change the newest version.
    assert old.findings and not any(finding.fix for finding in old.findings)
    assert old.to_do == ()
    assert "Version 0 is not the newest; look at that one, 1," in old.facts.enabling.reason
    latest = check(table.spark, table.name)
    assert latest.compliant
    assert latest.version is not None
    assert check(table.spark, table.name, version=latest.version) == latest
    with pytest.raises(PySparkException) as refused:
        check(table.spark, table.name, version=99)
    assert "99" in str(refused.value)


@pytest.mark.parametrize("ask", [check, verify, history])
def test_asking_changes_nothing(ask: Ask, table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} (a SMALLINT) USING delta")
    table.spark.sql(f"INSERT INTO {table} VALUES (1)")
    before = contents(table.folder)
    assert not ask(table.spark, table.name).compliant
    assert contents(table.folder) == before


# --- verify ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", [check, verify, history])
def test_a_read_only_copy(ask: Ask, table: Table, tmp_path: Path) -> None:
    table.create()
    table.spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    copy = tmp_path / "copy"
    shutil.copytree(table.folder, copy)
    below = [copy, *copy.rglob("*")]
    for path in below:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        # An administrator may write anywhere, so what counts is that nothing was.
        before = {path: path.stat().st_mtime_ns for path in below}
        assert ask(table.spark, copy).compliant
        assert {path: path.stat().st_mtime_ns for path in [copy, *copy.rglob("*")]} == before
    finally:
        for path in below:
            path.chmod(path.stat().st_mode | 0o200)


def test_verify_reads_the_files(table: Table) -> None:
    table.create()
    for row in range(3):
        table.spark.sql(f"INSERT INTO {table} VALUES ({row}, 'x')")
    report = verify(table.spark, table.name)
    assert report.compliant
    assert report.audit is not None
    assert (report.audit.files_live, report.audit.files_read) == (3, 3)
    assert not report.audit.sampled
    sample = verify(table.spark, table.name, files=2)
    assert sample.audit is not None
    assert (sample.audit.files_live, sample.audit.files_read) == (3, 2)
    assert sample.audit.sampled


def test_verify_finds_what_the_log_hides(table: Table) -> None:
    table.create()
    table.spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    (added,) = table.log.files
    file = table.folder / added.add["path"]
    stored = pyarrow.parquet.read_table(file)
    fields = [field.remove_metadata() for field in stored.schema]
    pyarrow.parquet.write_table(stored.cast(pyarrow.schema(fields)), file)
    # Hadoop's checksum is of the file as it was.
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    append_commit(table, {"add": added.add | {"size": file.stat().st_size}})
    assert check(table.spark, table.name).compliant
    report = verify(table.spark, table.name)
    assert not report.compliant
    (finding,) = [found for found in report.violations if found.rule == "E1f"]
    assert finding.files == 1
    assert file.name in " ".join(finding.examples)


def test_verify_tells_of_a_missing_file(table: Table) -> None:
    table.create()
    table.spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    for file in table.folder.rglob("*.parquet"):
        file.unlink()
    report = verify(table.spark, table.name)
    assert not report.compliant
    assert "\tat " not in str(report)


# --- would this break it? -------------------------------------------------------------------------


@pytest.fixture
def untouched(table: Table) -> Iterator[Table]:
    """A compliant table that must be as it was in the end."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    before = contents(table.folder)
    tables = table.spark.sql("SHOW TABLES").collect()
    yield table
    assert contents(table.folder) == before
    assert table.spark.sql("SHOW TABLES").collect() == tables


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("ALTER TABLE {} ADD COLUMN n SMALLINT", {"C7"}),
        ("ALTER TABLE {} ADD COLUMN n INT", set()),
        ("ALTER TABLE {} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')", {"B7"}),
        ("ALTER TABLE {} RENAME COLUMN a TO n", set()),
    ],
)
def test_statements(untouched: Table, statement: str, broken: set[str]) -> None:
    report = would_break(untouched.spark, statement.format(untouched))
    assert broken_rules(report) == broken
    assert report.compliant is not bool(broken)
    assert report.kind == "would_break"
    assert report.statement == statement.format(untouched)


def test_a_table_that_does_not_exist(untouched: Table) -> None:
    spark, name = untouched.spark, f"{untouched}_new"
    properties = f"TBLPROPERTIES ('{PROPERTY}' = 'true')"
    created = f"CREATE TABLE {name} (a SMALLINT) USING delta {properties}"
    assert broken_rules(would_break(spark, created)) == {"C7"}
    selected = f"CREATE TABLE {name} USING delta {properties} AS SELECT 1 AS a"
    assert would_break(spark, selected).compliant
    assert not spark.catalog.tableExists(name)


def test_what_delta_does_not_make_or_change_is_not_run(untouched: Table) -> None:
    spark, name = untouched.spark, f"{untouched}_parquet"
    spark.sql(f"CREATE TABLE {name} (a INT) USING parquet")
    before = spark.sql(f"DESCRIBE EXTENDED {name}").collect()
    for statement in (
        f"ALTER TABLE {name} ADD COLUMN b INT",
        f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')",
        f"COMMENT ON TABLE {name} IS 'c'",
        f"CREATE TABLE {name}_new (a INT) USING parquet",
        f"CREATE TABLE {name}_new (a INT)",
        f"CREATE TABLE {name}_new USING csv AS SELECT 1 AS a",
        f"CREATE OR REPLACE TABLE {name} (b INT) USING parquet",
    ):
        with pytest.raises(PySparkException) as refused:
            would_break(spark, statement)
        assert refused.value.getCondition() == "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE"
        assert not spark.catalog.tableExists(f"{name}_new")
        assert spark.sql(f"DESCRIBE EXTENDED {name}").collect() == before
    spark.sql(f"DROP TABLE {name}")


def test_no_table_gets_another_name_or_folder(untouched: Table, tmp_path: Path) -> None:
    spark, name = untouched.spark, f"{untouched}_new"
    for folder in ("one", "two"):
        spark.sql(f"CREATE TABLE delta.`{tmp_path / folder}` (n SMALLINT) USING delta")
    for statement in (
        f"CREATE TABLE {name} USING delta LOCATION '{tmp_path / 'one'}'",
        f"CREATE TABLE IF NOT EXISTS {name} (n SMALLINT) USING delta LOCATION '{tmp_path / 'one'}'",
    ):
        report = would_break(spark, statement)
        assert "C7" in {finding.rule for finding in report.findings}
        assert not report.compliant
        assert not spark.catalog.tableExists(name)
        (step,) = report.to_do
        assert str(tmp_path / "one") in step.remedy.sql[0] and "enable" in step.remedy.sql[0]
    # A folder that is there after a table was dropped, where Spark would put the new one.
    shutil.copytree(tmp_path / "one", untouched.folder.with_name(name))
    assert not would_break(spark, f"CREATE TABLE {name} (n SMALLINT) USING delta").compliant
    assert not spark.catalog.tableExists(name)
    shutil.rmtree(untouched.folder.with_name(name))
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{tmp_path / 'one'}'")
    with pytest.raises(PySparkException) as refused:
        would_break(spark, f"ALTER TABLE {name} SET LOCATION '{tmp_path / 'two'}'")
    assert refused.value.getCondition() == "ICEBERG_WRITER_COMPAT_STATEMENT_NOT_SUPPORTED"
    location = spark.sql(f"DESCRIBE DETAIL {name}").head()
    assert location is not None and location["location"].endswith("/one")
    spark.sql(f"DROP TABLE {name}")


def test_what_to_do_on_a_table_without_the_feature(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} (a INT) USING delta")
    statement = f"ALTER TABLE {table} ADD COLUMN n SMALLINT"
    report = would_break(table.spark, statement)
    (step,) = report.to_do
    types = "types of columns change, and no data file is written"
    assert step.what == f"Switch the feature on; {types}"
    table.spark.sql(statement)
    for offered in step.remedy.sql:
        table.spark.sql(offered)
    assert check(table.spark, table.name).compliant
    created = would_break(table.spark, f"CREATE TABLE {table}_new (a INT) USING delta")
    assert {step.what for step in created.to_do} <= {"Run this instead"}


def test_schemas(untouched: Table) -> None:
    spark, name = untouched.spark, untouched.name
    good = StructType().add("a", IntegerType()).add("b", "string").add("c", IntegerType())
    assert would_break(spark, table=name, schema=good).compliant
    assert would_break(spark, table=untouched.folder, schema="a INT, b STRING").compliant
    for bad in (StructType().add("a", ShortType()), "a SMALLINT"):
        assert "C7" in broken_rules(would_break(spark, table=name, schema=bad))


def test_what_is_no_question(spark: SparkSession) -> None:
    with pytest.raises(TypeError):
        would_break(spark)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        would_break(spark, "ALTER TABLE t", schema="a INT")  # type: ignore[call-overload]
    for statement in ("SELECT 1", "not a statement", "DROP TABLE t"):
        with pytest.raises(PySparkException) as refused:
            would_break(spark, statement)
        assert refused.value.getCondition()


# --- history --------------------------------------------------------------------------------------


def test_history(table: Table) -> None:
    table.create()
    broken = append_commit(table, with_property(table, "delta.enableChangeDataFeed", "true"))
    append_commit(table)
    mended = append_commit(table, with_property(table, "delta.enableChangeDataFeed", "false"))
    report = history(table.spark, table.folder)
    assert report.history is not None
    assert (report.history.from_version, report.history.to_version) == (0, mended)
    (finding,) = [found for found in report.findings if found.rule == "B7"]
    assert (finding.first_version, finding.mended_version) == (broken, mended)
    assert finding.operation == "OTHER"
    assert finding.first_timestamp is not None
    (row,) = report.to_df().where("rule = 'B7'").select("first_version", "operation").collect()
    assert tuple(row) == (broken, "OTHER")


# --- rules ----------------------------------------------------------------------------------------


def test_rules_explain_themselves() -> None:
    listed = rules()
    assert len({rule.rule for rule in listed}) == len(listed) > 50
    for rule in listed:
        assert rule.statement
        assert rule.why
        assert rule.clauses
        assert explain(rule.rule.lower()) == rule


# --- several tables -------------------------------------------------------------------------------


@pytest.fixture
def unreadable(table: Table, tmp_path: Path) -> dict[str, str]:
    """Names and paths that no report can be made of, each with what the error must name."""
    table.create()
    truncated = tmp_path / "truncated"
    shutil.copytree(table.folder, truncated)
    commit = truncated / "_delta_log" / f"{0:020}.json"
    commit.write_bytes(commit.read_bytes()[:-100])
    (truncated / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    plain = tmp_path / "plain"
    table.spark.range(1).write.parquet(str(plain))
    return {
        "no_such_table": "no_such_table",
        "no_such_schema.t": "no_such_schema",
        str(tmp_path / "nowhere"): "nowhere",
        str(plain): "plain",
        str(truncated): "truncated",
        "it's; DROP TABLE x": "",
        "`a`b`": "",
        "": "",
    }


def test_one_table_does_not_stop_the_rest(table: Table, unreadable: dict[str, str]) -> None:
    asked: list[str | Path] = [table.name, *unreadable, table.folder]
    for ask in (check, verify, history):
        reports = ask(table.spark, asked)
        assert isinstance(reports, Reports)
        assert len(reports) == len(asked)
        assert [isinstance(entry, Report) for entry in (reports[0], reports[-1])] == [True, True]
        for entry, (name, said) in zip(reports[1:-1], unreadable.items(), strict=True):
            assert isinstance(entry, TableError), name
            assert entry.table == name
            assert entry.condition
            assert said in entry.message
            assert "\tat " not in entry.message
        assert not reports.compliant
        assert reports.to_df().where("rule IS NULL").count() == len(unreadable)


def test_one_unreadable_table_is_an_error(table: Table, unreadable: dict[str, str]) -> None:
    for name in unreadable:
        with pytest.raises((PySparkException, UnreadableTableError)) as refused:
            check(table.spark, name)
        assert "\tat " not in str(refused.value)


def test_odd_folders(table: Table, tmp_path: Path) -> None:
    table.create()
    for name in ("it's", 'a"b', "a;b", "a`b", "with space", "ünïcode", "a.b", "100%"):
        shutil.copytree(table.folder, tmp_path / name)
        assert check(table.spark, tmp_path / name).compliant, name


def test_an_interruption_ends_the_list(table: Table) -> None:
    table.create()

    class Interrupting(os.PathLike[str]):
        def __fspath__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(table.spark, [table.name, Interrupting()])


def test_what_is_no_table(spark: SparkSession) -> None:
    for wrong in (None, 5, b"t", {"t"}):
        with pytest.raises(TypeError, match="name or path"):
            check(spark, wrong)  # type: ignore[arg-type]
    assert len(check(spark, [])) == 0


# --- tables of a schema ---------------------------------------------------------------------------


def test_tables_of_a_schema(spark: SparkSession) -> None:
    spark.sql("CREATE SCHEMA listed")
    spark.sql("CREATE TABLE listed.a (a INT) USING delta")
    spark.sql("CREATE TABLE listed.`2b` (a INT) USING delta COMMENT 'x'")
    spark.sql("CREATE TABLE listed.c (a INT) USING parquet COMMENT 'Provider: delta'")
    spark.sql("CREATE VIEW listed.d AS SELECT 1 AS a")
    spark.range(1).createOrReplaceTempView("listed_temporary")
    wanted = ["listed.`2b`", "listed.a"]
    assert sorted(tables_in(spark, "listed")) == wanted
    assert sorted(tables_in(spark, "`listed`")) == wanted
    whole = tables_in(spark, catalog="spark_catalog")
    assert {f"spark_catalog.{name}" for name in wanted} <= set(whole)
    assert not [name for name in whole if name.endswith((".c", ".d", "listed_temporary"))]
    assert len(check(spark, whole)) == len(whole)
    spark.sql("DROP VIEW listed_temporary")
    spark.sql("DROP SCHEMA listed CASCADE")


def test_a_broken_table_is_listed(spark: SparkSession, warehouse: Path) -> None:
    spark.sql("CREATE SCHEMA damaged")
    spark.sql("CREATE TABLE damaged.t (a INT) USING delta")
    shutil.rmtree(warehouse / "damaged.db" / "t" / "_delta_log")
    assert tables_in(spark, "damaged") == ["damaged.t"]
    shutil.rmtree(warehouse / "damaged.db" / "t")
    spark.sql("DROP SCHEMA damaged CASCADE")


def test_no_schema(spark: SparkSession) -> None:
    for wrong in ("no_such_schema", "a; DROP TABLE t", "x LIKE 'a'", "a'b", "`", ""):
        with pytest.raises(PySparkException):
            tables_in(spark, wrong)
        with pytest.raises((PySparkException, UnreadableTableError)):
            tables_in(spark, catalog=wrong)
    with pytest.raises(TypeError):
        tables_in(spark)  # type: ignore[call-overload]
