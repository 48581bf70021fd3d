"""The command `iceberg-writer-compat`."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, TextIO, TypeAlias

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

import iceberg_writer_compat as compat
from iceberg_writer_compat import _html, _jvm, _log_store, _text, checks, proving, serving
from iceberg_writer_compat.tables import contract_of

_DEFAULT_CONTRACT = "icebergWriterCompatV1"

_REFUSED = 1
_FAILED = 2
_INTERRUPTED = 130

_TOKEN = "ICEBERG_WRITER_COMPAT_TOKEN"
_STOPPING = (signal.SIGTERM, signal.SIGINT)

_ERRORS = (compat.IcebergWriterCompatError, PySparkException, Py4JError)


def _examples(*commands: str) -> str:
    """The end of a help text; what follows this mark is not wrapped."""
    return "\b\nExamples:\n" + "\n".join(f"  {command}" for command in commands)


@click.group(
    epilog=_examples(
        "iceberg-writer-compat check db.orders",
        "iceberg-writer-compat check --schema db --output html report.html",
        "iceberg-writer-compat verify /data/orders --files 1000",
        'iceberg-writer-compat would-break "ALTER TABLE db.orders ADD COLUMN age SMALLINT"',
        "iceberg-writer-compat explain C7",
        "iceberg-writer-compat enable db.orders",
        "iceberg-writer-compat publish db.orders",
        "iceberg-writer-compat prove db.orders",
        "iceberg-writer-compat serve --path db.orders=/data/orders",
    )
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


# --- What commands have in common -----------------------------------------------------------------


def _setting(entry: str) -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{entry!r} is not KEY=VALUE.", param_hint="--conf")
    return key, value


def _folder(entry: str) -> tuple[str, str]:
    name, equals, folder = entry.partition("=")
    if not name or not equals or not folder:
        raise click.BadParameter(f"{entry!r} is not NAMESPACE.TABLE=FOLDER.", param_hint="--path")
    return name, folder


_Run: TypeAlias = Callable[..., int]


def _command(
    name: str, *examples: str, cls: type[click.Command] = click.Command
) -> Callable[[_Run], click.Command]:
    """Makes a command from a function that returns an exit code."""

    def make(run: _Run) -> click.Command:
        @wraps(run)
        def invoke(**arguments: Any) -> NoReturn:
            try:
                code = run(**arguments)
            except _ERRORS as error:
                _say(error)
                code = _exit_code(error)
            except UnicodeEncodeError as error:
                # Python represents undecodable bytes of an argument as lone surrogates.
                no_text = error.encoding.replace("-", "").lower() == "utf8"
                what = "An argument is" if no_text else "The output has characters that are"
                click.echo(f"{what} not valid in {error.encoding}.", err=True)
                code = _FAILED
            except OSError as error:
                _say_of_system(error)
                code = _FAILED
            except KeyboardInterrupt:
                # Click would make it the exit code of a table that does not comply.
                code = _INTERRUPTED
            sys.exit(code)

        return main.command(name, cls=cls, epilog=_examples(*examples))(invoke)

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


def _options(*options: Callable[[_Run], _Run]) -> Callable[[_Run], _Run]:
    """Several options as one decorator, in the order of the help text."""

    def add(run: _Run) -> _Run:
        for option in reversed(options):
            run = option(run)
        return run

    return add


def _set_verbose(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    context.obj = value


_session_options = _options(
    click.option(
        "--conf",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=lambda _context, _parameter, entries: dict(map(_setting, entries)),
        help="A setting of the Spark session; may be repeated.",
    ),
    click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=_set_verbose,
        help="Show Spark's log and stack traces.",
    ),
)


def _verbose() -> bool:
    return bool(click.get_current_context().obj)


def _say(error: Exception, table: str | None = None) -> None:
    if _verbose():
        # PySpark puts the JVM's stack trace into the context of its exceptions.
        click.echo("".join(traceback.format_exception(error.__context__ or error)), err=True)
    else:
        click.echo(
            ("" if table is None else f"{table}: ") + _jvm.message(error, "command"), err=True
        )


def _exit_code(error: Exception) -> int:
    return _REFUSED if _is_refusal(_jvm.condition(error)) else _FAILED


def _is_refusal(condition: str | None) -> bool:
    return (condition or "").startswith("DELTA_ICEBERG_WRITER_COMPAT_VIOLATION")


def _session(settings: dict[str, str]) -> SparkSession:
    defaults = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.appName("iceberg-writer-compat")
    for key, value in (defaults | settings).items():
        builder.config(key, value)
    with _progress("starting Spark"), _quiet_jvm():
        return compat.configure_spark_with_iceberg_writer_compat(builder).getOrCreate()


@contextmanager
def _quiet_jvm() -> Iterator[None]:
    """Hides the standard error of a JVM that is started in this block."""
    if _verbose():
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


@contextmanager
def _progress(what: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Shows progress on a terminal; does nothing if standard error is not a terminal.

    Yields a function that announces the next step.
    """
    if not sys.stderr.isatty() or _verbose():
        yield lambda _next: None
        return
    # File descriptor 2 is redirected for the JVM; progress needs the terminal itself.
    with os.fdopen(os.dup(2), "w") as terminal:
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
        if total is not None:
            columns += [BarColumn(), MofNCompleteColumn()]
        progress = Progress(*columns, console=Console(file=terminal), transient=True)
        with progress:
            task = progress.add_task(what, total=total)
            started = False

            def advance(next_: str) -> None:
                nonlocal started
                progress.update(task, description=next_, advance=1 if started else 0)
                started = True

            yield advance


