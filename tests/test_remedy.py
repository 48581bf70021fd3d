"""What is offered is run in each language: as SQL, as a call in Python and as a command."""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import iceberg_writer_compat as compat
import oracle
from conftest import PROPERTIES, PROPERTY, Table, rows
from iceberg_writer_compat import Remedy, Report, _codec, cli
from iceberg_writer_compat.remedy import RemedyKind
from iceberg_writer_compat.tables import Drop
from sessions import jars

Ask = Callable[[SparkSession, str], Remedy]
Look = Callable[[SparkSession, str], Report]


def found(rule: str, look: Look = compat.check) -> Ask:
    """What a report offers for its finding of a rule."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        return next(f.remedy for f in look(spark, table).findings if f.rule == rule)

    return ask


def asked(statement: str) -> Ask:
    """What `would_break` offers for the first violation of a statement."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        return compat.would_break(spark, statement.format(t=table)).violations[0].remedy

    return ask


def refused(statement: str) -> Ask:
    """What the refusal of a statement offers."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        return offered_by(lambda: spark.sql(statement.format(t=table)))

    return ask


def offered_by(call: Callable[[], object]) -> Remedy:
    """What the refusal of a call offers."""
    with pytest.raises(PySparkException) as error:
        call()
    return of_json(error.value._origin.remedyJson())  # type: ignore[attr-defined]


def of_json(text: str) -> Remedy:
    """A remedy of the JVM."""
    return _codec.loads(Remedy, text)


def made(kind: str, *arguments: str) -> Ask:
    """A remedy that only a race of two statements offers."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        jvm: Any = spark._jvm
        remedies = jvm.org.icebergwritercompat.remedy
        one = getattr(remedies, f"Remedy${kind}")(*(text.format(t=table) for text in arguments))
        return of_json(remedies.RemedyJson.of(one))

    return ask


def of_schema(columns: str) -> Ask:
    """What `would_break` offers for other columns of a table."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        report = compat.would_break(spark, table=table, schema=columns)
        return report.violations[0].remedy

    return ask


Step = str | Callable[[Table], None]


@dataclass(frozen=True)
class Case:
    """A fault: how it comes about, how a remedy is asked for, and what holds once it is mended.

    Where a remedy shows something and mends nothing, `shows` is part of what it shows.
    """

    setup: tuple[Step, ...]
    ask: Ask
    mended: Callable[[Table], bool] = lambda _table: True
    shows: str = ""


def without(rule: str) -> Callable[[Table], bool]:
    """Whether a rule is kept, by the table that was asked about."""
    return lambda table: (
        rule not in {finding.rule for finding in compat.check(table.spark, table.name).findings}
    )


def column(name: str, dataType: str) -> Callable[[Table], bool]:
    """Whether a table has a column of this type."""
    return lambda table: (name, dataType) in table.spark.table(table.name).dtypes


def committed(table: Table, *actions: dict[str, Any]) -> None:
    """Commits actions as a writer that keeps no rules."""
    log = table.folder / "_delta_log"
    version = oracle.versions(table.folder)[-1] + 1
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version:020}.json").write_text(text, encoding="utf-8")


def with_property(key: str, value: str) -> Step:
    """Stores a property that no statement of Delta stores."""

    def step(table: Table) -> None:
        metadata = table.log.metadata
        properties = metadata["configuration"] | {key: value}
        committed(table, {"metaData": metadata | {"configuration": properties}})

    return step


def with_schema(before: str, after: str) -> Step:
    """Changes the text of the schema."""

    def step(table: Table) -> None:
        metadata = table.log.metadata
        assert before in metadata["schemaString"]
        schema = metadata["schemaString"].replace(before, after)
        committed(table, {"metaData": metadata | {"schemaString": schema}})

    return step


def with_marker(table: Table) -> None:
    """Gives the partition of the only file the value that stands for null in folder names."""
    (file,) = table.log.files
    (column,) = file.add["partitionValues"]
    marked = {column: "__HIVE_DEFAULT_PARTITION__"}
    committed(table, {"add": file.add | {"partitionValues": marked}})


def data_file(table: Table) -> Path:
    """The only data file."""
    (file,) = (f for f in table.folder.rglob("*.parquet") if "_delta_log" not in f.parts)
    return file


def without_file(table: Table) -> None:
    """Deletes the only data file."""
    data_file(table).unlink()


def with_damaged_pages(table: Table) -> None:
    """Damages the rows of the only data file, and leaves its footer as it is."""
    file = data_file(table)
    file.with_name(f".{file.name}.crc").unlink()
    content = bytearray(file.read_bytes())
    content[4:24] = bytes(20)
    file.write_bytes(content)


def published(table: Table) -> None:
    """Publishes the table."""
    compat.publish(table.spark, table.name)


def planned(spark: SparkSession, table: str) -> Report:
    """The plan of an upgrade."""
    return compat.enable_iceberg_writer_compat(spark, table, rewrite=True, dry_run=True)


def program(*actions: str) -> Ask:
    """What the refusal of a commit offers that a program makes by Delta's own interface."""

    def ask(spark: SparkSession, table: str) -> Remedy:
        jvm: Any = spark._jvm
        delta = jvm.org.apache.spark.sql.delta
        location = spark.sql(f"DESCRIBE DETAIL {table}").first()
        assert location is not None
        log = delta.DeltaLog.forTable(spark._jsparkSession, location["location"])
        transaction = log.startTransaction()
        operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
        parsed = jvm.PythonUtils.toSeq([delta.actions.Action.fromJson(text) for text in actions])
        return offered_by(lambda: transaction.commit(parsed, operation))

    return ask


