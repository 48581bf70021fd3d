"""The Iceberg readers that `prove` uses; none is part of this project."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import Any, ClassVar, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from iceberg_writer_compat import _jvm
from iceberg_writer_compat.proving import _packages, checksums, schemas
from iceberg_writer_compat.proving.checksums import Path, Rules, Sums
from iceberg_writer_compat.proving.delta import sql_name
from iceberg_writer_compat.proving.filters import Filter
from iceberg_writer_compat.proving.proof import ReaderName
from iceberg_writer_compat.proving.schemas import Node
from iceberg_writer_compat.proving.stores import s3_of

# DuckDB extensions; the second requires the first.
_EXTENSIONS = ("avro", "iceberg")

# Needed in addition for tables on S3.
_REMOTE = "httpfs"

# The number of queries that are combined into one Spark query.
_AT_ONCE = 25

# The number of rows that are fetched from DuckDB at a time.
_ROWS = 10_000


class MissingReader(Exception):
    """A reader is not installed; the text says how to install it."""


@dataclass(frozen=True)
class Fault:
    """A known fault of a reader.

    Attributes:
        text: Its description.
        rows: The rows that it may affect, as a condition in Spark SQL.
    """

    text: str
    rows: str


class Reader(ABC):
    """An engine that reads Iceberg tables.

    Attributes:
        name: Its name.
        empty_for_null: Whether it has the known fault of reading a null list or map as empty.
    """

    name: ClassVar[ReaderName]
    empty_for_null: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def library(cls, spark: SparkSession) -> str:
        """The version of the engine; raises `MissingReader` if it is not installed."""

    @abstractmethod
    def __init__(self, spark: SparkSession, location: str) -> None:
        """Opens a metadata file."""

    @abstractmethod
    def schema(self, snapshot: int | None) -> tuple[Node, ...]:
        """The schema, parents before children.

        Here and below, the snapshot None means the current snapshot.
        """

    @abstractmethod
    def count(self, snapshot: int | None) -> int:
        """The number of rows, by the fastest way of the reader."""

    @abstractmethod
    def sums(self, snapshot: int | None, rules: Rules) -> Sums:
        """The checksums of all rows."""

    @abstractmethod
    def counts(self, filters: Sequence[Filter]) -> list[int | None]:
        """The number of rows that pass each filter; None for an unsupported filter."""

    def extremes(self, paths: Sequence[Path]) -> list[pa.Table] | None:
        """For each column `count`, `min` and `max`; None if the reader has no aggregates."""
        return None

    def fault(self, wanted: Filter, partition: bool) -> Fault | None:
        """The known fault of the reader with a filter, possibly on a partition column."""
        return None

    def close(self) -> None:  # noqa: B027
        """Releases resources; most readers have none."""


class PyIceberg(Reader):
    """PyIceberg, which reads with pyarrow."""

    name = "pyiceberg"
    empty_for_null = True

    @classmethod
    def library(cls, spark: SparkSession) -> str:
        """The version of PyIceberg."""
        return _version("pyiceberg")

    def __init__(self, spark: SparkSession, location: str) -> None:
        """Opens the metadata as a static table."""
        from pyiceberg.table import StaticTable

        s3 = s3_of(spark, location)
        self._table = StaticTable.from_metadata(location, s3.pyiceberg() if s3 else {})

    def schema(self, snapshot: int | None) -> tuple[Node, ...]:
        """The schema that a scan projects."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        projected = self._table.scan(snapshot_id=snapshot).projection()
        return schemas.of_arrow(schema_to_pyarrow(projected))

    def count(self, snapshot: int | None) -> int:
        """The number of rows, from the metadata of the files."""
        return int(self._table.scan(snapshot_id=snapshot).count())

    def sums(self, snapshot: int | None, rules: Rules) -> Sums:
        """The checksums of all rows."""
        batches = self._table.scan(snapshot_id=snapshot).to_arrow_batch_reader()
        return checksums.of_batches(batches, rules)

    def counts(self, filters: Sequence[Filter]) -> list[int | None]:
        """The numbers of rows, from the files that match according to metadata."""
        return [int(self._table.scan(row_filter=_pyiceberg(f)).count()) for f in filters]

    def fault(self, wanted: Filter, partition: bool) -> Fault | None:
        """It decodes doubles with 32 bits, and treats infinity as an out-of-range float."""
        column = sql_name(wanted.path)
        if partition and wanted.kind == pa.float64():
            rows = f"{column} <> CAST(CAST({column} AS FLOAT) AS DOUBLE)"
            return Fault("reads a DOUBLE partition value as a 32-bit number", rows)
        if wanted.kind == pa.float32() and math.isinf(cast(float, wanted.value or 0.0)):
            # A comparison with an out-of-range value is constant, also for null.
            rows = f"{replace(wanted, operation='=').spark()} OR {column} IS NULL"
            return Fault("treats infinity as out of the range of FLOAT", rows)
        return None


