"""Delta Kernel, the Java library that reads Delta tables without Spark, in the JVM of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from typing import Any

from pyspark.sql import SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    """All rows of the Delta table that the session's catalog has as `database.name`."""
    jvm: Any = spark._jvm
    kernel = jvm.io.delta.kernel
    single = kernel.internal.util.Utils.singletonCloseableIterator
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    engine = kernel.defaults.engine.DefaultEngine.create(conf)
    snapshot = kernel.TableManager.loadSnapshot(_folder(spark, table)).build(engine)
    scan = snapshot.getScanBuilder().build()
    state = scan.getScanState(engine)
    columns = kernel.internal.data.ScanStateRow.getPhysicalDataReadSchema(state)
    files = kernel.internal.InternalScanFileUtils
    found: list[tuple[object, ...]] = []
    for batch in _each(scan.getScanFiles(engine)):
        for file in _each(batch.getRows()):
            physical = engine.getParquetHandler().readParquetFiles(
                single(files.getAddFileStatus(file)), columns, jvm.java.util.Optional.empty()
            )
            for read in _each(physical):
                data = single(read.getData())
                for logical in _each(kernel.Scan.transformPhysicalData(engine, state, file, data)):
                    found += _rows(logical.getData())
    return found


def _folder(spark: SparkSession, table: str) -> str:
    database, name = table.split(".")
    jvm: Any = spark._jvm
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(
        name, jvm.scala.Option.apply(database)
    )
    catalog: Any = spark._jsparkSession.sessionState().catalog()
    return str(jvm.org.apache.hadoop.fs.Path(catalog.getTableMetadata(identifier).location()))


def _each(iterator: Any) -> Iterator[Any]:
    try:
        while iterator.hasNext():
            yield iterator.next()
    finally:
        iterator.close()


def _rows(batch: Any) -> Iterator[tuple[object, ...]]:
    columns = [batch.getColumnVector(i) for i in range(batch.getSchema().length())]
    values = [_values(column, range(batch.getSize())) for column in columns]
    return zip(*values, strict=True)


def _values(vector: Any, places: range) -> list[object]:
    """Values of a column as Python has them."""
    get = _getter(vector)
    return [None if vector.isNullAt(i) else get(i) for i in places]


def _getter(vector: Any) -> Callable[[int], object]:
    kind = vector.getDataType().getClass().getSimpleName()
    if kind == "StructType":
        count = vector.getDataType().length()
        children = [vector.getChild(n) for n in range(count)]
        return lambda i: tuple(_values(child, range(i, i + 1))[0] for child in children)
    if kind == "ArrayType":
        return lambda i: _list(vector.getArray(i).getElements(), vector.getArray(i).getSize())
    simple: dict[str, Callable[[int], object]] = {
        "IntegerType": vector.getInt,
        "LongType": vector.getLong,
        "StringType": vector.getString,
        "BooleanType": vector.getBoolean,
        "DoubleType": vector.getDouble,
        "DecimalType": vector.getDecimal,
        "DateType": lambda i: date(1970, 1, 1) + timedelta(days=vector.getInt(i)),
        "TimestampType": lambda i: EPOCH + timedelta(microseconds=vector.getLong(i)),
    }
    return simple[kind]


def _list(elements: Any, size: int) -> list[object]:
    return _values(elements, range(size))
