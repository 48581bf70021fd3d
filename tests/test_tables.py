"""The functions that switch the feature on and off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

import oracle
from conftest import Table, rows
from iceberg_writer_compat import (
    DisableResult,
    EnableResult,
    disable_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    is_iceberg_writer_compat_enabled,
)


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose defaults may be changed."""
    yield spark.newSession()


def test_new_tables_of_the_session(session: SparkSession, tmp_path: Path) -> None:
    assert not is_iceberg_writer_compat_enabled(session)
    assert disable_iceberg_writer_compat(session) == DisableResult(None, changed=False)
    assert enable_iceberg_writer_compat(session) == EnableResult(None, changed=True)
    assert enable_iceberg_writer_compat(session) == EnableResult(None, changed=False)
    assert is_iceberg_writer_compat_enabled(session)
    session.range(1).write.format("delta").save(str(tmp_path / "on"))
    assert oracle.check(tmp_path / "on") == []
    assert disable_iceberg_writer_compat(session) == DisableResult(None, changed=True)
    assert not is_iceberg_writer_compat_enabled(session)
    session.range(1).write.format("delta").save(str(tmp_path / "off"))
    assert "writerFeatures" not in oracle.read_log(tmp_path / "off").protocol


def test_default_is_of_one_session_only(session: SparkSession, spark: SparkSession) -> None:
    enable_iceberg_writer_compat(session)
    assert is_iceberg_writer_compat_enabled(session)
    assert not is_iceberg_writer_compat_enabled(spark)
    assert not is_iceberg_writer_compat_enabled(spark.newSession())


@pytest.mark.parametrize(
    "name",
    [
        "{name}",
        "`{name}`",
        "default.{name}",
        "spark_catalog.default.{name}",
        "{folder}",
        "{folder}/",
        "file:{folder}",
        "delta.`{folder}`",
    ],
)
def test_by_name_or_path(table: Table, name: str) -> None:
    table.spark.sql(f"CREATE TABLE {table} (a INT, l ARRAY<STRUCT<x: INT>>) USING delta")
    name = name.format(name=table.name, folder=table.folder)
    assert not is_iceberg_writer_compat_enabled(table.spark, name)
    assert enable_iceberg_writer_compat(table.spark, name) == EnableResult(name, changed=True)
    assert is_iceberg_writer_compat_enabled(table.spark, name)
    assert oracle.check(table.folder) == []
    assert oracle.versions(table.folder) == [0, 1]


def test_by_path_object(table: Table) -> None:
    table.create()
    assert is_iceberg_writer_compat_enabled(table.spark, table.folder)
    result = enable_iceberg_writer_compat(table.spark, table.folder)
    assert result == EnableResult(str(table.folder), changed=False)


def test_enable_disable_and_enable_again(table: Table) -> None:
    spark = table.spark
    table.create("a INT, s STRUCT<x: INT>")
    spark.sql(f"INSERT INTO {table} VALUES (1, named_struct('x', 2))")
    assert enable_iceberg_writer_compat(spark, table.name) == EnableResult(table.name, False)
    assert oracle.versions(table.folder) == [0, 1]
    assert disable_iceberg_writer_compat(spark, table.name) == DisableResult(table.name, True)
    assert "icebergWriterCompatV1" not in table.log.protocol["writerFeatures"]
    assert "delta.enableIcebergWriterCompatV1" not in table.log.properties
    assert not is_iceberg_writer_compat_enabled(spark, table.name)
    off = oracle.versions(table.folder)
    assert disable_iceberg_writer_compat(spark, table.name) == DisableResult(table.name, False)
    assert oracle.versions(table.folder) == off
    assert enable_iceberg_writer_compat(spark, table.name) == EnableResult(table.name, True)
    assert oracle.check(table.folder) == []
    assert table.rows() == [(1, (2,))]


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_enable_an_empty_table(table: Table, mode: str) -> None:
    table.spark.sql(
        f"CREATE TABLE {table} (a INT, m MAP<STRING, STRUCT<x: INT>>) USING delta "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"
    )
    assert enable_iceberg_writer_compat(table.spark, table.name).changed
    table.spark.sql(f"INSERT INTO {table} VALUES (1, map('k', named_struct('x', 2)))")
    assert oracle.check(table.folder) == []
    assert table.rows() == [(1, {"k": (2,)})]


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_enable_a_table_that_does_not_comply(table: Table, mode: str) -> None:
    table.spark.sql(
        f"CREATE TABLE {table} USING delta TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}') "
        "AS SELECT 1 AS a, CAST(2 AS SMALLINT) AS b"
    )
    with pytest.raises(UnsupportedOperationException) as refused:
        enable_iceberg_writer_compat(table.spark, table.name)
    condition = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.REWRITE_NEEDED"
    assert refused.value.getCondition() == condition
    # Every reason is listed, not only the first.
    text = str(refused.value)
    assert "b SMALLINT becomes INT" in text
    assert "1 of 1 data file(s)" in text
    assert oracle.versions(table.folder) == [0]
    assert not is_iceberg_writer_compat_enabled(table.spark, table.name)
    assert rows(table.spark, table.name) == [(1, 2)]


def test_remedy_of_a_refused_table_works(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS a, CAST(2 AS SMALLINT) AS b")
    with pytest.raises(UnsupportedOperationException) as refused:
        enable_iceberg_writer_compat(spark, table.name)
    fix = (refused.value.getMessageParameters() or {})["fix"]
    called = {"enable_iceberg_writer_compat": enable_iceberg_writer_compat, "spark": spark}
    assert eval(fix, called).files_rewritten == 1
    assert oracle.check(table.folder) == []
    assert table.rows() == [(1, 2)]


@pytest.mark.parametrize("wrong", [1, b"t", ["t"]])
def test_table_of_a_wrong_type(spark: SparkSession, wrong: object) -> None:
    for function in (
        enable_iceberg_writer_compat,
        disable_iceberg_writer_compat,
        is_iceberg_writer_compat_enabled,
    ):
        with pytest.raises(TypeError, match="name or path"):
            function(spark, wrong)  # type: ignore[arg-type, call-overload]
