"""Judges a table folder by its log and its Parquet footers alone.

It shares no code with the product and needs no Spark, so that a mistake in the product cannot
hide itself. The requirements are those of IcebergWriterCompatV1 and of what it builds on; `check`
says in plain words which of them a table does not meet.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

Json = dict[str, Any]

ID = "delta.columnMapping.id"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
NESTED_IDS = "delta.columnMapping.nested.ids"
HIGHEST_ICEBERG_ID = 2147483447

REQUIRED_FEATURES = {"icebergWriterCompatV1", "icebergCompatV2", "columnMapping"}
ALLOWED_FEATURES = REQUIRED_FEATURES | {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "clustering",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
READER_FEATURES = {
    "columnMapping",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
REQUIRED_PROPERTIES = {
    "delta.enableIcebergWriterCompatV1": "true",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "id",
}
FORBIDDEN_IF_TRUE = (
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV3",
    "delta.enableDeletionVectors",
    "delta.enableChangeDataFeed",
    "delta.enableRowTracking",
)
FORBIDDEN_FIELD_METADATA = (
    "delta.invariants",
    "delta.generationExpression",
    "delta.identity.",
    "CURRENT_DEFAULT",
)

# How Parquet must store each type: physical type and logical type.
PARQUET_TYPES = {
    "boolean": ("boolean", ""),
    "integer": ("int32", ""),
    "long": ("int64", ""),
    "float": ("float", ""),
    "double": ("double", ""),
    "string": ("binary", "String"),
    "binary": ("binary", ""),
    "date": ("int32", "Date"),
    "timestamp": ("int64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"),
    "timestamp_ntz": ("int64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds"),
}
DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True)
class Node:
    """A place in a schema: a field, or an element, a key or a value."""

    path: str
    type: Any
    id: int | None
    physical_name: str | None
    is_field: bool
    metadata: Json = field(default_factory=dict)
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """This node and all below."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def kind(self) -> str:
        """The name of the type, without what is inside of it."""
        return str(self.type["type"] if isinstance(self.type, dict) else self.type)


@dataclass(frozen=True)
class File:
    """A live data file, with the metadata that was in force when it was written.

    An Iceberg engine names the columns as the table does, and not physically: the ids tell them.
    """

    add: Json
    written_under: Json
    entered_under: Json
    by_iceberg: bool


@dataclass(frozen=True)
class Log:
    """A table as its log describes it."""

    version: int
    protocol: Json
    metadata: Json
    history: tuple[Json, ...]
    files: tuple[File, ...]

    @property
    def properties(self) -> dict[str, str]:
        """The table properties."""
        found: dict[str, str] = self.metadata.get("configuration", {})
        return found

    @property
    def columns(self) -> list[str]:
        """The logical names of the top-level columns."""
        return [str(f["name"]) for f in json.loads(self.metadata["schemaString"])["fields"]]

    @property
    def names(self) -> dict[str, str]:
        """The physical name of each field, by its path."""
        nodes = _schema(self.metadata).walk()
        return {n.path: str(n.physical_name) for n in nodes if n.is_field}


def versions(table: Path) -> list[int]:
    """The versions in the log of a table; none if there is no log."""
    return sorted(int(f.stem) for f in (table / "_delta_log").glob("*.json") if f.stem.isdigit())


