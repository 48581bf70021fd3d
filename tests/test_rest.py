"""Clients in processes of their own write to Delta tables by the REST catalog."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from configparser import RawConfigParser, SectionProxy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

import certificates
import kernel
import tls_proxy
from certificates import Certificate
from conftest import PROPERTIES, REPOSITORY, Table, environment, of_jdk
from duckdb_client import attached
from examples import blocks
from iceberg_writer_compat import CatalogServer, serve, verify
from steps import in_order

TOKEN = "open sesame"


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[CatalogServer]:
    """A server in the session of the tests."""
    with serve(spark, port=0, token=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def taking(spark: SparkSession) -> Iterator[CatalogServer]:
    """One that takes delete files."""
    with serve(spark, port=0, token=TOKEN, row_level_deletes="rewrite") as running:
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """One for this machine."""
    return certificates.made_in(tmp_path_factory.mktemp("tls"), of_jdk("keytool"))


@pytest.fixture(scope="module")
def secure(spark: SparkSession, certificate: Certificate) -> Iterator[CatalogServer]:
    """A server with TLS."""
    cert, key = certificate.certificate, certificate.key
    with serve(spark, port=0, token=TOKEN, tls_cert=cert, tls_key=key) as running:
        yield running


def follow(
    spark: SparkSession,
    script: str,
    *arguments: str,
    elsewhere: Path,
    others: Callable[[str], Iterable[object]] | None = None,
    trusting: Certificate | None = None,
) -> list[str]:
    """Runs a client, and compares what it sees with Delta and Kernel after each of its steps.

    With `others`, also what another reader sees in a table.
    """
    seen = []
    variables = environment() | {"TOKEN": TOKEN, "ELSEWHERE": str(elsewhere)}
    if trusting is not None:
        variables["CERTIFICATE"] = str(trusting.certificate)
    # The library of pyiceberg takes these first.
    for variable in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        variables.pop(variable, None)
    with subprocess.Popen(
        [sys.executable, str(REPOSITORY / "tests" / "scripts" / script), *arguments],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=elsewhere,
    ) as client:
        assert client.stdin is not None and client.stdout is not None
        for line in client.stdout:
            if not line.startswith("{"):
                continue
            told = json.loads(line)
            table, step = told["table"], told["step"]
            assert told["rows"] == in_order(spark.table(table).collect()), step
            assert told["rows"] == in_order(kernel.rows(spark, table)), step
            assert others is None or told["rows"] == in_order(others(table)), step
            report = verify(spark, table)
            assert report.compliant, f"{step}: {report}"
            seen.append(step)
            client.stdin.write("\n")
            client.stdin.flush()
        assert client.stderr is not None
        errors = client.stderr.read()
    assert client.returncode == 0, errors[-4000:]
    return seen


def operations(spark: SparkSession, table: str) -> list[str]:
    history = spark.sql(f"DESCRIBE HISTORY {table}").orderBy("version").collect()
    assert all(row.operation.startswith("ICEBERG ") for row in history)
    return [str(row.operation).removeprefix("ICEBERG ") for row in history]


def test_pyiceberg(
    secure: CatalogServer, certificate: Certificate, table: Table, tmp_path: Path
) -> None:
    """With TLS, and a certificate of the server's own."""
    name = f"default.{table}"
    words = ("rest_pyiceberg.py", secure.uri, name)
    steps = follow(table.spark, *words, elsewhere=tmp_path, trusting=certificate)
    assert steps[-1] == "overwrite of all" and len(steps) == 12
    assert operations(table.spark, name)[:3] == ["CREATE", "APPEND", "OVERWRITE"]


def test_duckdb(
    secure: CatalogServer, certificate: Certificate, table: Table, tmp_path: Path
) -> None:
    """With TLS, and a certificate of the server's own."""
    spark = table.spark
    assert secure.uri.startswith("https://")
    words = (secure.uri, table.name)
    steps = follow(spark, "rest_duckdb.py", *words, elsewhere=tmp_path, trusting=certificate)
    assert steps[-1] == "drop" and len(steps) == 8
    assert not spark.catalog.tableExists(f"default.{table}_made")
    # Two inserts of one transaction are two snapshots of one commit.
    made = operations(spark, f"default.{table}_t")
    assert made.count("APPEND") == 3
    for kind in ("t", "parts"):
        spark.sql(f"DROP TABLE default.{table}_{kind}")


def changes(spark: SparkSession, table: str) -> list[tuple[str, int]]:
    """The operations, and how many rows delete files took away in each."""
    history = spark.sql(f"DESCRIBE HISTORY {table}").orderBy("version").collect()
    return [
        (row.operation, int(row.operationMetrics.get("numDeletedRows", "-1"))) for row in history
    ]


