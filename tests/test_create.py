"""Every way to create a table, each with the one property and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
from pyspark.sql.types import StructType

import oracle
from conftest import PROPERTIES, PROPERTY, Table, rows

COLUMNS = "a INT, s STRUCT<x: INT, l: ARRAY<INT>>, m MAP<STRING, STRUCT<y: INT>>"
QUERY = """
    SELECT 1 AS a,
           named_struct('x', 2, 'l', array(3)) AS s,
           map('k', named_struct('y', 4)) AS m
"""
ROW = (1, (2, [3]), {"k": (4,)})
NAMES = ["a", "s", "s.x", "s.l", "m", "m.value.y"]


def schema() -> StructType:
    parsed = StructType.fromDDL(COLUMNS)
    assert isinstance(parsed, StructType)
    return parsed


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.sql(QUERY)


def assert_right(table: Table, expected: list[tuple[object, ...]]) -> None:
    assert oracle.check(table.folder) == []
    assert list(table.log.names) == NAMES
    assert table.rows() == expected


def test_create_table(table: Table) -> None:
    table.create(COLUMNS)
    assert_right(table, [])
    table.spark.sql(f"INSERT INTO {table} {QUERY}")
    assert_right(table, [ROW])


def test_create_table_as_select(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} USING delta {PROPERTIES} AS {QUERY}")
    assert_right(table, [ROW])


def test_create_or_replace_table(table: Table) -> None:
    statement = f"CREATE OR REPLACE TABLE {table} ({COLUMNS}) USING delta {PROPERTIES}"
    table.spark.sql(statement)
    assert_right(table, [])
    table.spark.sql(f"INSERT INTO {table} {QUERY}")
    table.spark.sql(statement)
    assert_right(table, [])


def test_create_or_replace_table_as_select(table: Table) -> None:
    statement = f"CREATE OR REPLACE TABLE {table} USING delta {PROPERTIES} AS {QUERY}"
    table.spark.sql(statement)
    assert_right(table, [ROW])
    table.spark.sql(statement)
    assert_right(table, [ROW])


def test_create_or_replace_a_plain_table(table: Table) -> None:
    table.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 'old' AS a")
    table.spark.sql(f"CREATE OR REPLACE TABLE {table} USING delta {PROPERTIES} AS {QUERY}")
    assert_right(table, [ROW])


@pytest.mark.parametrize(
    ("mode", "value"),
    [("name", "'delta.columnMapping.mode' = 'name'"), ("id", "'delta.columnMapping.mode' = 'id'")],
)
def test_create_or_replace_a_mapped_table(table: Table, mode: str, value: str) -> None:
    table.spark.sql(f"CREATE TABLE {table} USING delta TBLPROPERTIES ({value}) AS {QUERY}")
    assert table.log.properties["delta.columnMapping.mode"] == mode
    assert table.log.names["a"] != "col-1"
    table.spark.sql(f"CREATE OR REPLACE TABLE {table} USING delta {PROPERTIES} AS {QUERY}")
    assert_right(table, [ROW])


def test_create_table_like(table: Table) -> None:
    source = Table(table.spark, f"{table}_source", table.folder.with_name(f"{table}_source"))
    source.create(COLUMNS)
    table.spark.sql(f"CREATE TABLE {table} LIKE {source}")
    assert_right(table, [])
    table.spark.sql(f"DROP TABLE {source}")


def test_writer_by_path(table: Table, frame: DataFrame) -> None:
    writer = frame.write.format("delta").option(PROPERTY, "true")
    writer.save(str(table.folder))
    table.spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{table.folder}'")
    assert_right(table, [ROW])


def test_save_as_table(table: Table, frame: DataFrame) -> None:
    frame.write.format("delta").option(PROPERTY, "true").saveAsTable(table.name)
    assert_right(table, [ROW])


V2_ACTIONS: dict[str, Callable[[DataFrame, str], None]] = {
    "create": lambda frame, name: v2(frame, name).create(),
    "createOrReplace": lambda frame, name: v2(frame, name).createOrReplace(),
}


def v2(frame: DataFrame, name: str) -> DataFrameWriterV2:
    return frame.writeTo(name).using("delta").tableProperty(PROPERTY, "true")


@pytest.mark.parametrize("action", V2_ACTIONS)
def test_writer_v2(table: Table, frame: DataFrame, action: str) -> None:
    V2_ACTIONS[action](frame, table.name)
    assert_right(table, [ROW])


def test_writer_v2_replaces(table: Table, frame: DataFrame) -> None:
    table.spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 'old' AS a")
    v2(frame, table.name).replace()
    assert_right(table, [ROW])


@pytest.mark.parametrize("way", ["create", "createIfNotExists", "createOrReplace"])
def test_table_builder_by_name(table: Table, way: str) -> None:
    builder = getattr(DeltaTable, way)(table.spark)
    builder.tableName(table.name).addColumns(schema()).property(PROPERTY, "true").execute()
    table.spark.sql(f"INSERT INTO {table} {QUERY}")
    assert_right(table, [ROW])


def test_table_builder_by_path(table: Table) -> None:
    DeltaTable.create(table.spark).location(str(table.folder)).addColumns(schema()).property(
        PROPERTY, "true"
    ).execute()
    assert oracle.check(table.folder) == []
    assert list(table.log.names) == NAMES


def test_all_types_partitioned(table: Table) -> None:
    table.create(
        """i INT, l BIGINT, f FLOAT, d DOUBLE, d5 DECIMAL(5, 2), d15 DECIMAL(15, 2),
           d30 DECIMAL(30, 2), s STRING, bin BINARY, bool BOOLEAN, dt DATE, ts TIMESTAMP,
           ntz TIMESTAMP_NTZ, aa ARRAY<ARRAY<INT>>, ma MAP<STRING, ARRAY<MAP<INT, DATE>>>,
           p STRING, q TIMESTAMP""",
        "PARTITIONED BY (p, q)",
    )
    for p in ("'a b/c%25'", "NULL"):
        table.spark.sql(
            f"""INSERT INTO {table} SELECT 1, 2, 3.5, 4.5, 5.25, 6.25, 7.25, 'é', X'00FF', true,
                DATE '2026-01-31', TIMESTAMP '2026-01-31 01:02:03.456789',
                TIMESTAMP_NTZ '2026-01-31 01:02:03.456789', array(array(1), NULL),
                map('k', array(map(1, DATE '2026-01-31'))), {p},
                TIMESTAMP '2026-01-31 01:02:03.5'"""
        )
    assert oracle.check(table.folder) == []
    assert [row[-2] for row in table.rows()] == ["a b/c%25", None]
    assert table.log.protocol["minReaderVersion"] == 3
    assert table.log.metadata["partitionColumns"] == ["p", "q"]


def test_clustered(table: Table) -> None:
    table.create("a INT, b STRING", "CLUSTER BY (a)")
    table.spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    table.spark.sql(f"OPTIMIZE {table}")
    assert oracle.check(table.folder) == []
    assert table.rows() == [(1, "x")]


def test_feature_named_in_full(table: Table) -> None:
    table.spark.sql(
        f"""CREATE TABLE {table} (a INT) USING delta TBLPROPERTIES (
            '{PROPERTY}' = 'true',
            'delta.feature.icebergWriterCompatV1' = 'supported',
            'delta.enableIcebergCompatV2' = 'true',
            'delta.columnMapping.mode' = 'id')"""
    )
    assert oracle.check(table.folder) == []


def test_partly_explicit_properties(table: Table) -> None:
    table.spark.sql(
        f"""CREATE TABLE {table} (a INT) USING delta TBLPROPERTIES (
            '{PROPERTY}' = 'true', 'delta.enableIcebergCompatV2' = 'true')"""
    )
    assert oracle.check(table.folder) == []


# --- session defaults -----------------------------------------------------------------------------

DEFAULTS = "spark.databricks.delta.properties.defaults."


@pytest.fixture
def defaults(spark: SparkSession) -> Iterator[Callable[..., None]]:
    """Sets session defaults of table properties for one test."""
    given: list[str] = []

    def give(values: dict[str, str]) -> None:
        for key, value in values.items():
            given.append(DEFAULTS + key)
            spark.conf.set(DEFAULTS + key, value)

    yield give
    for key in given:
        spark.conf.unset(key)


def test_session_default(
    table: Table, frame: DataFrame, defaults: Callable[..., None], tmp_path: Path
) -> None:
    defaults({"enableIcebergWriterCompatV1": "true"})
    table.spark.sql(f"CREATE TABLE {table} USING delta AS {QUERY}")
    assert_right(table, [ROW])
    frame.write.format("delta").save(str(tmp_path / "by_path"))
    assert oracle.check(tmp_path / "by_path") == []
    assert rows(table.spark, f"delta.`{tmp_path}/by_path`") == [ROW]


def test_session_default_and_a_stream_that_creates(
    table: Table, frame: DataFrame, defaults: Callable[..., None], tmp_path: Path
) -> None:
    frame.write.format("delta").save(str(tmp_path / "source"))
    defaults({"enableIcebergWriterCompatV1": "true"})
    table.spark.readStream.format("delta").load(str(tmp_path / "source")).writeStream.format(
        "delta"
    ).option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).toTable(
        table.name
    ).awaitTermination()
    assert_right(table, [ROW])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("columnMapping.mode", "name"),
        ("columnMapping.mode", "none"),
        ("enableIcebergCompatV2", "false"),
        ("enableIcebergCompatV1", "true"),
        ("enableDeletionVectors", "true"),
        ("enableChangeDataFeed", "true"),
        ("enableRowTracking", "true"),
        ("feature.deletionVectors", "supported"),
    ],
)
def test_contradicting_session_default_gives_way(
    table: Table, frame: DataFrame, defaults: Callable[..., None], key: str, value: str
) -> None:
    defaults({key: value})
    table.spark.sql(f"CREATE TABLE {table} USING delta {PROPERTIES} AS {QUERY}")
    assert_right(table, [ROW])
    by_path = table.folder.with_name(f"{table}_path")
    frame.write.format("delta").option(PROPERTY, "true").save(str(by_path))
    assert oracle.check(by_path) == []


def test_compatible_session_default_stays(table: Table, defaults: Callable[..., None]) -> None:
    defaults({"appendOnly": "true"})
    table.create()
    assert oracle.check(table.folder) == []
    assert table.log.properties["delta.appendOnly"] == "true"
