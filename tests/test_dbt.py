"""A dbt project whose model has the feature, and is published by a hook."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import iceberg_writer_compat as compat
import oracle
from conftest import REPOSITORY

PROJECT = REPOSITORY / "tests" / "dbt"


def run(folder: Path) -> list[str]:
    """Runs all models in the session of this process; answers with how each ended."""
    runner: Any = importlib.import_module("dbt.cli.main").dbtRunner()
    options = {"project-dir": PROJECT, "profiles-dir": PROJECT}
    options |= {"target-path": folder / "target", "log-path": folder / "logs"}
    arguments = [part for key, value in options.items() for part in (f"--{key}", str(value))]
    done = runner.invoke(["run", "--quiet", *arguments])
    assert done.success, done.exception or [result.message for result in done.result]
    return [str(result.status) for result in done.result]


def test_a_model_is_published_by_its_hook(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    def published() -> list[tuple[int, str]]:
        location = compat.status(spark, "sales.orders").metadata_location
        assert location is not None
        rows = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
        return sorted((row["id"], row["name"]) for row in rows)

    try:
        assert run(tmp_path) == ["success"]
        assert published() == [(0, "n0"), (1, "n1")]
        assert run(tmp_path) == ["success"]
        assert published() == [(0, "n0"), (1, "n1"), (1, "n1")]
        assert oracle.check(warehouse / "sales.db" / "orders") == []
    finally:
        spark.sql("DROP SCHEMA IF EXISTS sales CASCADE")
