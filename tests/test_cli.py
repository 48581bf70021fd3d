"""The command, in this process and once as a user would run it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import iceberg_writer_compat
from conftest import Table
from iceberg_writer_compat import _parallel, cli
from iceberg_writer_compat.cli import _output

REPORTS = ("check", "verify", "history")


def run(*arguments: object, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments], input=text)


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert iceberg_writer_compat.__version__ in result.stdout


def test_help() -> None:
    listed = run("--help").stdout
    switches = ("enable", "disable", "is-enabled", "serve")
    for command in (*REPORTS, "would-break", "explain", *switches, "publish", "status", "prove"):
        assert f"\n  {command} " in listed
        shown = run(command, "--help").stdout
        assert f"\n    iceberg-writer-compat {command} " in shown
        assert "--output" in shown or command in switches
    assert "\n  clean-log-store " in listed
    for command in REPORTS:
        shown = run(command, "--help").stdout
        assert "\n  --format [text|json|html] " in shown
        assert "\n  --output FILE " in shown
        assert "\n  --parallelism N " in shown
        assert run(command, "-h").stdout == shown
        for option in ("--schema", "--catalog", "--from-file", "--conf", "--verbose"):
            assert f"\n  {option} " in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["enable"],
        ["unknown", "t"],
        ["enable", "t", "--conf", "x"],
        ["enable", "t", "--conf", "=x"],
        ["check"],
        ["check", "t", "--format", "xml"],
        ["check", "t", "--output", "html"],
        ["check", "--output", "json", "t"],
        ["check", "t", "--output", "report.pdf"],
        ["check", "t", "--output", "no/such/folder/report.html"],
        ["check", "t", "--output", "/"],
        ["check", "t", "--parallelism", "0"],
        ["check", "t", "--at-version", "-1"],
        ["check", "t", "--at-version", "x"],
        ["check", "t", "--at-version", "99999999999999999999"],
        ["check", "--from-file", "no-such-file"],
        ["check", "--from-file", "/"],
        ["check", "t", "--from-file", os.devnull, "--at-version", "-99999999999999999999"],
        ["verify", "t", "--files", "0"],
        ["verify", "t", "--files", "9223372036854775808"],
        ["enable", "t", "--parallelism", "0"],
        ["enable", "t", "--journal", "/"],
        ["prove", "t", "--versions", "9223372036854775808"],
        ["publish", "t", "--take-snapshot", "9223372036854775808"],
        ["publish", "t", "--discard-snapshot", "-1"],
        ["publish", "t", "--discard-changes", "v1.metadata.json", "--anew"],
        ["history", "t", "--at-version", "1"],
        ["would-break"],
        ["would-break", "--table", "t"],
        ["would-break", "ALTER TABLE t", "--table", "t", "--columns", "a INT"],
        ["explain", "C7", "--format", "html"],
        ["explain", "C7", "--output", "rules.html"],
        ["publish", "t", "--format", "html"],
        ["enable", "t", "--drop", "everything"],
        ["serve", "--path", "db.t"],
        ["serve", "--port", "65536"],
        ["serve", "--token-file", "no-such-file"],
        ["serve", "--token-file", os.devnull],
        ["serve", "--tls-cert", os.devnull],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr
    assert result.stdout == ""


# Commands take the session that is there, which the fixture has made.


def test_enable_and_disable(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} (a INT) USING delta")
    for command, code, state in (
        ("is-enabled", 1, "off"),
        ("enable", 0, "on"),
        ("enable", 0, "on, unchanged"),
        ("is-enabled", 0, "on"),
        ("disable", 0, "off"),
        ("disable", 0, "off, unchanged"),
    ):
        result = run(command, table.folder)
        assert result.output == f"{table.folder}: icebergWriterCompatV1 is {state}\n"
        assert result.exit_code == code


def test_refused(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS a")
    result = run("enable", table.name)
    assert result.exit_code == 1
    assert result.stderr.startswith("[DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.REWRITE_NEEDED]")
    assert "\tat " not in result.stderr
    assert "Traceback" not in result.stderr


def test_set_up(spark: SparkSession, tmp_path: Path) -> None:
    for name, condition in {
        "unknown_table": "TABLE_OR_VIEW_NOT_FOUND",
        str(tmp_path): "DELTA_MISSING_DELTA_TABLE",
    }.items():
        result = run("enable", name)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"[{condition}]")
        assert "\tat " not in result.stderr


def test_verbose_shows_the_stack(spark: SparkSession) -> None:
    result = run("enable", "unknown_table", "--verbose")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_conf_is_set(table: Table) -> None:
    table.create()
    assert run("is-enabled", table.name, "--conf", "spark.x=a=b").exit_code == 0
    assert table.spark.conf.get("spark.x") == "a=b"
    table.spark.conf.unset("spark.x")


def test_the_state_of_a_table_is_read_in_few_tasks(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session may run elsewhere.
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    table.create()
    conf, key = table.spark.conf, "spark.databricks.delta.snapshotPartitions"
    before = conf.get(key, None)
    for wanted in ("7", None):
        conf.unset(key) if wanted is None else conf.set(key, wanted)
        assert run("is-enabled", table.name).exit_code == 0
        assert conf.get(key) == (wanted or str(table.spark.sparkContext.defaultParallelism))
    # The server, which is refused here after the session is there, has a number of its own.
    conf.unset(key)
    assert run("serve", "--host", "0.0.0.0").exit_code != 0
    assert conf.get(key, None) is None
    conf.unset(key) if before is None else conf.set(key, before)


def test_a_folder_of_the_name(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("d1", "spark-warehouse/d2", "spark-warehouse/db.db/d3"):
        table.spark.sql(f"CREATE TABLE delta.`{tmp_path / folder}` (a INT) USING delta")
    for name, folder in {
        "d1": "./d1",
        "d2": "./spark-warehouse/d2",
        "db.d3": "./spark-warehouse/db.db/d3",
    }.items():
        for command in ("is-enabled", "check"):
            result = run(command, name)
            assert result.exit_code == 2
            assert result.stderr.endswith(f"Give its path: {folder}\n")
    assert run("check", "d4").stderr.endswith("or in iceberg-writer-compat.toml.\n")
    assert run("check", "d4", "db.d5").stderr.count("is in memory") == 1


def test_a_folder_that_is_written_as_no_name(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table.spark.sql(f"CREATE TABLE delta.`{tmp_path}/my table` (a INT) USING delta")
    for command in ("is-enabled", "check", "status", "publish"):
        result = run(command, "my table")
        assert result.exit_code == 2
        assert "'my table' is not the name or path of a table." in result.stderr
        assert "Write `my table` for a name, or ./my table for a path." in result.stderr
        assert result.stderr.endswith("Give its path: './my table'\n")
    assert run("is-enabled", tmp_path / "my table").exit_code == 1
    assert "Give its path" not in run("check", "your table").stderr


def test_a_schema_of_another_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = f"empty_{uuid.uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {schema}")
    try:
        for command in ("check", "enable"):
            for name in (schema, "no_such_schema"):
                result = run(command, "--schema", name)
                assert result.exit_code == 2
                assert result.stderr.endswith("or in iceberg-writer-compat.toml.\n")
    finally:
        spark.sql(f"DROP SCHEMA {schema}")
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/spark-warehouse/shop.db/t` (a INT) USING delta")
    result = run("check", "--schema", "shop")
    assert result.stderr.endswith("Give their paths: ./spark-warehouse/shop.db/*\n")


def test_settings_of_a_file(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table.create()
    monkeypatch.chdir(tmp_path)
    own, project = tmp_path / "iceberg-writer-compat.toml", tmp_path / "pyproject.toml"

    def seen(*options: str) -> tuple[str | None, str | None]:
        assert run("is-enabled", table.name, *options).exit_code == 0
        found = (table.spark.conf.get("spark.x", None), table.spark.conf.get("spark.y.z", None))
        for key in ("spark.x", "spark.y.z"):
            table.spark.conf.unset(key)
        return found

    project.write_text('[tool.iceberg-writer-compat.conf]\nspark.x = 1\n"spark.y.z" = true\n')
    assert seen() == ("1", "true")
    assert seen("--conf", "spark.x=2") == ("2", "true")
    own.write_text(
        '[conf]\n"spark.x" = "own"\n[profile.prod.conf]\n"spark.x" = "p"\n"spark.y.z" = 5\n'
    )
    assert seen() == ("own", None)
    assert seen("--profile", "prod") == ("p", "5")
    monkeypatch.setenv("ICEBERG_WRITER_COMPAT_PROFILE", "prod")
    assert seen("--conf", "spark.y.z=6") == ("p", "6")
    assert (
        "has no profile 'test'. It has: prod."
        in run("is-enabled", table.name, "--profile", "test").stderr
    )
    for text, said in {
        "conf = 1": "'conf' is 1, but has to be a table",
        "[conf]\nx = [1]": "'x' is [1], but has to be one value",
        "[config]": "knows only 'conf' and 'profile'",
        "[conf": "is not valid TOML",
    }.items():
        own.write_text(text)
        result = run("is-enabled", table.name)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


# --- reports --------------------------------------------------------------------------------------


@pytest.fixture
def good(table: Table) -> str:
    """The name of a table that complies."""
    table.create()
    return table.name


@pytest.fixture
def bad(table: Table) -> Iterator[str]:
    """The name of a table that does not comply."""
    name = f"{table}_bad"
    table.spark.sql(f"CREATE TABLE {name} (a VARIANT) USING delta")
    yield name
    table.spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("command", REPORTS)
def test_exit_codes(command: str, good: str, bad: str) -> None:
    result = run(command, good)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f".{good}: " in result.stdout
    result = run(command, good, bad)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.endswith("2 tables: 1 compliant, 1 not compliant\n")
    result = run(command, bad, "no_such_table", good)
    assert result.exit_code == 2
    assert result.stderr.startswith("no_such_table: [TABLE_OR_VIEW_NOT_FOUND]")
    assert "\tat " not in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout.endswith("3 tables: 1 compliant, 1 not compliant, 1 could not be read\n")


def test_bad_names(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("it's; DROP TABLE x", "`a`b`", str(tmp_path), str(tmp_path / "none"), ""):
        result = run("check", "--", name)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"{name}: [")
        assert "\tat " not in result.stderr
        assert result.stdout == ""


def test_text(bad: str) -> None:
    result = run("check", bad)
    assert "not compliant: " in result.stdout.splitlines()[0]
    assert "\n  C7 error " in result.stdout
    assert "\n    fix " in result.stdout
    assert "\x1b" not in result.stdout


def test_json(table: Table, good: str, bad: str) -> None:
    result = run("check", good, bad, "no_such_table", "--format", "json")
    assert result.exit_code == 2
    # One line for each table, as they come, and the error of the last one.
    lines = result.stderr.splitlines()
    numbered = sorted(line.split(" ", 1)[1] for line in lines if line[1:3] == "/3")
    verdicts = [iceberg_writer_compat.check(table.spark, name).verdict for name in (good, bad)]
    wanted = [f"{good}: {verdicts[0]}", f"{bad}: {verdicts[1]}", "no_such_table: could not be read"]
    assert numbered == sorted(wanted)
    written = json.loads(result.stdout)
    assert [entry.get("compliant") for entry in written["tables"]] == [True, False, None]
    assert written["tables"][2]["error"]["condition"] == "TABLE_OR_VIEW_NOT_FOUND"
    assert not iceberg_writer_compat.Reports.from_dict(written).compliant


def test_html(good: str, bad: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    result = run("check", good, "--output", file, bad)
    assert (result.exit_code, result.stdout) == (1, "")
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "2 tables: 1 compliant, 1 not compliant" in page
    result = run("check", good, "--format=html")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("<!doctype html>")


def test_the_format_is_that_of_the_suffix(good: str, tmp_path: Path) -> None:
    shown = run("check", good).stdout
    for name, options, begins in (
        ("report.txt", [], shown.splitlines()[0]),
        ("REPORT.JSON", [], "{"),
        ("report.htm", [], "<!doctype html>"),
        ("report", ["--format", "json"], "{"),
        ("report.html", ["--format", "text"], shown.splitlines()[0]),
    ):
        file = tmp_path / name
        result = run("check", good, "--output", file, *options)
        assert (result.exit_code, result.output) == (0, "")
        assert file.read_text(encoding="utf-8").startswith(begins)
    assert (tmp_path / "report.txt").read_text(encoding="utf-8") == shown
    said = run("check", good, "--output", "html").stderr
    assert "Use --format html" in said and "--output report.html" in said


def test_tables_are_looked_at_side_by_side(spark: SparkSession) -> None:
    # Each of them waits for the other.
    both = threading.Barrier(2, timeout=60)
    with _parallel.Pool(spark, 2) as pool:
        came = dict(pool.as_they_come(lambda name: f"{name}{both.wait() * 0}", ["a", "b"]))
    assert came == {0: "a0", 1: "b0"}


@pytest.mark.parametrize(
    ("terminal", "printed"), [(True, "c\n\na\n"), (False, "a\n\nc\n")], ids=["terminal", "file"]
)
def test_lines_are_in_order_in_a_file(
    terminal: bool, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _output.Lines(terminal, between="\n")
    lines.put(2, "c")
    assert capsys.readouterr().out == ("c\n" if terminal else "")
    # Of this one nothing is to be shown.
    lines.put(1, "")
    lines.put(0, "a")
    lines.put(0, "again")
    assert capsys.readouterr().out == printed.removeprefix("c\n" if terminal else "")
    lines.put(4, "e")
    lines.end()
    assert capsys.readouterr().out == "\ne\n"


@pytest.mark.parametrize(("variable", "coloured"), [("", True), ("1", False)])
def test_colour_is_for_terminals(variable: str, coloured: bool) -> None:
    said = (
        "from iceberg_writer_compat.cli._output import echo; echo('t: not compliant: 1 violation')"
    )
    controller, terminal = pty.openpty()
    environment = os.environ | {"NO_COLOR": variable}
    subprocess.run([sys.executable, "-c", said], stdout=terminal, env=environment, check=True)
    os.close(terminal)
    shown = os.read(controller, 1000).decode()
    os.close(controller)
    assert ("\x1b[31mnot compliant\x1b[0m" in shown) == coloured
    assert ("\x1b" in shown) == coloured


def test_tables_from_a_file(good: str, bad: str, tmp_path: Path) -> None:
    listed = tmp_path / "tables.txt"
    listed.write_text(f"# mine\n\n  {good}  \n{bad}\n{good}\n", encoding="utf-8")
    for result in (
        run("check", "--from-file", listed),
        run("check", "--from-file", "-", text=listed.read_text(encoding="utf-8")),
    ):
        assert result.exit_code == 1
        assert result.stdout.endswith("2 tables: 1 compliant, 1 not compliant\n")
    listed.write_text("# nothing\n", encoding="utf-8")
    result = run("check", "--from-file", listed)
    assert result.exit_code == 2
    assert result.stderr == "No Delta table was found.\n"


def test_a_file_as_editors_leave_it(good: str, tmp_path: Path) -> None:
    listed = tmp_path / "tables.txt"
    listed.write_bytes(b"\xef\xbb\xbf# mine\r\n" + good.encode() + b"\r\n\r\n" + good.encode())
    for result in (
        run("check", "--from-file", listed),
        run("check", "--from-file", "-", text=listed.read_bytes()),
    ):
        assert (result.exit_code, result.stderr) == (0, "")
        assert "2 tables" not in result.stdout


@pytest.mark.parametrize("content", [b"t\nt\xff\n", b"\xff\xfet\x00", b"\xc3"])
def test_a_file_that_is_no_text(content: bytes, tmp_path: Path) -> None:
    listed = tmp_path / "tables.txt"
    listed.write_bytes(content)
    for command in (*REPORTS, "enable"):
        for name, result in (
            (listed, run(command, "--from-file", listed)),
            ("Standard input", run(command, "--from-file", "-", text=content)),
        ):
            line = content.count(b"\n", 0, 3) + 1
            assert result.exit_code == 2
            assert f"{name} is not UTF-8 text: see line {line}." in result.stderr.replace("\n", " ")


@pytest.mark.parametrize("version", [-1, 2**63, 10**30])
def test_numbers_that_the_jvm_has_not(table: Table, version: int) -> None:
    with pytest.raises(ValueError, match="version is a number from 0 to"):
        iceberg_writer_compat.check(table.spark, table.name, version)
    with pytest.raises(ValueError, match="files is a number from 1 to"):
        iceberg_writer_compat.verify(table.spark, table.name, files=version)
    with pytest.raises(ValueError, match="take_snapshot is a number from 0 to"):
        iceberg_writer_compat.publish(table.spark, table.name, take_snapshot=version)
    with pytest.raises(ValueError, match="discard_snapshot is a number from 0 to"):
        iceberg_writer_compat.publish(table.spark, table.name, discard_snapshot=version)
    with pytest.raises(TypeError, match="version is a whole number"):
        iceberg_writer_compat.check(table.spark, table.name, 1.5)  # type: ignore[call-overload]


def test_names_that_are_no_text(spark: SparkSession) -> None:
    for command in (*REPORTS, "enable", "disable", "is-enabled", "publish", "status"):
        result = run(command, os.fsdecode(b"/data/\xff"))
        assert result.exit_code == 2
        assert result.stderr == "An argument is not valid in utf-8.\n"


def test_streams_that_are_closed() -> None:
    command = Path(sys.executable).with_name("iceberg-writer-compat")

    def answer(redirected: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command} {redirected}"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stderr

    code, said = answer("check --from-file - <&-")
    assert (code, said.splitlines()[-1]) == (2, "Error: Standard input is closed.")
    said_of_output = "The output could not be written: "
    assert answer("explain > /dev/full") == (2, f"{said_of_output}No space left on device.\n")
    assert answer("explain | true") == (2, f"{said_of_output}Broken pipe.\n")
    code, said = answer("explain C17 < /dev/null > /dev/null")
    assert (code, said) == (0, "")


def test_tables_of_a_schema(spark: SparkSession) -> None:
    spark.sql("CREATE SCHEMA commanded")
    for number in range(2):
        spark.sql(
            f"CREATE TABLE commanded.t{number} (a INT) USING delta "
            "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
        )
    result = run("check", "--schema", "commanded", "commanded.t1")
    assert result.stdout.endswith("2 tables: 2 compliant\n")
    assert result.exit_code == 0
    spark.sql("DROP SCHEMA commanded CASCADE")
    result = run("check", "--schema", "commanded")
    assert result.exit_code == 2
    assert result.stderr.startswith("[SCHEMA_NOT_FOUND]")


def test_at_version(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} (a INT) USING delta")
    assert run("enable", table).exit_code == 0
    assert run("check", table).exit_code == 0
    assert run("check", table, "--at-version", "0").exit_code == 1
    assert run("check", table, "--at-version", "99").exit_code == 2


def test_would_break(table: Table) -> None:
    table.create()
    change = f"ALTER TABLE {table} ADD COLUMN n"
    assert run("would-break", f"{change} INT").exit_code == 0
    result = run("would-break", f"{change} SMALLINT")
    assert result.exit_code == 1
    assert "this would break the rules: " in result.stdout.splitlines()[0]
    columns = ["--table", table, "--columns"]
    assert run("would-break", *columns, "a INT, b STRING, c DATE").exit_code == 0
    assert run("would-break", *columns, "a SMALLINT").exit_code == 1
    for wrong in (["SELECT 1"], ["not SQL"], [*columns, "not a schema, at all"]):
        result = run("would-break", *wrong)
        assert result.exit_code == 2
        assert result.stderr.startswith("[")
        assert "\tat " not in result.stderr
    assert table.log.version == 0


def test_explain(tmp_path: Path) -> None:
    result = run("explain", "c7", "B1")
    assert result.exit_code == 0
    assert result.stdout.startswith("  C7 ")
    assert "\n  B1 " in result.stdout
    ids = [rule["rule"] for rule in json.loads(run("explain", "--format", "json").stdout)]
    assert {"A1", "C7", "N3"} <= set(ids)
    assert [rule.rule for rule in iceberg_writer_compat.rules()] == ids
    assert run("explain", "--output", tmp_path / "rules.json").output == ""
    assert len(json.loads((tmp_path / "rules.json").read_text(encoding="utf-8"))) == len(ids)
    result = run("explain", "Z9")
    assert result.exit_code == 2
    assert "no rule and no condition Z9" in result.stderr and "C7, " in result.stderr
    with pytest.raises(iceberg_writer_compat.UnknownRuleError, match="Z9"):
        iceberg_writer_compat.explain("Z9")


def test_explain_a_condition(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS a")
    refused = run("enable", table.name).stderr
    # What stands in brackets can be pasted.
    (condition,) = re.findall(r"^\[\S+\]", refused)
    shown = run("explain", condition).stdout
    assert shown.startswith("  DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.REWRITE_NEEDED\n")
    assert "KD00E" in shown and "which was not requested" in shown
    assert run("explain", "rewrite_needed").stdout == shown
    found = json.loads(run("explain", "FOLDER", "--format", "json").stdout)
    assert {text["condition"].split(".")[1] for text in found} == {"FOLDER"}
    all_of_one = run("explain", "ICEBERG_WRITER_COMPAT_NOT_INSTALLED").stdout
    assert "ICEBERG_WRITER_COMPAT_NOT_INSTALLED.DELTA_VERSION" in all_of_one


def test_explain_needs_no_java(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("iceberg-writer-compat"))]
    module = [sys.executable, "-m", "iceberg_writer_compat"]
    environment = os.environ | {"JAVA_HOME": str(tmp_path / "no-java"), "PATH": ""}

    def answer(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout, done.stderr

    code, shown, said = answer(*command, "explain", "C7")
    assert (code, said) == (0, "")
    assert shown.startswith("  C7 ")
    assert answer(*module, "explain", "C7") == (0, shown, "")
    code, shown, said = answer(*command, "explain", "Z9")
    assert (code, shown) == (2, "")
    assert "Z9" in said and "Traceback" not in said
    code, shown, said = answer(*command, "check", "t")
    assert (code, shown) == (2, "")
    assert said.endswith(f"--verbose shows why; JAVA_HOME is {tmp_path / 'no-java'}.\n")


def test_progress_is_for_terminals(good: str, table: Table, tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    shown = bytearray()

    def read() -> None:
        # Reading ends in an error once nobody holds the terminal any more.
        with contextlib.suppress(OSError):
            while piece := os.read(controller, 65536):
                shown.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    conf = {"spark.master": "local[1]", "spark.driver.bindAddress": "127.0.0.1"}
    settings = [f"--conf={key}={value}" for key, value in conf.items()]
    command = Path(sys.executable).with_name("iceberg-writer-compat")
    done = subprocess.run(
        [command, "check", str(table.folder), *settings],
        cwd=tmp_path,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        timeout=300,
    )
    os.close(terminal)
    reader.join(timeout=20)
    os.close(controller)
    assert done.returncode == 0
    assert b"starting Spark" in shown
    assert table.folder.name.encode() in shown
    assert b"WARN" not in shown
    assert done.stdout.splitlines()[0].endswith(": compliant")
    assert "starting Spark" not in done.stdout


def test_as_a_command(table: Table, tmp_path: Path) -> None:
    table.create()
    command = Path(sys.executable).with_name("iceberg-writer-compat")
    conf = {"spark.master": "local[1]", "spark.driver.bindAddress": "127.0.0.1"}
    settings = [f"--conf={key}={value}" for key, value in conf.items()]
    done = subprocess.run(
        [command, "is-enabled", str(table.folder), *settings],
        cwd=tmp_path,
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    assert done.stdout == f"{table.folder}: icebergWriterCompatV1 is on\n"
    assert done.returncode == 0