def test_duckdb_changes_rows(taking: CatalogServer, table: Table, tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog

    spark = table.spark
    script = "rest_duckdb_deletes.py"
    catalog = load_catalog("delta", type="rest", uri=taking.uri, token=TOKEN)

    def by_pyiceberg(name: str) -> Iterable[object]:
        rows: list[object] = catalog.load_table(name).scan().to_arrow().to_pylist()
        return rows

    steps = follow(spark, script, taking.uri, table.name, elsewhere=tmp_path, others=by_pyiceberg)
    assert steps[-1] == "delete of all" and len(steps) == 11
    # Each statement is one commit, and so is the transaction; a DELETE of no row is none.
    assert changes(spark, f"default.{table}_t")[3:] == [
        ("ICEBERG OVERWRITE", 3),
        ("ICEBERG DELETE", 3),
        ("ICEBERG OVERWRITE", 2),
        ("ICEBERG DELETE", 1),
        ("ICEBERG OVERWRITE", 4),
        ("ICEBERG ALTER", -1),
        ("ICEBERG OVERWRITE", 11),
        ("ICEBERG DELETE", 20),
    ]
    for kind in ("t", "parts"):
        spark.sql(f"DROP TABLE default.{table}_{kind}")


def test_duckdb_sees_what_delta_has_just_committed(
    taking: CatalogServer, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its first statement after it, for which the metadata is published.

    DuckDB goes by the time of the metadata: what is younger than its statement it leaves out, and
    it reads the file of the metadata before, which says that writers are to copy on write.
    """
    monkeypatch.setenv("TOKEN", TOKEN)
    table.create_with("(1, 'x')", "a INT, b STRING")
    spark, name = table.spark, f"delta.default.{table}"
    with attached(taking.uri) as duck:
        duck.execute(f"INSERT INTO {name} VALUES (2, 'y'), (3, 'z')")
        spark.sql(f"INSERT INTO {table} VALUES (4, 'y')")
        duck.execute(f"DELETE FROM {name} WHERE a = 4")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN c STRING")
        duck.execute(f"INSERT INTO {name} VALUES (5, 'y', 'c')")
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN c TO d")
        spark.sql(f"ALTER TABLE {table} DROP COLUMN b")
        seen = duck.execute(f"SELECT a, d FROM {name} ORDER BY a").fetchall()
        assert seen == table.rows() == [(1, None), (2, None), (3, None), (5, "c")]
        spark.sql(f"ALTER TABLE {table} ADD COLUMN e STRING")
        duck.execute(f"UPDATE {name} SET e = 'f' WHERE a = 5")
    assert table.rows()[-1] == (5, "c", "f")
    loaded = ask(taking, "GET", f"{TABLES}/{table}").body["metadata"]
    assert loaded["last-updated-ms"] == int(loaded["properties"]["delta-timestamp"])


def test_bounds_that_end_within_a_character(
    server: CatalogServer, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB writes such lower bounds, with which neither it nor PyIceberg can filter.

    They are not published, for a commit on what the client knew and for one on top of others.
    """
    from pyiceberg.catalog import load_catalog

    monkeypatch.setenv("TOKEN", TOKEN)
    table.create_with("(1, 'x')", "a INT, b STRING")
    name, texts = f"delta.default.{table}", ["a" * 15 + "\u00e9", "\uffff" * 6]
    catalog = load_catalog("delta", type="rest", uri=server.uri, token=TOKEN)
    with attached(server.uri) as duck:
        duck.execute(f"INSERT INTO {name} VALUES (2, ?)", [texts[0]])
        duck.execute("BEGIN")
        duck.execute(f"INSERT INTO {name} VALUES (3, ?)", [texts[1]])
        made = catalog.load_table(f"default.{table}").snapshots()
        table.spark.sql(f"INSERT INTO {table} VALUES (4, 'y')")
        duck.execute("COMMIT")
        there = catalog.load_table(f"default.{table}")
        for number, text in ((1, "x"), (2, texts[0]), (3, texts[1]), (4, "y")):
            assert there.scan(f"b = '{text}'").to_arrow()["a"].to_pylist() == [number]
            found = duck.execute(f"SELECT a FROM {name} WHERE b = ?", [text]).fetchall()
            assert found == [(number,)]
    assert len(made) == 2 and {one.snapshot_id for one in made} < {
        one.snapshot_id for one in there.snapshots()
    }
    assert [kind for kind, _ in changes(table.spark, table.name)].count("ICEBERG APPEND") == 2
    assert len(there.snapshots()) == 4 and verify(table.spark, table.name).compliant


def test_spark_of_iceberg(
    secure: CatalogServer, certificate: Certificate, table: Table, tmp_path: Path
) -> None:
    """With TLS, and a certificate of the server's own."""
    name = f"default.{table}"
    words = (secure.uri, name, str(certificate.store))
    steps = follow(table.spark, "rest_spark.py", *words, elsewhere=tmp_path)
    assert steps[-1] == "replace" and len(steps) == 11
    assert not table.spark.catalog.tableExists(name)


def test_polars(
    server: CatalogServer, certificate: Certificate, table: Table, tmp_path: Path
) -> None:
    """By a proxy with TLS that offers the server below a path."""
    name, spark = f"default.{table}", table.spark
    cert, key = certificate.certificate, certificate.key
    with tls_proxy.before(server.uri, cert, key, below="/catalog") as uri:
        words = ("rest_polars.py", uri, name)
        steps = follow(spark, *words, elsewhere=tmp_path, trusting=certificate)
    assert steps[-1] == "overwrite of all" and len(steps) == 6
    assert operations(table.spark, name)[:2] == ["CREATE", "APPEND"]


class Answer:
    """What the server says to a request that no client would send."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        """Reads it."""
        self.status = response.status
        self.headers = response.headers
        text = response.read()
        self.body: Any = json.loads(text) if text else None

    @property
    def message(self) -> str:
        """The text of an error."""
        return str(self.body["error"]["message"])


def ask(
    server: CatalogServer,
    method: str,
    path: str,
    body: object = None,
    **headers: str,
) -> Answer:
    """Sends a request."""
    connection = http.client.HTTPConnection(urlsplit(server.uri).netloc, timeout=120)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    given = {"Authorization": f"Bearer {TOKEN}"} | {
        key.replace("_", "-"): value for key, value in headers.items()
    }
    try:
        connection.request(method, path, body=data, headers=given)
        return Answer(connection.getresponse())
    finally:
        connection.close()


TABLES = "/v1/namespaces/default/tables"


def test_what_is_offered(server: CatalogServer, table: Table) -> None:
    table.create_with("(1, 'x')", "a INT, b STRING")
    spark = table.spark
    plain = f"{table}_plain"
    spark.sql(f"CREATE TABLE {plain} (a INT) USING delta")
    listed = ask(server, "GET", TABLES).body["identifiers"]
    names = [one["name"] for one in listed]
    assert table.name in names and plain not in names
    missing = ask(server, "GET", f"{TABLES}/{plain}")
    assert missing.status == 404
    assert missing.body["error"]["type"] == "NoSuchTableException"
    # What the text says works.
    spark.sql(missing.message.split(" run ")[1])
    assert ask(server, "HEAD", f"{TABLES}/{plain}").status == 204
    spark.sql(f"DROP TABLE {plain}")
    assert ask(server, "HEAD", f"{TABLES}/{plain}").status == 404
    paged, token = [], ""
    while token is not None:
        page = ask(server, "GET", f"{TABLES}?pageSize=1&pageToken={token}").body
        paged += [one["name"] for one in page["identifiers"]]
        token = page.get("next-page-token")
    assert sorted(paged) == sorted(set(names) - {plain})
    loaded = ask(server, "GET", f"{TABLES}/{table}?snapshots=refs")
    assert len(loaded.body["metadata"]["snapshots"]) == 1
    tag = loaded.headers["ETag"]
    same = ask(server, "GET", f"{TABLES}/{table}?snapshots=refs", If_None_Match=tag)
    assert same.status == 304 and same.body is None
    spark.sql(f"INSERT INTO {table} VALUES (2, 'y')")
    assert ask(server, "GET", f"{TABLES}/{table}", If_None_Match=tag).status == 200


def test_every_endpoint_of_the_configuration_answers(server: CatalogServer) -> None:
    """And what is not one is 406, so that clients see the difference."""
    config = ask(server, "GET", "/v1/config?warehouse=x").body
    assert len(config["endpoints"]) == 16
    for endpoint in config["endpoints"]:
        method, path = endpoint.split(" ")
        path = path.replace("{prefix}/", "").replace("{namespace}", "nowhere")
        answer = ask(server, method, path.replace("{table}", "nothing"), b"{}")
        assert answer.status in (200, 204, 400, 404), endpoint
    views = ask(server, "POST", "/v1/namespaces/default/views", {})
    assert views.status == 406 and "views" in views.message
    health = ask(server, "GET", "/health", Authorization="")
    assert health.status == 200 and health.body["status"] == "ok"


def commit(table: Table) -> dict[str, Any]:
    """A request that adds a column, by its own words."""
    metadata = {"type": "assert-table-uuid", "uuid": table.log.metadata["id"]}
    columns: list[dict[str, Any]] = [
        {"id": 1, "name": "a", "type": "int", "required": False},
        {"id": 2, "name": "b", "type": "string", "required": False},
        {"id": 3, "name": "c", "type": "string", "required": False},
    ]
    schema = {"type": "struct", "schema-id": 1, "fields": columns}
    return {
        "requirements": [metadata],
        "updates": [
            {"action": "add-schema", "schema": schema, "last-column-id": 3},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    }


def test_refused_requests_commit_nothing(server: CatalogServer, table: Table) -> None:
    table.create_with("(1, 'x')", "a INT, b STRING")
    path = f"{TABLES}/{table}"
    assert ask(server, "GET", path).status == 200
    before = sorted(str(file) for file in table.folder.rglob("*"))

    def set_location(place: str) -> dict[str, Any]:
        return {"updates": [{"action": "set-location", "location": place}]}

    def set_property(key: str) -> dict[str, Any]:
        return {"updates": [{"action": "set-properties", "updates": {key: "/tmp/x"}}]}

    whole = commit(table)
    snapshot = {
        "snapshot-id": 1,
        "sequence-number": 9,
        "timestamp-ms": 9999999999999,
        "manifest-list": "file:/etc/passwd",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    other = {"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}
    create = {"name": "x", "schema": {"type": "struct", "fields": []}}
    named = {"identifier": {"namespace": ["default"], "name": table.name}}
    for method, where, body, status, text in (
        ("POST", path, b"{", 400, "cannot be understood"),
        ("POST", path, b"[]", 400, ""),
        ("POST", path, b"[" * 100_000, 400, ""),
        ("POST", path, b'{"updates": [{"action": "what"}]}', 400, "what"),
        ("POST", path, b'{"updates": [{"action": "add-snapshot"}]}', 400, ""),
        ("POST", path, {"updates": [{"action": "set-current-schema", "schema-id": 77}]}, 400, ""),
        ("POST", path, {"updates": [{"action": "add-snapshot", "snapshot": snapshot}]}, 400, ""),
        ("POST", path, whole | {"requirements": [other]}, 409, "UUID"),
        ("POST", path, set_location("file:/tmp/elsewhere"), 400, "PLACE"),
        ("POST", path, set_location(f"{table.folder}/../other"), 400, "COMMIT_REFUSED"),
        ("POST", path, set_property("write.data.path"), 400, "PROPERTY"),
        ("POST", path, set_property("write.metadata.path"), 400, "PROPERTY"),
        ("POST", TABLES, create | {"location": "file:/tmp/elsewhere"}, 400, "warehouse"),
        ("POST", TABLES, create | {"name": "../x"}, 400, "The name"),
        ("POST", TABLES, create | {"name": table.name}, 409, "exists"),
        ("POST", "/v1/namespaces/nowhere/tables", create, 404, "nowhere"),
        (
            "POST",
            "/v1/transactions/commit",
            {"table-changes": [named | whole, named | whole]},
            400,
            "2 tables",
        ),
        ("POST", "/v1/namespaces", {"namespace": ["a/b"]}, 400, "a/b"),
        ("DELETE", "/v1/namespaces/default", None, 409, "not empty"),
        ("GET", f"{TABLES}?pageSize=-1", None, 400, "pageSize"),
        ("GET", f"{path}?snapshots=some", None, 400, ""),
        ("GET", "/v1/namespaces/a%1Fb", None, 404, ""),
    ):
        answer = ask(server, method, where, body)
        said = f"{where} {str(body)[:200]}: {answer.body}"
        assert answer.status == status, said
        assert text in answer.message, said
        assert "\tat " not in str(answer.body) and "java:" not in str(answer.body)
    huge = ask(server, "POST", path, b" " * (17 << 20))
    assert huge.status == 413
    for wrong in ("", "Bearer", "Bearer wrong", TOKEN, f"Bearer {TOKEN}x"):
        refused = ask(server, "POST", path, whole, Authorization=wrong)
        assert refused.status == 401 and refused.headers["WWW-Authenticate"] == "Bearer"
    assert sorted(str(file) for file in table.folder.rglob("*")) == before
    # The same request with nothing wrong about it.
    assert ask(server, "POST", path, whole).status == 200
    assert table.spark.table(table.name).columns == ["a", "b", "c"]


def places(json_value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in a JSON value, as a container and a key or an index."""
    keys = list(json_value) if isinstance(json_value, dict) else range(len(json_value))
    for key in keys:
        yield json_value, key
        if isinstance(json_value[key], dict | list):
            yield from places(json_value[key])


def test_wrong_json_in_each_field(server: CatalogServer, table: Table) -> None:
    """Is an error of the client, and changes nothing."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    whole = commit(table)
    # Refused for two reasons, of which a wrong field takes away one at most.
    whole["updates"][1]["schema-id"] = 77
    late = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}
    fields = [{"id": 1, "name": "a", "type": "int", "required": False}]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    path, before, seen = f"{TABLES}/{table}", table.log.version, set()
    wrongs: list[Any] = [None, -1, "?", [], {}, [{}], 1e99]
    for where, request in (
        (path, whole | {"requirements": [*whole["requirements"], late]}),
        (TABLES, {"name": table.name, "schema": schema, "properties": {"k": "v"}}),
        ("/v1/namespaces", {"namespace": ["default"], "properties": {"k": "v"}}),
        ("/v1/namespaces/default/register", {"name": table.name, "metadata-location": "x"}),
        (
            "/v1/tables/rename",
            {
                "source": {"namespace": ["default"], "name": table.name},
                "destination": {"namespace": ["nowhere"], "name": "x"},
            },
        ),
    ):
        assert ask(server, "POST", where, request).status in (400, 404, 409)
        for container, key in places(request):
            right = container[key]
            for wrong in wrongs:
                container[key] = wrong
                answer = ask(server, "POST", where, request)
                seen.add(answer.status)
                assert 400 <= answer.status < 500, (where, request, answer.body)
            container[key] = right
    assert seen == {400, 404, 409} and table.log.version == before
    assert ask(server, "POST", path, commit(table)).status == 200
    assert table.rows() == [(1, "x", None)]


def test_a_repeated_request_is_not_done_twice(server: CatalogServer, table: Table) -> None:
    """Clients that get no answer send the same again."""
    identity = str(uuid.uuid4())
    fields = [{"id": 1, "name": "a", "type": "int", "required": False}]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    staged = ask(
        server, "POST", TABLES, {"name": table.name, "schema": schema, "stage-create": True}
    )
    assert staged.status == 200 and not table.folder.joinpath("_delta_log").exists()
    request = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": identity},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": schema, "last-column-id": 1},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": staged.body["metadata"]["location"]},
        ],
    }
    for _ in range(2):
        made = ask(server, "POST", f"{TABLES}/{table}", request)
        assert made.status == 200 and made.body["metadata"]["table-uuid"] == identity
    assert table.log.version == 0
    other = json.loads(json.dumps(request).replace(identity, str(uuid.uuid4())))
    assert ask(server, "POST", f"{TABLES}/{table}", other).status == 409


def test_a_request_with_a_key_is_done_once(server: CatalogServer, table: Table) -> None:
    """Also one that has no snapshot to be known by."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    path, key = f"{TABLES}/{table}", str(uuid.uuid4())
    before = table.log.version
    request = commit(table)
    schema = {"type": "assert-current-schema-id", "current-schema-id": 0}
    request["requirements"].append(schema)
    for _ in range(2):
        assert ask(server, "POST", path, request, Idempotency_Key=key).status == 200
    assert table.log.version == before + 1
    made = table.folder / "_delta_log" / f"{before + 1:020}.json"
    actions = [json.loads(line) for line in made.read_text().splitlines()]
    (application,) = (action["txn"]["appId"] for action in actions if "txn" in action)
    assert application.endswith(key)
    # Its fields may come in another order, and another request may not have the key.
    turned = dict(reversed(request.items()))
    assert ask(server, "POST", path, turned, Idempotency_Key=key).status == 200
    named = {"identifier": {"namespace": ["default"], "name": table.name}} | property_of(1)
    for where, body in (
        (path, property_of(1)),
        ("/v1/transactions/commit", {"table-changes": [named]}),
    ):
        mistaken = ask(server, "POST", where, body, Idempotency_Key=key)
        assert mistaken.status == 400 and "another request" in mistaken.message
    assert table.log.version == before + 1
    # Without the key it is somebody else's, who is late.
    assert ask(server, "POST", path, request).status == 409
    assert ask(server, "DELETE", path, Idempotency_Key=key).status == 204
    assert ask(server, "DELETE", path, Idempotency_Key=key).status == 204
    assert ask(server, "DELETE", path).status == 404
    assert ask(server, "DELETE", path, Idempotency_Key="no key!").status == 400


def test_a_table_is_not_taken_for_changed_because_of_its_uuid(
    server: CatalogServer, table: Table
) -> None:
    """A request that names the UUID besides a change makes the change."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    request = property_of(1)
    request["updates"].insert(0, {"action": "assign-uuid", "uuid": table.log.metadata["id"]})
    assert ask(server, "POST", f"{TABLES}/{table}", request).status == 200
    assert table.log.metadata["configuration"]["iceberg.k1"] == "v"


def test_namespaces(server: CatalogServer, table: Table) -> None:
    """What is answered is done, also where several clients ask for the same at once."""
    path, name, key = "/v1/namespaces", f"{table}_namespace", str(uuid.uuid4())
    wanted = {"namespace": [name], "properties": {"k": "v"}}
    for _ in range(2):
        assert ask(server, "POST", path, wanted, Idempotency_Key=key).status == 200
    assert ask(server, "POST", path, wanted).status == 409
    place = ask(server, "GET", f"{path}/{name}").body["properties"]["location"]
    for change in ({"updates": {"location": f"{place}_2"}}, {"removals": ["location"]}):
        moved = ask(server, "POST", f"{path}/{name}/properties", change)
        assert moved.status == 400 and "location" in moved.message
    assert ask(server, "GET", f"{path}/{name}").body["properties"]["location"] == place
    assert ask(server, "DELETE", f"{path}/{name}").status == 204
    kept = ask(server, "POST", path, {"namespace": ["global_temp"]})
    assert kept.status == 400 and "global_temp" in kept.message
    # Not empty, if other tests came before.
    assert ask(server, "DELETE", f"{path}/default").status in (400, 409)
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda _: ask(server, "POST", path, wanted).status, range(8)))
    assert sorted(answers) == [200] + [409] * 7
    assert ask(server, "DELETE", f"{path}/{name}").status == 204


@pytest.mark.parametrize(
    ("text", "said"),
    [("{no JSON", "00000000000000000001.json"), (None, "(0, 2) are not contiguous")],
)
def test_a_log_that_cannot_be_read(
    server: CatalogServer, table: Table, text: str | None, said: str
) -> None:
    """Is an error of the server, which says what is wrong; other tables are offered."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    log = table.folder / "_delta_log"
    for checksum in log.glob("*.crc"):
        checksum.unlink()
    (log / f"{2:020}.json").write_text('{"commitInfo":{"timestamp":1}}\n')
    file = log / f"{1:020}.json"
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    files = sorted(log.iterdir())
    for method, body in (("GET", None), ("POST", property_of(1)), ("DELETE", None)):
        answer = ask(server, method, f"{TABLES}/{table}", body)
        assert answer.status == 500, (method, answer.body)
        assert said in answer.message and str(table.folder) not in answer.message, answer.body
    assert sorted(log.iterdir()) == files
    spark = table.spark
    spark.sql(f"CREATE TABLE {table}_other (a INT) USING delta {PROPERTIES}")
    listed = [one["name"] for one in ask(server, "GET", TABLES).body["identifiers"]]
    assert f"{table}_other" in listed and table.name not in listed
    spark.sql(f"DROP TABLE {table}_other")


def test_a_table_whose_name_was_dropped_is_registered(
    server: CatalogServer, table: Table, tmp_path: Path
) -> None:
    """By a metadata file that was published of it, and with what is in Delta's log by then."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    path, register = f"{TABLES}/{table}", "/v1/namespaces/default/register"
    loaded = ask(server, "GET", path).body
    wanted = {"name": table.name, "metadata-location": loaded["metadata-location"]}
    assert ask(server, "POST", register, wanted).status == 409
    assert ask(server, "DELETE", path).status == 204
    assert ask(server, "GET", path).status == 404
    for change, why in (
        ({"overwrite": True}, "RESTORE"),
        ({"metadata-location": f"{tmp_path}/metadata/v1.metadata.json"}, "not in the warehouse"),
        ({"metadata-location": f"{table.folder}/metadata/v9.metadata.json"}, "is not there"),
        ({"metadata-location": None}, "metadata-location"),
        ({"name": "a/b"}, "The name"),
    ):
        refused = ask(server, "POST", register, wanted | change)
        assert refused.status == 400 and why in refused.message, refused.body
    assert ask(server, "POST", register.replace("default", "nowhere"), wanted).status == 404
    table.spark.sql(f"INSERT INTO delta.`{table.folder}` VALUES (2, 'y')")
    key = str(uuid.uuid4())
    assert ask(server, "POST", register, wanted, Idempotency_Key=key).status == 200
    # Its answer was lost.
    again = ask(server, "POST", register, wanted, Idempotency_Key=key)
    assert again.status == 200 and again.body["metadata"]["table-uuid"] == table.log.metadata["id"]
    assert table.rows() == [(1, "x"), (2, "y")]
    assert len(ask(server, "GET", path).body["metadata"]["snapshots"]) == 2


def test_metadata_that_is_lost_is_written_anew(server: CatalogServer, table: Table) -> None:
    """Clients read the file that the answer names, besides the answer."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    before = ask(server, "GET", f"{TABLES}/{table}").body
    Path(urlsplit(before["metadata-location"]).path).unlink()
    after = ask(server, "GET", f"{TABLES}/{table}").body
    written = json.loads(Path(urlsplit(after["metadata-location"]).path).read_text())
    assert written["current-snapshot-id"] == after["metadata"]["current-snapshot-id"]
    assert written["table-uuid"] == before["metadata"]["table-uuid"] == table.log.metadata["id"]
    # So is what it refers to.
    before = ask(server, "GET", f"{TABLES}/{table}").body["metadata"]["snapshots"][-1]
    Path(urlsplit(before["manifest-list"]).path).unlink()
    after = ask(server, "GET", f"{TABLES}/{table}").body["metadata"]["snapshots"][-1]
    assert Path(urlsplit(after["manifest-list"]).path).exists()


def test_a_client_whose_clock_is_wrong(server: CatalogServer, table: Table) -> None:
    """By less than a minute it commits; by more it is refused, and nothing is committed.

    A clock that is behind shows by the last snapshot of the table.
    """
    from pyiceberg.catalog import load_catalog

    table.create_with("(1, 'x')", "a INT, b STRING")
    catalog = load_catalog("delta", type="rest", uri=server.uri, token=TOKEN)
    schema = pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.string())])
    rows = pa.Table.from_pylist([{"a": 2, "b": "y"}], schema=schema)

    def append(seconds: int) -> Answer:
        there = catalog.load_table(f"default.{table}")
        transaction = there.transaction()
        transaction.append(rows)
        parts = {"updates": transaction._updates, "requirements": transaction._requirements}
        request: Any = {
            name: [json.loads(one.model_dump_json(by_alias=True)) for one in part]
            for name, part in parts.items()
        }
        (added,) = (one for one in request["updates"] if one["action"] == "add-snapshot")
        if seconds < 0:
            added["snapshot"]["timestamp-ms"] = there.metadata.snapshot_log[-1].timestamp_ms
        added["snapshot"]["timestamp-ms"] += seconds * 1000
        return ask(server, "POST", f"{TABLES}/{table}", request)

    before = table.log.version
    for seconds in (-86_400, -120, 120, 86_400):
        refused = append(seconds)
        assert refused.status == 400 and "clock" in refused.message, refused.body
        assert table.log.version == before
    for seconds in (-50, 50):
        assert append(seconds).status == 200
    assert table.log.version == before + 2
    assert in_order(kernel.rows(table.spark, f"default.{table}")) == in_order(table.rows())