class DuckDb(Reader):
    """DuckDB with its Iceberg extension, which is installed as a Python package."""

    name = "duckdb"

    @classmethod
    def library(cls, spark: SparkSession) -> str:
        """The version of DuckDB, if its extensions are installed."""
        library = _version("duckdb")
        for name in _EXTENSIONS:
            _extension(name, library)
        return library

    def __init__(self, spark: SparkSession, location: str) -> None:
        """Loads the extensions into a database in memory."""
        import duckdb

        self._location = location
        s3 = s3_of(spark, location)
        self._connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for name in (*_EXTENSIONS, _REMOTE) if s3 else _EXTENSIONS:
            self._connection.execute(f"LOAD '{_extension(name, duckdb.__version__)}'")
        if s3:
            self._connection.execute(s3.duckdb())
        self._connection.execute("SET TimeZone = 'UTC'")

    def schema(self, snapshot: int | None) -> tuple[Node, ...]:
        """The schema of all columns; DuckDB reports neither ids nor nullability."""
        query = f"SELECT * FROM {self._table(snapshot)} LIMIT 0"
        nodes = schemas.of_arrow(self._connection.execute(query).to_arrow_table().schema)
        return tuple(replace(node, nullable=None) for node in nodes)

    def count(self, snapshot: int | None) -> int:
        """The number of rows."""
        return self._number(f"SELECT count(*) FROM {self._table(snapshot)}")

    def sums(self, snapshot: int | None, rules: Rules) -> Sums:
        """The checksums of all rows."""
        found = self._connection.execute(f"SELECT * FROM {self._table(snapshot)}")
        return checksums.of_batches(found.to_arrow_reader(_ROWS), rules)

    def counts(self, filters: Sequence[Filter]) -> list[int | None]:
        """The numbers of rows."""
        table = self._table(None)
        return [self._number(f"SELECT count(*) FROM {table} WHERE {f.duckdb()}") for f in filters]

    def extremes(self, paths: Sequence[Path]) -> list[pa.Table] | None:
        """The counts, minima and maxima."""
        names = [".".join('"' + part.replace('"', '""') + '"' for part in path) for path in paths]
        return [
            self._connection.execute(
                f"SELECT count({name}) count, min({name}) min, max({name}) max "
                f"FROM {self._table(None)}"
            ).to_arrow_table()
            for name in names
        ]

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()

    def _table(self, snapshot: int | None) -> str:
        location = self._location.replace("'", "''")
        at = "" if snapshot is None else f", snapshot_from_id = {snapshot}"
        return f"iceberg_scan('{location}'{at})"

    def _number(self, query: str) -> int:
        row = self._connection.execute(query).fetchone()
        assert row is not None
        return int(row[0])


class _SparkReader(Reader):
    """A reader that returns DataFrames."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark, self._location = spark, location
        self._door = _jvm.require(spark)

    @abstractmethod
    def frame(self, snapshot: int | None) -> DataFrame:
        """All rows."""

    @abstractmethod
    def filtered(self, filters: Sequence[Filter]) -> Iterator[DataFrame | None]:
        """The rows that pass each filter; None for an unsupported filter."""

    def schema(self, snapshot: int | None) -> tuple[Node, ...]:
        """The schema of the DataFrame, with the ids from Iceberg's library."""
        session = self._spark._jsparkSession
        known = json.loads(self._door.icebergSchema(session, self._location, snapshot))
        found = self.frame(snapshot).limit(0).toArrow().schema
        return schemas.of_arrow(found, schemas.ids_in(known))

    def count(self, snapshot: int | None) -> int:
        """The number of rows."""
        return self.frame(snapshot).count()

    def sums(self, snapshot: int | None, rules: Rules) -> Sums:
        """The checksums of all rows."""
        return checksums.of_frame(self.frame(snapshot), rules)

    def counts(self, filters: Sequence[Filter]) -> list[int | None]:
        """The numbers of rows."""
        asked = [
            frame.agg(F.lit(number).alias("filter"), F.count(F.lit(1)).alias("rows"))
            for number, frame in enumerate(self.filtered(filters))
            if frame is not None
        ]
        groups = [asked[start : start + _AT_ONCE] for start in range(0, len(asked), _AT_ONCE)]
        rows = [row for group in groups for row in reduce(DataFrame.unionAll, group).collect()]
        found = {row["filter"]: int(row["rows"]) for row in rows}
        return [found.get(number) for number in range(len(filters))]


