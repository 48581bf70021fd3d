"""The table functions and the rules through Spark Connect, with a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession as RemoteSession

from conftest import PROPERTIES, PROPERTY
from servers import free_port, spark_server

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteSession]:
    """A session of a Connect server that has the extension."""
    folder = tmp_path_factory.mktemp("connect")
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
    }
    with spark_server(SERVER, port, folder, settings):
        session = RemoteSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        yield session
        session.stop()


def test_check_answers_with_rows(remote: RemoteSession) -> None:
    remote.sql("CREATE TABLE plain (a SMALLINT) USING delta")
    findings = remote.sql(
        "SELECT rule, severity, place, fix FROM iceberg_writer_compat_check('plain') "
        "WHERE place_kind = 'column' AND rule = 'C7'"
    ).collect()
    assert [(row.rule, row.place) for row in findings] == [("C7", "a")]


def test_history_and_check_can_be_joined(remote: RemoteSession) -> None:
    remote.sql("CREATE TABLE old (a SMALLINT) USING delta")
    joined = remote.sql(
        "SELECT c.rule, h.first_version, h.operation FROM iceberg_writer_compat_check('old') c "
        "JOIN iceberg_writer_compat_history('old') h USING (rule) WHERE c.rule = 'C7'"
    ).collect()
    assert [tuple(row) for row in joined] == [("C7", 0, "CREATE TABLE")]


def test_verify_reads_footers(remote: RemoteSession) -> None:
    remote.sql("CREATE TABLE unmapped USING delta AS SELECT id FROM range(3)")
    live = len(remote.table("unmapped").inputFiles())
    found = remote.sql(
        "SELECT files FROM iceberg_writer_compat_verify('unmapped') WHERE rule = 'E1f'"
    )
    assert [row.files for row in found.collect()] == [live]


def test_a_compliant_table_has_no_rows_and_stays_guarded(remote: RemoteSession) -> None:
    remote.sql(f"CREATE TABLE good (a INT) USING delta {PROPERTIES}")
    remote.sql("INSERT INTO good VALUES (1), (2)")
    assert remote.sql("SELECT * FROM iceberg_writer_compat_check('good')").count() == 0
    with pytest.raises(PySparkException) as refused:
        remote.sql(f"ALTER TABLE good UNSET TBLPROPERTIES ('{PROPERTY}')")
    assert refused.value.getCondition() == (
        "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.DISABLING_REQUIRED_TABLE_FEATURE"
    )
    assert refused.value.getSqlState() == "KD00E"


def test_procedures_do_what_the_python_functions_cannot_do_here(remote: RemoteSession) -> None:
    remote.sql("CREATE TABLE called USING delta AS SELECT 1S AS a")
    system = "CALL iceberg_writer_compat.system"
    done = remote.sql(f"{system}.enable(table => 'called', rewrite => true)")
    assert dict(done.dtypes)["files_rewritten"] == "bigint"
    # Rows that are asked for twice come from one call.
    assert [row.changed for row in done.collect() + done.collect()] == [True, True]
    (again,) = remote.sql(f"{system}.enable('called', dry_run => true)").collect()
    assert (again.mode, again.step) == ("none", "none")
    assert remote.sql(f"{system}.check('called')").collect() == []
    with pytest.raises(PySparkException) as refused:
        remote.sql(f"{system}.enable('called', mode => 'quick')").collect()
    assert refused.value.getCondition() == "ICEBERG_WRITER_COMPAT_WRONG_OPTION"
    (found,) = remote.sql(
        f"{system}.would_break('ALTER TABLE called ADD COLUMN b SMALLINT')"
    ).collect()
    assert (found.rule, found.place) == ("C7", "b")


def test_a_missing_table_is_an_error_with_a_condition(remote: RemoteSession) -> None:
    with pytest.raises(PySparkException) as missing:
        remote.sql("SELECT * FROM iceberg_writer_compat_check('nowhere')").collect()
    assert missing.value.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
