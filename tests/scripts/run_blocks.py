"""Runs the blocks of pages in one session, and keeps what each of them prints.

Arguments: a JSON list of pages, each a list of blocks; the file for the JSON list of the outputs,
each with the error that ended the page, if one did; and a folder, where each page's tables are
copied to the folder of its number. Needs nothing but the package.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from iceberg_writer_compat import configure_spark_with_iceberg_writer_compat
from iceberg_writer_compat.cli import main

WAREHOUSE = Path("spark-warehouse").absolute()


def session() -> SparkSession:
    """The session that there is, which the README builds itself."""
    builder = SparkSession.builder.master("local[2]").appName("documents")
    return configure_spark_with_iceberg_writer_compat(builder).getOrCreate()


def placed(text: str, port: str) -> str:
    """With the places of a reader's machine replaced by places of this one."""
    text = text.replace("/path/of/warehouse", str(WAREHOUSE)).replace("8181", port)
    return re.sub(r"(?<![\w.:])/data/", f"{Path('data').absolute()}/", text)


def run_python(block: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Runs statements."""
    exec(compile(block["body"], f"line {block['line']}", "exec"), namespace)


def run_sql(block: dict[str, Any], namespace: dict[str, Any]) -> None:
    """Runs SQL statements, and prints the rows of the last one as Spark shows them."""
    run = eval(block["run_by"] or "spark.sql", namespace)
    shown = None
    for statement in re.split(r";\s*$", block["body"], flags=re.MULTILINE):
        if statement.strip():
            shown = run(statement.strip())
    if block["expected"] is not None and shown is not None:
        shown.show(truncate=False)


def run_sh(block: dict[str, Any], _namespace: dict[str, Any]) -> None:
    """Runs the command of the package in this process, as it is given on each line."""
    for line in block["body"].replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] != "iceberg-writer-compat":
            raise AssertionError(f"{line!r} cannot be run here; mark the block as not run")
        errors = io.StringIO()
        try:
            with contextlib.redirect_stderr(errors):
                main(words[1:], prog_name=words[0])
        except SystemExit as end:
            # 1 is a table that does not comply.
            if end.code not in (0, 1):
                raise AssertionError(
                    f"{line!r} ended with {end.code}: {errors.getvalue()}"
                ) from end


RUNNERS = {"python": run_python, "sql": run_sql, "sh": run_sh}


def free_port() -> str:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run_page(
    blocks: list[dict[str, Any]], spark: SparkSession | None
) -> tuple[list[str], str | None]:
    """What the blocks print, and the error of the one that failed."""
    printed: list[str] = []
    port = free_port()
    with contextlib.ExitStack() as until_the_end:
        namespace: dict[str, Any] = {"__name__": "__main__", "until_the_end": until_the_end}
        if spark is not None:
            namespace["spark"] = spark
        for block in blocks:
            output = io.StringIO()
            try:
                if block["given"] is not None:
                    exec(compile(placed(block["given"], port), "given", "exec"), namespace)
                here = block | {"body": placed(block["body"], port)}
                with contextlib.redirect_stdout(output):
                    RUNNERS[block["runner"]](here, namespace)
            except Exception:
                text = f"line {block['line']}: {traceback.format_exc()}\n{output.getvalue()}"
                return printed, text
            printed.append(output.getvalue().replace(port, "8181"))
    return printed, None


def cleared(spark: SparkSession) -> SparkSession:
    """A session for the next page, which finds nothing that this one has made or set."""
    spark.catalog.setCurrentCatalog("spark_catalog")
    spark.catalog.setCurrentDatabase("default")
    for database in spark.catalog.listDatabases():
        if database.name != "default":
            spark.sql(f"DROP SCHEMA `{database.name}` CASCADE")
    for table in spark.catalog.listTables("default"):
        kind = "VIEW" if table.isTemporary or table.tableType == "VIEW" else "TABLE"
        spark.sql(f"DROP {kind} `{table.name}`")
    # Not the file of the JDBC catalog, which the JVM has open.
    for folder in (*WAREHOUSE.glob("*/"), Path("data")):
        shutil.rmtree(folder, ignore_errors=True)
    fresh = spark.newSession()
    # What a builder gives to the next page.
    SparkSession._instantiatedSession = fresh
    jvm: Any = spark._jvm
    jvm.SparkSession.setDefaultSession(fresh._jsparkSession)
    jvm.SparkSession.setActiveSession(fresh._jsparkSession)
    return fresh


def run_pages(asked: Path, answers: Path, kept: Path) -> None:
    """Runs all pages, the first of which makes the session."""
    outputs: list[tuple[list[str], str | None]] = []
    spark: SparkSession | None = None
    for number, blocks in enumerate(json.loads(asked.read_text(encoding="utf-8"))):
        outputs.append(run_page(blocks, spark))
        if WAREHOUSE.is_dir():
            shutil.copytree(WAREHOUSE, kept / str(number))
        spark = cleared(session())
    answers.write_text(json.dumps(outputs), encoding="utf-8")


run_pages(*map(Path, sys.argv[1:]))