# --- Reports --------------------------------------------------------------------------------------


_form_option = click.option(
    "--output",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="The format of the output.",
)


class _ReportCommand(click.Command):
    """A command whose option `--output html FILE` has a value of two words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Inserts `--html-file` before the second word, so that click can parse it."""
        end = args.index("--") if "--" in args else len(args)
        for index in reversed(range(min(end, len(args) - 1))):
            html = args[index] == "--output=html" or args[index - 1 : index + 1] == [
                "--output",
                "html",
            ]
            if html and index + 1 < end:
                args = [*args[: index + 1], "--html-file", *args[index + 1 :]]
        return super().parse_args(ctx, args)


_report_options = _options(
    click.option(
        "--output",
        "form",
        type=click.Choice(["text", "json", "html"]),
        metavar="text|json|html FILE",
        default="text",
        help="The format of the report: text, JSON, or an HTML page in FILE, where - is standard "
        "output.",
    ),
    click.option(
        "--html-file",
        type=click.Path(dir_okay=False, writable=True, allow_dash=True),
        hidden=True,
    ),
    _session_options,
)

_tables_options = _options(
    click.argument("tables", metavar="[TABLE]...", nargs=-1),
    click.option(
        "--schema",
        "schemas",
        multiple=True,
        metavar="NAME",
        help="All Delta tables of a schema; may be repeated.",
    ),
    click.option(
        "--catalog",
        "catalogs",
        multiple=True,
        metavar="NAME",
        help="All Delta tables of a catalog; may be repeated.",
    ),
    click.option(
        "--from-file",
        "listed",
        type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
        metavar="FILE",
        help="The tables listed in a file, one per line; - is standard input. Empty lines and "
        "lines that begin with # are ignored.",
    ),
)

_version_option = click.option(
    "--at-version",
    "version",
    type=click.IntRange(0, _jvm.LONGEST),
    metavar="N",
    help="Check this version of the table instead of the newest.",
)


def _report(
    ask: Callable[[SparkSession, str], compat.Report],
    tables: Sequence[str],
    schemas: Sequence[str],
    catalogs: Sequence[str],
    listed: str | None,
    form: str,
    html_file: str | None,
    settings: dict[str, str],
) -> int:
    """Makes and shows the reports on all tables."""
    _require_file(form, html_file)
    named = _named(tables, schemas, catalogs, listed)
    spark = _session(settings)
    names = _names(spark, named, schemas, catalogs)
    if not names:
        return _FAILED
    return _show(compat.Reports(tuple(_asked(spark, names, ask))), form, html_file)


