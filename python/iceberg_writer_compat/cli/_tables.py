"""How commands are told their tables, and how they write reports."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
from iceberg_writer_compat import _html, _parallel, _text, checks
from iceberg_writer_compat.cli._common import (
    FAILED,
    REFUSED,
    options,
    say,
    say_no_tables,
    session,
    session_options,
    verbose,
)
from iceberg_writer_compat.cli._output import (
    Lines,
    Output,
    counting,
    echo,
    is_terminal,
    output_options,
)

report_options = options(output_options("text", "json", "html"), session_options)

tables_options = options(
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
    click.option(
        "--parallelism",
        type=click.IntRange(min=1),
        default=_parallel.DEFAULT,
        show_default=True,
        metavar="N",
        help="Process N tables at a time.",
    ),
)


def named_tables(
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


def all_tables(
    spark: SparkSession, named: Sequence[str], schemas: Sequence[str], catalogs: Sequence[str]
) -> list[str]:
    """All requested tables, each once; prints a message if there are none."""
    names = list(named)
    names += [name for schema in schemas for name in compat.tables_in(spark, schema)]
    names += [name for catalog in catalogs for name in compat.tables_in(spark, catalog=catalog)]
    if not names:
        say_no_tables(schemas)
    return list(dict.fromkeys(names))


def report_each(
    ask: Callable[[SparkSession, str], compat.Report],
    tables: Sequence[str],
    schemas: Sequence[str],
    catalogs: Sequence[str],
    listed: str | None,
    parallelism: int,
    output: Output,
    settings: dict[str, str],
) -> compat.Reports | None:
    """Makes and shows the reports on all tables; None if there is no table, or no way to write."""
    named = named_tables(tables, schemas, catalogs, listed)
    spark = session(settings)
    names = all_tables(spark, named, schemas, catalogs)
    if not names:
        return None
    entries: list[compat.Report | compat.TableError | None] = [None] * len(names)
    lines = Lines(is_terminal(), between="\n")

    def entry(name: str) -> tuple[compat.Report | compat.TableError, Exception | None]:
        try:
            return ask(spark, name), None
        except checks.TABLE_ERRORS as error:
            return checks.failed(name, error, "command"), error

    with (
        counting(names, not output.is_read_at_once, verbose()) as counter,
        _parallel.Pool(spark, parallelism) as pool,
    ):
        for number, (answer, error) in pool.as_they_come(entry, names):
            entries[number] = answer
            with counter.aside():
                if error is not None:
                    say(error, names[number])
                if output.is_read_at_once:
                    lines.put(number, _shown(answer))
            counter.done(f"{names[number]}: {_verdict(answer)}")
    reports = compat.Reports(tuple(one for one in entries if one is not None))
    if output.is_read_at_once:
        if len(reports) > 1:
            echo(("\n" if reports.reports else "") + reports.verdict)
        return reports
    return reports if output.write(content(reports, output.form)) else None


def _shown(answer: compat.Report | compat.TableError) -> str:
    # An error has been said already.
    return _text.report(answer, "command") if isinstance(answer, compat.Report) else ""


def _verdict(answer: compat.Report | compat.TableError) -> str:
    return answer.verdict if isinstance(answer, compat.Report) else "could not be read"


def exit_code(reports: compat.Reports | None) -> int:
    """The exit code for reports."""
    if reports is None or reports.errors:
        return FAILED
    return 0 if reports.compliant else REFUSED


def content(answer: compat.Reports | compat.EnableResults | compat.Proof, form: str) -> str:
    """A result in a format."""
    if form == "json":
        return answer.to_json()
    if isinstance(answer, compat.Reports):
        shown = [_text.report(report, "command") for report in answer.reports]
        shown += [answer.verdict] * (len(answer) > 1)
        return _html.page(answer, "command") if form == "html" else "\n\n".join(shown)
    if isinstance(answer, compat.EnableResults):
        if form == "html":
            return _html.results(answer, "command")
        return _text.results(answer, "command")
    return answer.to_html() if form == "html" else str(answer)