def clustering(table: Table) -> list[str]:
    """The columns by which a table is clustered."""
    detail = table.spark.sql(f"DESCRIBE DETAIL {table}").first()
    assert detail is not None
    return list(detail["clusteringColumns"])


REQUIRED = '"name":"b","type":"integer","nullable":false'
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
        (
            f"CREATE TABLE {{t}} (a INT, `b-c` INT) USING delta {PROPERTIES}",
            "INSERT INTO {t} VALUES (1, 2)",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        ),
        of_schema("a INT, `b-c` BIGINT"),
        column("b-c", "bigint"),
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
        lambda spark, table: offered_by(lambda: compat.prove(spark, table)),
        lambda table: compat.status(table.spark, table.name).published_version is not None,
    ),
    "UnsetProperty": Case(
        (GUARDED, ROW, with_property("delta.minWriterVersion", "7")),
        found("B10"),
        without("B10"),
    ),
    "DropNotNull": Case(
        (
            "CREATE TABLE {t} (a INT, b INT) USING delta",
            "INSERT INTO {t} VALUES (1, NULL)",
            with_schema('"name":"b","type":"integer","nullable":true', REQUIRED),
        ),
        found("E10", planned),
        lambda table: table.spark.table(table.name).schema["b"].nullable,
    ),
    "UpdateRows": Case(
        (
            f"CREATE TABLE {{t}} (a INT, p STRING) USING delta PARTITIONED BY (p) {PROPERTIES}",
            "INSERT INTO {t} VALUES (1, 'x')",
            with_marker,
        ),
        found("D4n"),
        lambda table: without("D4n")(table) and table.rows() == [(1, None)],
    ),
    "Uncluster": Case(
        (f"CREATE TABLE {{t}} (a INT) USING delta CLUSTER BY (a) {PROPERTIES}", ROW),
        program(
            '{"domainMetadata": {"domain": "delta.clustering", "removed": false, '
            '"configuration": "{\\"clusteringColumns\\": [[\\"a\\"]]}"}}'
        ),
        lambda table: clustering(table) == [],
    ),
    "Purge": Case(
        (
            PLAIN + " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
            "INSERT INTO {t} SELECT id FROM range(0, 4, 1, 1)",
            "DELETE FROM {t} WHERE a = 1",
        ),
        found("D5"),
        lambda table: (
            without("D5")(table)
            and table.rows() == [(0,), (2,), (3,)]
            and not any("deletionVector" in file.add for file in table.log.files)
        ),
    ),
    "RunAgain": Case(
        (GUARDED, ROW, ROW),
        made("RunAgain", "OPTIMIZE {t}"),
        lambda table: len(table.log.files) == 1 and table.rows() == [(1,), (1,)],
    ),
    "Vacuum": Case(
        (PLAIN, ROW, with_damaged_pages),
        lambda spark, table: offered_by(
            lambda: compat.enable_iceberg_writer_compat(spark, table, rewrite=True)
        ),
        shows="{t}",
    ),
    "History": Case((GUARDED, ROW, without_file), found("E0", compat.verify), shows="WRITE"),
    "Status": Case(
        (GUARDED, ROW, published),
        lambda spark, table: offered_by(lambda: compat.publish(spark, table, take_snapshot=42)),
        shows="version",
    ),
}


def run(spark: SparkSession, language: str, statement: str) -> str:
    """Runs one statement in its language; answers with what it shows."""
    if language == "python":
        answer = eval(statement, {**vars(compat), "spark": spark})
        return str(answer.collect()) if isinstance(answer, DataFrame) else str(answer)
    if language == "command" and statement.startswith("iceberg-writer-compat "):
        done = CliRunner().invoke(cli.main, shlex.split(statement)[1:])
        assert done.exit_code == 0, done.output
        return done.output
    if language == "command" and statement.startswith("--conf "):
        # An option of any command.
        done = CliRunner().invoke(cli.main, ["check", "no_such_table", *shlex.split(statement)])
        assert done.exit_code == 2
        return done.output
    # What the command line has no words for is SQL.
    return str(spark.sql(statement).collect())