def read_log(table: Path) -> Log:
    """Replays the whole log of a table."""
    found = versions(table)
    if not found or found != list(range(len(found))):
        raise ValueError(f"the log of {table} has the versions {found}, not all from 0 on")
    protocol: Json = {}
    metadata: Json = {}
    history: list[Json] = []
    live: dict[tuple[str, str], Json] = {}
    first_written_under: dict[str, Json] = {}
    # An upgrade enters files again, under the names that the columns have from then on.
    entered_under: dict[str, Json] = {}
    by_iceberg: set[str] = set()
    for version in found:
        text = (table / "_delta_log" / f"{version:020}.json").read_text(encoding="utf-8")
        actions = [json.loads(line) for line in text.splitlines() if line.strip()]
        for action in actions:
            protocol = action.get("protocol", protocol)
            if "metaData" in action:
                metadata = action["metaData"]
                history.append(metadata)
        operations = [a["commitInfo"].get("operation", "") for a in actions if "commitInfo" in a]
        # The order of actions in a commit means nothing; a file is in it once.
        for action in actions:
            if "remove" in action:
                live.pop(_key(action["remove"]), None)
            if "add" in action:
                path, vector = _key(action["add"])
                live[path, vector] = action["add"]
                if path not in first_written_under and _is_by_iceberg(operations):
                    by_iceberg.add(path)
                first_written_under.setdefault(path, metadata)
                # So does a rollback by an Iceberg client, with statistics of today's columns.
                has_feature = _has_feature(entered_under.get(path, {}))
                if not has_feature or _is_by_iceberg(operations):
                    entered_under[path] = metadata
    files = tuple(
        File(add, first_written_under[path], entered_under[path], path in by_iceberg)
        for (path, _), add in sorted(live.items())
    )
    return Log(found[-1], protocol, metadata, tuple(history), files)


def _is_by_iceberg(operations: list[str]) -> bool:
    return any(operation.startswith("ICEBERG ") for operation in operations)


def _key(action: Json) -> tuple[str, str]:
    """What makes a file one of its own: its path, and which of its rows are deleted."""
    return unquote(action["path"]), json.dumps(action.get("deletionVector"))


def _has_feature(metadata: Json) -> bool:
    enabled = metadata.get("configuration", {}).get("delta.enableIcebergWriterCompatV1")
    return bool(enabled == "true")


def check(table: Path) -> list[str]:
    """Everything that is wrong with a table; an empty list if nothing is."""
    log = read_log(table)
    problems = [
        *_protocol_problems(log),
        *_property_problems(log),
        *_schema_problems(log),
        *_history_problems(log),
    ]
    for file in log.files:
        name = unquote(file.add["path"])
        problems += [f"{name}: {problem}" for problem in _file_problems(table, log, file)]
    return problems


# --- protocol and properties --------------------------------------------------------------------


def _protocol_problems(log: Log) -> Iterator[str]:
    reader = log.protocol.get("minReaderVersion")
    writer = log.protocol.get("minWriterVersion")
    writer_features = set(log.protocol.get("writerFeatures") or [])
    reader_features = set(log.protocol.get("readerFeatures") or [])
    if writer != 7:
        yield f"writer version {writer} is not 7"
    if reader not in (2, 3):
        yield f"reader version {reader} is neither 2 nor 3"
    if missing := REQUIRED_FEATURES - writer_features:
        yield f"writerFeatures lacks {sorted(missing)}"
    if unknown := (writer_features | reader_features) - ALLOWED_FEATURES:
        yield f"features that are not allowed: {sorted(unknown)}"
    needs_three = (writer_features & READER_FEATURES) - {"columnMapping"}
    if reader == 2 and needs_three:
        yield f"reader version 2, but {sorted(needs_three)} need 3"
    if reader == 2 and "readerFeatures" in log.protocol:
        yield "reader version 2, but there are readerFeatures"
    if reader == 3 and reader_features != writer_features & READER_FEATURES:
        yield f"readerFeatures {sorted(reader_features)} do not match writerFeatures"
    if "clustering" in writer_features and "domainMetadata" not in writer_features:
        yield "clustering without domainMetadata"


def _property_problems(log: Log) -> Iterator[str]:
    for key, required in REQUIRED_PROPERTIES.items():
        if log.properties.get(key) != required:
            yield f"{key} is {log.properties.get(key)}, not {required}"
    for key in FORBIDDEN_IF_TRUE:
        if log.properties.get(key, "false").lower() != "false":
            yield f"{key} is {log.properties[key]}"
    for key in log.properties:
        if key.startswith("delta.constraints."):
            yield f"there is a constraint: {key}"
        if key in ("delta.minReaderVersion", "delta.minWriterVersion"):
            yield f"{key} is stored as a property"
    if log.metadata.get("format", {}).get("provider") != "parquet":
        yield f"the format is {log.metadata.get('format')}"


