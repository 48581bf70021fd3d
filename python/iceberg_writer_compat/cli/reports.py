"""The commands that report and change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
from iceberg_writer_compat import _jvm, _rule_texts
from iceberg_writer_compat.cli._common import FAILED, command, session
from iceberg_writer_compat.cli._output import Output, output_options
from iceberg_writer_compat.cli._tables import (
    content,
    exit_code,
    report_each,
    report_options,
    tables_options,
)

_version_option = click.option(
    "--at-version",
    "version",
    type=click.IntRange(0, _jvm.LONGEST),
    metavar="N",
    help="Check this version of the table instead of the newest.",
)


def _report(ask: Callable[[SparkSession, str], compat.Report], **arguments: Any) -> int:
    return exit_code(report_each(ask, **arguments))


@command(
    "check",
    "iceberg-writer-compat check db.orders",
    "iceberg-writer-compat check /data/orders --at-version 12",
    "iceberg-writer-compat check --schema db --output report.html",
    "iceberg-writer-compat check --from-file tables.txt --format json > report.json",
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
    "iceberg-writer-compat history db.orders --format json",
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
    'iceberg-writer-compat would-break "$(cat create.sql)" --output report.html',
)
@click.argument("statement", required=False)
@click.option("--table", metavar="TABLE", help="The table that would have --columns.")
@click.option("--columns", metavar="DDL", help="A schema, as in CREATE TABLE.")
@report_options
def would_break(
    statement: str | None,
    table: str | None,
    columns: str | None,
    output: Output,
    settings: dict[str, str],
) -> int:
    """Show which rules a statement would break, without running it.

    STATEMENT is an ALTER, CREATE or REPLACE TABLE statement in one argument. Instead, --table and
    --columns check whether a table could have other columns.

    The exit code is 0 if the table would comply, 1 if not, and 2 if the check could not run.
    """
    if statement is not None and table is None and columns is None:
        report = compat.would_break(session(settings), statement)
    elif statement is None and table is not None and columns is not None:
        report = compat.would_break(session(settings), table=table, schema=columns)
    else:
        raise click.UsageError("Give a STATEMENT, or both --table and --columns.")
    reports = compat.Reports((report,))
    return exit_code(reports) if output.write(content(reports, output.form)) else FAILED


@command(
    "explain",
    "iceberg-writer-compat explain C7",
    "iceberg-writer-compat explain UPGRADE_BLOCKED",
    "iceberg-writer-compat explain --format json",
)
@click.argument("names", metavar="[RULE_OR_CONDITION]...", nargs=-1)
@output_options("text", "json")
def explain(names: Sequence[str], output: Output) -> int:
    """Show the texts of rules and of the conditions of errors.

    A rule is named by its id, as in every report and refusal. A condition is what an error has in
    brackets, or its last part. Without a name, all rules are listed. Starts no Spark and no Java.
    """
    found = [text for name in names for text in _rule_texts.named(name)] or compat.rules()
    if output.form == "json":
        texts = json.dumps([text.to_dict() for text in found], indent=2, ensure_ascii=False)
    else:
        texts = "\n\n".join(map(str, found))
    return 0 if output.write(texts) else FAILED
