"""Reads a table with Delta Spark; the readers are compared with its results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from iceberg_writer_compat import _jvm
from iceberg_writer_compat.exceptions import UnreadableTableError
from iceberg_writer_compat.proving import checksums, schemas
from iceberg_writer_compat.proving.checksums import WHOLE_ROW, Path, Rules, Sums
from iceberg_writer_compat.proving.filters import Filter, Operation, Value
from iceberg_writer_compat.proving.schemas import Node

# The maximal number of expressions per query.
_AT_ONCE = 200


@dataclass(frozen=True)
class Extremes:
    """The number of values of a column that are not null, the minimum and the maximum."""

    path: Path
    row: pa.Table


class Delta:
    """A table, read by Delta Spark."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        """A table, as written in statements."""
        self._spark, self._table = spark, table
        self._door = _jvm.require(spark)
        self.nodes = cache(self._nodes)
        self.sums = cache(self._sums)
        self._columns = cache(self._read_columns)

    def frame(self, version: int) -> DataFrame:
        """All rows of a version."""
        return _jvm.version_of(self._spark, self._table, version)

    def has(self, version: int) -> bool:
        """Whether a version can still be read; its log or files may have been removed."""
        try:
            self.nodes(version)
            self.sums(version)
        except (PySparkException, Py4JJavaError, UnreadableTableError):
            return False
        return True

    def name(self, path: Path, version: int) -> str:
        """A column, as written in statements."""
        known = self._columns(version).get(path)
        return ".".join(path) if known is None else str(known["name"])

    def leaves(self, version: int) -> dict[Path, str]:
        """The columns that have checksums, and their names in statements."""
        paths = self.sums(version).columns
        return {path: self.name(path, version) for path in paths if path != WHOLE_ROW}

    def rules(self, version: int, empty_for_null: bool = False) -> Rules:
        """Which values count as equal in a version.

        A partition value is text in Delta's log and a number in Iceberg's metadata, which does not
        distinguish the two zeros.
        """
        return Rules(self.partitions(version), empty_for_null)

    def partitions(self, version: int) -> frozenset[Path]:
        """The partition columns of a version."""
        columns = self._columns(version)
        return frozenset(path for path, column in columns.items() if column["partition"])

    def extremes(self, version: int, paths: Sequence[Path]) -> list[Extremes]:
        """The minimum and maximum of columns, by reading all rows."""
        # Delta would answer a query of min and max alone from its statistics.
        read_all = F.sum(F.lit(1))
        found: list[Extremes] = []
        for some in _groups(paths, _AT_ONCE // 3):
            columns = [
                column
                for number, path in enumerate(some)
                for column in (
                    F.count(sql_name(path)).alias(f"count{number}"),
                    F.min(sql_name(path)).alias(f"min{number}"),
                    F.max(sql_name(path)).alias(f"max{number}"),
                )
            ]
            row = self.frame(version).agg(read_all, *columns).toArrow()
            names = ["count", "min", "max"]
            for number, path in enumerate(some):
                chosen = row.select([f"{name}{number}" for name in names])
                found.append(Extremes(path, chosen.rename_columns(names)))
        return found

    def filters(self, version: int, paths: Sequence[Path]) -> list[Filter]:
        """Filters that metadata may answer: by minimum, maximum, a value between, null and NaN."""
        return [
            wanted
            for some in _groups(paths, _AT_ONCE // 3)
            for path, values in self._values(version, some)
            for wanted in _filters(path, values)
        ]

    def counts(self, version: int, conditions: Sequence[str]) -> list[int]:
        """The number of rows that pass each filter, by reading all rows."""
        return [
            int(count)
            for some in _groups(conditions, _AT_ONCE)
            for count in self.frame(version)
            .agg(*[_jvm.expression(self._spark, f"count_if({one})") for one in some])
            .collect()[0]
        ]

    def _nodes(self, version: int) -> tuple[Node, ...]:
        columns = self._columns(version)
        found = schemas.of_arrow(self.frame(version).limit(0).toArrow().schema)
        return tuple(
            replace(n, id=columns[n.path]["id"], nullable=columns[n.path]["nullable"])
            for n in found
        )

    def _sums(self, version: int, empty_for_null: bool = False) -> Sums:
        return checksums.of_frame(self.frame(version), self.rules(version, empty_for_null))

    def _read_columns(self, version: int) -> dict[Path, dict[str, Any]]:
        with _jvm.without_stack():
            text = self._door.columns(self._spark._jsparkSession, self._table, version)
        return {tuple(column["path"]): column for column in json.loads(text)}

    def _values(self, version: int, paths: Sequence[Path]) -> Iterator[tuple[Path, pa.Table]]:
        """For each column the minimum, a value in the middle and the maximum, without NaN."""
        types = {field.name: field.dataType.typeName() for field in self._types(version, paths)}
        columns = []
        for number, path in enumerate(paths):
            name = sql_name(path)
            floating = types[str(number)] in ("float", "double")
            no_nan = _jvm.expression(self._spark, f"nanvl({name}, NULL)")
            value = no_nan if floating else F.col(name)
            middle = F.min_by(value, F.when(value.isNotNull(), F.xxhash64(value)))
            columns += [F.min(value), middle, F.max(value)]
        row = self.frame(version).agg(*columns).toArrow()
        for number, path in enumerate(paths):
            yield path, row.select(range(3 * number, 3 * number + 3))

    def _types(self, version: int, paths: Sequence[Path]) -> Any:
        columns = [F.col(sql_name(path)).alias(str(i)) for i, path in enumerate(paths)]
        return self.frame(version).select(*columns).schema.fields


def sql_name(path: Path) -> str:
    """A column in the SQL of Spark."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def _filters(path: Path, values: pa.Table) -> Iterator[Filter]:
    kind = values.schema.field(0).type
    least, middle, greatest = (_plain(column[0]) for column in values.columns)
    asked: list[tuple[Operation, Value | None]] = [("is null", None), ("is not null", None)]
    if pa.types.is_floating(kind):
        asked.append(("is nan", None))
    if least is not None and middle is not None and greatest is not None:
        asked += [("=", least), ("=", middle), ("=", greatest)]
        asked += [("<=", least), ("<", middle), (">", middle), (">=", greatest)]
    for operation, value in dict.fromkeys(asked):
        yield Filter(path, kind, operation, value)


def _plain(value: pa.Scalar) -> Value | None:
    """A value in Python; None if Python cannot represent it."""
    if pa.types.is_timestamp(value.type):
        value = value.cast(pa.timestamp("us"))
    try:
        plain: Value | None = value.as_py()
    except (OverflowError, ValueError):
        return None
    return plain


def _groups(things: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (things[start : start + size] for start in range(0, len(things), size))