# --- schema -------------------------------------------------------------------------------------


def _schema(metadata: Json) -> Node:
    schema = json.loads(metadata["schemaString"])
    root = Node("", schema, None, None, is_field=False)
    return replace(root, children=tuple(_fields(schema, "")))


def _nodes(metadata: Json) -> list[Node]:
    return [node for node in _schema(metadata).walk() if node.path]


def _fields(struct: Json, prefix: str) -> Iterator[Node]:
    for f in struct["fields"]:
        metadata = f.get("metadata", {})
        name = metadata.get(PHYSICAL_NAME)
        path = prefix + f["name"]
        children = tuple(_below(f["type"], path, str(name), metadata.get(NESTED_IDS, {})))
        yield Node(path, f["type"], metadata.get(ID), name, True, metadata, children)


def _below(data_type: Any, path: str, key: str, nested: Json) -> Iterator[Node]:
    kind = data_type["type"] if isinstance(data_type, dict) else data_type
    if kind == "struct":
        yield from _fields(data_type, f"{path}.")
    for part in {"array": ["element"], "map": ["key", "value"]}.get(kind, []):
        inner = data_type[f"{part}Type"]
        children = tuple(_below(inner, f"{path}.{part}", f"{key}.{part}", nested))
        yield Node(f"{path}.{part}", inner, nested.get(f"{key}.{part}"), None, False, {}, children)


def _nested_keys(node: Node, key: str) -> Iterator[str]:
    for child in node.children:
        if not child.is_field:
            part = child.path.rsplit(".", 1)[1]
            yield f"{key}.{part}"
            yield from _nested_keys(child, f"{key}.{part}")


def _schema_problems(log: Log) -> Iterator[str]:
    owners: dict[int, str] = {}
    nodes = _nodes(log.metadata)
    for node in nodes:
        if node.id is None:
            yield f"{node.path} has no id"
        else:
            if not 1 <= node.id <= HIGHEST_ICEBERG_ID:
                yield f"{node.path} has the id {node.id}"
            if node.id in owners:
                yield f"{node.path} and {owners[node.id]} share the id {node.id}"
            owners.setdefault(node.id, node.path)
        if node.is_field and node.physical_name != f"col-{node.id}":
            yield f"{node.path} has the id {node.id}, but the physical name {node.physical_name}"
        if node.is_field:
            extra = set(node.metadata.get(NESTED_IDS, {}))
            extra -= set(_nested_keys(node, str(node.physical_name)))
            if extra:
                yield f"{node.path} has nested ids for nothing: {sorted(extra)}"
        for key in node.metadata:
            if key.startswith(FORBIDDEN_FIELD_METADATA):
                yield f"{node.path} has the metadata {key}"
        if _parquet_type(node.type) is None and node.kind not in ("struct", "array", "map"):
            yield f"{node.path} has the type {node.kind}"
        if node.kind == "struct" and not node.children:
            yield f"{node.path} is a struct without fields"
        if node.kind == "timestamp_ntz" and "timestampNtz" not in (
            log.protocol.get("writerFeatures") or []
        ):
            yield f"{node.path} is a timestamp_ntz without the feature timestampNtz"
    top_level = {column.path for column in _schema(log.metadata).children}
    for column in log.metadata.get("partitionColumns", []):
        if column not in top_level:
            yield f"the partition column {column} is not in the schema"


