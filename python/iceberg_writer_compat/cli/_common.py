"""What all commands have in common: errors and exit codes, the session, progress."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
from iceberg_writer_compat import _jvm
from iceberg_writer_compat.cli._configuration import settings_of_file
from iceberg_writer_compat.cli._output import Run, spinning
from iceberg_writer_compat.session import add_readers

REFUSED = 1
FAILED = 2
INTERRUPTED = 130

_ERRORS = (compat.IcebergWriterCompatError, PySparkException, Py4JError)


def help_end(*commands: str) -> str:
    """The end of a help text; what follows this mark is not wrapped."""
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=help_end(
        "iceberg-writer-compat check db.orders",
        "iceberg-writer-compat check --schema db --output report.html",
        "iceberg-writer-compat verify /data/orders --files 1000",
        'iceberg-writer-compat would-break "ALTER TABLE db.orders ADD COLUMN age SMALLINT"',
        "iceberg-writer-compat explain C7",
        "iceberg-writer-compat enable db.orders",
        "iceberg-writer-compat publish db.orders",
        "iceberg-writer-compat prove db.orders",
        "iceberg-writer-compat serve --path db.orders=/data/orders",
    ),
)
@click.version_option(compat.__version__, package_name="iceberg-writer-compat")
def main() -> None:
    """Delta tables that are safe to read and write as Apache Iceberg tables.

    Check tables for the table feature icebergWriterCompatV1, switch it on and off, and publish
    tables as Iceberg. TABLE is a path, or a name in the session's catalog.

    The exit code is 0 for success and if all tables comply; 1 if a table does not comply, a proof
    fails or a change is refused; and 2 for wrong usage or configuration, or if a table cannot be
    read.
    """


def _setting(entry: str) -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{entry!r} is not KEY=VALUE.", param_hint="--conf")
    return key, value


def command(name: str, *examples: str) -> Callable[[Run], click.Command]:
    """Makes a command from a function that returns an exit code."""

    def make(run: Run) -> click.Command:
        @wraps(run)
        def invoke(**arguments: Any) -> NoReturn:
            try:
                code = run(**arguments)
            except _ERRORS as error:
                say(error)
                code = _exit_code(error)
            except UnicodeEncodeError as error:
                # Python represents undecodable bytes of an argument as lone surrogates.
                no_text = error.encoding.replace("-", "").lower() == "utf8"
                what = "An argument is" if no_text else "The output has characters that are"
                click.echo(f"{what} not valid in {error.encoding}.", err=True)
                code = FAILED
            except OSError as error:
                _say_of_system(error)
                code = FAILED
            except KeyboardInterrupt:
                # Click would make it the exit code of a table that does not comply.
                code = INTERRUPTED
            sys.exit(code)

        return main.command(name, epilog=help_end(*examples))(invoke)

    return make


def _say_of_system(error: OSError) -> None:
    """Reports an error of the operating system, mostly while writing the output."""
    what = str(error)
    if error.errno in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
        what = f"The output could not be written: {error.strerror}."
        # Python would try to write again at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with suppress(OSError):
        click.echo(what, err=True)


def options(*options: Callable[[Run], Run]) -> Callable[[Run], Run]:
    """Several options as one decorator, in the order of the help text."""

    def add(run: Run) -> Run:
        for option in reversed(options):
            run = option(run)
        return run

    return add


def _set_verbose(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    _of(context)["verbose"] = value


def _set_profile(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    _of(context)["profile"] = value


def _of(context: click.Context) -> dict[str, Any]:
    """What the options that all commands have were given."""
    given: dict[str, Any] = context.ensure_object(dict)
    return given


session_options = options(
    click.option(
        "--conf",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=lambda _context, _parameter, entries: dict(map(_setting, entries)),
        help="A setting of the Spark session; may be repeated.",
    ),
    click.option(
        "--profile",
        metavar="NAME",
        envvar="ICEBERG_WRITER_COMPAT_PROFILE",
        expose_value=False,
        callback=_set_profile,
        help="A profile of iceberg-writer-compat.toml or pyproject.toml, with more settings.",
    ),
    click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_set_verbose,
        help="Show Spark's log and stack traces.",
    ),
)


def verbose() -> bool:
    return bool(_of(click.get_current_context()).get("verbose"))


def say(error: Exception, table: str | None = None) -> None:
    _say(error, table)
    for hint in _hints(error):
        _say_hint(hint)


def say_no_tables(schemas: Sequence[str]) -> None:
    """Says that there is no table, and where tables of these schemas may be."""
    click.echo("No Delta table was found.", err=True)
    for hint in [hint for schema in schemas for hint in _hints_on_schema(schema.split("."))]:
        _say_hint(hint)


def _say_hint(hint: str) -> None:
    """Prints a hint, once in a command: hundreds of tables may be missing for one reason."""
    said: set[str] = _of(click.get_current_context()).setdefault("hints", set())
    if hint not in said:
        said.add(hint)
        click.echo(hint, err=True)


def _hints(error: Exception) -> Iterator[str]:
    """What somebody may have meant by the name of a table or schema that is not there."""
    if not isinstance(error, PySparkException):
        return
    named = error.getMessageParameters() or {}
    match _jvm.condition(error):
        case "TABLE_OR_VIEW_NOT_FOUND":
            yield from _hints_on_table(_parts(named.get("relationName", "")))
        case "ICEBERG_WRITER_COMPAT_WRONG_NAME":
            yield from _hints_on_folders([Path(named.get("name", ""))])
        case "JAVA_GATEWAY_EXITED" if not verbose():
            home = os.environ.get("JAVA_HOME")
            which = "JAVA_HOME is not set" if home is None else f"JAVA_HOME is {home}"
            yield f"Java did not start, or ended at once. --verbose shows why; {which}."
        case "SCHEMA_NOT_FOUND":
            yield from _hints_on_schema(_parts(named.get("schemaName", "")))


def _parts(name: str) -> list[str]:
    """The parts of a name, each of which is in backquotes."""
    return re.findall("`((?:[^`]|``)*)`", name)


def _hints_on_table(parts: list[str]) -> list[str]:
    schema, table = ["default", *parts][-2:] if parts else ("", "")
    inside = _WAREHOUSE / (table if schema == "default" else f"{schema}.db/{table}")
    return _hints_on_folders([Path(".".join(parts)), inside]) or _hints_on_catalog()


def _hints_on_folders(folders: Sequence[Path]) -> list[str]:
    return [
        "There is a Delta table in a folder of this name. Give its path: "
        + shlex.quote(f"./{folder}")
        for folder in folders
        if (folder / "_delta_log").is_dir()
    ]


def _hints_on_schema(parts: list[str]) -> list[str]:
    schema = parts[-1] if parts else ""
    folder = _WAREHOUSE if schema == "default" else _WAREHOUSE / f"{schema}.db"
    if any(folder.glob("*/_delta_log")):
        return [f"There are Delta tables in a folder of this name. Give their paths: ./{folder}/*"]
    return _hints_on_catalog()


def _hints_on_catalog() -> list[str]:
    spark = SparkSession.getActiveSession()
    if spark is None or not _is_in_memory(spark):
        return []
    return [
        "The catalog of this session is in memory: it does not know the names that other "
        "sessions made. Give the table's folder, or name the catalog, for example by "
        "--conf spark.sql.catalogImplementation=hive or in iceberg-writer-compat.toml."
    ]


_WAREHOUSE = Path("spark-warehouse")


def _is_in_memory(spark: SparkSession) -> bool:
    return spark.conf.get("spark.sql.catalogImplementation") == "in-memory"


def _say(error: Exception, table: str | None) -> None:
    if verbose():
        # PySpark puts the JVM's stack trace into the context of its exceptions.
        click.echo("".join(traceback.format_exception(error.__context__ or error)), err=True)
    else:
        click.echo(
            ("" if table is None else f"{table}: ") + _jvm.message(error, "command"), err=True
        )


def _exit_code(error: Exception) -> int:
    return REFUSED if is_refusal(_jvm.condition(error)) else FAILED


def is_refusal(condition: str | None) -> bool:
    return (condition or "").startswith("DELTA_ICEBERG_WRITER_COMPAT_VIOLATION")


def session(
    settings: dict[str, str], *, readers: bool = False, few_tasks: bool = True
) -> SparkSession:
    """The session of a command.

    Args:
        settings: What --conf says.
        readers: Whether Iceberg's own readers are needed.
        few_tasks: Whether the state of a table is read in as many tasks as the session runs at a
            time, up to Delta's 50, which take five times as long if the table is small.
    """
    defaults = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    configured = settings_of_file(_of(click.get_current_context()).get("profile"))
    builder = SparkSession.builder.appName("iceberg-writer-compat")
    for key, value in (defaults | configured | settings).items():
        builder.config(key, value)
    if readers:
        add_readers(builder)
    with progress("starting Spark"), _quiet_jvm():
        spark = compat.configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
    if few_tasks and spark.conf.get(_STATE_TASKS, None) is None:
        # Those of the cluster, if there is one; this machine may be small.
        at_a_time = spark.sparkContext.defaultParallelism
        spark.conf.set(_STATE_TASKS, str(min(max(2, at_a_time), _DELTAS_STATE_TASKS)))
    return spark


_STATE_TASKS = "spark.databricks.delta.snapshotPartitions"
_DELTAS_STATE_TASKS = 50


@contextmanager
def _quiet_jvm() -> Iterator[None]:
    """Hides the standard error of a JVM that is started in this block."""
    if verbose():
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


def progress(what: str) -> AbstractContextManager[Callable[[str], None]]:
    """Shows on a terminal that something is being done; yields what tells the next step."""
    return spinning(what, verbose())
