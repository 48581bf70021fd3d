"""Reads published tables with Iceberg readers and with Delta, and compares the results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, get_args

from pyspark.sql import SparkSession

from iceberg_writer_compat import _jvm, _proof_text
from iceberg_writer_compat.exceptions import ReaderNotInstalledError
from iceberg_writer_compat.proving import _packages
from iceberg_writer_compat.proving.proof import (
    Check,
    Difference,
    Outcome,
    Proof,
    ReaderFacts,
    ReaderName,
    Reading,
    Status,
)

if TYPE_CHECKING:
    from iceberg_writer_compat.proving.checks import Published
    from iceberg_writer_compat.proving.checksums import Path, Sums
    from iceberg_writer_compat.proving.delta import Delta
    from iceberg_writer_compat.proving.readers import Reader

READERS: tuple[ReaderName, ...] = get_args(ReaderName)
CHECKS: tuple[Check, ...] = get_args(Check)

_T = TypeVar("_T", bound=str)


def require_packages() -> None:
    """Raises an error if a package is missing that every proof needs."""
    needed = ("numpy", "pandas", "pyarrow")
    if missing := [package for package in needed if find_spec(package) is None]:
        raise ReaderNotInstalledError(
            f"A proof needs {', '.join(missing)}.\nRun: {_packages.install_line()}"
        )


def prove(
    spark: SparkSession,
    table: str | os.PathLike[str],
    readers: Collection[ReaderName] | None = None,
    *,
    versions: int | None = 10,
    checks: Collection[Check] | None = None,
    metadata_location: str | None = None,
    progress: Callable[[str], None] = lambda _next: None,
) -> Proof:
    """Compares what Iceberg readers see of a published table with what Delta sees.

    Each reader reads all rows of all requested versions, which can take long for a large table.
    Nothing is written.

    Args:
        spark: A session that has the extension and Iceberg's library.
        table: The name or path of a published table.
        readers: Some of `pyiceberg`, `duckdb`, `iceberg-spark` and `iceberg-core`; by default all
            that are installed.
        versions: How many of the newest published versions to read by time travel; None for all.
        checks: Some of `schema`, `rows`, `values`, `versions`, `filters` and `aggregates`; by
            default all.
        metadata_location: The metadata file to read instead of the one that was published last.
        progress: Called with the name of each step.
    """
    door, name = _jvm.require(spark), _jvm.table_name(table)
    wanted = _chosen("reader", readers, READERS)
    asked = _chosen("check", checks, CHECKS)
    require_packages()
    from iceberg_writer_compat.proving.checks import Published
    from iceberg_writer_compat.proving.delta import Delta

    with _jvm.without_stack(), ExitStack() as stack:
        found = json.loads(door.published(spark._jsparkSession, name, metadata_location))
        current, location = found["published_version"], found["metadata_location"]
        opened = _open(spark, location, wanted, required=readers is not None)
        for one in opened:
            if one.reader is not None:
                stack.callback(one.reader.close)
        delta = Delta(spark, found["table"])
        progress("reading the table")
        newest = islice(reversed(found["snapshots"]), 0 if "versions" not in asked else versions)
        snapshots = {one["delta_version"]: one["snapshot_id"] for one in newest}
        gone = tuple(version for version in snapshots if not delta.has(version))
        published = Published(current, {v: s for v, s in snapshots.items() if v not in gone})
        outcomes: list[Outcome] = []
        sums: dict[str, Sums] = {}
        for check in asked:
            progress(_proof_text.CHECKS[check])
            outcomes += _outcomes(delta, published, opened, check, sums)
        columns = delta.leaves(current) if sums else {}
        return Proof(
            "prove",
            found["table"],
            location,
            found["delta_version"],
            current,
            tuple(published.snapshots),
            gone,
            tuple(columns.values()),
            tuple(_reading(reader, read, tuple(columns)) for reader, read in sums.items()),
            tuple(one.facts for one in opened),
            tuple(_advised(outcomes, _anew(found["table"], location, _catalog_table(spark, name)))),
        )


def _chosen(what: str, wanted: Collection[_T] | None, known: tuple[_T, ...]) -> tuple[_T, ...]:
    """The requested names, in the order of all names."""
    if isinstance(wanted, str):
        raise TypeError(f"Several {what}s are given as a list, but this is the text {wanted!r}.")
    for name in wanted or ():
        if name not in known:
            raise ValueError(f"There is no {what} {name!r}; there are {', '.join(known)}.")
    return tuple(name for name in known if wanted is None or name in wanted)


@dataclass(frozen=True)
class _Opened:
    """A reader, or the reason why it is missing."""

    facts: ReaderFacts
    reader: Reader | None
    reason: str | None


def _open(
    spark: SparkSession, location: str, wanted: Sequence[ReaderName], required: bool
) -> list[_Opened]:
    from iceberg_writer_compat.proving.readers import READERS as KINDS
    from iceberg_writer_compat.proving.readers import MissingReader

    opened = []
    for name in wanted:
        try:
            facts = ReaderFacts(name, KINDS[name].library(spark), None)
        except MissingReader as missing:
            if required:
                text = f"The reader {name} is not installed.\nInstall it with: {missing}"
                raise ReaderNotInstalledError(text) from None
            opened.append(_Opened(ReaderFacts(name, None, str(missing)), None, None))
            continue
        try:
            opened.append(_Opened(facts, KINDS[name](spark, location), None))
        except Exception as error:
            opened.append(_Opened(facts, None, _reason(error)))
    if all(one.facts.library is None for one in opened):
        ways = "".join(f"\nInstall {one.facts.name} with: {one.facts.missing}" for one in opened)
        raise ReaderNotInstalledError(f"No Iceberg reader is installed.{ways}")
    return opened


def _outcomes(
    delta: Delta,
    published: Published,
    opened: Sequence[_Opened],
    check: Check,
    sums: dict[str, Sums],
) -> Iterator[Outcome]:
    """The outcomes of a check for each reader; also records the checksums."""
    from iceberg_writer_compat.proving import checks

    ask = checks.CHECKS[check](delta, published)
    if check == "values":
        sums["delta"] = delta.sums(published.version)
    for one in opened:
        name = one.facts.name
        if one.reader is None:
            if one.reason is not None:
                yield Outcome(name, check, "could not run", 0, 0, one.reason, ())
        elif checks.offers(one.reader, check):
            # Readers may raise any exception.
            try:
                found = ask(one.reader)
            except Exception as error:
                yield Outcome(name, check, "could not run", 0, 0, _reason(error), ())
                continue
            if found.sums is not None:
                sums[name] = found.sums
            differences = tuple(found.differences)
            status = _status(differences)
            yield Outcome(name, check, status, found.number, found.left_out, None, differences)


def _reason(error: Exception) -> str:
    lines = _jvm.message(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _status(differences: Sequence[Difference]) -> Status:
    if not differences:
        return "agrees"
    known = all(difference.fault is not None for difference in differences)
    return "known fault" if known else "differs"


def _reading(reader: str, sums: Sums, columns: Sequence[Path]) -> Reading:
    found = (sums.columns.get(path) for path in columns)
    return Reading(
        reader, sums.rows, tuple("" if one is None else f"{one.checksum:016x}" for one in found)
    )


def _catalog_table(spark: SparkSession, name: str) -> str | None:
    status = json.loads(_jvm.require(spark).publishStatus(spark._jsparkSession, name))
    table: str | None = status["catalog_table"]
    return table


def _anew(table: str, location: str, catalog_table: str | None) -> str:
    """How to publish a table from scratch; a catalog would continue with its metadata."""
    drop = "" if catalog_table is None else f"drop {catalog_table} in its catalog without purging, "
    folder = location.rpartition("/")[0]
    return f"{drop}remove {folder} and run: iceberg-writer-compat publish {table}"


def _advised(outcomes: Sequence[Outcome], again: str) -> Iterator[Outcome]:
    """The outcomes with advice, which depends on whether other readers see the same."""
    asked: dict[Check, int] = {}
    differing: dict[tuple[Check, str, int, str | None], int] = {}
    for outcome in outcomes:
        if outcome.status != "could not run":
            asked[outcome.check] = asked.get(outcome.check, 0) + 1
        for d in outcome.differences:
            key = (outcome.check, d.place, d.version, d.filter)
            differing[key] = differing.get(key, 0) + (d.fault is None)
    for outcome in outcomes:
        advised = []
        for d in outcome.differences:
            key = (outcome.check, d.place, d.version, d.filter)
            if d.fault is not None:
                advice = f"Take this into account when you read the table with {outcome.reader}."
            elif differing[key] == asked[outcome.check]:
                advice = f"The published metadata is wrong. To publish from scratch, {again}"
            else:
                advice = (
                    f"Not every reader sees this: {outcome.reader} or the published metadata is "
                    f"wrong. To publish from scratch, {again}"
                )
            advised.append(replace(d, advice=advice))
        yield replace(outcome, differences=tuple(advised))