def _named(
    tables: Sequence[str],
    schemas: Sequence[str],
    catalogs: Sequence[str],
    listed: str | None,
) -> list[str]:
    """The tables that are named on the command line or in a file."""
    lines = [] if listed is None else _lines(listed)
    names = [*tables, *(line for line in lines if line and not line.startswith("#"))]
    if not (names or schemas or catalogs or listed):
        raise click.UsageError("Name a TABLE, or use --schema, --catalog or --from-file.")
    return names


def _lines(listed: str) -> list[str]:
    """The lines of a file, or of standard input, without surrounding space."""
    name = "Standard input" if listed == "-" else listed
    try:
        if listed != "-":
            content = Path(listed).read_bytes()
        elif sys.stdin is None:
            raise click.UsageError("Standard input is closed.")
        else:
            content = sys.stdin.buffer.read()
    except OSError as error:
        raise click.UsageError(f"{name} could not be read: {error.strerror or error}.") from error
    try:
        # Some editors write a byte order mark.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise click.UsageError(f"{name} is not UTF-8 text: see line {line}.") from error
    return [line.strip() for line in re.split("\r\n|\r|\n", text)]


def _names(
    spark: SparkSession, named: Sequence[str], schemas: Sequence[str], catalogs: Sequence[str]
) -> list[str]:
    """All requested tables, each once; prints a message if there are none."""
    names = list(named)
    names += [name for schema in schemas for name in compat.tables_in(spark, schema)]
    names += [name for catalog in catalogs for name in compat.tables_in(spark, catalog=catalog)]
    if not names:
        click.echo("No Delta table was found.", err=True)
    return list(dict.fromkeys(names))


def _asked(
    spark: SparkSession, tables: Sequence[str], ask: Callable[[SparkSession, str], compat.Report]
) -> Iterable[compat.Report | compat.TableError]:
    failures: list[tuple[str, Exception]] = []
    with _progress("tables", len(tables)) as advance:
        for table in tables:
            advance(table)
            try:
                yield ask(spark, table)
            except checks.TABLE_ERRORS as error:
                failures.append((table, error))
                yield checks.failed(table, error)
    for table, failure in failures:
        _say(failure, table)


def _require_file(form: str, html_file: str | None) -> None:
    if form == "html" and html_file is None:
        raise click.UsageError("--output html needs the FILE to write, or - for standard output.")
    if html_file not in (None, "-") and not Path(str(html_file)).absolute().parent.is_dir():
        raise click.UsageError(f"There is no folder for {html_file}.")


def _show(reports: compat.Reports, form: str, html_file: str | None) -> int:
    shown = [_text.report(report, "command") for report in reports.reports]
    shown += [reports.verdict] * (len(reports) > 1)
    if not _write(reports, "\n\n".join(shown), form, html_file) or reports.errors:
        return _FAILED
    return 0 if reports.compliant else _REFUSED


def _html_of(answer: compat.Reports | compat.EnableResults | compat.Proof) -> str:
    if isinstance(answer, compat.Reports):
        return _html.page(answer, "command")
    return answer.to_html()


def _write(
    answer: compat.Reports | compat.EnableResults | compat.Proof,
    text: str,
    form: str,
    html_file: str | None,
) -> bool:
    """Writes the result in the requested form; returns false if that failed."""
    if form == "json":
        click.echo(answer.to_json())
    elif form == "html" and html_file not in (None, "-"):
        try:
            Path(str(html_file)).write_text(_html_of(answer), encoding="utf-8")
        except OSError as error:
            click.echo(f"{html_file} could not be written: {error.strerror}", err=True)
            return False
    elif form == "html":
        click.echo(_html_of(answer))
    else:
        click.echo(text, nl=bool(text))
    return True


