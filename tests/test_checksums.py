"""Checksums: what counts as the same column, and what does not."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from iceberg_writer_compat.proving.checksums import (
    WHOLE_ROW,
    Rules,
    Sums,
    of_batches,
    of_frame,
)

NESTED = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
MAP = pa.map_(pa.string(), pa.int64())


def sums(values: list[Any], kind: pa.DataType, rules: Rules | None = None) -> Sums:
    array = pa.array(values, kind)
    return of_batches([pa.RecordBatch.from_arrays([array], ["c"])], rules or Rules())


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int32(), [1, 2, None], [None, 2, 1]),
        (pa.float64(), [float("nan")], [-float("nan")]),
        (MAP, [[("a", 1), ("b", 2)]], [[("b", 2), ("a", 1)]]),
        (pa.decimal128(9, 2), [Decimal("1.50")], [Decimal("1.5")]),
    ],
)
def test_same(kind: pa.DataType, one: list[Any], other: list[Any]) -> None:
    assert sums(one, kind) == sums(other, kind)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int32(), [1, 1], [1]),
        (pa.int32(), [1, 2], [0, 3]),
        (pa.int32(), [None], [0]),
        (pa.string(), [None], [""]),
        (pa.string(), ["ab", "c"], ["a", "bc"]),
        (pa.binary(), [b"\0"], [b""]),
        (pa.bool_(), [True], [False]),
        (pa.bool_(), [None], [False]),
        (pa.float64(), [0.0], [-0.0]),
        (pa.float32(), [float("inf")], [-float("inf")]),
        (pa.decimal128(38, 9), [Decimal(2) ** 64], [Decimal(2) ** 65]),
        (pa.timestamp("us"), [1], [2]),
        (pa.list_(pa.int32()), [None], [[]]),
        (pa.list_(pa.int32()), [[]], [[None]]),
        (pa.list_(pa.int32()), [[1, 2]], [[2, 1]]),
        (pa.list_(pa.int32()), [[1], [2]], [[1, 2], []]),
        (NESTED, [None], [{"x": None, "y": None}]),
        (NESTED, [{"x": 1, "y": None}], [{"x": 1, "y": []}]),
        (NESTED, [{"x": 1, "y": ["a"]}], [{"x": 1, "y": ["b"]}]),
        (MAP, [None], [[]]),
        (MAP, [[("a", 1), ("b", 2)]], [[("a", 2), ("b", 1)]]),
        (MAP, [[("a", None)]], [[("a", 0)]]),
    ],
)
def test_different(kind: pa.DataType, one: list[Any], other: list[Any]) -> None:
    assert sums(one, kind) != sums(other, kind)


def test_leaves_by_themselves() -> None:
    one = sums([{"x": 1, "y": ["a"]}, {"x": None, "y": []}, None], NESTED)
    other = sums([{"x": 1, "y": ["b"]}, {"x": None, "y": []}, None], NESTED)
    assert list(one.columns) == [("c", "x"), ("c", "y", "element"), WHOLE_ROW]
    assert one.columns["c", "x"] == other.columns["c", "x"]
    assert one.columns["c", "x"].nulls == 2
    assert one.columns["c", "y", "element"].nulls == 1
    assert one.columns["c", "y", "element"] != other.columns["c", "y", "element"]


def test_rows_mixed_up() -> None:
    def table(b: list[int]) -> Sums:
        return of_batches([pa.RecordBatch.from_pydict({"a": [1, 2], "b": b})], Rules())

    one, other = table([3, 4]), table([4, 3])
    assert one.columns["a",] == other.columns["a",]
    assert one.columns["b",] == other.columns["b",]
    assert one.columns[WHOLE_ROW] != other.columns[WHOLE_ROW]


def test_rules() -> None:
    zeros = Rules(equal_zeros=frozenset({("c",)}))
    assert sums([0.0], pa.float64(), zeros) == sums([-0.0], pa.float64(), zeros)
    empty = Rules(empty_for_null=True)
    for kind in (MAP, pa.list_(pa.int32())):
        assert sums([None], kind, empty) == sums([[]], kind, empty)
        assert sums([[]], kind, empty) == sums([[]], kind)


def test_pieces_and_forms() -> None:
    """The same rows in other batches, slices and layouts of memory."""
    names = ["l", "m", "s", "d"]
    kinds = [pa.list_(pa.string()), MAP, NESTED, pa.decimal128(9, 2)]
    columns: list[list[Any]] = [
        [["a"], None, ["b", None], []],
        [[("k", 1)], [], None, [("l", None), ("m", 2)]],
        [{"x": 1, "y": ["z"]}, None, {"x": None, "y": None}, {"x": 2, "y": []}],
        [Decimal("1.25"), None, Decimal("-1.25"), Decimal("9999999.99")],
    ]
    arrays = [pa.array(v, kind) for v, kind in zip(columns, kinds, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names)
    whole = of_batches([batch], Rules())
    assert of_batches([batch.slice(1), batch.slice(0, 1)], Rules()) == whole
    assert of_batches([batch.slice(3), batch.slice(2, 1), batch.slice(0, 2)], Rules()) == whole
    large = [
        arrays[0].cast(pa.large_list(pa.large_string())),
        arrays[1],
        arrays[2],
        arrays[3].cast(pa.decimal256(9, 2)),
    ]
    assert of_batches([pa.RecordBatch.from_arrays(large, names)], Rules()) == whole
    assert of_batches([], Rules()) == Sums(0, {})
    decimals = pa.list_(pa.decimal128(9, 2))
    assert sums([[]], decimals).rows == 1


def test_widths_and_zones() -> None:
    moment = datetime.datetime(2026, 1, 1, 12, 0, 0, 1)
    assert sums([7], pa.int32()) == sums([7], pa.int64())
    assert sums([1.5], pa.float32()) == sums([1.5], pa.float64())
    assert sums([moment], pa.timestamp("us")) == sums([moment], pa.timestamp("us", "UTC"))
    assert sums([moment], pa.timestamp("us")) == sums([moment], pa.timestamp("ns"))


def test_in_spark(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT id, CAST(id AS STRING) s, array(id, null) l, map('k', id) m FROM range(1000)"
    ).repartition(3)
    collected = of_batches(frame.toArrow().to_batches(), Rules())
    assert collected.rows == 1000
    assert of_frame(frame, Rules()) == collected