def test_a_table_that_cannot_be_published(server: CatalogServer, table: Table) -> None:
    """Is refused with the reason and what mends it, which works; nothing is committed meanwhile."""
    table.create_with("(1, 'x')", "a INT, b STRING")
    spark, path = table.spark, f"{TABLES}/{table}"
    metadata, log = table.folder / "metadata", table.folder / "_delta_log"
    loaded = ask(server, "GET", path).body["metadata"]

    def refused(reason: str, offered: str) -> str:
        """What is offered."""
        files = sorted(log.iterdir())
        for method, body in (("GET", None), ("HEAD", None), ("POST", commit(table))):
            answer = ask(server, method, path, body)
            assert answer.status == 400, (method, answer.body)
            assert method == "HEAD" or f"NOT_PUBLISHABLE.{reason}]" in answer.message, answer.body
        assert sorted(log.iterdir()) == files
        statement = answer.message.partition("Run: ")[2]
        assert offered in statement
        return statement

    # Metadata of somebody else.
    shutil.rmtree(metadata)
    metadata.mkdir()
    (metadata / "v1.metadata.json").write_text(json.dumps(loaded | {"properties": {}}))
    spark.sql(refused("NOT_OURS", "anew => true"))
    assert ask(server, "GET", path).status == 200
    # A place for it that can hold none.
    shutil.rmtree(metadata)
    metadata.write_text("no folder")
    statement = refused("NOT_WRITABLE", "publish")
    metadata.unlink()
    spark.sql(statement)
    assert ask(server, "GET", path).status == 200
    # Files that a writer without the feature has added.
    version = table.log.version
    lines = (log / f"{version:020}.json").read_text().splitlines()
    (file,) = (a["add"] for a in map(json.loads, lines) if "add" in a)
    (log / f"{version + 1:020}.json").write_text(json.dumps({"add": file | {"stats": None}}) + "\n")
    spark.sql(refused("BREAKS_RULES", f"CREATE TABLE default.{table}_iceberg"))
    assert ask(server, "GET", f"{path}_iceberg").status == 200
    assert spark.table(f"{table}_iceberg").collect() == spark.table(table.name).collect()
    spark.sql(f"DROP TABLE {table}_iceberg")