@_command(
    "check",
    "iceberg-writer-compat check db.orders",
    "iceberg-writer-compat check /data/orders --at-version 12",
    "iceberg-writer-compat check --schema db --output html report.html",
    "iceberg-writer-compat check --from-file tables.txt --output json > report.json",
    cls=_ReportCommand,
)
@_tables_options
@_version_option
@_report_options
def check(version: int | None, **arguments: Any) -> int:
    """Check tables by their log alone.

    No data file is opened and nothing is written. Lists every violation with the place, the reason
    and the statement that fixes it, and how the feature can be switched on.

    The exit code is 0 if every table complies, 1 if one does not, and 2 if one cannot be read.
    """
    return _report(lambda spark, table: compat.check(spark, table, version), **arguments)


@_command(
    "verify",
    "iceberg-writer-compat verify db.orders",
    "iceberg-writer-compat verify /data/orders --files 1000",
    "iceberg-writer-compat verify db.orders --conf spark.master=local[8]",
    cls=_ReportCommand,
)
@_tables_options
@_version_option
@click.option(
    "--files",
    type=click.IntRange(1, _jvm.LONGEST),
    metavar="N",
    help="Open at most N data files of each table, spread evenly, instead of all.",
)
@_report_options
def verify(version: int | None, files: int | None, **arguments: Any) -> int:
    """Check tables, and read the footers of their data files.

    Also checks field ids, types, row counts and values in the footers of the Parquet files, in a
    Spark job. Nothing is written.

    The exit code is 0 if every table complies, 1 if one does not, and 2 if one cannot be read.
    """
    return _report(lambda spark, table: compat.verify(spark, table, version, files), **arguments)


@_command(
    "history",
    "iceberg-writer-compat history db.orders",
    "iceberg-writer-compat history db.orders --output json",
    cls=_ReportCommand,
)
@_tables_options
@_report_options
def history(**arguments: Any) -> int:
    """Show which versions of tables first broke a rule.

    For each broken rule: the first version that broke it, the operation that wrote that version,
    and the version that fixed it. Nothing is written.

    The exit code is 0 if every table complies, 1 if one does not, and 2 if one cannot be read.
    """
    return _report(compat.history, **arguments)


@_command(
    "would-break",
    'iceberg-writer-compat would-break "ALTER TABLE db.orders ADD COLUMN age SMALLINT"',
    'iceberg-writer-compat would-break --table db.orders --columns "id BIGINT, age INT"',
    'iceberg-writer-compat would-break "$(cat create.sql)" --output html report.html',
    cls=_ReportCommand,
)
@click.argument("statement", required=False)
@click.option("--table", metavar="TABLE", help="The table that would have --columns.")
@click.option("--columns", metavar="DDL", help="A schema, as in CREATE TABLE.")
@_report_options
def would_break(
    statement: str | None,
    table: str | None,
    columns: str | None,
    form: str,
    html_file: str | None,
    settings: dict[str, str],
) -> int:
    """Show which rules a statement would break, without running it.

    STATEMENT is an ALTER, CREATE or REPLACE TABLE statement in one argument. Instead, --table and
    --columns check whether a table could have other columns.

    The exit code is 0 if the table would comply, 1 if not, and 2 if the check could not run.
    """
    _require_file(form, html_file)
    if statement is not None and table is None and columns is None:
        report = compat.would_break(_session(settings), statement)
    elif statement is None and table is not None and columns is not None:
        report = compat.would_break(_session(settings), table=table, schema=columns)
    else:
        raise click.UsageError("Give a STATEMENT, or both --table and --columns.")
    return _show(compat.Reports((report,)), form, html_file)


