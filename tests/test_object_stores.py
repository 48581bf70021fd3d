"""Tables on S3: publishing, its number of requests, concurrent publishers, other readers."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import kernel
from conftest import PROPERTIES, PROPERTY, REPOSITORY, environment, run_python, session_conf
from duckdb_client import attached
from iceberg_writer_compat import (
    check,
    cli,
    enable_iceberg_writer_compat,
    prove,
    publish,
    serve,
    status,
    verify,
)
from object_store import ACCESS_KEY, REGION, SECRET_KEY, ObjectStore, Request, counts

_numbers = itertools.count()

_NOT_PUBLISHABLE = "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE"

_ANY_RETENTION = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


class Place:
    """A table in a folder of the bucket."""

    def __init__(self, spark: SparkSession, store: ObjectStore, scheme: str = "s3a") -> None:
        """A table that does not exist yet."""
        self.spark, self.store = spark, store
        self.key = f"tables/t{next(_numbers)}"
        self.path = f"{scheme}://{store.bucket}/{self.key}"
        self.name = f"delta.`{self.path}`"

    def create(
        self, columns: str = "a INT, b STRING", more: str = "", properties: str = PROPERTIES
    ) -> None:
        """Creates it with the feature."""
        self.spark.sql(f"CREATE TABLE {self.name} ({columns}) USING delta {more} {properties}")

    def sql(self, text: str) -> Any:
        """Runs a statement, in which {t} is the table."""
        return self.spark.sql(text.format(t=self.name))

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, read by Delta."""
        return sorted(tuple(row) for row in self.spark.table(self.name).collect())

    def files(self) -> list[str]:
        """The keys of all data files."""
        return [key for key in self.store.keys(self.key) if key.endswith(".parquet")]

    def metadata(self) -> dict[str, Any]:
        """The newest metadata, found by the hint."""
        number = self.store.text(f"{self.key}/metadata/version-hint.text")
        text = self.store.text(f"{self.key}/metadata/v{number}.metadata.json")
        found: dict[str, Any] = json.loads(text)
        return found

    def published(self) -> list[int]:
        """The Delta versions of the snapshots, in their order."""
        return [int(s["summary"]["delta-version"]) for s in self.metadata()["snapshots"]]

    def iceberg_rows(self) -> list[tuple[Any, ...]]:
        """All rows, read by pyiceberg."""
        from pyiceberg.table import StaticTable

        number = self.store.text(f"{self.key}/metadata/version-hint.text")
        table = StaticTable.from_metadata(
            f"{self.path}/metadata/v{number}.metadata.json", self.store.pyiceberg_settings()
        )
        return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


@pytest.fixture
def place(spark: SparkSession, store: ObjectStore) -> Place:
    """A folder that no other test uses."""
    return Place(spark, store)


def _put_once(requests: list[Request], key: str) -> None:
    """Each version of the metadata in a folder has exactly one successful PUT."""
    version = re.compile(re.escape(key) + r"/metadata/v\d+\.metadata\.json$")
    written = Counter(
        r.key for r in requests if r.kind == "PUT" and r.status == 200 and version.match(r.key)
    )
    assert written and set(written.values()) == {1}, written


