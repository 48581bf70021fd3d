"""Proofs as plain text for a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from iceberg_writer_compat._text import _entry, _plain, count

if TYPE_CHECKING:
    from iceberg_writer_compat.proving.proof import Check, Difference, Outcome, Proof

_WIDTH = 100
# One wrong id makes every value of a column differ, in every version and with every filter.
_LISTED = 10

CHECKS: dict[Check, str] = {
    "schema": "schema and ids",
    "rows": "row count",
    "values": "checksums",
    "versions": "time travel",
    "filters": "filters",
    "aggregates": "min, max, count",
}


def verdict(proof: Proof) -> str:
    """The verdict of a proof."""
    ran = [reader for reader in proof.readers if reader.library is not None]
    by_status = {
        status: sum(outcome.status == status for outcome in proof.outcomes)
        for status in ("differs", "could not run", "known fault")
    }
    answer = "proven" if proof.proven else "not proven"
    counts = [f"{count(len(ran), 'reader')}"]
    if proof.differences:
        counts.append(count(len(proof.differences), "difference"))
    if by_status["could not run"]:
        counts.append(f"{count(by_status['could not run'], 'check')} could not run")
    if by_status["known fault"]:
        counts.append("known faults of readers")
    return f"{answer}: {', '.join(counts)}"


def source(proof: Proof) -> str:
    """The metadata that was read."""
    behind = proof.delta_version - proof.published_version
    lag = f", {count(behind, 'version')} behind" if behind else ""
    return f"{proof.metadata_location}, version {proof.published_version}{lag}"


def cell(outcome: Outcome | None) -> str:
    """An outcome in one line."""
    if outcome is None:
        return "-"
    if outcome.status == "could not run":
        return outcome.status
    left_out = f", {outcome.left_out:,} left out" if outcome.left_out else ""
    if outcome.status == "agrees":
        return f"agrees ({outcome.compared:,}{left_out})"
    # A comparison, such as that of a column, can have several differences.
    return (
        f"{outcome.status}: {len(outcome.differences):,} ({outcome.compared:,} compared{left_out})"
    )


def example(difference: Difference) -> str:
    """The place of a difference."""
    condition = f" where {difference.filter}" if difference.filter else ""
    return f"{difference.place} in version {difference.version}{condition}"


def proof(value: Proof) -> str:
    """A proof as text."""
    lines = [f"{_plain(value.table)}: {value.verdict}", f"  {_plain(source(value))}", ""]
    lines += _matrix(value)
    for outcome in value.outcomes:
        if outcome.status == "agrees":
            continue
        lines += ["", f"  {outcome.reader}, {CHECKS[outcome.check]}: {outcome.status}"]
        lines += _entry("  why", outcome.reason or "", 12)
        for difference in outcome.differences[:_LISTED]:
            lines += _entry("  at", example(difference), 12)
            lines += _entry("  Delta", difference.delta, 12)
            lines += _entry("  reader", difference.reader, 12)
            lines += _entry("  fault", difference.fault or "", 12)
        more = len(outcome.differences) - _LISTED
        if more > 0:
            lines.append(f"    and {count(more, 'more difference')}")
        for advice in dict.fromkeys(d.advice for d in outcome.differences if d.advice):
            lines += _entry("  do", advice, 12)
    if value.gone:
        gone = ", ".join(map(str, value.gone))
        lines += ["", *_entry("gone", f"versions that Delta cannot read any more: {gone}", 12)]
    for reader in value.readers:
        if reader.missing is not None:
            text = f"{reader.name} is not installed; install it with {reader.missing}"
            lines += ["", *_entry("not read", text, 12, wrap=False)]
    return "\n".join(lines)


def _matrix(value: Proof) -> list[str]:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    ran = [reader for reader in value.readers if reader.library is not None]
    for reader in ran:
        table.add_column(f"{reader.name}\n{reader.library}")
    for check in value.checks:
        cells = [cell(value.outcome(reader.name, check)) for reader in ran]
        table.add_row(CHECKS[check], *cells)
    file = io.StringIO()
    Console(file=file, width=_WIDTH - 2).print(table)
    return [f"  {line}".rstrip() for line in file.getvalue().splitlines() if line.strip()]