def _history_problems(log: Log) -> Iterator[str]:
    """Ids are handed out once, and keep their meaning."""
    kinds: dict[int, str] = {}
    highest = 0
    for number, metadata in enumerate(log.history):
        if metadata in log.history[:number]:
            # An older version came back as it was, and its files with it.
            kinds |= {node.id or 0: node.kind for node in _nodes(metadata)}
        if metadata.get("configuration", {}).get("delta.columnMapping.mode") != "id":
            # Before the feature there was another layout, or none.
            kinds, highest = {}, 0
            continue
        nodes = [node for node in _nodes(metadata) if node.id is not None]
        for node in nodes:
            known = kinds.get(node.id or 0)
            if known is None and highest and (node.id or 0) <= highest:
                yield f"metadata {number}: {node.path} got the id {node.id}, which was given before"
            if known is not None and not _is_promotion(known, node.kind):
                yield f"metadata {number}: id {node.id} turned from {known} into {node.kind}"
        kinds |= {node.id or 0: node.kind for node in nodes}
        stored = str(metadata["configuration"].get("delta.columnMapping.maxColumnId"))
        if not stored.isdigit() or int(stored) != max(kinds, default=0):
            yield (
                f"metadata {number}: maxColumnId is {stored}, but {max(kinds, default=0)} is the "
                "highest id ever given"
            )
        highest = max(highest, max(kinds, default=0))


def _is_promotion(old: str, new: str) -> bool:
    """Whether Iceberg v2 reads values of the old type as the new one."""
    if old == new or (old, new) in (("integer", "long"), ("float", "double")):
        return True
    narrow, wide = DECIMAL.fullmatch(old), DECIMAL.fullmatch(new)
    if not narrow or not wide:
        return False
    return narrow[2] == wide[2] and int(narrow[1]) <= int(wide[1])


# --- data files ---------------------------------------------------------------------------------


@dataclass
class Column:
    """A node of a Parquet schema."""

    name: str
    repetition: str
    physical_type: str
    logical_type: str
    id: int
    children: list[Column] = field(default_factory=list)


_SCHEMA_LINE = re.compile(
    r"^(?P<indent> *)(?P<repetition>required|optional|repeated) (?P<type>\w+)(\((?P<length>\d+)\))?"
    r" field_id=(?P<id>-?\d+) (?P<name>[^ ;]+)( \((?P<logical>.*)\))?( \{|;)$"
)


def read_footer(path: Path) -> tuple[Column, int]:
    """The schema of a Parquet file, whole, and its number of rows."""
    with pq.ParquetFile(path) as file:
        text, rows = str(file.schema), file.metadata.num_rows
    stack: list[tuple[int, Column]] = []
    for line in text.splitlines()[1:]:
        if not line.strip(" }"):
            continue
        m = _SCHEMA_LINE.match(line)
        if m is None:
            raise ValueError(f"{path}: a line of the Parquet schema is not understood: {line}")
        physical = m["type"] + (f"({m['length']})" if m["length"] else "")
        column = Column(m["name"], m["repetition"], physical, m["logical"] or "", int(m["id"]))
        indent = len(m["indent"])
        while stack and stack[-1][0] >= indent:
            stack.pop()
        if stack:
            stack[-1][1].children.append(column)
        stack.append((indent, column))
    return stack[0][1], rows


def _parquet_type(data_type: Any) -> tuple[str, str] | None:
    if not isinstance(data_type, str):
        return None
    if m := DECIMAL.fullmatch(data_type):
        precision, scale = int(m[1]), int(m[2])
        logical = f"Decimal(precision={precision}, scale={scale}"
        if precision <= 9:
            return "int32", logical
        if precision <= 18:
            return "int64", logical
        length = next(n for n in range(1, 17) if 10**precision - 1 <= 2 ** (8 * n - 1) - 1)
        return f"fixed_len_byte_array({length})", logical
    return PARQUET_TYPES.get(data_type)