@_command(
    "explain",
    "iceberg-writer-compat explain C7",
    "iceberg-writer-compat explain --output json",
)
@click.argument("rules", metavar="[RULE]...", nargs=-1)
@_form_option
def explain(rules: Sequence[str], form: str) -> int:
    """Show the texts of rules, their reasons and sources.

    RULE is an id, as in every report and refusal; without one, all rules are listed. Needs no Spark
    session.
    """
    with _progress("reading the rules"):
        found = checks.explain_all(rules) if rules else compat.rules()
    if form == "json":
        click.echo(json.dumps([rule.to_dict() for rule in found], indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join(map(str, found)))
    return 0


# --- The feature on and off -----------------------------------------------------------------------


@_command(
    "enable",
    "iceberg-writer-compat enable db.orders",
    "iceberg-writer-compat enable db.orders --dry-run",
    "iceberg-writer-compat enable db.orders --rewrite --drop constraints",
    "iceberg-writer-compat enable --schema db --journal db.journal --output html report.html",
    cls=_ReportCommand,
)
@_tables_options
@click.option(
    "--mode",
    type=click.Choice(["auto", "metadata", "rewrite"]),
    default="auto",
    help="metadata: write no data file; rewrite: rewrite files that cannot be kept; auto: that only"
    " with --rewrite.",
)
@click.option("--rewrite", is_flag=True, help="Rewrite data files that cannot be kept.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and change nothing.")
@click.option(
    "--drop",
    multiple=True,
    metavar="NAME",
    help="Remove these blockers: constraints, change-data-feed, defaults, "
    "row-tracking, deletion-vectors, checkpoint-protection, generated-columns, identity-columns "
    "or invariants; may be repeated.",
)
@click.option(
    "--contract",
    metavar="FEATURE",
    help="The feature to switch on, if it is another than icebergWriterCompatV1.",
)
@click.option(
    "--parallelism",
    type=click.IntRange(min=1),
    default=2,
    metavar="N",
    help="Process N tables at a time.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Record the progress of each table in FILE; the same command resumes from it.",
)
@_report_options
def enable(
    tables: Sequence[str],
    schemas: Sequence[str],
    catalogs: Sequence[str],
    listed: str | None,
    form: str,
    html_file: str | None,
    settings: dict[str, str],
    **how: Any,
) -> int:
    """Switch the feature on for tables.

    Each table gets the feature in one commit. Data files that cannot be kept are rewritten with
    --rewrite. If there are blockers, the table is not changed, and all of them are reported, each
    with the statement that removes it. If a table fails, the others are still processed. After
    Ctrl-C no further table is started.

    The exit code is 0 if every table has the feature, 1 if a table is refused, and 2 if a table
    fails for another reason. With --dry-run it is 0 if the same call without it would succeed, and
    1 if not.
    """
    _require_file(form, html_file)
    named = _named(tables, schemas, catalogs, listed)
    spark = _session(settings)
    names = _names(spark, named, schemas, catalogs)
    if not names:
        return _FAILED
    if names == list(tables) and len(names) == 1 and how["journal"] is None:
        return _enable_one(spark, names[0], form, html_file, how)
    # Every table is planned and then enabled.
    with _progress("tables", len(names) * (1 if how["dry_run"] else 2)) as advance:
        answer = compat.enable_all(
            spark, names, notify=lambda step: advance(f"{step.table} ({step.state})"), **how
        )
    if isinstance(answer, compat.Reports):
        return _show_plans(answer, form, html_file, how)
    if not _write(answer, _text.results(answer, "command"), form, html_file):
        return _FAILED
    if answer.interrupted:
        return _INTERRUPTED
    refusals = [_is_refusal(table.error.condition) for table in answer.failed if table.error]
    return 0 if not refusals else _REFUSED if all(refusals) else _FAILED


# For a single table, the error is reported as by all other commands.
def _enable_one(
    spark: SparkSession, table: str, form: str, html_file: str | None, how: dict[str, Any]
) -> int:
    chosen = {key: how[key] for key in ("mode", "rewrite", "drop", "contract", "dry_run")}
    with _progress(f"enabling {table}"):
        answer = compat.enable_iceberg_writer_compat(spark, table, **chosen)
    if isinstance(answer, compat.Report):
        return _show_plans(compat.Reports((answer,)), form, html_file, how)
    done = compat.EnableResults((compat.TableProgress(table, "done", result=answer),))
    text = _text.results(done, "command")
    return 0 if _write(done, text, form, html_file) else _FAILED


def _show_plans(
    plans: compat.Reports, form: str, html_file: str | None, how: dict[str, Any]
) -> int:
    _show(plans, form, html_file)
    if plans.errors:
        return _FAILED
    rewrites = how["mode"] == "rewrite" or (how["mode"] == "auto" and how["rewrite"])
    allowed = ("none", "metadata", "rewrite") if rewrites else ("none", "metadata")
    succeed = all(report.plan and report.plan.mode in allowed for report in plans.reports)
    return 0 if succeed else _REFUSED


@_command(
    "disable",
    "iceberg-writer-compat disable db.orders",
)
@click.argument("table")
@_session_options
def disable(table: str, settings: dict[str, str]) -> int:
    """Drop the feature from TABLE."""
    spark = _session(settings)
    contract = contract_of(spark, table) or _DEFAULT_CONTRACT
    changed = compat.disable_iceberg_writer_compat(spark, table).changed
    click.echo(f"{table}: {contract} is off" + ("" if changed else ", unchanged"))
    return 0


@_command(
    "is-enabled",
    "iceberg-writer-compat is-enabled db.orders",
)
@click.argument("table")
@_session_options
def is_enabled(table: str, settings: dict[str, str]) -> int:
    """Show whether TABLE has the feature.

    The exit code is 0 if it has, and 1 if not.
    """
    contract = contract_of(_session(settings), table)
    click.echo(f"{table}: {contract or _DEFAULT_CONTRACT} is {'on' if contract else 'off'}")
    return 0 if contract else _REFUSED


# --- Iceberg --------------------------------------------------------------------------------------


@_command(
    "publish",
    "iceberg-writer-compat publish db.orders",
    "iceberg-writer-compat publish /data/orders --output json",
    "iceberg-writer-compat publish db.orders --conf spark.icebergWriterCompat.catalog.type=jdbc",
    "iceberg-writer-compat publish db.orders --take-snapshot 3776207205136740581",
)
@click.argument("table")
@click.option(
    "--take-snapshot",
    type=click.IntRange(0, _jvm.LONGEST),
    metavar="ID",
    help="Append to the Delta table the rows that an Iceberg writer committed, up to this ID.",
)
@click.option(
    "--discard-snapshot",
    type=click.IntRange(0, _jvm.LONGEST),
    metavar="ID",
    help="Discard the snapshots that an Iceberg writer committed, up to this ID.",
)
@click.option(
    "--discard-changes",
    metavar="FILE",
    help="Discard the changes that an Iceberg writer made to columns, partitions or properties in"
    " this metadata file.",
)
@click.option("--mend", is_flag=True, help="Remove snapshots that cannot be read.")
@click.option("--anew", is_flag=True, help="Begin a new line of metadata, whatever exists already.")
@_form_option
@_session_options
def publish(
    table: str,
    take_snapshot: int | None,
    discard_snapshot: int | None,
    discard_changes: str | None,
    mend: bool,
    anew: bool,
    form: str,
    settings: dict[str, str],
) -> int:
    """Publish TABLE as Iceberg metadata in its folder.

    Every commit since the last call becomes one Iceberg snapshot. No data file is written or
    copied. With --conf spark.icebergWriterCompat.catalog.*, the table is published in an Iceberg
    catalog.
    """
    by_others = (take_snapshot, discard_snapshot, discard_changes)
    if sum(way is not None for way in by_others) + mend + anew > 1:
        raise click.UsageError(
            "--take-snapshot, --discard-snapshot, --discard-changes, --mend and --anew cannot be"
            " combined."
        )
    spark = _session(settings)
    with _progress(f"publishing {table}"):
        result = compat.publish(
            spark,
            table,
            take_snapshot=take_snapshot,
            discard_snapshot=discard_snapshot,
            discard_changes=discard_changes,
            mend=mend,
            anew=anew,
        )
    if form == "json":
        click.echo(json.dumps(asdict(result), indent=2, ensure_ascii=False))
    else:
        files = f"{_text.count(result.files_added, 'file')} added, {result.files_removed:,} removed"
        done = f" by {_text.count(result.snapshots, 'snapshot')}: {files}"
        how = done if result.changed else ", unchanged"
        click.echo(f"{table}: version {result.delta_version} is published{how}")
        _show_place(result)
        for mended in result.mended:
            click.echo(f"  repaired: {mended}")
        for file in result.set_aside:
            click.echo(f"  set aside: {file}")
    return 0


@_command(
    "status",
    "iceberg-writer-compat status db.orders",
    "iceberg-writer-compat status /data/orders --output json",
)
@click.argument("table")
@_form_option
@_session_options
def status(table: str, form: str, settings: dict[str, str]) -> int:
    """Show the published version of TABLE.

    Problems of Iceberg readers are shown with the call that fixes them.

    The exit code is 0 if Iceberg readers see the newest version, and 1 if not.
    """
    found = compat.status(_session(settings), table)
    if form == "json":
        click.echo(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    elif found.published_version is None:
        click.echo(f"{table}: version {found.delta_version}, not published")
    else:
        behind = f"{found.lag} behind" if found.lag else "up to date"
        click.echo(
            f"{table}: version {found.delta_version}, published {found.published_version}, {behind}"
        )
        _show_place(found)
    if form != "json":
        for problem in found.problems:
            click.echo(f"  {problem.text}")
            for line in problem.remedy.command:
                click.echo(f"  Run: {line}")
    return 0 if found.lag == 0 and not found.problems else _REFUSED


def _show_place(found: compat.PublishResult | compat.PublishStatus) -> None:
    if found.catalog_table is not None:
        click.echo(f"  {found.catalog_table} in the Iceberg catalog")
    click.echo(f"  {found.metadata_location}")


@_command(
    "clean-log-store",
    "iceberg-writer-compat clean-log-store s3a://bucket/orders --region eu-west-1 --dry-run",
)
@click.argument("path")
@click.option(
    "--dynamodb-table",
    metavar="NAME",
    default="delta_log",
    help="The table of the log store in DynamoDB.",
)
@click.option("--region", metavar="NAME", help="The region of that table.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and change nothing.")
def clean_log_store(path: str, dynamodb_table: str, region: str | None, dry_run: bool) -> int:
    """Remove the entries of published metadata from Delta's log store in DynamoDB.

    Publishing by earlier versions added them to a table with S3DynamoDBLogStore, and Delta then
    does not find its own commits. PATH is the folder of the Delta table on S3. Entries of Delta
    itself are not changed. Endpoint and credentials are those of boto3.
    """
    found = _log_store.clean(path, table=dynamodb_table, region=region, dry_run=dry_run)
    for folder, name in found.entries:
        click.echo(f"{name}, an entry of {folder}")
    for copy in found.copies:
        click.echo(copy)
    count = len(found.entries) + len(found.copies)
    click.echo(f"{path}: {count:,} {'found' if dry_run else 'removed'}")
    return 0


@_command(
    "prove",
    "iceberg-writer-compat prove db.orders",
    "iceberg-writer-compat prove db.orders --reader pyiceberg --reader duckdb --versions 3",
    "iceberg-writer-compat prove /data/orders --check schema --check rows",
    "iceberg-writer-compat prove db.orders --output html proof.html",
    cls=_ReportCommand,
)
@click.argument("table")
@click.option(
    "--reader",
    "readers",
    type=click.Choice(proving.READERS),
    multiple=True,
    help="A reader; may be repeated. By default all installed readers.",
)
@click.option(
    "--check",
    "checks_",
    type=click.Choice(proving.CHECKS),
    multiple=True,
    help="A check; may be repeated. By default all checks.",
)
@click.option(
    "--versions",
    type=click.IntRange(0, _jvm.LONGEST),
    default=10,
    show_default=True,
    metavar="N",
    help="How many of the newest published versions to read by time travel.",
)
@click.option(
    "--metadata",
    "location",
    metavar="FILE",
    help="The metadata file to read instead of the one that was published last.",
)
@_report_options
def prove(
    table: str,
    readers: Sequence[compat.ReaderName],
    checks_: Sequence[compat.Check],
    versions: int,
    location: str | None,
    form: str,
    html_file: str | None,
    settings: dict[str, str],
) -> int:
    """Read TABLE with Iceberg readers, and compare with Delta.

    Compares schema and ids, row counts, a checksum of each column, earlier versions, filters on
    every column, and minimum and maximum values, and lists all differences. The readers pyiceberg
    and duckdb are installed with pip install 'iceberg-writer-compat[prove]', the others with
    packages of the session. Nothing is written.

    The exit code is 0 if all installed readers see what Delta sees, except for known faults; 1 if a
    reader does not or a check could not run; and 2 if prove itself could not run.
    """
    _require_file(form, html_file)
    spark = _session(settings)
    with _progress(f"proving {table}") as advance:
        proof = compat.prove(
            spark,
            table,
            readers or None,
            versions=versions,
            checks=checks_ or None,
            metadata_location=location,
            progress=lambda next_: advance(f"proving {table}: {next_}"),
        )
    if not _write(proof, str(proof), form, html_file):
        return _FAILED
    return 0 if proof.proven else _REFUSED


@_command(
    "serve",
    "iceberg-writer-compat serve --path db.orders=/data/orders",
    "iceberg-writer-compat serve --host 0.0.0.0 --token-file /etc/catalog/token"
    " --tls-cert server.pem --tls-key key.pem",
    "iceberg-writer-compat serve --conf spark.sql.catalogImplementation=hive",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8181,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--token-file",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="The file with the token that clients have to send; otherwise the environment variable "
    f"{_TOKEN} is looked at. Without a token only this machine can be listened to.",
)
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The certificate of the server, in PEM.",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The key of the certificate, in PEM (PKCS#8).",
)
@click.option(
    "--path",
    "paths",
    multiple=True,
    metavar="NAMESPACE.TABLE=FOLDER",
    callback=lambda _context, _parameter, entries: dict(map(_folder, entries)),
    help="Offer the Delta table in a folder under a name; may be repeated.",
)
@_session_options
def serve(
    host: str,
    port: int,
    token_file: TextIO | None,
    tls_cert: str | None,
    tls_key: str | None,
    paths: dict[str, str],
    settings: dict[str, str],
) -> int:
    """Offer Delta tables to Iceberg clients by URL, as an Iceberg REST catalog.

    Clients see the tables with the feature in the catalog of the Spark session, and those of
    --path; each of their commits is one commit of Delta. Requests are printed, one line each. The
    server stops on SIGTERM and Ctrl-C, after the commits that are being made.
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key are given together or not at all.")
    token = os.environ.get(_TOKEN) if token_file is None else token_file.read()
    if token is not None and not token.strip():
        raise click.UsageError("The token is empty.")
    asked = threading.Event()
    before = [signal.signal(kind, lambda *_: asked.set()) for kind in _STOPPING]
    spark = _session(settings)
    try:
        with serving.started(
            spark, host, port, token, tls_cert, tls_key, paths, prints=True
        ) as server:
            click.echo(f"Iceberg REST catalog at {server.uri}")
            if token is None:
                click.echo("Without a token only this machine is answered.", err=True)
            sys.stdout.flush()
            # A wait without end would not let Python run its handlers of signals.
            while not asked.wait(timeout=1):
                pass
    finally:
        for kind, handler in zip(_STOPPING, before, strict=True):
            signal.signal(kind, handler)
        if asked.is_set():
            spark.stop()
    return 0