def test_a_table_that_is_made_anew_is_another_one(server: CatalogServer, table: Table) -> None:
    """Also in the folder of the old one, and with as many versions."""
    name, spark = f"{table}_anew", table.spark
    for column in ("a", "b"):
        spark.sql(
            f"CREATE TABLE {name} ({column} INT) USING delta "
            "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
        )
        spark.sql(f"INSERT INTO {name} VALUES (1)")
        made = spark.sql(f"DESCRIBE DETAIL {name}").first()
        assert made is not None
        for _ in range(2):
            loaded = ask(server, "GET", f"{TABLES}/{name}").body["metadata"]
            assert loaded["table-uuid"] == made.id
            assert [one["name"] for one in loaded["schemas"][-1]["fields"]] == [column]
            assert loaded["properties"]["delta-version"] == "1"
        spark.sql(f"DROP TABLE {name}")


def test_without_a_token_only_this_machine(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedOperationException, match="NO_TOKEN"):
        serve(spark, host="0.0.0.0", port=0)
    with serve(spark, port=0) as open_server:
        assert ask(open_server, "GET", "/v1/namespaces").status == 200
        port = urlsplit(open_server.uri).port
        with pytest.raises(UnsupportedOperationException, match=rf"ADDRESS.*{port}"):
            serve(spark, port=port or 0)
        assert ask(open_server, "GET", "/v1/namespaces", Host="example.org").status == 403
        assert ask(open_server, "GET", "/v1/config", Origin="https://example.org").status == 403


