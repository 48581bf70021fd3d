"""SQL through the thrift server, with its driver for JDBC: what BI tools and DBeaver see."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import oracle
from conftest import PROPERTIES
from iceberg_writer_compat import _jars
from servers import free_port, spark_server
from sessions import jars

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
SYSTEM = "CALL iceberg_writer_compat.system"

Run = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("thrift")


@pytest.fixture(scope="module")
def connection(spark: SparkSession, folder: Path) -> Iterator[Any]:
    """A JDBC connection of this process's JVM to a server with Hive's catalog."""
    port = free_port()
    settings = {
        # In its sessions the server does not find a catalog that --jars brings.
        "spark.jars": "",
        "spark.driver.extraClassPath": os.pathsep.join(
            [*jars().split(","), *map(str, _jars.iceberg_jars(_jars.spark_line()))]
        ),
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:thrift;create=true",
    }
    of_hive = {
        "hive.server2.thrift.port": str(port),
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.exec.scratchdir": str(folder / "scratch"),
        "hive.exec.local.scratchdir": str(folder / "local"),
        "hive.server2.logging.operation.log.location": str(folder / "logs"),
    }
    arguments = [part for key in of_hive for part in ("--hiveconf", f"{key}={of_hive[key]}")]
    with spark_server(SERVER, port, folder, settings, arguments):
        jvm: Any = spark._jvm
        driver = jvm.org.apache.hive.jdbc.HiveDriver()
        connected = driver.connect(f"jdbc:hive2://127.0.0.1:{port}", jvm.java.util.Properties())
        yield connected
        connected.close()


@pytest.fixture(scope="module")
def run(connection: Any) -> Run:
    """Runs a statement, and answers with its rows."""

    def rows(statement: str) -> list[dict[str, Any]]:
        with_result = connection.createStatement()
        try:
            if not with_result.execute(statement):
                return []
            found = with_result.getResultSet()
            names = [name for name, _ in columns(found)]
            answer = []
            while found.next():
                answer.append({name: found.getObject(i + 1) for i, name in enumerate(names)})
            return answer
        finally:
            with_result.close()

    return rows


def columns(found: Any) -> list[tuple[str, str]]:
    """The names and types of a result's columns, as the driver tells them to a program."""
    meta = found.getMetaData()
    indices = range(1, meta.getColumnCount() + 1)
    return [(meta.getColumnName(i), meta.getColumnTypeName(i)) for i in indices]


def refusal(run: Run, statement: str) -> tuple[str, str]:
    """The state and the text of the SQLException."""
    with pytest.raises(Py4JJavaError) as refused:
        run(statement)
    error = refused.value.java_exception
    return error.getSQLState(), error.getMessage()


def test_a_call_has_typed_columns(connection: Any, run: Run, folder: Path) -> None:
    run("CREATE TABLE old USING delta AS SELECT 1S AS a, 'x' AS b")
    statement = connection.createStatement()
    found = statement.executeQuery(f"{SYSTEM}.enable(table => 'old', rewrite => true)")
    assert columns(found) == [
        ("table_name", "string"),
        ("changed", "boolean"),
        ("contract", "string"),
        ("version", "bigint"),
        ("mode", "string"),
        ("files_rewritten", "bigint"),
        ("bytes_rewritten", "bigint"),
        ("files_kept", "bigint"),
        ("orphans", "array"),
        ("warnings", "array"),
    ]
    assert found.next()
    assert (found.getBoolean("changed"), found.getString("mode")) == (True, "rewrite")
    assert (found.getLong("files_rewritten"), found.getLong("files_kept")) == (1, 0)
    assert not found.next()
    statement.close()
    assert run("SELECT * FROM old") == [{"a": 1, "b": "x"}]
    assert oracle.check(folder / "warehouse" / "old") == []


def test_other_procedures_and_functions(run: Run) -> None:
    run(f"CREATE TABLE good (a INT) USING delta {PROPERTIES}")
    assert run(f"{SYSTEM}.check('good')") == []
    (found,) = run(f"{SYSTEM}.would_break('ALTER TABLE good ADD COLUMN b SMALLINT')")
    assert (found["rule"], found["place"]) == ("C7", "b")
    (published,) = run(f"{SYSTEM}.publish(table => 'good')")
    (status,) = run(f"{SYSTEM}.status('good')")
    assert (status["delta_version"], status["published_version"], status["lag"]) == (0, 0, 0)
    assert status["metadata_location"] == published["metadata_location"]
    run("CREATE TABLE bad (a SMALLINT) USING delta")
    rules = run(
        "SELECT rule FROM iceberg_writer_compat_check('bad') WHERE place = 'a' AND rule = 'C7'"
    )
    assert rules == [{"rule": "C7"}]


def test_a_refusal_says_what_works(run: Run, folder: Path) -> None:
    run(f"CREATE TABLE kept (a INT) USING delta {PROPERTIES}")
    log = folder / "warehouse" / "kept" / "_delta_log"
    before = sorted(log.iterdir())
    run("SET spark.databricks.delta.schema.autoMerge.enabled = true")
    for statement in (
        "ALTER TABLE kept ADD COLUMN age SMALLINT",
        "INSERT INTO kept BY NAME SELECT 1 AS a, 2S AS age",
    ):
        state, text = refusal(run, statement)
        assert state == "KD00E"
        assert "[DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UNSUPPORTED_DATA_TYPE]" in text
        assert "column age has the type SMALLINT" in text
        assert "\nRun: " in text
    assert sorted(log.iterdir()) == before
    # What the first refusal offers works, and then the rows can be inserted.
    offered = refusal(run, "ALTER TABLE kept ADD COLUMN age SMALLINT")[1].split("\nRun: ")[1]
    run(offered.splitlines()[0])
    run("INSERT INTO kept BY NAME SELECT 1 AS a, 2S AS age")
    assert run("SELECT a, age FROM kept") == [{"a": 1, "age": 2}]
    assert oracle.check(folder / "warehouse" / "kept") == []
