"""A notebook, run by its own kernel: what its cells show of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import oracle
from conftest import REPOSITORY, environment

# As the README begins, with what keeps the files and the ports of the test to itself.
SESSION = """\
from pyspark.sql import SparkSession
from iceberg_writer_compat import *

builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
spark = configure_spark_with_iceberg_writer_compat(builder).getOrCreate()
"""

CELLS = [
    SESSION,
    'spark.sql("CREATE TABLE old USING delta AS SELECT 1S AS a")\ncheck(spark, "old")',
    'enable_iceberg_writer_compat(spark, "old", rewrite=True)',
    'publish(spark, "old")',
    'prove(spark, "old", readers=["pyiceberg"])',
    'spark.sql("ALTER TABLE old ADD COLUMN b SMALLINT")',
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[dict[str, Any]]]]:
    """The folder of a notebook, and the outputs of its cells."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    paths = {"PYTHONPATH": f"{REPOSITORY / 'python'}:{environment()['PYTHONPATH']}"}
    client.execute(env=environment() | paths)
    nbformat.validate(notebook)
    return folder, [cell.outputs for cell in notebook.cells]


def shown(outputs: list[dict[str, Any]]) -> dict[str, str]:
    """What the last line of a cell shows, by the type of its form."""
    (result,) = [output for output in outputs if output["output_type"] == "execute_result"]
    forms: dict[str, str] = result["data"]
    return forms


def test_results_are_shown_as_pages(outputs: tuple[Path, list[list[dict[str, Any]]]]) -> None:
    _, cells = outputs
    page = shown(cells[1])["text/html"]
    assert "C7" in page and "SMALLINT" in page
    # A page in a page would change how the notebook looks.
    assert "<html" not in page and "<body" not in page
    for cell, said in ((2, "1 data file rewritten"), (3, "metadata.json"), (4, "pyiceberg")):
        forms = shown(cells[cell])
        assert set(forms) == {"text/html", "text/plain"}
        assert said in forms["text/html"]
        assert len(forms["text/plain"]) < 200


def test_a_refusal_is_read_where_it_happens(
    outputs: tuple[Path, list[list[dict[str, Any]]]],
) -> None:
    folder, cells = outputs
    (error,) = [output for output in cells[5] if output["output_type"] == "error"]
    assert error["ename"] == "UnsupportedOperationException"
    assert "Run: ALTER TABLE old ADD COLUMN b INT" in error["evalue"]
    assert oracle.check(folder / "spark-warehouse" / "old") == []
