"""Proofs as frozen dataclasses, and their representations."""

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
        name: Its name in `prove`.
        library: Its version; None if it is not installed.
        missing: How to install it, if it is not installed.
    """

    name: str
    library: str | None
    missing: str | None


@dataclass(frozen=True)
class Difference:
    """A difference between a reader and Delta.

    Attributes:
        place: The column, or another object of the check.
        version: The version of the table.
        filter: The filter, if the check is about filters.
        delta: The value of Delta.
        reader: The value of the reader.
        fault: The known fault of the reader, if it explains the difference.
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
    """The outcome of a check for a reader.

    Attributes:
        reader: The reader.
        check: The check.
        status: Whether the reader sees what Delta sees.
        compared: The number of comparisons.
        left_out: The number of comparisons that the reader does not support.
        reason: Why the check could not run.
        differences: All differences.
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
    """The row count and checksums of Delta or of a reader.

    Attributes:
        reader: The reader, or `delta`.
        rows: The number of rows.
        checksums: The checksum of each column of the proof; empty if the column is missing.
    """

    reader: str
    rows: int
    checksums: tuple[str, ...]


@dataclass(frozen=True)
class Proof:
    """The comparison of what Iceberg readers and Delta see of a published table.

    Attributes:
        kind: The kind of report.
        table: The table, as written in statements.
        metadata_location: The metadata file that was read.
        delta_version: The newest version of the table.
        published_version: The version that readers see.
        versions: The versions that were read by time travel.
        gone: Published versions that Delta cannot read any more.
        columns: The leaves of the schema.
        readings: The row count and checksums of Delta and of each reader, if values were checked.
        readers: All readers, including those that are not installed.
        outcomes: The outcome of each check for each reader.
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
        """Reads the result of `to_dict`."""
        _codec.require_format(value)
        return _codec.decode(cls, value, "proof")

    @classmethod
    def from_json(cls, text: str) -> Proof:
        """Reads a proof from JSON."""
        return cls.from_dict(json.loads(text))

    @property
    def proven(self) -> bool:
        """Whether every check ran and every difference is a known fault."""
        return all(outcome.status in ("agrees", "known fault") for outcome in self.outcomes)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """All differences except known faults."""
        found = (difference for outcome in self.outcomes for difference in outcome.differences)
        return tuple(difference for difference in found if difference.fault is None)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks that were run."""
        return tuple(dict.fromkeys(outcome.check for outcome in self.outcomes))

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _proof_text.verdict(self)

    def outcome(self, reader: str, check: Check) -> Outcome | None:
        """The outcome of a check for a reader; None if the check does not apply to it."""
        found = (o for o in self.outcomes if (o.reader, o.check) == (reader, check))
        return next(found, None)

    def to_dict(self) -> dict[str, Any]:
        """The proof as dicts and lists, which `from_dict` reads."""
        return {"format": _codec.FORMAT, "proven": self.proven, **_codec.encode(self)}

    def to_json(self) -> str:
        """The proof as JSON."""
        return _codec.dumps(self.to_dict())

    def to_html(self) -> str:
        """The proof as an HTML page without external resources."""
        return _html.proof_page(self)

    def _repr_html_(self) -> str:
        return _html.proof_fragment(self)

    def __repr__(self) -> str:
        """The verdict; `str` has everything."""
        return f"<{type(self).__name__} {self.table}: {self.verdict}>"

    def __str__(self) -> str:
        """The proof as text."""
        return _proof_text.proof(self)
