"""What needs a JVM of its own: other sessions, other orders, no jar, no extension, a command."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import oracle
import plain_tables
from conftest import Script, Table


def test_without_jar(script: Script, tmp_path: Path) -> None:
    assert script("without_jar.py", tmp_path / "warehouse").endswith("done\n")


def test_restart(script: Script, tmp_path: Path) -> None:
    assert script("restart.py", tmp_path / "warehouse").endswith("done\n")


def test_without_iceberg(script: Script, tmp_path: Path) -> None:
    assert script("without_iceberg.py", tmp_path / "warehouse").endswith("done\n")


def test_stock_delta(spark: SparkSession, table: Table, script: Script, tmp_path: Path) -> None:
    table.create()
    spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    stock, ours = tmp_path / "stock", tmp_path / "ours"
    output = script("stock.py", tmp_path / "warehouse", table.folder, stock)
    assert output == "[Row(a=1, b='x')]\ndone\n"
    assert oracle.versions(table.folder) == [0, 1]
    assert oracle.check(table.folder) == []

    # A table without the property gets the same commits, with this project and without it.
    plain_tables.make(spark, ours)
    expected = plain_tables.normalise(stock)
    assert len(expected) > 20
    assert plain_tables.normalise(ours) == expected
