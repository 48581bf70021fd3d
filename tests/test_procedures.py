"""The procedures of SQL, as a program in Python calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import iceberg_writer_compat as compat
import oracle
from conftest import Table


def call(spark: SparkSession, procedure: str, arguments: str) -> list[Row]:
    """The rows of a call."""
    rows: list[Row] = spark.sql(
        f"CALL iceberg_writer_compat.system.{procedure}({arguments})"
    ).collect()
    return rows


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "enable": compat.enable_iceberg_writer_compat,
    "disable": compat.disable_iceberg_writer_compat,
    "publish": compat.publish,
    "status": compat.status,
    "check": compat.check,
    "verify": compat.verify,
    "would_break": compat.would_break,
    "history": compat.history,
    "enable_all": compat.enable_all,
}


def test_each_has_the_parameters_of_its_function(spark: SparkSession) -> None:
    shown = spark.sql("SHOW PROCEDURES IN iceberg_writer_compat.system").collect()
    assert {row.procedure_name for row in shown} == set(FUNCTIONS)
    for name, function in FUNCTIONS.items():
        described = spark.sql(f"DESCRIBE PROCEDURE iceberg_writer_compat.system.{name}").collect()
        text = "\n".join(row[0] for row in described)
        expected = set(inspect.signature(function).parameters) - {"spark", "journal", "notify"}
        # A call is about one table.
        if name in ("check", "verify", "history"):
            expected = expected - {"tables", "parallelism"} | {"table"}
        listed = text.split("Parameters: ")[1].split(", ")
        assert {parameter.split(" ")[0] for parameter in listed} == expected
        for parameter in listed:
            declared, _, default = parameter.partition(" = ")
            known = inspect.signature(function).parameters.get(declared.split(" ")[0])
            # The one table of a call is the first of several here, or may be left out.
            if default and known is not None:
                assert default == _as_sql(known.default), f"{name}: {parameter}"


def _as_sql(default: object) -> str:
    if default in (None, ()):
        return "NULL"
    return f"'{default}'" if isinstance(default, str) else str(default).lower()


def test_it_does_what_the_function_does(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} (a SMALLINT, b STRING) USING delta")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    plan = compat.enable_iceberg_writer_compat(spark, table.name, rewrite=True, dry_run=True)
    assert plan.plan is not None
    rows = call(spark, "enable", f"table => '{table}', rewrite => true, dry_run => true")
    steps = [(step.name, step.files) for step in plan.plan.steps]
    assert [(row.step, row.files) for row in rows[: len(steps)]] == steps
    found = compat.check(spark, table.name).to_df().drop("fix")
    shown = spark.sql(f"CALL iceberg_writer_compat.system.check('{table}')").drop("fix")
    assert shown.collect() == found.collect()

    (done,) = call(spark, "enable", f"'{table}', rewrite => true")
    assert (done.changed, done.mode, done.files_rewritten) == (True, "rewrite", 1)
    assert table.rows() == [(1, "x")]
    assert oracle.check(table.folder) == []
    (published,) = call(spark, "publish", f"'{table}'")
    status = compat.status(spark, table.name)
    assert published.metadata_location == status.metadata_location
    assert published.snapshot_id == status.snapshot_id
    (disabled,) = call(spark, "disable", f"'{table}'")
    assert disabled.changed
    assert not compat.is_iceberg_writer_compat_enabled(spark, table.name)


def test_its_errors_have_conditions(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} (a INT, v VARIANT) USING delta")
    with pytest.raises(PySparkException) as refused:
        call(spark, "enable", f"'{table}'")
    assert refused.value.getCondition() == ("DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UPGRADE_BLOCKED")
    assert refused.value.getSqlState() == "KD00E"
    with pytest.raises(PySparkException) as missing:
        call(spark, "publish", "'nowhere'")
    assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
