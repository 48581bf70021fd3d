"""The oracle accepts a right table, made by hand, and rejects each of many wrong ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import oracle

Json = dict[str, Any]


def field(name: str, data_type: Any, number: int, nested: dict[str, int] | None = None) -> Json:
    """A column with its id and the physical name that follows from it."""
    metadata: Json = {oracle.ID: number, oracle.PHYSICAL_NAME: f"col-{number}"}
    if nested:
        metadata[oracle.NESTED_IDS] = {f"col-{number}.{key}": n for key, n in nested.items()}
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def list_of(element: Any) -> Json:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> Json:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def struct_of(*fields: Json) -> Json:
    return {"type": "struct", "fields": list(fields)}


class Draft:
    """A table to be written; a test spoils one thing before."""

    def __init__(self) -> None:
        """A right table with one file."""
        self.protocol: Json = {
            "minReaderVersion": 2,
            "minWriterVersion": 7,
            "writerFeatures": ["icebergWriterCompatV1", "icebergCompatV2", "columnMapping"],
        }
        self.schema = struct_of(
            field("a", "integer", 1),
            field("l", list_of(list_of("long")), 2, {"element": 8, "element.element": 9}),
            field(
                "m",
                map_of("string", struct_of(field("x", "date", 4))),
                3,
                {"key": 10, "value": 11},
            ),
            field("ts", "timestamp", 5),
            field("d", "decimal(5,2)", 6),
            field("p", "string", 7),
        )
        self.configuration = {
            "delta.enableIcebergWriterCompatV1": "true",
            "delta.enableIcebergCompatV2": "true",
            "delta.columnMapping.mode": "id",
            "delta.columnMapping.maxColumnId": "11",
        }
        self.partition_columns = ["p"]
        self.add: Json = {
            "path": "p=a%2520b/part-0.parquet",
            "partitionValues": {"col-7": "a b"},
            "dataChange": True,
        }
        self.stats: Json = {"numRecords": 1, "minValues": {"col-1": 1}}
        self.columns = {
            "col-1": (pa.int32(), 1),
            "col-2": (lists(lists(pa.int64(), 9), 8), [[2]]),
            "col-3": (maps(pa.struct([with_id("col-4", pa.date32(), 4)])), [("k", {"col-4": 0})]),
            "col-5": (pa.timestamp("us", "UTC"), datetime(2026, 1, 31, tzinfo=timezone.utc)),
            "col-6": (pa.decimal128(5, 2), None),
            "col-7": (pa.string(), "a b"),
        }
        self.ids = {name: int(name[4:]) for name in self.columns}
        self.parquet: Json = {}
        self.more: list[list[Json]] = []

    def column(self, name: str) -> Json:
        """A top-level column of the schema."""
        return next(f for f in self.schema["fields"] if f["name"] == name)

    def metadata(self) -> Json:
        """The metaData action as it is now."""
        return {
            "id": "0",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(self.schema),
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
        }

    def write(self, folder: Path) -> Path:
        """Writes log and file."""
        file = folder / "p=a%20b" / "part-0.parquet"
        file.parent.mkdir()
        schema = pa.schema(
            [
                with_id(name, data_type, self.ids[name])
                for name, (data_type, _) in self.columns.items()
            ]
        )
        row = {name: value for name, (_, value) in self.columns.items()}
        options = {"store_decimal_as_integer": True} | self.parquet
        pq.write_table(pa.Table.from_pylist([row], schema), file, **options)
        add = {"size": file.stat().st_size, "stats": json.dumps(self.stats)} | self.add
        commits = [[{"metaData": self.metadata()}, {"protocol": self.protocol}], [{"add": add}]]
        (folder / "_delta_log").mkdir()
        for version, actions in enumerate(commits + self.more):
            text = "".join(json.dumps(action) + "\n" for action in actions)
            (folder / "_delta_log" / f"{version:020}.json").write_text(text)
        return folder


def with_id(name: str, data_type: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, data_type, metadata={"PARQUET:field_id": str(number)})


def lists(element: pa.DataType, number: int) -> pa.DataType:
    return pa.list_(with_id("element", element, number))


def maps(value: pa.DataType) -> pa.DataType:
    key = pa.field("key", pa.string(), nullable=False, metadata={"PARQUET:field_id": "10"})
    return pa.map_(key, with_id("value", value, 11))


def test_right_table(tmp_path: Path) -> None:
    assert oracle.check(Draft().write(tmp_path)) == []


def test_names_and_versions(tmp_path: Path) -> None:
    log = oracle.read_log(Draft().write(tmp_path))
    assert log.version == 1
    assert log.columns == ["a", "l", "m", "ts", "d", "p"]
    assert log.names["m.value.x"] == "col-4"
    assert oracle.versions(tmp_path) == [0, 1]
    assert oracle.versions(tmp_path / "nowhere") == []


Spoil = Callable[[Draft], object]


PROTOCOL: dict[str, tuple[Spoil, str]] = {
    "writer version": (lambda t: t.protocol.update(minWriterVersion=5), "writer version 5"),
    "reader version": (lambda t: t.protocol.update(minReaderVersion=1), "reader version 1"),
    "missing feature": (
        lambda t: t.protocol["writerFeatures"].remove("icebergCompatV2"),
        "lacks ['icebergCompatV2']",
    ),
    "forbidden feature": (
        lambda t: t.protocol["writerFeatures"].append("deletionVectors"),
        "not allowed: ['deletionVectors']",
    ),
    "unknown feature": (
        lambda t: t.protocol["writerFeatures"].append("somethingNew"),
        "not allowed: ['somethingNew']",
    ),
    "reader version too low": (
        lambda t: t.protocol["writerFeatures"].append("v2Checkpoint"),
        "need 3",
    ),
    "reader features in reader 2": (
        lambda t: t.protocol.update(readerFeatures=["columnMapping"]),
        "but there are readerFeatures",
    ),
    "reader features incomplete": (
        lambda t: t.protocol.update(minReaderVersion=3, readerFeatures=[]),
        "do not match writerFeatures",
    ),
    "writer feature for readers": (
        lambda t: t.protocol.update(
            minReaderVersion=3, readerFeatures=["columnMapping", "icebergCompatV2"]
        ),
        "do not match writerFeatures",
    ),
    "clustering alone": (
        lambda t: t.protocol["writerFeatures"].append("clustering"),
        "clustering without domainMetadata",
    ),
}

PROPERTIES: dict[str, tuple[Spoil, str]] = {
    "feature off": (
        lambda t: t.configuration.pop("delta.enableIcebergWriterCompatV1"),
        "enableIcebergWriterCompatV1 is None",
    ),
    "padded value": (
        lambda t: t.configuration.update({"delta.enableIcebergWriterCompatV1": " true "}),
        "enableIcebergWriterCompatV1 is  true ",
    ),
    "compat v2 off": (
        lambda t: t.configuration.update({"delta.enableIcebergCompatV2": "false"}),
        "enableIcebergCompatV2 is false",
    ),
    "mode": (
        lambda t: t.configuration.update({"delta.columnMapping.mode": "name"}),
        "mode is name",
    ),
    "vectors": (
        lambda t: t.configuration.update({"delta.enableDeletionVectors": "true"}),
        "enableDeletionVectors is true",
    ),
    "feed": (
        lambda t: t.configuration.update({"delta.enableChangeDataFeed": "TRUE"}),
        "enableChangeDataFeed is TRUE",
    ),
    "constraint": (
        lambda t: t.configuration.update({"delta.constraints.c": "a > 0"}),
        "there is a constraint",
    ),
    "stored version": (
        lambda t: t.configuration.update({"delta.minWriterVersion": "7"}),
        "is stored as a property",
    ),
    "max id low": (
        lambda t: t.configuration.update({"delta.columnMapping.maxColumnId": "7"}),
        "maxColumnId is 7, but 11",
    ),
    "max id high": (
        lambda t: t.configuration.update({"delta.columnMapping.maxColumnId": "12"}),
        "maxColumnId is 12, but 11",
    ),
    "no max id": (
        lambda t: t.configuration.pop("delta.columnMapping.maxColumnId"),
        "maxColumnId is None",
    ),
}


def drop_nested(draft: Draft) -> None:
    """Leaves a list without the id of its element."""
    del draft.column("l")["metadata"][oracle.NESTED_IDS]["col-2.element.element"]


def add_column(draft: Draft, number: int, data_type: Any, **metadata: Any) -> None:
    """Adds a column to the schema, after the file was written."""
    draft.schema = copy.deepcopy(draft.schema)
    added = field("n", data_type, number)
    added["metadata"].update(metadata)
    draft.schema["fields"].append(added)
    highest = max(number, 11)
    draft.configuration["delta.columnMapping.maxColumnId"] = str(highest)


SCHEMA: dict[str, tuple[Spoil, str]] = {
    "uuid name": (
        lambda t: t.column("a")["metadata"].update({oracle.PHYSICAL_NAME: "col-0e1f"}),
        "physical name col-0e1f",
    ),
    "uuid name below": (
        lambda t: t.column("m")["type"]["valueType"]["fields"][0]["metadata"].update(
            {oracle.PHYSICAL_NAME: "x"}
        ),
        "m.value.x has the id 4, but the physical name x",
    ),
    "no id": (lambda t: t.column("a")["metadata"].pop(oracle.ID), "a has no id"),
    "no nested id": (drop_nested, "l.element.element has no id"),
    "same id": (lambda t: add_column(t, 9, "integer"), "n and l.element.element share the id 9"),
    "reserved id": (lambda t: add_column(t, 2147483448, "integer"), "n has the id 2147483448"),
    "nested id for nothing": (
        lambda t: t.column("a")["metadata"].update({oracle.NESTED_IDS: {"col-1.element": 12}}),
        "nested ids for nothing",
    ),
    "short": (lambda t: add_column(t, 12, "short"), "n has the type short"),
    "byte below": (lambda t: add_column(t, 12, struct_of(field("x", "byte", 13))), "n.x has the"),
    "variant": (lambda t: add_column(t, 12, "variant"), "n has the type variant"),
    "no fields": (lambda t: add_column(t, 12, struct_of()), "n is a struct without fields"),
    "default": (
        lambda t: add_column(t, 12, "integer", CURRENT_DEFAULT="1"),
        "n has the metadata CURRENT_DEFAULT",
    ),
    "identity": (
        lambda t: add_column(t, 12, "long", **{"delta.identity.start": 1}),
        "n has the metadata delta.identity.start",
    ),
    "ntz without feature": (
        lambda t: add_column(t, 12, "timestamp_ntz"),
        "n is a timestamp_ntz without the feature",
    ),
    "unknown partition column": (
        lambda t: t.partition_columns.append("q"),
        "the partition column q",
    ),
}


def change(draft: Draft, spoil: Spoil) -> Draft:
    """Adds a commit with metadata that is changed from the first."""
    before = (copy.deepcopy(draft.schema), dict(draft.configuration))
    spoil(draft)
    draft.more.append([{"metaData": draft.metadata()}])
    draft.schema, draft.configuration = before
    return draft


def add_low_id(draft: Draft) -> None:
    """Adds a column whose id is below one that was given, to a map's value."""
    add_column(draft, 12, "integer")
    draft.configuration["delta.columnMapping.maxColumnId"] = "20"


