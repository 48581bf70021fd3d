"""The commands that report and change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
from iceberg_writer_compat import _jvm, checks
from iceberg_writer_compat.cli._common import (
    FAILED,
    command,
    form_option,
    progress,
    say,
    session,
)
from iceberg_writer_compat.cli._tables import (
    ReportCommand,
    all_tables,
    named_tables,
    report_options,
    require_file,
    show,
    tables_options,
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
    require_file(form, html_file)
    named = named_tables(tables, schemas, catalogs, listed)
    spark = session(settings)
    names = all_tables(spark, named, schemas, catalogs)
    if not names:
        return FAILED
    return show(compat.Reports(tuple(_asked(spark, names, ask))), form, html_file)


def _asked(
    spark: SparkSession, tables: Sequence[str], ask: Callable[[SparkSession, str], compat.Report]
) -> Iterable[compat.Report | compat.TableError]:
    failures: list[tuple[str, Exception]] = []
    with progress("tables", len(tables)) as advance:
        for table in tables:
            advance(table)
            try:
                yield ask(spark, table)
            except checks.TABLE_ERRORS as error:
                failures.append((table, error))
                yield checks.failed(table, error)
    for table, failure in failures:
        say(failure, table)


@command(
    "check",
    "iceberg-writer-compat check db.orders",
    "iceberg-writer-compat check /data/orders --at-version 12",
    "iceberg-writer-compat check --schema db --output html report.html",
    "iceberg-writer-compat check --from-file tables.txt --output json > report.json",
    cls=ReportCommand,
)
@tables_options
@_version_option
@report_options
def check(version: int | None, **arguments: Any) -> int:
    """Check tables by their log alone.

    No data file is opened and nothing is written. Lists every violation with the place, the reason
    and the statement that fixes it, and how the feature can be switched on.

    The exit code is 0 if every table complies, 1 if one does not, and 2 if one cannot be read.
    """
    return _report(lambda spark, table: compat.check(spark, table, version), **arguments)


@command(
    "verify",
    "iceberg-writer-compat verify db.orders",
    "iceberg-writer-compat verify /data/orders --files 1000",
    "iceberg-writer-compat verify db.orders --conf spark.master=local[8]",
    cls=ReportCommand,
)
@tables_options
@_version_option
@click.option(
    "--files",
    type=click.IntRange(1, _jvm.LONGEST),
    metavar="N",
    help="Open at most N data files of each table, spread evenly, instead of all.",
)
@report_options
def verify(version: int | None, files: int | None, **arguments: Any) -> int:
    """Check tables, and read the footers of their data files.

    Also checks field ids, types, row counts and values in the footers of the Parquet files, in a
    Spark job. Nothing is written.

    The exit code is 0 if every table complies, 1 if one does not, and 2 if one cannot be read.
    """
    return _report(lambda spark, table: compat.verify(spark, table, version, files), **arguments)


@command(
    "history",
    "iceberg-writer-compat history db.orders",
    "iceberg-writer-compat history db.orders --output json",
    cls=ReportCommand,
)
@tables_options
@report_options
def history(**arguments: Any) -> int:
    """Show which versions of tables first broke a rule.

    For each broken rule: the first version that broke it, the operation that wrote that version,
    and the version that fixed it. Nothing is written.

    The exit code is 0 if every table complies, 1 if one does not, and 2 if one cannot be read.
    """
    return _report(compat.history, **arguments)


@command(
    "would-break",
    'iceberg-writer-compat would-break "ALTER TABLE db.orders ADD COLUMN age SMALLINT"',
    'iceberg-writer-compat would-break --table db.orders --columns "id BIGINT, age INT"',
    'iceberg-writer-compat would-break "$(cat create.sql)" --output html report.html',
    cls=ReportCommand,
)
@click.argument("statement", required=False)
@click.option("--table", metavar="TABLE", help="The table that would have --columns.")
@click.option("--columns", metavar="DDL", help="A schema, as in CREATE TABLE.")
@report_options
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
    require_file(form, html_file)
    if statement is not None and table is None and columns is None:
        report = compat.would_break(session(settings), statement)
    elif statement is None and table is not None and columns is not None:
        report = compat.would_break(session(settings), table=table, schema=columns)
    else:
        raise click.UsageError("Give a STATEMENT, or both --table and --columns.")
    return show(compat.Reports((report,)), form, html_file)


@command(
    "explain",
    "iceberg-writer-compat explain C7",
    "iceberg-writer-compat explain --output json",
)
@click.argument("rules", metavar="[RULE]...", nargs=-1)
@form_option
def explain(rules: Sequence[str], form: str) -> int:
    """Show the texts of rules, their reasons and sources.

    RULE is an id, as in every report and refusal; without one, all rules are listed. Needs no Spark
    session.
    """
    with progress("reading the rules"):
        found = checks.explain_all(rules) if rules else compat.rules()
    if form == "json":
        click.echo(json.dumps([rule.to_dict() for rule in found], indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join(map(str, found)))
    return 0
