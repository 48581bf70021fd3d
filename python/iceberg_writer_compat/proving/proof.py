"""What a proof says: typed, frozen values, and the ways to show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from iceberg_writer_compat import _codec, _html, _proof_text

ReaderName = Literal["pyiceberg", "duckdb", "iceberg-spark", "iceberg-core"]
Check = Literal["schema", "rows", "values", "versions", "filters", "aggregates"]
Status = Literal["agrees", "differs", "known fault", "could not run"]


@dataclass(frozen=True)
class ReaderFacts:
    """A reader of Iceberg tables.

    Attributes:
        name: What `prove` calls it.
        library: The version that has read the table; None where it is not installed.
        missing: What gets it, where it is not installed.
    """

    name: str
    library: str | None
    missing: str | None


@dataclass(frozen=True)
class Difference:
    """Something that a reader does not see as Delta does.

    Attributes:
        place: The column, or what else is looked at.
        version: The version of the table.
        filter: The condition that was asked for, if it was one.
        delta: What Delta has.
        reader: What the reader has.
        fault: What the reader is known to do wrong, if that explains it all.
        advice: What to do.
    """

    place: str
    version: int
    filter: str | None
    delta: str
    reader: str
    fault: str | None
    advice: str


@dataclass(frozen=True)
class Outcome:
    """How a reader did in a check.

    Attributes:
        reader: The reader.
        check: The check.
        status: Whether it sees what Delta sees.
        compared: How many things were compared.
        left_out: How many could not be asked of this reader.
        reason: Why the check could not run.
        differences: Everything that differs.
    """

    reader: str
    check: Check
    status: Status
    compared: int
    left_out: int
    reason: str | None
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Reading:
    """The rows and checksums that Delta or a reader has.

    Attributes:
        reader: The reader, or `delta`.
        rows: The number of rows.
        checksums: The checksum of each of the proof's columns; empty for one that is missing.
    """

    reader: str
    rows: int
    checksums: tuple[str, ...]


@dataclass(frozen=True)
class Proof:
    """What readers of Iceberg see of a published table, beside what Delta sees.

    Attributes:
        kind: The kind of report this is.
        table: The table, as a statement spells it.
        metadata_location: The metadata that was read.
        delta_version: The newest version of the table.
        published_version: The version that readers see.
        versions: The versions that were read by time travel.
        gone: Published versions that Delta itself cannot read any more.
        columns: The leaves of the schema.
        readings: What Delta and each reader have in them, if the values were checked.
        readers: The readers, also those that are not installed.
        outcomes: How each reader did in each check.
    """

    kind: Literal["prove"]
    table: str
    metadata_location: str
    delta_version: int
    published_version: int
    versions: tuple[int, ...]
    gone: tuple[int, ...]
    columns: tuple[str, ...]
    readings: tuple[Reading, ...]
    readers: tuple[ReaderFacts, ...]
    outcomes: tuple[Outcome, ...]

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Proof:
        """Reads what `to_dict` has written."""
        _codec.require_format(value)
        return _codec.decode(cls, value, "proof")

    @classmethod
    def from_json(cls, text: str) -> Proof:
        """Reads a proof from JSON."""
        return cls.from_dict(json.loads(text))

    @property
    def proven(self) -> bool:
        """Whether every check ran, and no reader differs but for a fault of its own."""
        return all(outcome.status in ("agrees", "known fault") for outcome in self.outcomes)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Everything in which a reader differs from Delta, but for its known faults."""
        found = (difference for outcome in self.outcomes for difference in outcome.differences)
        return tuple(difference for difference in found if difference.fault is None)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks that were made."""
        return tuple(dict.fromkeys(outcome.check for outcome in self.outcomes))

    @property
    def verdict(self) -> str:
        """The answer in a few words."""
        return _proof_text.verdict(self)

    def outcome(self, reader: str, check: Check) -> Outcome | None:
        """How a reader did in a check; None if it has nothing to be checked so."""
        found = (o for o in self.outcomes if (o.reader, o.check) == (reader, check))
        return next(found, None)

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain values, which `from_dict` reads."""
        return {"format": _codec.FORMAT, "proven": self.proven, **_codec.encode(self)}

    def to_json(self) -> str:
        """The proof as JSON."""
        return _codec.dumps(self.to_dict())

    def to_html(self) -> str:
        """The proof as one HTML page that needs nothing else."""
        return _html.proof_page(self)

    def _repr_html_(self) -> str:
        return _html.proof_fragment(self)

    def __str__(self) -> str:
        """The proof as text."""
        return _proof_text.proof(self)