def _file_problems(table: Path, log: Log, file: File) -> Iterator[str]:
    add = file.add
    if add.get("deletionVector"):
        yield "has a deletion vector"
    stats = json.loads(add.get("stats") or "{}")
    columns = _schema(file.entered_under).children
    names = {column.path: str(column.physical_name) for column in columns}
    partition = [names.get(c, c) for c in file.entered_under.get("partitionColumns", [])]
    if sorted(add.get("partitionValues", {})) != sorted(partition):
        yield f"partitionValues are keyed by {sorted(add.get('partitionValues', {}))}"
    for kind in ("minValues", "maxValues", "nullCount"):
        if unknown := set(stats.get(kind, {})) - set(names.values()):
            yield f"{kind} has {sorted(unknown)}, which are no physical names"
    if stats.get("tightBounds") is False:
        yield "its statistics have wide bounds"
    # A file of a shallow clone lies elsewhere, and is named by its URI.
    path = table / unquote(add["path"].removeprefix("file:"))
    if not path.is_file():
        yield "does not exist"
        return
    if add.get("size") != path.stat().st_size:
        yield f"has {path.stat().st_size} bytes, but the log says {add.get('size')}"
    root, rows = read_footer(path)
    if stats.get("numRecords") != rows:
        yield f"has {rows} rows, but numRecords is {stats.get('numRecords')}"
    yield from _column_problems(_schema(file.written_under), root, file.by_iceberg)
    now = {node.id: node.kind for node in _nodes(log.metadata)}
    for node in _nodes(file.written_under):
        # Parquet and Iceberg store a byte or short as an int; only the log knew it was less.
        kind = "integer" if node.kind in _NARROW else node.kind
        if not _is_promotion(kind, now.get(node.id, kind)):
            yield f"id {node.id} is a {node.kind} in the file, but a {now[node.id]} in the schema"


def _column_problems(node: Node, column: Column, by_iceberg: bool) -> Iterator[str]:
    """What does not match between a struct, an array or a map and its Parquet group."""
    if node.kind == "struct":
        found = {f"col-{c.id}" if by_iceberg else c.name: c for c in column.children}
        wanted = {str(child.physical_name): child for child in node.children}
        if missing := sorted(set(wanted) - set(found)):
            yield f"{node.path or 'the file'} lacks the columns {missing}"
        if unknown := sorted(set(found) - set(wanted)):
            yield f"{node.path or 'the file'} has the unknown columns {unknown}"
        pairs = [(wanted[name], found[name]) for name in wanted if name in found]
    elif node.kind == "array":
        middle = column.children[0] if column.children else None
        if (
            not column.logical_type.startswith("List")
            or middle is None
            or (middle.name, middle.repetition) != ("list", "repeated")
            or [c.name for c in middle.children] != ["element"]
        ):
            yield f"{node.path} is not a list of three levels"
            return
        pairs = [(node.children[0], middle.children[0])]
    else:
        middle = column.children[0] if column.children else None
        if (
            not column.logical_type.startswith("Map")
            or middle is None
            or (middle.name, middle.repetition) != ("key_value", "repeated")
            or [c.name for c in middle.children] != ["key", "value"]
        ):
            yield f"{node.path} is not a map of three levels"
            return
        pairs = list(zip(node.children, middle.children, strict=True))
    for child, child_column in pairs:
        if child_column.id != child.id:
            yield f"{child.path} has the field id {child_column.id}, not {child.id}"
        if child.kind in ("struct", "array", "map"):
            if child_column.physical_type != "group":
                yield f"{child.path} is a {child_column.physical_type}, not a {child.kind}"
            else:
                yield from _column_problems(child, child_column, by_iceberg)
        elif child.kind in _NARROW:
            if child_column.physical_type != "int32" or child_column.logical_type not in (
                "",
                _NARROW[child.kind],
            ):
                yield f"{child.path} is stored as {child_column.physical_type}, not int32"
        elif (wanted_type := _parquet_type(child.type)) is not None:
            physical, logical = wanted_type
            is_right = (
                child_column.logical_type.startswith(logical)
                if logical
                else child_column.logical_type in ("", _INTEGER.get(physical, ""))
            )
            if child_column.physical_type != physical or not is_right:
                yield (
                    f"{child.path} is stored as {child_column.physical_type} "
                    f"({child_column.logical_type}), not {physical} ({logical})"
                )


# What a column was before it was widened to an integer, or to a long.
_NARROW = {
    "byte": "Int(bitWidth=8, isSigned=true)",
    "short": "Int(bitWidth=16, isSigned=true)",
}

# An integer may say its width, or leave it to the physical type.
_INTEGER = {
    "int32": "Int(bitWidth=32, isSigned=true)",
    "int64": "Int(bitWidth=64, isSigned=true)",
}
