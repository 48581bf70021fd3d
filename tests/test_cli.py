"""The command, in this process and once as a user would run it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import iceberg_writer_compat
from conftest import Table
from iceberg_writer_compat import cli

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
        assert "text|json|html FILE" in shown
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
        ["check", "t", "--output", "xml"],
        ["check", "t", "--output", "html"],
        ["check", "--output", "html", "t"],
        ["check", "t", "--output", "html", "no/such/folder/report.html"],
        ["check", "t", "--output", "html", "/"],
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
        ["explain", "C7", "--output", "html"],
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
    table.spark.sql(f"CREATE TABLE {name} (a SMALLINT) USING delta")
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


def test_json(good: str, bad: str) -> None:
    result = run("check", good, bad, "no_such_table", "--output", "json")
    assert result.exit_code == 2
    written = json.loads(result.stdout)
    assert [entry.get("compliant") for entry in written["tables"]] == [True, False, None]
    assert written["tables"][2]["error"]["condition"] == "TABLE_OR_VIEW_NOT_FOUND"
    assert not iceberg_writer_compat.Reports.from_dict(written).compliant


@pytest.mark.parametrize("output", [["--output", "html"], ["--output=html"]])
def test_html(output: list[str], good: str, bad: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    result = run("check", good, *output, file, bad)
    assert (result.exit_code, result.output) == (1, "")
    page = file.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "2 tables: 1 compliant, 1 not compliant" in page
    result = run("check", good, *output, "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!doctype html>")


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


def test_explain() -> None:
    result = run("explain", "c7", "B1")
    assert result.exit_code == 0
    assert result.stdout.startswith("  C7 ")
    assert "\n  B1 " in result.stdout
    ids = [rule["rule"] for rule in json.loads(run("explain", "--output", "json").stdout)]
    assert {"A1", "C7", "N3"} <= set(ids)
    assert [rule.rule for rule in iceberg_writer_compat.rules()] == ids
    result = run("explain", "Z9")
    assert result.exit_code == 2
    assert "Z9" in result.stderr
    assert "\tat " not in result.stderr


def test_explain_needs_no_session(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("iceberg-writer-compat")
    done = subprocess.run(
        [command, "explain", "C7"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.stderr == ""
    assert done.stdout.startswith("  C7 ")
    assert done.returncode == 0
    unknown = subprocess.run(
        [command, "explain", "Z9"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert "Z9" in unknown.stderr
    assert "Traceback" not in unknown.stderr
    assert unknown.returncode == 2


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
