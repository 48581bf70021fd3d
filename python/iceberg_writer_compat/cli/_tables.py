"""How commands are told their tables, and how they write reports."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
from iceberg_writer_compat import _html, _text
from iceberg_writer_compat.cli._common import (
    FAILED,
    REFUSED,
    options,
    session_options,
)


class ReportCommand(click.Command):
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


report_options = options(
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
    session_options,
)

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
        click.echo("No Delta table was found.", err=True)
    return list(dict.fromkeys(names))


def require_file(form: str, html_file: str | None) -> None:
    if form == "html" and html_file is None:
        raise click.UsageError("--output html needs the FILE to write, or - for standard output.")
    if html_file not in (None, "-") and not Path(str(html_file)).absolute().parent.is_dir():
        raise click.UsageError(f"There is no folder for {html_file}.")


def show(reports: compat.Reports, form: str, html_file: str | None) -> int:
    shown = [_text.report(report, "command") for report in reports.reports]
    shown += [reports.verdict] * (len(reports) > 1)
    if not write(reports, "\n\n".join(shown), form, html_file) or reports.errors:
        return FAILED
    return 0 if reports.compliant else REFUSED


def _html_of(answer: compat.Reports | compat.EnableResults | compat.Proof) -> str:
    if isinstance(answer, compat.Reports):
        return _html.page(answer, "command")
    if isinstance(answer, compat.EnableResults):
        return _html.results(answer, "command")
    return answer.to_html()


def write(
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
