"""The command, in this process and once as a user would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import iceberg_writer_compat
from conftest import Table
from iceberg_writer_compat import cli


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def test_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert iceberg_writer_compat.__version__ in result.stdout


def test_help_lists_the_commands() -> None:
    for command in ("enable", "disable", "is-enabled"):
        assert command in run("--help").stdout
        assert "TABLE" in run(command, "--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [["enable"], ["unknown", "t"], ["enable", "t", "--conf", "x"], ["enable", "t", "--conf", "=x"]],
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
        ("enable", 0, "on, as it was before"),
        ("is-enabled", 0, "on"),
        ("disable", 0, "off"),
        ("disable", 0, "off, as it was before"),
    ):
        result = run(command, table.folder)
        assert result.output == f"{table.folder}: icebergWriterCompatV1 is {state}\n"
        assert result.exit_code == code


def test_refused(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS a")
    result = run("enable", table.name)
    assert result.exit_code == 1
    assert result.stderr.startswith("[DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.TABLE_NOT_COMPLIANT]")
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
