"""Schemas as lists of nodes, for comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from iceberg_writer_compat.proving.checksums import Path

_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Node:
    """A field, or the element, key or value of a list or map.

    Attributes:
        path: The names from the root.
        type: Its type; for a struct, list or map only that.
        nullable: Whether it is nullable; None if the reader does not report it.
        id: Its field id; None if the reader does not report it.
    """

    path: Path
    type: str
    nullable: bool | None
    id: int | None


def of_arrow(schema: pa.Schema, ids: Mapping[Path, int] | None = None) -> tuple[Node, ...]:
    """The nodes of a schema; the ids come from the schema if they are not given."""
    return tuple(_nodes(schema, (), ids or {}))


def ids_in(iceberg: Mapping[str, Any]) -> dict[Path, int]:
    """The ids in a schema in Iceberg's JSON."""
    return dict(_ids(iceberg, ()))


def is_prunable(node: Node, nodes: Mapping[Path, Node]) -> bool:
    """Whether metadata can have bounds of it: a leaf that is only below structs."""
    above = [nodes[node.path[:length]].type for length in range(1, len(node.path))]
    return set(above) <= {"struct"} and node.type not in ("struct", "list", "map")


def _nodes(fields: Any, path: Path, ids: Mapping[Path, int]) -> Iterator[Node]:
    for field in fields:
        yield from _node(field, (*path, field.name), ids)


def _node(field: pa.Field, path: Path, ids: Mapping[Path, int]) -> Iterator[Node]:
    kind, own = field.type, (field.metadata or {}).get(_FIELD_ID)
    yield Node(path, _name(kind), field.nullable, ids.get(path, None if own is None else int(own)))
    if pa.types.is_struct(kind):
        yield from _nodes(kind, path, ids)
    elif pa.types.is_map(kind):
        yield from _node(kind.key_field, (*path, "key"), ids)
        yield from _node(kind.item_field, (*path, "value"), ids)
    elif _is_list(kind):
        yield from _node(kind.value_field, (*path, "element"), ids)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _name(kind: pa.DataType) -> str:
    """A type by its values, not by its representation in memory."""
    if pa.types.is_struct(kind):
        return "struct"
    if pa.types.is_map(kind):
        return "map"
    if _is_list(kind):
        return "list"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}] {'with' if kind.tz else 'without'} time zone"
    return str(kind).removeprefix("large_")


def _ids(kind: Any, path: Path) -> Iterator[tuple[Path, int]]:
    if not isinstance(kind, Mapping):
        return
    if kind["type"] == "struct":
        for field in kind["fields"]:
            yield (*path, field["name"]), field["id"]
            yield from _ids(field["type"], (*path, field["name"]))
    for part in {"list": ("element",), "map": ("key", "value")}.get(kind["type"], ()):
        yield (*path, part), kind[f"{part}-id"]
        yield from _ids(kind[part], (*path, part))
