"""The command `iceberg-writer-compat`."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

import click
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat

_REFUSED = 1
_FAILED = 2

_Command = Callable[[SparkSession, str], int]


@click.group()
@click.version_option(compat.__version__, package_name="iceberg-writer-compat")
def main() -> None:
    """Switch icebergWriterCompatV1 on and off for Delta tables.

    TABLE is a path, or a name in the session's catalog. The exit code is 0 for success, 1 if the
    table was refused or does not have the feature, and 2 for wrong usage or set-up.
    """


def _command(run: _Command) -> click.Command:
    """Makes a command of a function that is given a session and a table."""

    @click.argument("table")
    @click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of the session.")
    @click.option("--verbose", is_flag=True, help="Show Spark's log and stack traces.")
    @wraps(run)
    def invoke(table: str, conf: tuple[str, ...], verbose: bool) -> None:
        settings = dict(_setting(entry) for entry in conf)
        try:
            with _spark_log(verbose):
                code = run(_session(settings), table)
        except (compat.IcebergWriterCompatError, PySparkException, Py4JJavaError) as error:
            click.echo(traceback.format_exc() if verbose else _message(error), err=True)
            code = _exit_code(error)
        sys.exit(code)

    return main.command(run.__name__.replace("_", "-"))(invoke)


@_command
def enable(spark: SparkSession, table: str) -> int:
    """Switch the feature on for TABLE."""
    changed = compat.enable_iceberg_writer_compat(spark, table).changed
    click.echo(f"{table}: icebergWriterCompatV1 is on" + ("" if changed else ", as it was before"))
    return 0


@_command
def disable(spark: SparkSession, table: str) -> int:
    """Take the feature out of TABLE."""
    changed = compat.disable_iceberg_writer_compat(spark, table).changed
    click.echo(f"{table}: icebergWriterCompatV1 is off" + ("" if changed else ", as it was before"))
    return 0


@_command
def is_enabled(spark: SparkSession, table: str) -> int:
    """Tell whether TABLE has the feature on."""
    enabled = compat.is_iceberg_writer_compat_enabled(spark, table)
    click.echo(f"{table}: icebergWriterCompatV1 is {'on' if enabled else 'off'}")
    return 0 if enabled else _REFUSED


def _setting(entry: str) -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{entry!r} is not KEY=VALUE.", param_hint="--conf")
    return key, value


def _session(settings: dict[str, str]) -> SparkSession:
    defaults = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.appName("iceberg-writer-compat")
    for key, value in (defaults | settings).items():
        builder.config(key, value)
    return compat.configure_spark_with_iceberg_writer_compat(builder).getOrCreate()


def _message(error: Exception) -> str:
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getMessage())
    # PySpark adds the JVM's stack trace where a session asks for it.
    return str(error).split("\n\nJVM stacktrace:")[0]


def _exit_code(error: Exception) -> int:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    refused = (condition or "").startswith("DELTA_ICEBERG_WRITER_COMPAT_VIOLATION")
    return _REFUSED if refused else _FAILED


@contextmanager
def _spark_log(show: bool) -> Iterator[None]:
    """Keeps what the JVM writes to standard error, which it inherits, off the terminal."""
    if show:
        yield
        return
    sys.stderr.flush()
    terminal = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
