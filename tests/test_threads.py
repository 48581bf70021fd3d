"""Every function of the package on threads that Spark knows nothing of, and at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

import oracle
from conftest import PROPERTIES, Table
from iceberg_writer_compat import (
    _jvm,
    check,
    disable_iceberg_writer_compat,
    enable_all,
    enable_iceberg_writer_compat,
    history,
    is_iceberg_writer_compat_enabled,
    prove,
    publish,
    status,
    tables_in,
    verify,
    would_break,
)


def sessions(spark: SparkSession) -> Any:
    """The JVM's own sessions."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.classic.SparkSession


@contextmanager
def active(spark: SparkSession, session: Any) -> Iterator[None]:
    """With this session of the JVM, or none, as the active one of the thread."""
    before = sessions(spark).getActiveSession()
    if session is None:
        sessions(spark).clearActiveSession()
    else:
        sessions(spark).setActiveSession(session)
    try:
        yield
        now = sessions(spark).getActiveSession()
        assert now.isEmpty() if session is None else now.get().equals(session)
    finally:
        if before.isDefined():
            sessions(spark).setActiveSession(before.get())


def use_everything(spark: SparkSession, name: str) -> None:
    """Takes a table without column mapping through its life."""
    spark.sql(f"CREATE TABLE {name} USING delta AS SELECT id, CAST(id AS INT) AS n FROM range(9)")
    assert enable_iceberg_writer_compat(spark, name, rewrite=True, dry_run=True).plan is not None
    result = enable_iceberg_writer_compat(spark, name, rewrite=True)
    assert (result.changed, result.version, result.warnings) == (True, 1, ())
    assert check(spark, name).compliant and verify(spark, name).compliant
    assert history(spark, name).compliant
    assert would_break(spark, f"ALTER TABLE {name} ADD COLUMN x INT").compliant
    assert would_break(spark, table=name, schema="id BIGINT, n INT").compliant
    assert publish(spark, name).changed and status(spark, name).lag == 0
    assert prove(spark, name, readers=["iceberg-core"], checks=["schema", "rows"]).proven
    assert is_iceberg_writer_compat_enabled(spark, name)
    assert enable_all(spark, [name]).succeeded
    assert f"default.{name}" in tables_in(spark, "default")
    assert disable_iceberg_writer_compat(spark, name).changed


def in_a_thread(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def in_a_thread_of_spark(work: Callable[[], None]) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = InheritableThread(run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


@pytest.mark.parametrize("other", ["none", "another"])
@pytest.mark.parametrize("on", [in_a_thread, in_a_thread_of_spark])
def test_any_thread_and_any_active_session(
    table: Table, on: Callable[[Callable[[], None]], None], other: str
) -> None:
    spark = table.spark
    another: Any = None if other == "none" else spark.newSession()._jsparkSession

    def work() -> None:
        with active(spark, another):
            use_everything(spark, table.name)

    on(work)
    assert oracle.check(table.folder) != []


def test_two_threads_at_once(table: Table) -> None:
    spark = table.spark
    names = [f"{table}_{number}" for number in range(2)]
    start = threading.Barrier(2)

    def work(name: str) -> None:
        start.wait()
        use_everything(spark, name)

    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, names))
        # The same table from both: one of them does it, and both are told that it is done.
        spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS a")
        with ThreadPoolExecutor(2) as pool:
            done = list(
                pool.map(
                    lambda _: enable_iceberg_writer_compat(spark, table.name, rewrite=True), names
                )
            )
        assert sorted(result.changed for result in done) == [False, True]
        assert oracle.check(table.folder) == []
    finally:
        for name in names:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_the_default_of_the_session_that_is_named(table: Table) -> None:
    spark, other = table.spark, table.spark.newSession()

    def work() -> None:
        with active(spark, other._jsparkSession):
            assert enable_iceberg_writer_compat(spark).changed
            assert not is_iceberg_writer_compat_enabled(other)
            assert disable_iceberg_writer_compat(spark).changed

    in_a_thread(work)
    spark.sql(f"CREATE TABLE {table} (a INT) USING delta {PROPERTIES}")


@pytest.mark.parametrize("version", [-1, 2**63, 10**30])
def test_numbers_that_the_jvm_has_not(table: Table, version: int) -> None:
    with pytest.raises(ValueError, match="version is a number from 0 to"):
        check(table.spark, table.name, version)
    with pytest.raises(ValueError, match="files is a number from 1 to"):
        verify(table.spark, table.name, files=version)
    with pytest.raises(TypeError, match="version is a whole number"):
        check(table.spark, table.name, 1.5)  # type: ignore[call-overload]


def test_names_and_values_that_look_like_variables(spark: SparkSession, tmp_path: Path) -> None:
    folder, column = tmp_path / "t${spark.app.name}", "`c${spark.app.name}`"
    table = f"delta.`{folder}`"

    def run(statement: str) -> None:
        _jvm.statement(spark, statement).collect()

    run(f"CREATE TABLE {table} ({column} STRING, f FLOAT) USING delta {PROPERTIES}")
    run(f"INSERT INTO {table} VALUES ('${{spark.app.name}}', 1.5)")
    assert oracle.check(folder) == []
    for name in (table, folder):
        assert check(spark, name).compliant and verify(spark, name).compliant
        assert is_iceberg_writer_compat_enabled(spark, name)
    assert publish(spark, folder).changed and status(spark, table).lag == 0
    proof = prove(spark, table, readers=["pyiceberg", "duckdb", "iceberg-spark"])
    assert proof.proven, str(proof)