HISTORY: dict[str, tuple[Spoil, str]] = {
    "type of an id": (
        lambda t: change(t, lambda u: u.column("a").update(type="string")),
        "id 1 turned from integer into string",
    ),
    "id given again": (
        lambda t: change(t, lambda u: add_column(u, 3, "integer")),
        "id 3 turned from map into integer",
    ),
    "max id goes down": (
        lambda t: change(
            t,
            lambda u: u.configuration.update({"delta.columnMapping.maxColumnId": "10"}),
        ),
        "maxColumnId is 10, but 11",
    ),
    "id from below": (
        lambda t: (
            t.column("m")["metadata"][oracle.NESTED_IDS].update({"col-3.value": 20}),
            t.configuration.update({"delta.columnMapping.maxColumnId": "20"}),
            t.columns.update({"col-3": (maps20(), [])}),
            change(t, add_low_id),
        ),
        "n got the id 12, which was given before",
    ),
}


def maps20() -> pa.DataType:
    key = pa.field("key", pa.string(), nullable=False, metadata={"PARQUET:field_id": "10"})
    return pa.map_(key, with_id("value", pa.struct([with_id("col-4", pa.date32(), 4)]), 20))


def replace_column(draft: Draft, name: str, data_type: pa.DataType, value: Any = None) -> Draft:
    draft.columns[name] = (data_type, value)
    return draft