def write_at_once(uri: str, name: str, first: int) -> list[str]:
    """What a client does with a table that others write meanwhile: appends, and a delete."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import CommitFailedException

    catalog = load_catalog("delta", type="rest", uri=uri, token=TOKEN)
    done = []

    def until_done(what: Callable[[Any], None], told: str) -> None:
        while True:
            try:
                what(catalog.load_table(name))
            except CommitFailedException:
                done.append("overtaken")
            else:
                done.append(told)
                return

    schema = pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.string())])
    for number in (first + 100, first + 200):
        row = pa.Table.from_pylist([{"a": number, "b": uri}], schema=schema)
        until_done(lambda of, row=row: of.append(row), "append")  # type: ignore[misc]
    until_done(lambda of: of.delete(f"a = {first}"), "delete")
    return done


def test_appends_go_on_top_of_what_came_meanwhile(server: CatalogServer, table: Table) -> None:
    """Of clients that do not try again; other changes of a table that has gone on are refused."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import CommitFailedException

    spark = table.spark
    table.create_with("(1, 'x')", "a INT, b STRING")
    retries = "'iceberg.commit.retry.num-retries' = '0'"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({retries})")
    before = table.log.version
    catalog = load_catalog("delta", type="rest", uri=server.uri, token=TOKEN)
    schema = pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.string())])

    def append(to: Any, number: int) -> int:
        to.append(pa.Table.from_pylist([{"a": number, "b": "x"}], schema=schema))
        return int(to.current_snapshot().snapshot_id)

    late, later, deleting, *others = [catalog.load_table(f"default.{table}") for _ in range(3 + 8)]
    spark.sql(f"INSERT INTO {table} VALUES (2, 'x')")
    made = [append(late, 3), append(later, 4)]
    with pytest.raises(CommitFailedException):
        deleting.delete("a = 1")
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(append, others, range(5, 13)))
    assert sorted(row.a for row in spark.table(table.name).collect()) == list(range(1, 13))
    assert table.log.version == before + 1 + 2 + 8
    now = catalog.load_table(f"default.{table}")
    line = sorted(now.snapshots(), key=lambda snapshot: snapshot.sequence_number or 0)
    assert [snapshot.parent_snapshot_id for snapshot in line[1:]] == [
        snapshot.snapshot_id for snapshot in line[:-1]
    ]
    # The ids are those of the clients, and readers can skip files.
    assert set(made) <= {snapshot.snapshot_id for snapshot in line}
    assert sorted(now.scan().to_arrow()["a"].to_pylist()) == list(range(1, 13))
    bounds = [row["a"] for row in now.inspect.files()["readable_metrics"].to_pylist()]
    assert sorted(of["lower_bound"] for of in bounds) == list(range(1, 13))
    assert verify(spark, table.name).compliant