class IcebergSpark(_SparkReader):
    """Iceberg's connector for Spark, in the session itself."""

    name = "iceberg-spark"

    @classmethod
    def library(cls, spark: SparkSession) -> str:
        """The version of Iceberg in the session, if it has the connector."""
        line = ".".join(spark.version.split(".")[:2])
        source = "org.apache.iceberg.spark.source.IcebergSource"
        return _in_jvm(spark, [source], f"iceberg-spark-runtime-{line}_2.13")

    def frame(self, snapshot: int | None) -> DataFrame:
        """All rows."""
        reader = self._spark.read.format("iceberg")
        if snapshot is not None:
            reader = reader.option("versionAsOf", snapshot)
        return reader.load(self._location)

    def filtered(self, filters: Sequence[Filter]) -> Iterator[DataFrame | None]:
        """The rows that pass each filter, which Spark pushes down to Iceberg."""
        frame = self.frame(None)
        return (frame.where(_jvm.expression(self._spark, one.spark())) for one in filters)

    def fault(self, wanted: Filter, partition: bool) -> Fault | None:
        """Iceberg orders -0.0 before 0.0, and a partition has one of them."""
        return _two_zeros(wanted) if partition else None

    def extremes(self, paths: Sequence[Path]) -> list[pa.Table] | None:
        """The counts, minima and maxima, which Iceberg takes from bounds if possible."""
        frame = self.frame(None)
        return [
            frame.agg(
                F.count(name).alias("count"), F.min(name).alias("min"), F.max(name).alias("max")
            ).toArrow()
            for name in map(sql_name, paths)
        ]


class IcebergCore(_SparkReader):
    """Iceberg's generic reader for Java, which needs no engine."""

    name = "iceberg-core"

    @classmethod
    def library(cls, spark: SparkSession) -> str:
        """The version of Iceberg in the session, if it has the reader."""
        classes = ["org.apache.iceberg.data.IcebergGenerics", "org.apache.iceberg.parquet.Parquet"]
        return _in_jvm(spark, classes, "iceberg-data", "iceberg-parquet")

    def frame(self, snapshot: int | None) -> DataFrame:
        """All rows."""
        return self._read(snapshot, None)

    def filtered(self, filters: Sequence[Filter]) -> Iterator[DataFrame | None]:
        """The rows that pass each filter, evaluated by Iceberg."""
        conditions = (wanted.iceberg() for wanted in filters)
        return (None if one is None else self._read(None, one) for one in conditions)

    def fault(self, wanted: Filter, partition: bool) -> Fault | None:
        """Iceberg orders -0.0 before 0.0, and this reader returns its result."""
        return _two_zeros(wanted)

    def _read(self, snapshot: int | None, condition: str | None) -> DataFrame:
        session = self._spark._jsparkSession
        rows = self._door.icebergRows(session, self._location, snapshot, condition)
        return DataFrame(rows, self._spark)


READERS: dict[ReaderName, type[Reader]] = {
    reader.name: reader for reader in (PyIceberg, DuckDb, IcebergSpark, IcebergCore)
}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise MissingReader(_packages.install_line()) from None


def _extension(name: str, library: str) -> FilePath:
    spec = find_spec(f"duckdb_extension_{name}")
    if spec is None or spec.origin is None:
        raise MissingReader(_packages.install_line())
    folder = FilePath(spec.origin).parent / "extensions" / f"v{library}"
    file = folder / f"{name}.duckdb_extension"
    if not file.is_file():
        raise MissingReader(f"pip install duckdb-extension-{name}=={library}")
    return file


def _in_jvm(spark: SparkSession, classes: Sequence[str], *packages: str) -> str:
    """The version of Iceberg in a session that has these classes."""
    jvm: Any = spark._jvm
    library = str(jvm.org.apache.iceberg.IcebergBuild.version())
    if not all(_jvm.has_class(jvm, name) for name in classes):
        coordinates = ",".join(f"org.apache.iceberg:{name}:{library}" for name in packages)
        raise MissingReader(f"a session with --conf spark.jars.packages={coordinates}")
    return library


def _two_zeros(wanted: Filter) -> Fault | None:
    if not isinstance(wanted.value, float) or wanted.value != 0:
        return None
    return Fault("treats -0.0 and 0.0 as different", replace(wanted, operation="=").spark())


def _pyiceberg(wanted: Filter) -> Any:
    """A filter as a PyIceberg expression."""
    from pyiceberg import expressions as e

    column = e.Reference(".".join(wanted.path))
    unary: dict[str, Any] = {
        "is null": e.IsNull,
        "is not null": e.NotNull,
        "is nan": e.IsNaN,
        "is not nan": e.NotNaN,
    }
    if wanted.value is None:
        return unary[wanted.operation](column)
    binary = {
        "=": e.EqualTo,
        "<": e.LessThan,
        "<=": e.LessThanOrEqual,
        ">": e.GreaterThan,
        ">=": e.GreaterThanOrEqual,
    }
    value = wanted.text() if isinstance(wanted.value, date) else wanted.value
    compared = binary[wanted.operation](column, value)
    return e.And(compared, unary["is not nan"](column)) if wanted.without_nan else compared
