"""The commands that switch the feature on and off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import click
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
from iceberg_writer_compat import _text
from iceberg_writer_compat.bulk import enable_each
from iceberg_writer_compat.cli._common import (
    FAILED,
    INTERRUPTED,
    REFUSED,
    command,
    is_refusal,
    progress,
    session,
    session_options,
    verbose,
)
from iceberg_writer_compat.cli._output import Lines, Output, counting, echo, is_terminal
from iceberg_writer_compat.cli._tables import (
    all_tables,
    content,
    named_tables,
    report_each,
    report_options,
    tables_options,
)
from iceberg_writer_compat.tables import Drop, contract_of

_DEFAULT_CONTRACT = "icebergWriterCompatV1"


@command(
    "enable",
    "iceberg-writer-compat enable db.orders",
    "iceberg-writer-compat enable db.orders --dry-run",
    "iceberg-writer-compat enable db.orders --rewrite --drop constraints",
    "iceberg-writer-compat enable --schema db --journal db.journal --output report.html",
)
@tables_options
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
    type=click.Choice(get_args(Drop)),
    help=f"Remove these blockers: {', '.join(get_args(Drop)[:-1])} or {get_args(Drop)[-1]}; may be "
    "repeated.",
)
@click.option(
    "--contract",
    metavar="FEATURE",
    help="The feature to switch on, if it is another than icebergWriterCompatV1.",
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, writable=True),
    metavar="FILE",
    help="Record the progress of each table in FILE; the same command resumes from it.",
)
@report_options
def enable(
    tables: Sequence[str],
    schemas: Sequence[str],
    catalogs: Sequence[str],
    listed: str | None,
    parallelism: int,
    dry_run: bool,
    journal: str | None,
    output: Output,
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
    if dry_run:
        plans = report_each(
            lambda spark, table: compat.enable_iceberg_writer_compat(
                spark, table, dry_run=True, **how
            ),
            tables,
            schemas,
            catalogs,
            listed,
            parallelism,
            output,
            settings,
        )
        return _code_of_plans(plans, how)
    named = named_tables(tables, schemas, catalogs, listed)
    spark = session(settings)
    names = all_tables(spark, named, schemas, catalogs)
    if not names:
        return FAILED
    if names == list(tables) and len(names) == 1 and journal is None:
        return _enable_one(spark, names[0], output, how)
    lines = Lines(is_terminal())
    numbers = {name: number for number, name in enumerate(names)}
    with counting(names, not output.is_read_at_once, verbose()) as counter:

        def notify(table: compat.TableProgress) -> None:
            # Every table is planned first.
            if table.state in ("done", "failed"):
                with counter.aside():
                    if output.is_read_at_once:
                        lines.put(numbers[table.table], _text.switched(table, "command"))
                counter.done(f"{table.table}: {table.verdict}")

        answer = enable_each(spark, names, how, parallelism, journal, notify, "command")
    if output.is_read_at_once:
        for table in answer:
            lines.put(numbers[table.table], _text.switched(table, "command"))
        lines.end()
        if len(answer) > 1:
            echo(f"\n{answer.verdict}")
    elif not output.write(content(answer, output.form)):
        return FAILED
    if answer.interrupted:
        return INTERRUPTED
    refusals = [is_refusal(table.error.condition) for table in answer.failed if table.error]
    return 0 if not refusals else REFUSED if all(refusals) else FAILED


# For a single table, the error is reported as by all other commands.
def _enable_one(spark: SparkSession, table: str, output: Output, how: dict[str, Any]) -> int:
    with progress(f"enabling {table}"):
        answer = compat.enable_iceberg_writer_compat(spark, table, **how)
    done = compat.EnableResults((compat.TableProgress(table, "done", result=answer),))
    return 0 if output.write(content(done, output.form)) else FAILED


def _code_of_plans(plans: compat.Reports | None, how: dict[str, Any]) -> int:
    if plans is None or plans.errors:
        return FAILED
    rewrites = how["mode"] == "rewrite" or (how["mode"] == "auto" and how["rewrite"])
    allowed = ("none", "metadata", "rewrite") if rewrites else ("none", "metadata")
    succeed = all(report.plan and report.plan.mode in allowed for report in plans.reports)
    return 0 if succeed else REFUSED


@command(
    "disable",
    "iceberg-writer-compat disable db.orders",
)
@click.argument("table")
@session_options
def disable(table: str, settings: dict[str, str]) -> int:
    """Drop the feature from TABLE."""
    spark = session(settings)
    contract = contract_of(spark, table) or _DEFAULT_CONTRACT
    changed = compat.disable_iceberg_writer_compat(spark, table).changed
    click.echo(f"{table}: {contract} is off" + ("" if changed else ", unchanged"))
    return 0


@command(
    "is-enabled",
    "iceberg-writer-compat is-enabled db.orders",
)
@click.argument("table")
@session_options
def is_enabled(table: str, settings: dict[str, str]) -> int:
    """Show whether TABLE has the feature.

    The exit code is 0 if it has, and 1 if not.
    """
    contract = contract_of(session(settings), table)
    click.echo(f"{table}: {contract or _DEFAULT_CONTRACT} is {'on' if contract else 'off'}")
    return 0 if contract else REFUSED
