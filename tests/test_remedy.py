"""What is offered is run in each language: as SQL, as a call in Python and as a command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
from conftest import PROPERTIES, PROPERTY, Table, rows
from iceberg_writer_compat import Remedy, cli

Ask = Callable[[SparkSession, str], Remedy]


def found(rule: str) -> Ask:
    """What `check` offers for the finding of a rule."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        report = compat.check(spark, table)
        return next(finding.remedy for finding in report.findings if finding.rule == rule)

    return ask


def asked(statement: str) -> Ask:
    """What `would_break` offers for the first violation of a statement."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        return compat.would_break(spark, statement.format(t=table)).violations[0].remedy

    return ask


def refused(statement: str) -> Ask:
    """What the refusal of a statement offers."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        with pytest.raises(PySparkException) as error:
            spark.sql(statement.format(t=table))
        of = json.loads(error.value._origin.remedyJson())  # type: ignore[attr-defined]
        return Remedy(**{name: tuple(lines) for name, lines in of.items()})

    return ask


def of_schema(columns: str) -> Ask:
    """What `would_break` offers for other columns of a table."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        report = compat.would_break(spark, table=table, schema=columns)
        return report.violations[0].remedy

    return ask


@dataclass(frozen=True)
class Case:
    """A fault: how it comes about, how a remedy is asked for, and what holds once it is mended."""

    setup: tuple[str, ...]
    ask: Ask
    mended: Callable[[Table], bool]


def without(rule: str) -> Callable[[Table], bool]:
    """Whether a rule is kept, by the table that was asked about."""
    return lambda table: (
        rule not in {finding.rule for finding in compat.check(table.spark, table.name).findings}
    )


def column(name: str, dataType: str) -> Callable[[Table], bool]:
    """Whether a table has a column of this type."""
    return lambda table: (name, dataType) in table.spark.table(table.name).dtypes


PLAIN = "CREATE TABLE {t} (a INT) USING delta"
GUARDED = f"CREATE TABLE {{t}} (a INT) USING delta {PROPERTIES}"
ROW = "INSERT INTO {t} VALUES (1)"

CASES: dict[str, Case] = {
    "SetProperties": Case(
        (PLAIN + " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')", ROW),
        found("B7"),
        without("B7"),
    ),
    "DropConstraint": Case(
        (PLAIN, "ALTER TABLE {t} ADD CONSTRAINT `my low` CHECK (a < 9)", ROW),
        found("B8"),
        without("B8"),
    ),
    "DropDefault": Case(
        (
            "CREATE TABLE {t} (a INT DEFAULT 1) USING delta "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
            ROW,
        ),
        found("C12"),
        without("C12"),
    ),
    "RenameColumn": Case(
        (
            "CREATE TABLE {t} (a INT, _file STRING) USING delta",
            "INSERT INTO {t} VALUES (1, 'x')",
        ),
        found("N2"),
        without("N2"),
    ),
    "WidenColumn": Case(
        ("CREATE TABLE {t} (a INT, `b-c` SMALLINT) USING delta",),
        found("C7"),
        column("b-c", "int"),
    ),
    "DropFeature": Case(
        (PLAIN + " TBLPROPERTIES ('delta.feature.rowTracking' = 'supported')", ROW),
        found("A6"),
        without("A6"),
    ),
    "Enable": Case(
        (PLAIN, ROW),
        found("E1"),
        lambda table: compat.check(table.spark, table.name).enabled,
    ),
    "CopyInto": Case(
        (
            "CREATE TABLE {t} (a INT, v VARIANT) USING delta",
            "INSERT INTO {t} SELECT 1, parse_json('2')",
        ),
        found("C7"),
        lambda table: rows(table.spark, f"{table.name}_iceberg") == [(1, "2")],
    ),
    "AddColumn": Case((GUARDED, ROW), of_schema("a INT, b SMALLINT"), column("b", "int")),
    "Again": Case(
        (GUARDED, ROW),
        asked("ALTER TABLE {t} ADD COLUMNS (`b c` SMALLINT COMMENT 'it''s \"b\"', _pos INT)"),
        column("pos", "int"),
    ),
    "Create": Case(
        (),
        asked(f"CREATE TABLE {{t}} (a INT,\n  b SMALLINT COMMENT 'x\"y') USING delta {PROPERTIES}"),
        column("b", "int"),
    ),
    "SetSetting": Case(
        (
            f"CREATE TABLE {{t}} (a INT, p TIMESTAMP) USING delta PARTITIONED BY (p) {PROPERTIES}",
            "SET spark.databricks.delta.write.utcTimestampPartitionValues=false",
        ),
        refused("INSERT INTO {t} VALUES (1, TIMESTAMP'2026-01-01 00:00:00Z')"),
        lambda table: (
            table.spark.conf.get("spark.databricks.delta.write.utcTimestampPartitionValues")
            == "true"
        ),
    ),
    "Publish": Case(
        (GUARDED, ROW),
        lambda spark, table: not_published(spark, table),
        lambda table: compat.status(table.spark, table.name).published_version is not None,
    ),
}


def not_published(spark: SparkSession, table: str) -> Remedy:
    """What is offered to whoever proves what is not published."""
    with pytest.raises(PySparkException) as error:
        compat.prove(spark, table)
    of = json.loads(error.value._origin.remedyJson())  # type: ignore[attr-defined]
    return Remedy(**{name: tuple(lines) for name, lines in of.items()})


def run(spark: SparkSession, language: str, statement: str) -> None:
    """Runs one statement in its language."""
    if language == "python":
        exec(statement, {**vars(compat), "spark": spark})
    elif language == "command" and statement.startswith("iceberg-writer-compat "):
        done = CliRunner().invoke(cli.main, shlex.split(statement)[1:])
        assert done.exit_code == 0, done.output
    elif language == "command" and statement.startswith("--conf "):
        # An option of any command.
        done = CliRunner().invoke(cli.main, ["check", "no_such_table", *shlex.split(statement)])
        assert done.exit_code == 2
    elif language == "sql" and not statement.split("(")[0].isidentifier():
        spark.sql(statement)
    else:
        # What SQL or the command line has no words for is a call in Python, or SQL.
        run(spark, "python" if "(spark, " in statement else "sql", statement)


@pytest.mark.parametrize("language", ["sql", "python", "command"])
@pytest.mark.parametrize("kind", CASES)
def test_every_rendering_runs(table: Table, kind: str, language: str) -> None:
    spark, case = table.spark, CASES[kind]
    for statement in case.setup:
        spark.sql(statement.format(t=table.name))
    remedy = case.ask(spark, table.name)
    statements: tuple[str, ...] = getattr(remedy, language)
    if kind == "Publish" and language == "sql":
        assert statements == remedy.command
        statements = remedy.python
        language = "python"
    assert statements
    for statement in statements:
        run(spark, language, statement)
    assert case.mended(table)
    spark.conf.unset("spark.databricks.delta.write.utcTimestampPartitionValues")
    spark.sql(f"DROP TABLE IF EXISTS {table}_iceberg")


def test_errors_of_calls_show_calls(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} (a INT, _file INT) USING delta")
    spark.sql(f"INSERT INTO {table} VALUES (1, 2)")
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT low CHECK (a < 9)")
    with pytest.raises(PySparkException, match="UPGRADE_BLOCKED") as error:
        compat.enable_iceberg_writer_compat(spark, table.name)
    offered = [part.splitlines()[0] for part in str(error.value).split("Run: ")[1:]]
    assert offered
    assert all(line.startswith(("spark.sql(", "enable_iceberg_writer_compat(")) for line in offered)
    parameters = error.value.getMessageParameters() or {}
    assert str(error.value).endswith(parameters["fix"])
    assert parameters["contract"] == "icebergWriterCompatV1"
    for line in offered[:-1]:
        exec(line, {**vars(compat), "spark": spark})
    compat.enable_iceberg_writer_compat(spark, table.name, rewrite=True)
    assert rows(spark, table.name) == [(1, 2)]


def test_errors_of_commands_show_commands(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS a")
    done = CliRunner().invoke(cli.main, ["enable", table.name])
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("Run: "))
    command = line.removeprefix("Run: ")
    assert command == f"iceberg-writer-compat enable 'spark_catalog.default.{table}' --rewrite" or (
        command == f"iceberg-writer-compat enable 'default.{table}' --rewrite"
    )
    run(spark, "command", command)
    assert rows(spark, table.name) == [(1,)]
    assert compat.is_iceberg_writer_compat_enabled(spark, table.name)


def test_an_error_with_thousands_of_columns_is_short_and_its_remedy_whole(
    table: Table,
) -> None:
    spark = table.spark
    columns = ", ".join(f"c{i} INT" for i in range(10_000))
    with pytest.raises(PySparkException) as error:
        spark.sql(f"CREATE TABLE {table} ({columns}, b SMALLINT) USING delta {PROPERTIES}")
    parameters = error.value.getMessageParameters() or {}
    assert len(str(error.value)) < 10_000
    assert "more characters" in str(error.value)
    assert len(parameters["fix"]) > 90_000
    spark.sql(parameters["fix"])
    assert len(spark.table(table.name).columns) == 10_001
    assert table.log.properties[PROPERTY] == "true"


def test_another_contract_is_none_that_is_known(table: Table) -> None:
    table.spark.sql(PLAIN.format(t=table.name))
    with pytest.raises(PySparkException, match="WRONG_OPTION"):
        compat.enable_iceberg_writer_compat(table.spark, table.name, contract="unknown")
    done = compat.enable_iceberg_writer_compat(
        table.spark, table.name, contract="icebergWriterCompatV1"
    )
    assert done.contract == "icebergWriterCompatV1"
    assert compat.check(table.spark, table.name).contract == "icebergWriterCompatV1"