FILES: dict[str, tuple[Spoil, str]] = {
    "int96": (lambda t: t.parquet.update(use_deprecated_int96_timestamps=True), "ts is stored as"),
    "millis": (
        lambda t: replace_column(t, "col-5", pa.timestamp("ms", "UTC")),
        "ts is stored as int64",
    ),
    "nanos": (
        lambda t: replace_column(t, "col-5", pa.timestamp("ns", "UTC")),
        "ts is stored as int64",
    ),
    "not in UTC": (
        lambda t: replace_column(t, "col-5", pa.timestamp("us")),
        "ts is stored as int64",
    ),
    "list of another form": (
        lambda t: (
            t.parquet.update(use_compliant_nested_type=False),
            replace_column(t, "col-2", pa.list_(with_id("item", lists(pa.int64(), 9), 8))),
        ),
        "l is not a list of three levels",
    ),
    "decimal": (
        lambda t: t.parquet.update(store_decimal_as_integer=False),
        "d is stored as fixed_len_byte_array",
    ),
    "decimal scale": (
        lambda t: replace_column(t, "col-6", pa.decimal128(5, 1)),
        "d is stored as int32",
    ),
    "type": (lambda t: replace_column(t, "col-1", pa.int64(), 1), "a is stored as int64"),
    "no field id": (lambda t: t.ids.update({"col-1": -1}), "a has the field id -1, not 1"),
    "wrong field id": (lambda t: t.ids.update({"col-1": 5}), "a has the field id 5, not 1"),
    "wrong element id": (
        lambda t: replace_column(t, "col-2", lists(lists(pa.int64(), 9), 12)),
        "l.element has the field id 12, not 8",
    ),
    "wrong id below an element": (
        lambda t: replace_column(t, "col-2", lists(lists(pa.int64(), 12), 8)),
        "l.element.element has the field id 12, not 9",
    ),
    "wrong id in a struct": (
        lambda t: replace_column(t, "col-3", maps(pa.struct([with_id("col-4", pa.date32(), 12)]))),
        "m.value.x has the field id 12, not 4",
    ),
    "partition column not in the file": (
        lambda t: t.columns.pop("col-7"),
        "lacks the columns ['col-7']",
    ),
    "unknown column": (
        lambda t: (t.columns.update({"x": (pa.int32(), 1)}), t.ids.update(x=30)),
        "unknown columns ['x']",
    ),
    "number of rows": (lambda t: t.stats.update(numRecords=2), "has 1 rows, but numRecords is 2"),
    "no number of rows": (lambda t: t.stats.pop("numRecords"), "but numRecords is None"),
    "wide bounds": (lambda t: t.stats.update(tightBounds=False), "wide bounds"),
    "logical name in statistics": (
        lambda t: t.stats.update(maxValues={"a": 1}),
        "maxValues has ['a']",
    ),
    "logical partition column": (
        lambda t: t.add.update(partitionValues={"p": "a b"}),
        "partitionValues are keyed by ['p']",
    ),
    "deletion vector": (
        lambda t: t.add.update(deletionVector={"cardinality": 1}),
        "has a deletion vector",
    ),
    "path not decoded": (lambda t: t.add.update(path="p=a%20b/part-0.parquet"), "does not exist"),
    "size": (lambda t: t.add.update(size=1), "but the log says 1"),
}

