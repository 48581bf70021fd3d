"""Tables whose files no Iceberg reader could read, written anew and read by others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

import oracle
from conftest import Table
from iceberg_writer_compat import enable_iceberg_writer_compat, publish, verify
from test_publish import by_delta, by_pyiceberg

COLUMNS = (
    "id BIGINT, h SMALLINT, t TINYINT, f FLOAT, d DOUBLE, m DECIMAL(9, 2), n DECIMAL(38, 9), "
    "s STRING, b BINARY, z BOOLEAN, day DATE, ts TIMESTAMP, local TIMESTAMP_NTZ, "
    "st STRUCT<x: SMALLINT, y: STRUCT<z: TINYINT>>, l ARRAY<TINYINT>, "
    "k MAP<SMALLINT, STRUCT<v: TINYINT>>, p SMALLINT, q STRING"
)
ROWS = (
    "1, 32767S, 127Y, CAST('NaN' AS FLOAT), CAST('-Infinity' AS DOUBLE), 9999999.99, "
    "99999999999999999999999999999.999999999, 'Zürich 北', X'00FF', true, DATE'9999-12-31', "
    "TIMESTAMP'2026-01-01 00:00:00.123456', TIMESTAMP_NTZ'2026-03-29 02:30:00.000001', "
    "named_struct('x', 32767S, 'y', named_struct('z', -128Y)), array(1Y, null, -128Y), "
    "map(-32768S, named_struct('v', 1Y)), 7S, 'a b/ü=%'",
    "2, -32768S, -128Y, CAST('-0.0' AS FLOAT), 4.9E-324D, -9999999.99, "
    "-0.000000001, '', X'', false, DATE'0001-01-01', TIMESTAMP'0001-01-03 00:00:00', "
    "TIMESTAMP_NTZ'0001-01-01 00:00:00', named_struct('x', null, 'y', null), array(), map(), "
    "-7S, 'x=1'",
    "3, null, null, null, null, null, null, null, null, null, DATE'1582-10-04', "
    "TIMESTAMP'1582-10-04 01:02:03.4', null, null, array(null), map(1S, null), null, null",
)
LEGACY = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
}


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def data_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def test_all_that_older_writers_did_otherwise(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING delta PARTITIONED BY (p, q)")
    for row in ROWS:
        spark.sql(f"INSERT INTO {table} SELECT {row} FROM range(0, 2, 1, 1)")
        with settings(spark, LEGACY):
            spark.sql(f"INSERT INTO {table} VALUES ({row})")
    spark.sql(f"UPDATE {table} SET id = 9 WHERE id = 1 AND f IS NOT NULL")
    schemas = [parquet.read_schema(file) for file in data_files(table.folder)]
    assert {str(schema.field("ts").type) for schema in schemas} >= {"timestamp[ns]"}
    rows = by_delta(spark.table(table.name))
    version, old = table.log.version, data_files(table.folder)

    with pytest.raises(UnsupportedOperationException, match="REWRITE"):
        enable_iceberg_writer_compat(spark, table.name)
    assert table.log.version == version and data_files(table.folder) == old
    result = enable_iceberg_writer_compat(spark, table.name, rewrite=True)
    assert verify(spark, table.name).compliant
    assert (result.mode, result.files_kept) == ("rewrite", 0)
    assert result.files_rewritten is not None and result.files_rewritten > 3

    assert by_delta(spark.table(table.name)) == rows
    assert oracle.check(table.folder) == []
    kinds = spark.table(table.name).schema.simpleString()
    assert "smallint" not in kinds and "tinyint" not in kinds
    assert by_delta(spark.read.option("versionAsOf", version).table(table.name)) == rows
    assert by_pyiceberg(publish(spark, table.name).metadata_location) == rows
