"""What is refused: by name, with a condition, and with nothing committed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import SparkSession

import oracle
from conftest import PROPERTIES, PROPERTY, Table
from iceberg_writer_compat import (
    disable_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    is_iceberg_writer_compat_enabled,
)

VIOLATION = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION"
WRONG_PROPERTY = "WRONG_REQUIRED_TABLE_PROPERTY"

CONTRADICTIONS = [
    ("delta.columnMapping.mode", "name", WRONG_PROPERTY),
    ("delta.columnMapping.mode", "none", WRONG_PROPERTY),
    ("delta.enableIcebergCompatV2", "false", WRONG_PROPERTY),
    ("delta.enableIcebergCompatV1", "true", WRONG_PROPERTY),
    ("delta.enableDeletionVectors", "true", WRONG_PROPERTY),
    ("delta.enableIcebergCompatV3", "true", WRONG_PROPERTY),
    ("delta.enableChangeDataFeed", "true", WRONG_PROPERTY),
    ("delta.enableRowTracking", "true", WRONG_PROPERTY),
    ("delta.feature.deletionVectors", "supported", "INCOMPATIBLE_TABLE_FEATURE"),
    ("delta.feature.allowColumnDefaults", "supported", "INCOMPATIBLE_TABLE_FEATURE"),
    (PROPERTY, "maybe", "INVALID_PROPERTY_VALUE"),
    (PROPERTY, "", "INVALID_PROPERTY_VALUE"),
]


def named(key: str) -> str:
    """What an error calls the property: a feature by its own name."""
    return key.removeprefix("delta.feature.")


def assert_refused(action: Callable[[], object], sub_condition: str, *mentioned: str) -> None:
    """The action fails with a condition of ours, whose text mentions what it is about."""
    with pytest.raises(UnsupportedOperationException) as refused:
        action()
    error = refused.value
    assert error.getCondition() == f"{VIOLATION}.{sub_condition}"
    assert error.getSqlState() == "KD00E"
    parameters = error.getMessageParameters()
    assert parameters is not None and parameters["fix"]
    for text in mentioned:
        assert text in str(error)


@pytest.mark.parametrize(("key", "value", "sub_condition"), CONTRADICTIONS)
def test_contradicting_property_of_a_new_table(
    table: Table, key: str, value: str, sub_condition: str
) -> None:
    properties = {PROPERTY: "true"} | {key: value}
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
    for statement in (
        f"CREATE TABLE {table} (a INT) USING delta TBLPROPERTIES ({listed})",
        f"CREATE TABLE {table} USING delta TBLPROPERTIES ({listed}) AS SELECT 1 AS a",
    ):
        assert_refused(partial(table.spark.sql, statement), sub_condition, named(key))
    assert not table.folder.exists()
    assert not table.spark.catalog.tableExists(table.name)


@pytest.mark.parametrize(
    ("key", "value", "sub_condition"),
    [c for c in CONTRADICTIONS if not c[0].startswith("delta.feature.")],
)
def test_contradicting_writer_option(
    table: Table, key: str, value: str, sub_condition: str
) -> None:
    writer = table.spark.range(1).write.format("delta").options(**{PROPERTY: "true"} | {key: value})
    assert_refused(lambda: writer.save(str(table.folder)), sub_condition, named(key))
    assert not table.folder.exists()


@pytest.mark.parametrize(
    ("change", "sub_condition", "mentioned"),
    [
        (
            "SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'false')",
            WRONG_PROPERTY,
            "delta.enableIcebergCompatV2",
        ),
        (
            "UNSET TBLPROPERTIES ('delta.enableIcebergCompatV2')",
            WRONG_PROPERTY,
            "delta.enableIcebergCompatV2",
        ),
        (
            "UNSET TBLPROPERTIES ('delta.columnMapping.mode')",
            WRONG_PROPERTY,
            "delta.columnMapping.mode",
        ),
        (
            "SET TBLPROPERTIES ('delta.enableIcebergCompatV1' = 'true')",
            WRONG_PROPERTY,
            "delta.enableIcebergCompatV1",
        ),
        (
            "SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
            WRONG_PROPERTY,
            "delta.enableDeletionVectors",
        ),
        (f"SET TBLPROPERTIES ('{PROPERTY}' = 'maybe')", "INVALID_PROPERTY_VALUE", "maybe"),
        (
            f"SET TBLPROPERTIES ('{PROPERTY}' = 'false')",
            "DISABLING_REQUIRED_TABLE_FEATURE",
            "DROP FEATURE",
        ),
        (
            f"UNSET TBLPROPERTIES ('{PROPERTY}')",
            "DISABLING_REQUIRED_TABLE_FEATURE",
            "DROP FEATURE",
        ),
        ("ADD COLUMN n SMALLINT", "UNSUPPORTED_DATA_TYPE", "SMALLINT"),
        ("ADD COLUMN n TINYINT", "UNSUPPORTED_DATA_TYPE", "TINYINT"),
        ("ADD COLUMN n STRUCT<x: ARRAY<TINYINT>>", "UNSUPPORTED_DATA_TYPE", "n.x.element"),
        ("ADD COLUMN n VARIANT", "UNSUPPORTED_DATA_TYPE", "VARIANT"),
    ],
)
def test_change_of_a_table(table: Table, change: str, sub_condition: str, mentioned: str) -> None:
    table.create()
    assert_refused(
        lambda: table.spark.sql(f"ALTER TABLE {table} {change}"), sub_condition, mentioned
    )
    assert oracle.versions(table.folder) == [0]
    assert oracle.check(table.folder) == []


def test_change_that_delta_itself_refuses(table: Table) -> None:
    table.create()
    for change in (
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "SET TBLPROPERTIES ('delta.columnMapping.maxColumnId' = '0')",
    ):
        with pytest.raises(PySparkException, match="DELTA_"):
            table.spark.sql(f"ALTER TABLE {table} {change}")
    for feature in ("icebergCompatV2", "columnMapping"):
        with pytest.raises(Py4JJavaError, match="DELTA_FEATURE_DROP_"):
            table.spark.sql(f"ALTER TABLE {table} DROP FEATURE {feature}")
    assert oracle.versions(table.folder) == [0]


def test_evolution_to_an_unsupported_type(table: Table) -> None:
    table.create("a INT")
    frame = table.spark.sql("SELECT 1 AS a, CAST(2 AS SMALLINT) AS b")
    write = frame.write.format("delta").option("mergeSchema", "true").mode("append")
    assert_refused(lambda: write.saveAsTable(table.name), "UNSUPPORTED_DATA_TYPE", "SMALLINT")
    assert_refused(lambda: write.save(str(table.folder)), "UNSUPPORTED_DATA_TYPE", "SMALLINT")
    assert oracle.versions(table.folder) == [0]
    assert table.rows() == []


def test_new_table_with_an_unsupported_type(table: Table) -> None:
    for columns, query in (
        ("a SMALLINT", "CAST(1 AS SMALLINT) AS a"),
        ("a STRUCT<x: TINYINT>", "named_struct('x', CAST(1 AS TINYINT)) AS a"),
    ):
        create = f"CREATE TABLE {table} ({columns}) USING delta {PROPERTIES}"
        select = f"CREATE TABLE {table} USING delta {PROPERTIES} AS SELECT {query}"
        assert_refused(partial(table.spark.sql, create), "UNSUPPORTED_DATA_TYPE")
        assert_refused(partial(table.spark.sql, select), "UNSUPPORTED_DATA_TYPE")
    assert not table.folder.exists()


@pytest.mark.parametrize("value", [" true ", "TRUE", "True"])
def test_value_in_other_letters(table: Table, value: str) -> None:
    """Other engines may not read these as true, so the log gets the plain spelling."""
    table.spark.sql(
        f"CREATE TABLE {table} (a INT) USING delta "
        f"TBLPROPERTIES ('{PROPERTY}' = '{value}', 'delta.columnMapping.mode' = 'ID')"
    )
    assert table.log.properties[PROPERTY] == "true"
    assert table.log.properties["delta.columnMapping.mode"] == "id"
    assert oracle.check(table.folder) == []


def test_misspelt_property(table: Table) -> None:
    with pytest.raises(PySparkException) as refused:
        table.spark.sql(
            f"CREATE TABLE {table} (a INT) USING delta "
            "TBLPROPERTIES ('delta.enableIcebergWriterCompatV2' = 'true')"
        )
    assert refused.value.getCondition() == "DELTA_UNKNOWN_CONFIGURATION"
    assert not table.folder.exists()


def test_folder_that_cannot_be_written(table: Table, tmp_path: Path) -> None:
    # A file where a folder is needed stops even a superuser, whom permissions do not stop.
    file = tmp_path / "file"
    file.write_text("not a folder")
    location = f"LOCATION '{file}/table'"
    for statement in (
        f"CREATE TABLE {table} (a INT) USING delta {location} {PROPERTIES}",
        f"CREATE TABLE {table} USING delta {location} {PROPERTIES} AS SELECT 1 AS a",
    ):
        with pytest.raises(Py4JJavaError, match="DELTA_CANNOT_CREATE_LOG_PATH"):
            table.spark.sql(statement)
    writer = table.spark.range(1).write.format("delta").option(PROPERTY, "true")
    with pytest.raises(Py4JJavaError, match="DELTA_CANNOT_CREATE_LOG_PATH"):
        writer.save(f"{file}/table")
    assert not table.spark.catalog.tableExists(table.name)
    assert file.read_text() == "not a folder"


FUNCTIONS = [
    enable_iceberg_writer_compat,
    disable_iceberg_writer_compat,
    is_iceberg_writer_compat_enabled,
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_not_a_delta_table(
    table: Table, tmp_path: Path, function: Callable[[SparkSession, str], object]
) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} USING parquet AS SELECT 1 AS a")
    spark.sql(f"CREATE OR REPLACE VIEW {table}_view AS SELECT 1 AS a")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {table}_temporary AS SELECT 1 AS a")
    expected = {
        "unknown_table": "TABLE_OR_VIEW_NOT_FOUND",
        "unknown_database.t": "TABLE_OR_VIEW_NOT_FOUND",
        table.name: "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE",
        f"{table}_view": "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        f"{table}_temporary": "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
        str(table.folder): "DELTA_MISSING_DELTA_TABLE",
        str(tmp_path / "missing"): "DELTA_MISSING_DELTA_TABLE",
        "": "ICEBERG_WRITER_COMPAT_WRONG_NAME",
        "two words": "ICEBERG_WRITER_COMPAT_WRONG_NAME",
    }
    before = sorted(table.folder.rglob("*"))
    found: dict[str, str | None] = {}
    for name in expected:
        with pytest.raises(PySparkException) as refused:
            function(spark, name)
        found[name] = refused.value.getCondition()
    assert found == expected
    assert sorted(table.folder.rglob("*")) == before
    assert not (tmp_path / "missing").exists()
    spark.sql(f"DROP VIEW {table}_view")
    spark.catalog.dropTempView(f"{table}_temporary")
