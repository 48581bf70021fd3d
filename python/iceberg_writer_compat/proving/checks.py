"""The checks: each reads with Delta first, and then compares the result of a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from iceberg_writer_compat._text import count
from iceberg_writer_compat.proving import checksums, schemas
from iceberg_writer_compat.proving.checksums import WHOLE_ROW, Path, Rules, Sum, Sums
from iceberg_writer_compat.proving.delta import Delta
from iceberg_writer_compat.proving.proof import Check, Difference
from iceberg_writer_compat.proving.readers import Reader
from iceberg_writer_compat.proving.schemas import Node

_EMPTY_FOR_NULL = "reads a null list or map as an empty one"
_MISSING = "no such column"


@dataclass(frozen=True)
class Published:
    """The published versions of a table.

    Attributes:
        version: The version that readers see.
        snapshots: The snapshot id of each version that is read by time travel.
    """

    version: int
    snapshots: Mapping[int, int]


@dataclass
class Compared:
    """The numbers of comparisons made and left out, the differences, and the checksums."""

    number: int = 0
    left_out: int = 0
    sums: Sums | None = None
    differences: list[Difference] = field(default_factory=list)

    def differ(
        self,
        place: str,
        version: int,
        delta: object,
        reader: object,
        condition: str | None = None,
        fault: str | None = None,
    ) -> None:
        """Records a difference."""
        found = Difference(place, version, condition, str(delta), str(reader), fault, "")
        self.differences.append(found)


Ask: TypeAlias = Callable[[Reader], Compared]


def schema(delta: Delta, published: Published) -> Ask:
    """Names, types, nullability, order and ids of the columns, at every depth."""
    delta.nodes(published.version)

    def ask(reader: Reader) -> Compared:
        found = Compared()
        _compare_schemas(delta, published.version, reader.schema(None), found)
        return found

    return ask


def rows(delta: Delta, published: Published) -> Ask:
    """The number of rows, by the fastest way of the reader."""
    expected = delta.sums(published.version).rows

    def ask(reader: Reader) -> Compared:
        found = Compared(1)
        number = reader.count(None)
        if number != expected:
            found.differ("rows", published.version, count(expected, "row"), count(number, "row"))
        return found

    return ask


def values(delta: Delta, published: Published) -> Ask:
    """A checksum of each column, over all rows."""
    delta.sums(published.version)

    def ask(reader: Reader) -> Compared:
        found = Compared()
        found.sums = _compare_sums(delta, published.version, reader, None, found)
        return found

    return ask


def versions(delta: Delta, published: Published) -> Ask:
    """Schema and checksums of earlier versions, by time travel."""
    for version in published.snapshots:
        delta.nodes(version)
        delta.sums(version)

    def ask(reader: Reader) -> Compared:
        found = Compared()
        for version, snapshot in published.snapshots.items():
            _compare_schemas(delta, version, reader.schema(snapshot), found)
            _compare_sums(delta, version, reader, snapshot, found)
        found.number = len(published.snapshots)
        return found

    return ask


def filters(delta: Delta, published: Published) -> Ask:
    """The number of rows that pass filters on each column that can have bounds."""
    wanted = delta.filters(published.version, _prunable(delta, published.version))
    expected = delta.counts(published.version, [one.spark() for one in wanted])
    partitions = delta.partitions(published.version)

    def ask(reader: Reader) -> Compared:
        answers = reader.counts(wanted)
        found = Compared(len(wanted), answers.count(None))
        for one, right, number in zip(wanted, expected, answers, strict=True):
            if number is None or number == right:
                continue
            known = reader.fault(one, one.path in partitions)
            if known and abs(number - right) > delta.counts(published.version, [known.rows])[0]:
                known = None
            found.differ(
                delta.name(one.path, published.version),
                published.version,
                count(right, "row"),
                count(number, "row"),
                one.spark(),
                None if known is None else known.text,
            )
        found.number -= found.left_out
        return found

    return ask


def aggregates(delta: Delta, published: Published) -> Ask:
    """Minimum, maximum and count, which a reader may take from metadata."""
    paths = _prunable(delta, published.version)
    expected = delta.extremes(published.version, paths)

    def ask(reader: Reader) -> Compared:
        found = Compared(3 * len(paths))
        for right, row in zip(expected, reader.extremes(paths) or (), strict=True):
            for name in ("count", "min", "max"):
                ours, theirs = right.row.column(name), row.column(name)
                if not _same(ours, theirs):
                    place = f"{name}({delta.name(right.path, published.version)})"
                    found.differ(place, published.version, ours[0], theirs[0])
        return found

    return ask


CHECKS: dict[Check, Callable[[Delta, Published], Ask]] = {
    "schema": schema,
    "rows": rows,
    "values": values,
    "versions": versions,
    "filters": filters,
    "aggregates": aggregates,
}


def offers(reader: Reader, check: Check) -> bool:
    """Whether the check applies to a reader."""
    return check != "aggregates" or type(reader).extremes is not Reader.extremes


def _prunable(delta: Delta, version: int) -> list[Path]:
    nodes = {node.path: node for node in delta.nodes(version)}
    return [path for path, node in nodes.items() if schemas.is_prunable(node, nodes)]


def _same(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> bool:
    """Whether two values are the same; the minimum may be either zero."""

    def checksum(column: pa.ChunkedArray) -> Sums:
        batch = pa.RecordBatch.from_arrays([column.combine_chunks()], ["value"])
        return checksums.of_batches([batch], Rules(frozenset({("value",)})))

    return checksum(ours) == checksum(theirs)


def _compare_schemas(delta: Delta, version: int, theirs: Sequence[Node], found: Compared) -> None:
    ours = delta.nodes(version)
    seen = {node.path: node for node in theirs}
    known = {node.path for node in ours}
    found.number += len(ours)
    for node in ours:
        place = delta.name(node.path, version)
        other = seen.get(node.path)
        if other is None:
            found.differ(place, version, node.type, _MISSING)
            continue
        for what, right, got in _facts(node, other):
            found.differ(place, version, f"{what} {right}", f"{what} {got}")
    for path in (node.path for node in theirs if node.path not in known):
        found.differ(".".join(path), version, _MISSING, seen[path].type)
    order = [node.path for node in theirs if node.path in known]
    if order != [node.path for node in ours if node.path in seen]:
        top = [path[0] for path in order if len(path) == 1]
        right_top = [node.path[0] for node in ours if len(node.path) == 1]
        found.differ("order of columns", version, ", ".join(right_top), ", ".join(top))


def _facts(ours: Node, theirs: Node) -> Iterator[tuple[str, object, object]]:
    if ours.type != theirs.type:
        yield "type", ours.type, theirs.type
    if theirs.id is not None and ours.id != theirs.id:
        yield "id", ours.id, theirs.id
    if theirs.nullable is not None and ours.nullable != theirs.nullable:
        yield "nullable", ours.nullable, theirs.nullable


def _compare_sums(
    delta: Delta, version: int, reader: Reader, snapshot: int | None, found: Compared
) -> Sums:
    ours = delta.sums(version)
    theirs = reader.sums(snapshot, delta.rules(version))
    paths = [path for path in ours.columns or theirs.columns if path != WHOLE_ROW]
    found.number += len(paths)
    wrong = [path for path in paths if not _agree(ours, theirs, path)]
    known: set[Path] = set()
    whole = _agree(ours, theirs, WHOLE_ROW)
    if wrong and reader.empty_for_null:
        emptied = delta.sums(version, empty_for_null=True)
        read = reader.sums(snapshot, delta.rules(version, empty_for_null=True))
        known = {path for path in wrong if _agree(emptied, read, path)}
        whole = _agree(emptied, read, WHOLE_ROW)
    for path in wrong:
        fault = _EMPTY_FOR_NULL if path in known else None
        right, got = _shown(ours, path), _shown(theirs, path)
        found.differ(delta.name(path, version), version, right, got, fault=fault)
    # All values may be there but belong to other rows.
    if not whole and known == set(wrong):
        right, got = _shown(ours, WHOLE_ROW), _shown(theirs, WHOLE_ROW)
        found.differ("whole rows", version, right, got)
    return theirs


def _at(sums: Sums, path: Path) -> Sum | None:
    """The checksum of a column; None if it is missing."""
    return sums.columns.get(path) if sums.rows else Sum()


def _agree(ours: Sums, theirs: Sums, path: Path) -> bool:
    return ours.rows == theirs.rows and _at(ours, path) == _at(theirs, path)


def _shown(sums: Sums, path: Path) -> str:
    found = _at(sums, path)
    if found is None:
        return _MISSING
    return f"{count(sums.rows, 'row')}, {found.nulls:,} null, checksum {found.checksum:016x}"
