"""The commands on Iceberg metadata and for Iceberg clients."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

import click

import iceberg_writer_compat as compat
from iceberg_writer_compat import _jvm, _log_store, proving, serving
from iceberg_writer_compat.cli._common import (
    FAILED,
    REFUSED,
    command,
    progress,
    session,
    session_options,
)
from iceberg_writer_compat.cli._output import Output, output_options
from iceberg_writer_compat.cli._tables import content, report_options

_TOKEN = "ICEBERG_WRITER_COMPAT_TOKEN"
_STOPPING = (signal.SIGTERM, signal.SIGINT)


def _folder(entry: str) -> tuple[str, str]:
    name, equals, folder = entry.partition("=")
    if not name or not equals or not folder:
        raise click.BadParameter(f"{entry!r} is not NAMESPACE.TABLE=FOLDER.", param_hint="--path")
    return name, folder


@command(
    "publish",
    "iceberg-writer-compat publish db.orders",
    "iceberg-writer-compat publish /data/orders --format json",
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
@output_options("text", "json")
@session_options
def publish(
    table: str,
    take_snapshot: int | None,
    discard_snapshot: int | None,
    discard_changes: str | None,
    mend: bool,
    anew: bool,
    output: Output,
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
    spark = session(settings)
    with progress(f"publishing {table}"):
        result = compat.publish(
            spark,
            table,
            take_snapshot=take_snapshot,
            discard_snapshot=discard_snapshot,
            discard_changes=discard_changes,
            mend=mend,
            anew=anew,
        )
    lines = [f"{table}: {result.verdict}", *_place(result)]
    lines += [f"  repaired: {mended}" for mended in result.mended]
    lines += [f"  set aside: {file}" for file in result.set_aside]
    return 0 if output.write(_json_or(output, result, lines)) else FAILED


@command(
    "status",
    "iceberg-writer-compat status db.orders",
    "iceberg-writer-compat status /data/orders --format json",
)
@click.argument("table")
@output_options("text", "json")
@session_options
def status(table: str, output: Output, settings: dict[str, str]) -> int:
    """Show the published version of TABLE.

    Problems of Iceberg readers are shown with the call that fixes them.

    The exit code is 0 if Iceberg readers see the newest version, and 1 if not.
    """
    found = compat.status(session(settings), table)
    if found.published_version is None:
        lines = [f"{table}: version {found.delta_version}, not published"]
    else:
        behind = f"{found.lag} behind" if found.lag else "up to date"
        versions = f"version {found.delta_version}, published {found.published_version}"
        lines = [f"{table}: {versions}, {behind}", *_place(found)]
    for problem in found.problems:
        lines += [f"  {problem.text}", *(f"  Run: {line}" for line in problem.remedy.command)]
    if not output.write(_json_or(output, found, lines)):
        return FAILED
    return 0 if found.lag == 0 and not found.problems else REFUSED


def _place(found: compat.PublishResult | compat.PublishStatus) -> list[str]:
    catalog = [f"  {found.catalog_table} in the Iceberg catalog"] * (
        found.catalog_table is not None
    )
    return [*catalog, f"  {found.metadata_location}"]


def _json_or(
    output: Output, found: compat.PublishResult | compat.PublishStatus, lines: Sequence[str]
) -> str:
    """The result as JSON, or as these lines."""
    if output.form == "json":
        return json.dumps(asdict(found), indent=2, ensure_ascii=False)
    return "\n".join(lines)


@command(
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


@command(
    "prove",
    "iceberg-writer-compat prove db.orders",
    "iceberg-writer-compat prove db.orders --reader pyiceberg --reader duckdb --versions 3",
    "iceberg-writer-compat prove /data/orders --check schema --check rows",
    "iceberg-writer-compat prove db.orders --output proof.html",
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
@report_options
def prove(
    table: str,
    readers: Sequence[compat.ReaderName],
    checks_: Sequence[compat.Check],
    versions: int,
    location: str | None,
    output: Output,
    settings: dict[str, str],
) -> int:
    """Read TABLE with Iceberg readers, and compare with Delta.

    Compares schema and ids, row counts, a checksum of each column, earlier versions, filters on
    every column, and minimum and maximum values, and lists all differences. The readers pyiceberg
    and duckdb come with the extra `prove` of this package; Iceberg's own readers are fetched for
    the session if there is a connector for its Spark, and no --conf brings Iceberg's library.
    Nothing is written.

    The exit code is 0 if all installed readers see what Delta sees, except for known faults; 1 if a
    reader does not or a check could not run; and 2 if prove itself could not run.
    """
    proving.require_packages()
    of_session = {"iceberg-spark", "iceberg-core"}
    spark = session(settings, readers=not readers or bool(of_session & set(readers)))
    with progress(f"proving {table}") as advance:
        proof = compat.prove(
            spark,
            table,
            readers or None,
            versions=versions,
            checks=checks_ or None,
            metadata_location=location,
            progress=lambda next_: advance(f"proving {table}: {next_}"),
        )
    if not output.write(content(proof, output.form)):
        return FAILED
    return 0 if proof.proven else REFUSED


@command(
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
@click.option(
    "--row-level-deletes",
    type=click.Choice(serving.ROW_LEVEL_DELETES),
    default="refuse",
    show_default=True,
    help="What becomes of commits with delete files, as DuckDB's UPDATE and DELETE make them: they "
    "are refused, or the server writes the data files anew without the deleted rows.",
)
@session_options
def serve(
    host: str,
    port: int,
    token_file: TextIO | None,
    tls_cert: str | None,
    tls_key: str | None,
    paths: dict[str, str],
    row_level_deletes: str,
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
    # The server has a number of its own.
    spark = session(settings, few_tasks=False)
    try:
        with serving.started(
            spark, host, port, token, tls_cert, tls_key, paths, row_level_deletes, prints=True
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
