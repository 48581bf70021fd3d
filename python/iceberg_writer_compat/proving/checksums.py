"""Checksums of columns that do not depend on the order of rows or on the engine.

A column is a leaf of the schema. Its checksum is the sum, modulo 2^64, of a 64-bit hash of each
row's value, which includes the levels above the leaf. So a null struct differs from a struct of
nulls, and a null list from an empty one. The order of elements counts, that of map entries does
not.

Numbers are hashed by value and not by width, timestamps by their microseconds, text and binary by
their bytes. All NaNs are equal; 0.0 and -0.0 differ, except in columns given as `equal_zeros`.

This module is sent to Spark's executors by value, so it must not import from this package.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

Path: TypeAlias = tuple[str, ...]
Hashes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

# The path of the checksum of whole rows, which differs if values belong to other rows.
WHOLE_ROW: Path = ()

_NULL = np.uint64(0x6E756C6C)
_NAN = np.uint64(0x7FF8000000000000)
_SIGN = np.uint64(0x8000000000000000)


@dataclass(frozen=True)
class Rules:
    """Which values count as equal.

    Attributes:
        equal_zeros: The columns in which 0.0 and -0.0 are the same.
        empty_for_null: Whether a null list or map is the same as an empty one.
    """

    equal_zeros: frozenset[Path] = frozenset()
    empty_for_null: bool = False


@dataclass(frozen=True)
class Sum:
    """The checksum of a column, and the number of rows in which it is null."""

    checksum: int = 0
    nulls: int = 0

    def __add__(self, other: Sum) -> Sum:
        """The sum of both sets of rows."""
        return Sum((self.checksum + other.checksum) % 2**64, self.nulls + other.nulls)


@dataclass(frozen=True)
class Sums:
    """The number of rows, and the sum of each column."""

    rows: int
    columns: dict[Path, Sum]

    def __add__(self, other: Sums) -> Sums:
        """The sums of both sets of rows."""
        paths = dict.fromkeys([*self.columns, *other.columns])
        mine, theirs = self.columns, other.columns
        return Sums(
            self.rows + other.rows,
            {path: mine.get(path, Sum()) + theirs.get(path, Sum()) for path in paths},
        )


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def of_batches(batches: Iterable[pa.RecordBatch], rules: Rules) -> Sums:
    """The checksums of all rows."""
    sums = Sums(0, {})
    for batch in batches:
        sums += _of_batch(batch, rules)
    return sums


def of_frame(frame: DataFrame, rules: Rules) -> Sums:
    """The checksums of all rows of a DataFrame, computed on the executors."""
    # PySpark would parse a dot or backtick in the name of a column.
    numbered = frame.toDF(*map(str, range(len(frame.columns))))
    context = frame.sparkSession.sparkContext
    with _this_python(context), _named_if_missing(context):
        found = numbered.mapInArrow(_in_spark(rules, frame.columns), "sums STRING").collect()
    sums = Sums(0, {})
    for (text,) in found:
        rows, columns = json.loads(text)
        sums += Sums(rows, {tuple(path): Sum(*numbers) for path, *numbers in columns})
    return sums


@contextmanager
def _this_python(context: SparkContext) -> Iterator[None]:
    """Makes local executors use the Python of this process, which has the needed packages."""
    before = context.pythonExec
    if str(context.master).startswith("local"):
        context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


@contextmanager
def _named_if_missing(context: SparkContext) -> Iterator[None]:
    """Says which package is missing on the executors, instead of their stack trace."""
    python = context.pythonExec
    try:
        yield
    except PySparkException as error:
        missing = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", str(error))
        if missing is None:
            raise
        # Not at the top, see above.
        from iceberg_writer_compat.exceptions import ReaderNotInstalledError

        raise ReaderNotInstalledError(
            f"A proof computes checksums on the executors, and their Python ({python}) has no "
            f"{missing[1]}.\nInstall numpy and pyarrow there, or set PYSPARK_PYTHON, or "
            "spark.pyspark.python, to a Python on the executors that has them."
        ) from None


def _in_spark(
    rules: Rules, names: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sums = of_batches((batch.rename_columns(names) for batch in batches), rules)
        columns = [[path, sum_.checksum, sum_.nulls] for path, sum_ in sums.columns.items()]
        text = json.dumps([sums.rows, columns])
        yield pa.RecordBatch.from_pydict({"sums": [text]})

    return run


def _of_batch(batch: pa.RecordBatch, rules: Rules) -> Sums:
    whole = np.zeros(len(batch), np.uint64)
    columns: dict[Path, Sum] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for path, hashes in _leaves(column, (name,), rules):
            columns[path] = Sum(_total(hashes), _nulls(hashes, len(path)))
            whole = _mixed(whole + hashes)
    return Sums(len(batch), columns | {WHOLE_ROW: Sum(_total(whole))})


def _leaves(array: pa.Array, path: Path, rules: Rules) -> Iterator[tuple[Path, Hashes]]:
    """For each leaf, the hashes of the values of an array."""
    kind = array.type
    if pa.types.is_struct(kind):
        valid = _valid(array)
        for field, child in zip(kind, array.flatten(), strict=True):
            for leaf, hashes in _leaves(child, (*path, field.name), rules):
                yield leaf, np.where(valid, _mixed(hashes), _NULL)
    elif pa.types.is_map(kind):
        entries = _as_list(array)
        pairs = entries.flatten()
        keys = list(_leaves(pairs.field(0), (*path, "key"), rules))
        key = np.zeros(len(pairs), np.uint64)
        for _, hashes in keys:
            key = _mixed(key + hashes)
        for leaf, hashes in keys:
            yield leaf, _gathered(entries, _mixed(hashes), rules)
        for leaf, hashes in _leaves(pairs.field(1), (*path, "value"), rules):
            yield leaf, _gathered(entries, _mixed(key ^ _mixed(hashes)), rules)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = _lengths(array)
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions = _mixed((np.arange(len(starts)) - starts).astype(np.uint64))
        for leaf, hashes in _leaves(array.flatten(), (*path, "element"), rules):
            yield leaf, _gathered(array, _mixed(hashes ^ positions), rules)
    else:
        hashes = _primitive(array, path in rules.equal_zeros)
        yield path, np.where(_valid(array), hashes, _NULL)


def _as_list(array: pa.MapArray) -> pa.ListArray:
    key, item = array.type.key_field, array.type.item_field
    return array.cast(pa.list_(pa.struct([key, item])))


def _gathered(lists: pa.ListArray, hashes: Hashes, rules: Rules) -> Hashes:
    """The hash of each list, from the hashes of all elements."""
    lengths = _lengths(lists)
    ends = np.cumsum(lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    gathered = _mixed(sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64))
    return gathered if rules.empty_for_null else np.where(_valid(lists), gathered, _NULL)


def _primitive(array: pa.Array, equal_zeros: bool) -> Hashes:
    """The hashes of values, with any hash for null."""
    kind = array.type
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(array.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        bits = np.where(np.isnan(numbers), _NAN, numbers.view(np.uint64))
        return _mixed(np.where(bits == _SIGN, np.uint64(0), bits) if equal_zeros else bits)
    if pa.types.is_decimal(kind):
        wide = array.cast(pa.decimal128(38, kind.scale))
        if len(wide) == 0:
            return np.zeros(0, np.uint64)
        halves = np.frombuffer(wide.buffers()[1], np.uint64, 2 * len(wide), 16 * wide.offset)
        return _mixed(halves[0::2] ^ _mixed(halves[1::2]))
    if pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_date(kind):
        array = array.cast(pa.date32()).cast(pa.int32())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return _of_bytes(array.cast(pa.large_binary()))
    whole = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return _mixed(whole.view(np.uint64))


def _of_bytes(array: pa.LargeBinaryArray) -> Hashes:
    digests = b"".join(blake2b(value or b"", digest_size=8).digest() for value in array.to_pylist())
    return np.frombuffer(digests, np.uint64)


def _valid(array: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _lengths(lists: pa.ListArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64())
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def _mixed(hashes: Hashes) -> Hashes:
    """Hashes of hashes, by the last step of SplitMix64."""
    hashes = hashes + np.uint64(0x9E3779B97F4A7C15)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = hashes ^ (hashes >> np.uint64(31))
    return mixed


def _nulls(hashes: Hashes, depth: int) -> int:
    """How many hashes are those of null, or of null in structs of this depth."""
    found, null = 0, np.full(1, _NULL)
    for _ in range(depth):
        found += int(np.count_nonzero(hashes == null))
        null = _mixed(null)
    return found


def _total(hashes: Hashes) -> int:
    return int(np.sum(hashes, dtype=np.uint64))