# What the same kinds of remedies have to do elsewhere.
MORE: dict[str, Case] = {
    "Enable, of an empty table with a short": Case(
        ("CREATE TABLE {t} (a INT, s STRUCT<`b-c`: SMALLINT>, l ARRAY<TINYINT>) USING delta",),
        found("C7"),
        lambda table: (
            compat.check(table.spark, table.name).compliant
            and table.spark.table(table.name).dtypes
            == [("a", "int"), ("s", "struct<b-c:int>"), ("l", "array<int>")]
        ),
    ),
    "Enable, of an empty table with a short and a constraint": Case(
        (
            "CREATE TABLE {t} (a SMALLINT, b INT) USING delta",
            "ALTER TABLE {t} ADD CONSTRAINT low CHECK (a < 9)",
        ),
        lambda spark, table: offered_by(lambda: compat.enable_iceberg_writer_compat(spark, table)),
        lambda table: table.spark.table(table.name).dtypes == [("a", "int"), ("b", "int")],
    ),
    "CopyInto, of columns with defaults": Case(
        (
            "CREATE TABLE {t} (a INT, d INT DEFAULT 7, v VARIANT) USING delta "
            "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
            "INSERT INTO {t} (a, v) SELECT 1, parse_json('2')",
        ),
        found("C7"),
        lambda table: (
            rows(table.spark, f"{table.name}_iceberg") == [(1, 7, "2")]
            and "CURRENT_DEFAULT" not in oracle.read_log(copied(table)).metadata["schemaString"]
            and oracle.check(copied(table)) == []
        ),
    ),
}


def copied(table: Table) -> Path:
    """The folder of the copy that a remedy makes."""
    return table.folder.with_name(f"{table.name}_iceberg")


@pytest.mark.parametrize("language", ["sql", "python", "command"])
@pytest.mark.parametrize("kind", [*CASES, *MORE])
def test_every_rendering_runs(table: Table, kind: str, language: str) -> None:
    spark, case = table.spark, (CASES | MORE)[kind]
    for step in case.setup:
        if isinstance(step, str):
            spark.sql(step.format(t=table.name))
        else:
            step(table)
    remedy = case.ask(spark, table.name)
    statements: tuple[str, ...] = getattr(remedy, language)
    assert statements
    shown = [run(spark, language, statement) for statement in statements]
    assert case.mended(table)
    assert case.shows.format(t=table.name) in "\n".join(shown)
    spark.conf.unset("spark.databricks.delta.write.utcTimestampPartitionValues")
    spark.sql(f"DROP TABLE IF EXISTS {table}_iceberg")


def test_every_kind_has_a_case() -> None:
    names = [
        name.removeprefix("org/icebergwritercompat/remedy/Remedy$").removesuffix(".class")
        for jar in jars(delta=False).split(",")
        for name in zipfile.ZipFile(jar).namelist()
        if name.startswith("org/icebergwritercompat/remedy/Remedy$")
    ]
    kinds = {name for name in names if name.isalpha()}
    # What a user sets while a session or a table is begun has a test of its own.
    assert kinds == set(CASES) | {"UseSetting"}


def test_python_knows_every_kind(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    all_ = getattr(jvm.org.icebergwritercompat.remedy, "RemedyKind$")
    kinds = getattr(all_, "MODULE$").all()
    assert [kinds.apply(i).name() for i in range(kinds.size())] == [*get_args(RemedyKind)]


def test_what_can_be_dropped_is_known_without_a_session(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    drops = getattr(getattr(jvm.org.icebergwritercompat.upgrade, "Drop$"), "MODULE$").all()
    names = [drops.apply(i).name() for i in range(drops.size())]
    assert set(names) == set(get_args(Drop)) and len(names) == len(get_args(Drop))


def test_a_value_that_is_to_be_used_is_a_part_of_a_statement(table: Table) -> None:
    remedy = refused(f"{PLAIN} TBLPROPERTIES ('{PROPERTY}' = 'yes')")(table.spark, table.name)
    assert remedy.sql == remedy.python == remedy.command == (PROPERTIES,)
    (clause,) = remedy.sql
    table.spark.sql(f"{PLAIN.format(t=table)} {clause}")
    assert table.log.properties[PROPERTY] == "true"


def test_warnings_of_enabling_are_in_the_language_of_the_caller(table: Table) -> None:
    spark = table.spark
    table.create_with("(1, 'x')", "a INT, b STRING")
    reserved = with_schema('"name":"b"', '"name":"_row_id"')
    assert callable(reserved)
    reserved(table)
    rename = f"ALTER TABLE spark_catalog.default.{table} RENAME COLUMN _row_id TO row_id"
    again = compat.enable_iceberg_writer_compat(spark, table.name)
    (warning,) = again.warnings
    (statement,) = warning.remedy.sql
    assert statement in (rename, rename.replace("spark_catalog.", ""))
    assert warning.text.startswith("N2: ")
    assert str(warning) == f'{warning.text} Run: spark.sql("{statement}")'
    done = CliRunner().invoke(cli.main, ["enable", table.name])
    assert done.exit_code == 0
    assert f"  {warning.text} Run: {statement}" in done.output.splitlines()
    exec(warning.remedy.python[0], {"spark": spark})
    assert compat.enable_iceberg_writer_compat(spark, table.name).warnings == ()


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