ALL = {
    f"{group}: {name}": case
    for group, cases in {
        "protocol": PROTOCOL,
        "property": PROPERTIES,
        "schema": SCHEMA,
        "history": HISTORY,
        "file": FILES,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("case", ALL)
def test_wrong_table(tmp_path: Path, case: str) -> None:
    spoil, expected = ALL[case]
    draft = Draft()
    spoil(draft)
    problems = oracle.check(draft.write(tmp_path))
    assert any(expected in problem for problem in problems), problems


def test_removed_file_is_not_looked_at(tmp_path: Path) -> None:
    draft = Draft()
    draft.stats["numRecords"] = 2
    draft.more.append([{"remove": {"path": draft.add["path"], "dataChange": True}}])
    assert oracle.check(draft.write(tmp_path)) == []


def test_file_is_judged_by_the_schema_it_was_written_under(tmp_path: Path) -> None:
    draft = Draft()
    change(draft, lambda t: add_column(t, 12, "integer"))
    assert oracle.check(draft.write(tmp_path)) == []


def test_last_protocol_counts(tmp_path: Path) -> None:
    draft = Draft()
    draft.more.append([{"protocol": draft.protocol | {"minWriterVersion": 5}}])
    assert oracle.check(draft.write(tmp_path)) == ["writer version 5 is not 7"]


def test_log_with_a_gap(tmp_path: Path) -> None:
    folder = Draft().write(tmp_path)
    (folder / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(ValueError, match="not all from 0 on"):
        oracle.check(folder)