def unit() -> SectionProxy:
    """What the unit of systemd in docs/rest.md says of the service."""
    page = (REPOSITORY / "docs" / "rest.md").read_text(encoding="utf-8")
    (text,) = (block.body for block in blocks(page) if block.language == "ini")
    parser = RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser["Service"]


def property_of(number: int) -> dict[str, Any]:
    """A request that sets a property."""
    return {"updates": [{"action": "set-properties", "updates": {f"k{number}": "v"}}]}


def posted(server: CatalogServer, path: str, body: object) -> http.client.HTTPConnection:
    """A request whose answer is not awaited."""
    connection = http.client.HTTPConnection(urlsplit(server.uri).netloc, timeout=120)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    connection.request("POST", path, body=json.dumps(body).encode(), headers=headers)
    return connection


def status_of(connection: http.client.HTTPConnection) -> int | None:
    """The answer, if there is one."""
    try:
        return connection.getresponse().status
    except (http.client.HTTPException, OSError):
        return None
    finally:
        connection.close()


def test_the_command_beside_another_server(
    server: CatalogServer, table: Table, tmp_path: Path
) -> None:
    """Two servers in processes of their own, and clients of both, write one table at once.

    The second one is the command of the unit of systemd in docs/rest.md: it offers a folder by a
    name too, and SIGTERM ends it.
    """
    service = unit()
    table.create_with("(1, 'x'), (2, 'x'), (3, 'x'), (4, 'x'), (5, 'x')", "a INT, b STRING")
    credential = service["LoadCredential"].split(":")[0]
    (tmp_path / credential).write_text(f"{TOKEN}\n")
    installed, *words = shlex.split(service["ExecStart"].replace("%d", str(tmp_path)))
    assert installed.endswith("/bin/iceberg-writer-compat")
    program = "from iceberg_writer_compat.cli import main; main()"
    words += ["--port", "0", "--path", f"shop.orders={table.folder}"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env=environment() | {"SPARK_CONF_DIR": os.environ["SPARK_CONF_DIR"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as process:
        try:
            assert process.stdout is not None and process.stderr is not None
            said = process.stdout.readline()
            assert said.startswith("Iceberg REST catalog at http://127.0.0.1:"), (
                process.stderr.read()
            )
            running = type("Running", (), {"uri": said.split()[-1]})()
            path = "/v1/namespaces/shop/tables/orders"
            before = table.log.version
            here, there = (server.uri, f"default.{table}"), (running.uri, "shop.orders")
            with ThreadPoolExecutor(4) as clients:
                running_clients = [
                    clients.submit(write_at_once, *where, first)
                    for first, where in enumerate((here, there, here, there), start=1)
                ]
                told = [step for client in running_clients for step in client.result()]
            assert (told.count("append"), told.count("delete")) == (8, 4)
            left = sorted([*(first + more for first in range(1, 5) for more in (100, 200)), 5])
            assert sorted(row[0] for row in table.spark.table(table.name).collect()) == left
            # One version for each, and all of them are the same in both servers.
            assert table.log.version == before + 12
            seen = [ask(server, "GET", f"{TABLES}/{table}").body["metadata"]]
            seen.append(ask(running, "GET", path).body["metadata"])
            ids = [sorted(snapshot["snapshot-id"] for snapshot in one["snapshots"]) for one in seen]
            assert ids[0] == ids[1] and len(set(ids[0])) == len(ids[0])
            assert seen[0]["current-snapshot-id"] == seen[1]["current-snapshot-id"]
            assert verify(table.spark, str(table)).compliant
            assert ask(running, "POST", path, commit(table)).status == 200
            in_hand = [posted(running, path, property_of(n)) for n in range(6)]
            answers = [status_of(in_hand[0])]
            # To the process alone, as the unit says; the JVM is a process of its own.
            assert service["KillMode"] == "mixed"
            process.send_signal(signal.SIGTERM)
            answers += map(status_of, in_hand[1:])
            rest = process.stdout.read()
        finally:
            # Ended already, unless something went wrong.
            process.kill()
    assert process.returncode == 0
    assert f"POST {path} 200 " in rest and f"shop.orders version {before + 13}" in rest
    assert table.spark.table(table.name).columns == ["a", "b", "c"]
    # Who was told so has a commit, and nobody else.
    assert answers[0] == 200 and 200 in answers[1:]
    made = [n for n in range(6) if table.log.metadata["configuration"].get(f"iceberg.k{n}") == "v"]
    assert made == [n for n, status in enumerate(answers) if status == 200]
    assert table.log.version == before + 13 + len(made)