def test_life_of_a_table(place: Place, spark: SparkSession, store: ObjectStore) -> None:
    place.create("a INT, b STRING, p INT", "PARTITIONED BY (p)")
    place.sql("ALTER TABLE {t} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
    place.sql("INSERT INTO {t} VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', NULL)")
    place.sql(
        "MERGE INTO {t} t USING (SELECT 2 a, 'w' b, 2 p UNION ALL SELECT 4, 'v', 1) s ON t.a = s.a "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    place.sql("ALTER TABLE {t} ADD COLUMNS (c DOUBLE)")
    place.sql("INSERT INTO {t} VALUES (5, 'u', 1, 0.5)")
    place.sql("OPTIMIZE {t}")
    place.sql("DELETE FROM {t} WHERE a = 1")
    place.sql("RESTORE TABLE {t} TO VERSION AS OF 5")
    with session_conf(spark, _ANY_RETENTION):
        place.sql("VACUUM {t} RETAIN 0 HOURS")
    place.sql("UPDATE {t} SET b = 'last' WHERE a = 5")
    assert check(spark, place.path).compliant
    assert verify(spark, place.path).compliant
    found = status(spark, place.path)
    assert (found.lag, found.problems) == (0, ())
    assert place.iceberg_rows() == place.rows()
    assert len(place.rows()) == 5
    proof = prove(spark, place.path, readers=["pyiceberg", "duckdb"], versions=2)
    assert proof.proven, proof
    _put_once(store.requests, place.key)


def test_an_iceberg_client_that_writes(
    place: Place, spark: SparkSession, store: ObjectStore
) -> None:
    spark.conf.set("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(
        "spark.sql.catalog.ice.catalog-impl", "org.icebergwritercompat.DeltaIcebergCatalog"
    )
    named = f"on_s3_{time.time_ns()}"
    ice = f"ice.default.{named}"
    spark.sql(f"CREATE TABLE {ice} (a INT, b STRING) LOCATION '{place.path}'")
    try:
        spark.sql(f"INSERT INTO {ice} VALUES (1, 'x'), (2, 'y')")
        place.sql("INSERT INTO {t} VALUES (3, 'z')")
        spark.sql(f"DELETE FROM {ice} WHERE a = 1")
        spark.sql(f"UPDATE {ice} SET b = 'w' WHERE a = 3")
        spark.sql(f"ALTER TABLE {ice} ADD COLUMN c BIGINT")
        spark.sql(f"INSERT INTO {ice} VALUES (4, 'v', 5)")
        expected = [(2, "y", None), (3, "w", None), (4, "v", 5)]
        assert place.rows() == expected
        assert sorted(tuple(row) for row in spark.table(ice).collect()) == expected
        assert place.iceberg_rows() == expected
        # Without being published by anybody else.
        assert place.published() == [1, 2, 3, 4, 6]
        assert verify(spark, place.path).compliant
        made = place.sql("DESCRIBE HISTORY {t}").collect()
        assert [row.operation for row in reversed(made)] == [
            "ICEBERG CREATE",
            "ICEBERG APPEND",
            "WRITE",
            "ICEBERG DELETE",
            "ICEBERG OVERWRITE",
            "ICEBERG ALTER",
            "ICEBERG APPEND",
        ]
        _put_once(store.requests, place.key)
    finally:
        spark.sql(f"DROP TABLE default.{named}")


def test_rows_deleted_by_delete_files(
    place: Place, spark: SparkSession, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "open sesame")
    named = f"on_s3_{time.time_ns()}"
    place.create()
    place.sql("INSERT INTO {t} VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    spark.sql(f"CREATE TABLE {named} USING delta LOCATION '{place.path}'")
    try:
        with serve(spark, port=0, token="open sesame", row_level_deletes="rewrite") as server:
            duck = attached(server.uri)
            duck.execute(
                f"CREATE SECRET (TYPE s3, KEY_ID '{ACCESS_KEY}', SECRET '{SECRET_KEY}', "
                f"REGION '{REGION}', ENDPOINT '{urlsplit(store.endpoint).netloc}', "
                "URL_STYLE 'path', USE_SSL false)"
            )
            table = f"delta.default.{named}"
            duck.execute(f"UPDATE {table} SET b = 'w' WHERE a = 2")
            place.sql("INSERT INTO {t} VALUES (4, 'v')")
            duck.execute(f"DELETE FROM {table} WHERE a = 1")
            seen = duck.execute(f"SELECT * FROM {table} ORDER BY a").fetchall()
        assert seen == place.rows() == place.iceberg_rows() == [(2, "w"), (3, "z"), (4, "v")]
        assert sorted(kernel.rows(spark, f"default.{named}")) == seen
        made = place.sql("DESCRIBE HISTORY {t}").collect()
        assert [row.operation for row in made[:3]] == [
            "ICEBERG DELETE",
            "WRITE",
            "ICEBERG OVERWRITE",
        ]
        assert verify(spark, place.path).compliant
    finally:
        spark.sql(f"DROP TABLE {named}")


def test_requests(place: Place, spark: SparkSession, store: ObjectStore) -> None:
    place.create()
    # So many that a version of the metadata is removed with each publishing.
    for i in range(12):
        place.sql(f"INSERT INTO {{t}} VALUES ({i}, 'x')")
    publish(spark, place.path)
    place.sql("INSERT INTO {t} VALUES (100, 'x')")
    with store.noted() as requests:
        publish(spark, place.path)
    assert len(requests) <= 30, (counts(requests), requests)
    # The hint is replaced by one PUT.
    assert [r.status for r in requests if r.kind == "PUT" and "hint" in r.key] == [200]
    assert counts(requests)["COPY"] == 0
    # The manifest, its list, the metadata and the hint.
    assert counts(requests)["PUT"] == 4
    assert place.iceberg_rows() == place.rows()


def _race(root: str, settings: dict[str, str], poll: Callable[[], int], rounds: int) -> list[int]:
    """Two processes commit at the same time, and a reader polls; returns the committed versions."""
    command = [
        sys.executable,
        str(REPOSITORY / "tests/scripts/race_metadata.py"),
        root,
        json.dumps(settings),
        str(rounds),
    ]
    racers = [
        subprocess.Popen(
            command,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(2)
    ]
    seen: list[int] = []
    errors: list[Exception] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            try:
                seen.append(poll())
            except FileNotFoundError:
                # This thread was suspended after it has read the hint, until that version was old.
                continue
            except Exception as error:
                errors.append(error)
                return
            time.sleep(0.02)

    reader = threading.Thread(target=look)
    try:
        for racer in racers:
            assert racer.stdout and racer.stdout.readline() == "ready\n"
        reader.start()
        for racer in racers:
            assert racer.stdin
            racer.stdin.write("\n")
            racer.stdin.flush()
        results = [json.loads(racer.communicate(timeout=300)[0]) for racer in racers]
    finally:
        done.set()
        for racer in racers:
            racer.kill()
        if reader.ident:
            reader.join()
    assert not errors, errors
    back = [(one, two) for one, two in itertools.pairwise(seen) if two < one]
    assert len(seen) > 10 and not back, back
    # If no commit was lost, the two did not race.
    assert sum(result["lost"] for result in results) > 0
    return sorted(itertools.chain(*(result["committed"] for result in results)))


_ROUNDS = 60


def test_two_processes_on_s3(place: Place, spark: SparkSession, store: ObjectStore) -> None:
    place.create()
    place.sql("INSERT INTO {t} VALUES (1, 'x')")
    publish(spark, place.path)
    first = place.published()[-1]

    def poll() -> int:
        folder = f"{place.key}/metadata"
        number = store.text(f"{folder}/version-hint.text")
        metadata = json.loads(store.text(f"{folder}/v{number}.metadata.json"))
        return int(metadata["properties"]["delta-version"])

    with store.noted() as requests:
        committed = _race(place.path, store.hadoop_settings(), poll, _ROUNDS)
    assert committed == list(range(first + 1, first + 1 + 2 * _ROUNDS))
    assert place.published() == [first, *committed]
    _put_once(requests, place.key)
    assert any(r.kind == "PUT" and r.status in (409, 412) for r in requests)


def test_two_processes_on_a_local_disk(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{folder}` (a INT) USING delta {PROPERTIES}")
    spark.sql(f"INSERT INTO delta.`{folder}` VALUES (1)")
    publish(spark, folder)

    def metadata() -> dict[str, Any]:
        number = (folder / "metadata/version-hint.text").read_text()
        found = json.loads((folder / f"metadata/v{number}.metadata.json").read_text())
        assert isinstance(found, dict)
        return found

    def published() -> list[int]:
        return [int(s["summary"]["delta-version"]) for s in metadata()["snapshots"]]

    first = published()[-1]
    poll: Callable[[], int] = lambda: int(metadata()["properties"]["delta-version"])  # noqa: E731
    committed = _race(folder.as_uri(), {}, poll, _ROUNDS)
    assert committed == list(range(first + 1, first + 1 + 2 * _ROUNDS))
    assert published() == [first, *committed]


def test_a_publisher_that_dies(place: Place, spark: SparkSession, store: ObjectStore) -> None:
    """The publisher is cut off from the store at each of its writes."""
    place.create()
    place.sql("INSERT INTO {t} VALUES (0, 'x')")
    publish(spark, place.path)
    died = 0
    for step in itertools.count():
        place.sql(f"INSERT INTO {{t}} VALUES ({step + 1}, 'x')")
        with store.failing("PUT", "DELETE", key=f"{place.key}/metadata/", before=step) as fault:
            try:
                publish(spark, place.path)
            except PySparkException as refusal:
                died += 1
                assert refusal.getCondition() == f"{_NOT_PUBLISHABLE}.NOT_WRITABLE", refusal
                assert f"{place.path}/metadata" in str(refusal)
        reached = fault.left < 10**9
        # Readers see the version before or the whole new one.
        rows = place.iceberg_rows()
        assert len(rows) in (step + 1, step + 2)
        publish(spark, place.path)
        assert place.iceberg_rows() == place.rows()
        if not reached:
            break
    # The manifest, its list and the metadata; a publisher that fails at the hint has published.
    assert died == 3 and step >= 4
    assert place.published() == list(range(1, step + 3))
    assert status(spark, place.path).problems == ()
    _put_once(store.requests, place.key)


def test_a_folder_that_cannot_be_written(
    place: Place, spark: SparkSession, store: ObjectStore
) -> None:
    published = f"TBLPROPERTIES ('{PROPERTY}' = 'true', 'icebergWriterCompat.publish' = 'true')"
    place.create(properties=published)
    folder = f"{place.key}/metadata/"
    # Not allowed; the commit is made.
    with store.failing("PUT", "DELETE", key=folder, status=403):
        place.sql("INSERT INTO {t} VALUES (1, 'x')")
        (problem,) = status(spark, place.path).problems
        assert f"{place.path}/metadata cannot be written by this session" in problem.text
    # Full.
    with store.failing("PUT", "DELETE", key=folder, status=507):
        with pytest.raises(PySparkException) as refusal:
            publish(spark, place.path)
        assert refusal.value.getCondition() == f"{_NOT_PUBLISHABLE}.NOT_WRITABLE"
    assert place.rows() == [(1, "x")]
    publish(spark, place.path)
    assert place.iceberg_rows() == place.rows()
    assert status(spark, place.path).problems == ()


def test_an_answer_that_is_lost(place: Place, spark: SparkSession, store: ObjectStore) -> None:
    """The client repeats the PUT and gets 412, because its first PUT has succeeded."""
    place.create()
    for i in range(3):
        place.sql(f"INSERT INTO {{t}} VALUES ({i}, 'x')")
        lost = rf"{place.key}/metadata/v\d+\.metadata\.json"
        with store.failing("PUT", key=lost, status=500, times=1, lost=True):
            publish(spark, place.path)
        assert place.iceberg_rows() == place.rows()
    assert place.published() == [1, 2, 3]
    _put_once(store.requests, place.key)


def test_tables_that_exist(place: Place, spark: SparkSession, store: ObjectStore) -> None:
    """The feature is switched on by metadata only, and by rewriting the files."""
    for rewrite in (False, True):
        table = Place(spark, store)
        mapping = "'delta.columnMapping.mode' = 'none'" if rewrite else _BY_NAME
        table.sql(f"CREATE TABLE {{t}} (a INT, t TIMESTAMP) USING delta TBLPROPERTIES ({mapping})")
        table.sql("INSERT INTO {t} VALUES (1, TIMESTAMP'2026-01-01')")
        table.sql("INSERT INTO {t} VALUES (2, NULL)")
        before = table.rows()
        with store.noted() as requests:
            enable_iceberg_writer_compat(spark, table.path, rewrite=rewrite)
        footers = [r for r in requests if r.key.endswith(".parquet") and r.kind in ("GET", "HEAD")]
        # A rewrite also reads the rows.
        assert rewrite or 0 < len(footers) <= 2 * len(table.files()), footers
        assert verify(spark, table.path).compliant
        publish(spark, table.path)
        assert table.rows() == before
        assert len(table.iceberg_rows()) == 2


_BY_NAME = "'delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true'"


def test_one_place_by_every_scheme(place: Place, spark: SparkSession, store: ObjectStore) -> None:
    place.create()
    place.sql("INSERT INTO {t} VALUES (1, 'x')")
    place.sql("INSERT INTO {t} VALUES (2, 'y')")
    publish(spark, place.path)
    line = place.metadata()["table-uuid"]
    for scheme in ("s3", "s3n"):
        other = f"{scheme}://{store.bucket}/{place.key}"
        spark.sql(f"INSERT INTO delta.`{other}` VALUES (3, '{scheme}')")
        publish(spark, other)
        spark.sql(f"DELETE FROM delta.`{other}` WHERE b = '{scheme}'")
        spark.sql(f"INSERT INTO delta.`{other}` VALUES (4, '{scheme}')")
        publish(spark, other)
    # One file is removed, whatever scheme it was added by, and no other changes.
    place.sql("DELETE FROM {t} WHERE b = 's3n'")
    publish(spark, place.path)
    metadata = place.metadata()
    assert metadata["table-uuid"] == line
    for snapshot in metadata["snapshots"]:
        changes = [int(snapshot["summary"].get(k, 0)) for k in _FILES]
        assert sum(changes) == 1 or snapshot == metadata["snapshots"][0], snapshot
    assert place.iceberg_rows() == place.rows() == [(1, "x"), (2, "y"), (4, "s3")]


_FILES = ("added-data-files", "deleted-data-files")


def test_the_scheme_that_readers_know(
    place: Place, spark: SparkSession, store: ObjectStore
) -> None:
    place.create()
    place.sql("INSERT INTO {t} VALUES (1, 'x'), (2, 'y')")
    publish(spark, place.path)
    before = place.metadata()
    setting = "icebergWriterCompat.publish.scheme"
    with pytest.raises(Exception, match="s3 or s3a or s3n"):
        place.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{setting}' = 'gs')")
    place.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{setting}' = 's3')")
    place.sql("INSERT INTO {t} VALUES (3, 'z')")
    place.sql("DELETE FROM {t} WHERE a = 1")
    found = publish(spark, place.path)
    after = place.metadata()
    assert after["table-uuid"] == before["table-uuid"]
    assert found.metadata_location.startswith("s3://")
    lists = [s["manifest-list"] for s in after["snapshots"]]
    assert [one.partition(":")[0] for one in lists] == ["s3a", "s3", "s3"]
    assert place.iceberg_rows() == place.rows() == [(2, "y"), (3, "z")]
    # VACUUM keeps the files of older snapshots, whatever their scheme is.
    with session_conf(spark, _ANY_RETENTION):
        place.sql("VACUUM {t} RETAIN 1 HOURS")
    assert prove(spark, place.path, readers=["pyiceberg", "duckdb"]).proven
    # The property overrides the setting of the session.
    with session_conf(spark, {f"spark.{setting}": "s3n"}):
        place.sql("INSERT INTO {t} VALUES (4, 'w')")
        assert publish(spark, place.path).metadata_location.startswith("s3://")
        place.sql(f"ALTER TABLE {{t}} UNSET TBLPROPERTIES ('{setting}')")
        place.sql("INSERT INTO {t} VALUES (5, 'v')")
        assert publish(spark, place.path).metadata_location.startswith("s3n://")
    with session_conf(spark, {f"spark.{setting}": "gs"}), pytest.raises(Exception, match="s3n"):
        publish(spark, place.path)
    assert publish(spark, place.path).metadata_location.startswith("s3a://")


def test_a_catalog_in_a_database(place: Place, spark: SparkSession, tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    place.create()
    place.sql("ALTER TABLE {t} SET TBLPROPERTIES ('icebergWriterCompat.publish.table' = 'db.t')")
    uri = f"{tmp_path}/catalog.db"
    prefix = "spark.icebergWriterCompat.catalog"
    settings = {
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{uri}",
        f"{prefix}.warehouse": f"s3a://{place.store.bucket}/warehouse",
    }
    with session_conf(spark, settings):
        for i in range(3):
            place.sql(f"INSERT INTO {{t}} VALUES ({i}, 'x')")
            publish(spark, place.path)
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{uri}", **place.store.pyiceberg_settings())
    found = catalog.load_table("db.t").scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in found) == place.rows()


def test_a_catalog_without_its_client(place: Place, spark: SparkSession) -> None:
    """Iceberg's class for Glue is there, and the part of the AWS SDK that it needs is not."""
    place.create()
    place.sql("ALTER TABLE {t} SET TBLPROPERTIES ('icebergWriterCompat.publish.table' = 'db.t')")
    place.sql("INSERT INTO {t} VALUES (1, 'x')")
    prefix = "spark.icebergWriterCompat.catalog"
    with session_conf(spark, {f"{prefix}.type": "glue", f"{prefix}.warehouse": "s3a://bucket/w"}):
        # Java says at the second call that the class could not be initialized.
        for _ in range(2):
            with pytest.raises(PySparkException) as refusal:
                publish(spark, place.path)
            missing = "ICEBERG_WRITER_COMPAT_CATALOG_CLASS_MISSING"
            assert refusal.value.getCondition() == missing, refusal.value
            assert "needs the class software.amazon.awssdk.services." in str(refusal.value)
            assert "spark.jars.packages=software.amazon.awssdk:bundle:" in str(refusal.value)
    assert not place.store.keys(f"{place.key}/metadata")


def test_entries_of_the_log_store(
    place: Place, spark: SparkSession, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions published through `S3DynamoDBLogStore`, which notes each file there."""
    place.create()
    place.sql("INSERT INTO {t} VALUES (1, 'x')")
    publish(spark, place.path)
    keys = [("tablePath", "HASH"), ("fileName", "RANGE")]
    store.dynamodb.create_table(
        TableName="delta_log",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys],
        BillingMode="PAY_PER_REQUEST",
    )

    def entries() -> set[tuple[str, str]]:
        found = store.dynamodb.scan(TableName="delta_log")["Items"]
        return {(one["tablePath"]["S"], one["fileName"]["S"]) for one in found}

    def put(folder: str, name: str, complete: bool = True) -> tuple[str, str]:
        entry = {"tablePath": folder, "fileName": name, "tempPath": f".tmp/{name}.0a1b"}
        item: dict[str, Any] = {key: {"S": value} for key, value in entry.items()}
        item["complete"] = {"S": str(complete).lower()}
        if complete:
            item["expireTime"] = {"N": str(int(time.time()) + 86400)}
        store.dynamodb.put_item(TableName="delta_log", Item=item)
        return folder, name

    kept = {put(place.path, f"{version:020d}.json") for version in range(2)}
    # A table whose path begins as that of this one does, and a commit that is prepared only.
    kept.add(put(f"{place.path}0", "v1.metadata.json"))
    kept.add(put(place.path, f"{2:020d}.json", complete=False))
    put(place.path, "v1.metadata.json")
    put(place.path, "v7.metadata.json", complete=False)
    put(place.path.replace("s3a:", "s3:"), "v2.gz.metadata.json")
    log = f"{place.key}/_delta_log"
    store.s3.put_object(Bucket=store.bucket, Key=f"{log}/v7.metadata.json", Body=b"{}")
    files, before = store.keys(log), entries()

    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    clean = ["clean-log-store", f"{place.path}/", "--region", REGION]
    shown = CliRunner().invoke(cli.main, [*clean, "--dry-run"])
    assert (shown.exit_code, shown.output.splitlines()[-1]) == (0, f"{place.path}/: 4 found")
    assert (entries(), store.keys(log)) == (before, files)
    assert CliRunner().invoke(cli.main, clean).output.endswith(": 4 removed\n")
    assert entries() == kept
    assert store.keys(log) == [key for key in files if not key.endswith("/v7.metadata.json")]
    assert CliRunner().invoke(cli.main, clean).output.endswith(": 0 removed\n")
    place.sql("INSERT INTO {t} VALUES (2, 'y')")
    publish(spark, place.path)
    assert place.iceberg_rows() == place.rows() == [(1, "x"), (2, "y")]
    assert entries() == kept

    for wrong, says in (
        (["clean-log-store", "/data/t"], "is not a folder on S3"),
        ([*clean, "--dynamodb-table", "nowhere"], "could not be cleaned"),
    ):
        refused = CliRunner().invoke(cli.main, wrong)
        assert refused.exit_code == 2 and says in refused.output, refused.output


def test_secrets_of_a_catalog(tmp_path: Path) -> None:
    secret = "Pl4nted-s3cret"
    done = run_python(
        REPOSITORY / "tests/scripts/planted_secret.py", tmp_path / "warehouse", secret, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.endswith("5 of 5 failed\n")
    assert "committed but not published" in done.stderr
    said = [line for line in (done.stdout + done.stderr).splitlines() if secret in line]
    assert said == []
    kept = [f for f in tmp_path.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()]
    assert kept == []
