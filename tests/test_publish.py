"""Tables published as Iceberg, read by Iceberg readers."""

from __future__ import annotations

import json
import random
import re
import shlex
import shutil
import time
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow
import pytest
from click.testing import CliRunner
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.types import IntegerType
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession

import oracle
from conftest import Script, Table, session_conf, to_be_killed
from iceberg_writer_compat import PublishResult, PublishStatus, cli, publish, status, verify

COLUMNS = (
    "i INT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38, 9), s STRING, b BINARY, z BOOLEAN, "
    "day DATE, t TIMESTAMP, n TIMESTAMP_NTZ, nested STRUCT<x: INT, y: STRUCT<k: STRING>>, "
    "list ARRAY<INT>, map MAP<STRING, INT>"
)
ROWS = (
    "1, 9007199254740993, CAST(1.5 AS FLOAT), -0.0D, "
    "99999999999999999999999999999.999999999, repeat('z', 40), X'00FF', true, "
    "DATE'9999-12-31', TIMESTAMP'2026-01-01 00:00:00.123456', "
    "TIMESTAMP_NTZ'1900-01-01 00:00:00.000001', named_struct('x', 1, 'y', named_struct('k', 'v')), "
    "array(1, 2), map('a', 1)",
    "-2147483648, -9223372036854775808, CAST('-Infinity' AS FLOAT), 2.5D, -0.000000001, '', X'', "
    "false, DATE'1900-01-01', TIMESTAMP'1900-01-01 00:00:00.999999', "
    "TIMESTAMP_NTZ'2026-01-01 00:00:00.999999', named_struct('x', null, 'y', null), array(), map()",
    ", ".join(["null"] * 12 + ["array(null)", "map('n', null)"]),
)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its Iceberg extension, from packages and not from the network."""
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for name in ("avro", "iceberg"):
            spec = find_spec(f"duckdb_extension_{name}")
            assert spec is not None and spec.origin is not None
            folder = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
            connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def plain(value: object) -> object:
    """One text for values that readers hold in different classes."""
    if isinstance(value, dict):
        return sorted((key, plain(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if hasattr(value, "tzinfo"):
        return str(value).removesuffix("+00:00")
    return str(value)


def in_order(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr([plain(value) for value in row]) for row in rows)


def by_delta(frame: DataFrame) -> list[str]:
    arrow = frame.toArrow()
    return in_order([tuple(row.values()) for row in arrow.to_pylist(maps_as_pydicts="strict")])


def by_pyiceberg(location: str, **scan: object) -> list[str]:
    arrow = StaticTable.from_metadata(location).scan(**scan).to_arrow()  # type: ignore[arg-type]
    return in_order([tuple(row.values()) for row in arrow.to_pylist(maps_as_pydicts="strict")])


def by_duckdb(duck: duckdb.DuckDBPyConnection, location: str, where: str = "true") -> list[str]:
    query = f"SELECT * FROM iceberg_scan('{location}') WHERE {where}"
    arrow = duck.execute(query).to_arrow_table()
    return in_order([tuple(row.values()) for row in arrow.to_pylist(maps_as_pydicts="strict")])


def test_every_type_in_other_readers(table: Table, duck: duckdb.DuckDBPyConnection) -> None:
    table.create(COLUMNS)
    for row in ROWS:
        table.spark.sql(f"INSERT INTO {table} VALUES ({row})")
    result = publish(table.spark, table.name)
    expected = by_delta(table.spark.table(table.name))
    assert len(expected) == 3
    assert by_pyiceberg(result.metadata_location) == expected
    assert by_duckdb(duck, result.metadata_location) == expected


@pytest.fixture(scope="module")
def every_type(spark: SparkSession, warehouse: Path) -> tuple[Table, str]:
    """A table of three rows of every type that nobody changes, and where it is published."""
    made = Table(spark, "every_type", warehouse / "every_type")
    made.create(COLUMNS)
    for row in ROWS:
        spark.sql(f"INSERT INTO {made} VALUES ({row})")
    return made, publish(spark, made.name).metadata_location


@pytest.mark.parametrize(
    "where",
    [
        "i = -2147483648",
        "l = 9007199254740993",
        "f = 1.5",
        "d = 0.0",
        "day = '9999-12-31'",
        "n = '2026-01-01T00:00:00.999999'",
        "t >= '2026-01-01T00:00:00.123456+00:00'",
        "s >= 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'",
        "s = ''",
        "z = true",
        "i IS NULL",
        "nested.x = 1",
    ],
)
def test_filters_lose_nothing(
    every_type: tuple[Table, str], duck: duckdb.DuckDBPyConnection, where: str
) -> None:
    table, location = every_type
    expected = by_delta(table.spark.table(table.name).where(where))
    assert len(expected) == 1
    assert by_duckdb(duck, location, where) == expected
    assert by_pyiceberg(location, row_filter=where) == expected


def test_changes_and_time_travel(table: Table, duck: duckdb.DuckDBPyConnection) -> None:
    table.create("a INT, b STRING, p DATE", "PARTITIONED BY (p)")
    spark = table.spark
    spark.sql(f"INSERT INTO {table} VALUES (1, 'x', DATE'2026-01-01'), (2, 'y', null)")
    publish(spark, table.name)
    for statement in (
        f"DELETE FROM {table} WHERE a = 1",
        f"ALTER TABLE {table} RENAME COLUMN b TO c",
        f"ALTER TABLE {table} ADD COLUMN (b INT)",
        f"INSERT INTO {table} VALUES (3, 'z', DATE'2026-01-02', 9)",
        f"UPDATE {table} SET b = a",
        f"OPTIMIZE {table}",
    ):
        spark.sql(statement)
    result = publish(spark, table.name)
    expected = by_delta(spark.table(table.name))
    assert by_pyiceberg(result.metadata_location) == expected
    assert by_duckdb(duck, result.metadata_location) == expected
    snapshots = StaticTable.from_metadata(result.metadata_location).metadata.snapshots
    assert len(snapshots) > 3
    for snapshot in snapshots:
        assert snapshot.summary is not None
        version = int(snapshot.summary.additional_properties["delta-version"])
        seen = spark.read.option("versionAsOf", version).table(table.name)
        assert by_pyiceberg(result.metadata_location, snapshot_id=snapshot.snapshot_id) == by_delta(
            seen
        )


def test_every_snapshot_is_readable_after_many_commits(
    table: Table, duck: duckdb.DuckDBPyConnection
) -> None:
    table.create()
    spark = table.spark
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
    # So many that manifests are merged twice.
    commits = 22
    for number in range(commits):
        spark.sql(f"INSERT INTO {table} VALUES ({number}, 'n')")
    # Old versions of the metadata leave by their number, and no snapshot with them.
    versions = {path.name for path in (table.folder / "metadata").glob("v*.metadata.json")}
    newest = commits + 1
    assert versions == {f"v{number}.metadata.json" for number in range(newest - 8, newest + 1)}
    location = f"file:{table.folder}/metadata/v{newest}.metadata.json"
    found = StaticTable.from_metadata(location)
    assert [
        int(snapshot.summary.additional_properties["delta-version"])
        for snapshot in found.snapshots()
        if snapshot.summary is not None
    ] == list(range(2, commits + 2))
    for rows, snapshot in enumerate(found.snapshots(), start=1):
        assert found.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows == rows
        query = (
            f"SELECT count(*) FROM iceberg_scan('{location}', "
            f"snapshot_from_id = {snapshot.snapshot_id})"
        )
        assert duck.execute(query).fetchall() == [(rows,)]


@pytest.mark.parametrize("ahead", [timedelta(seconds=90), timedelta(days=3)])
def test_time_travel_goes_on_when_the_clock_is_back(
    table: Table, duck: duckdb.DuckDBPyConnection, ahead: timedelta
) -> None:
    table.create()
    spark = table.spark
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
    written = Path(publish(spark, table.name).metadata_location.removeprefix("file:"))
    written.write_text(
        re.sub(
            r'("(?:timestamp-ms|last-updated-ms)"\s*:\s*)(\d+)',
            lambda found: f"{found[1]}{int(found[2]) + round(ahead.total_seconds() * 1000)}",
            written.read_text(),
        )
    )
    (written.parent / f".{written.name}.crc").unlink(missing_ok=True)
    spark.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    spark.sql(f"DELETE FROM {table} WHERE a = 1")
    location = publish(spark, table.name).metadata_location
    found = StaticTable.from_metadata(location)
    expected = [["1"], ["1", "2"], ["2"]]
    assert len(found.metadata.snapshots) == len(expected)
    for snapshot, rows in zip(found.metadata.snapshots, expected, strict=True):
        at = found.snapshot_as_of_timestamp(snapshot.timestamp_ms)
        assert at is not None and at.snapshot_id == snapshot.snapshot_id
        seen = by_pyiceberg(location, snapshot_id=snapshot.snapshot_id, selected_fields=("a",))
        assert seen == [repr([row]) for row in rows]
        moment = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, tz=timezone.utc).isoformat(
            " "
        )
        query = (
            f"SELECT a FROM iceberg_scan('{location}', "
            f"snapshot_from_timestamp = TIMESTAMPTZ '{moment}'::TIMESTAMP) ORDER BY a"
        )
        assert [str(row[0]) for row in duck.execute(query).fetchall()] == rows


def test_result_and_status(table: Table) -> None:
    table.create()
    spark = table.spark
    assert status(spark, table.folder) == PublishStatus(
        f"delta.`file:{table.folder}`", 0, None, None, None, None, None
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
    result = publish(spark, table.name)
    location = f"file:{table.folder}/metadata/v1.metadata.json"
    assert result == PublishResult(
        f"default.{table}", location, 1, None, result.snapshot_id, 1, 1, 0, None
    )
    assert result.changed
    spark.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    spark.sql(f"DELETE FROM {table} WHERE a = 1")
    assert status(spark, table.name) == PublishStatus(
        f"default.{table}", 3, 1, 2, result.snapshot_id, location, None
    )
    second = publish(spark, table.name)
    assert (second.delta_version, second.previous_version, second.snapshots) == (3, 1, 2)
    assert (second.files_added, second.files_removed) == (1, 1)
    assert status(spark, table.name).lag == 0
    again = publish(spark, table.name)
    assert not again.changed
    assert again.metadata_location == second.metadata_location


def test_a_log_that_was_put_back(table: Table, duck: duckdb.DuckDBPyConnection) -> None:
    table.create()
    spark = table.spark
    for row in ("1, 'kept'", "2, 'lost'"):
        spark.sql(f"INSERT INTO {table} VALUES ({row})")
        publish(spark, table.name)
    for file in (table.folder / "_delta_log").glob("*00002.*"):
        file.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    spark.sql(f"INSERT INTO {table} VALUES (3, 'new')")
    found = status(spark, table.name)
    assert found.lag == 0
    assert len(found.problems) == 1
    result = publish(spark, table.name)
    expected = by_delta(spark.table(table.name))
    assert len(expected) == 2
    assert by_pyiceberg(result.metadata_location) == expected
    assert by_duckdb(duck, result.metadata_location) == expected
    kept, newest = StaticTable.from_metadata(result.metadata_location).snapshots()
    assert len(by_pyiceberg(result.metadata_location, snapshot_id=kept.snapshot_id)) == 1
    assert newest.parent_snapshot_id == kept.snapshot_id


def test_killed_while_publishing(table: Table, tmp_path: Path) -> None:
    table.create()
    publish(table.spark, table.name)
    with to_be_killed("publish.py", tmp_path / "warehouse", table.folder) as printed:
        assert printed.readline() == "ready\n"
        assert printed.readline() == "3\n"
        time.sleep(random.uniform(0, 3))
    # Either the old or the new metadata is what readers see.
    name = (table.folder / "metadata" / "version-hint.text").read_text()
    left = table.folder / "metadata" / f"v{name}.metadata.json"
    version = int(StaticTable.from_metadata(f"file:{left}").metadata.properties["delta-version"])
    seen = table.spark.read.option("versionAsOf", version).table(table.name)
    assert by_pyiceberg(f"file:{left}") == by_delta(seen)
    result = publish(table.spark, table.name)
    assert result.delta_version >= 3
    assert by_pyiceberg(result.metadata_location) == by_delta(table.spark.table(table.name))
    assert len(by_pyiceberg(result.metadata_location)) == result.delta_version


@pytest.fixture
def catalog_settings(table: Table) -> Iterator[dict[str, str]]:
    """The session publishes to a catalog that is a file in the warehouse."""
    settings = {"spark.icebergWriterCompat.catalog.type": "jdbc"}
    with session_conf(table.spark, settings):
        yield settings


def test_catalog_in_pyiceberg(
    table: Table, catalog_settings: dict[str, str], warehouse: Path, duck: duckdb.DuckDBPyConnection
) -> None:
    spark = table.spark
    table.create("a INT, b STRING, p DATE", "PARTITIONED BY (p)")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
    catalog = SqlCatalog(
        "iceberg", uri=f"sqlite:///{warehouse}/iceberg-catalog.db", warehouse=str(warehouse)
    )
    for statement in (
        f"INSERT INTO {table} VALUES (1, 'x', DATE'2026-01-01'), (2, 'y', null)",
        f"DELETE FROM {table} WHERE a = 1",
        f"ALTER TABLE {table} RENAME COLUMN b TO c",
        f"INSERT INTO {table} VALUES (3, 'z', DATE'2026-01-02')",
        f"RESTORE TABLE {table} TO VERSION AS OF 2",
    ):
        spark.sql(statement)
        found = catalog.load_table(f"default.{table}")
        expected = by_delta(spark.table(table.name))
        rows = found.scan().to_arrow().to_pylist()
        assert in_order([tuple(row.values()) for row in rows]) == expected
        assert by_duckdb(duck, found.metadata_location) == expected
    result = publish(spark, table.name)
    assert not result.changed
    assert result.catalog_table == f"default.{table}"
    assert result.metadata_location == catalog.load_table(f"default.{table}").metadata_location
    assert status(spark, table.name).catalog_table == f"default.{table}"
    arguments = ["status", table.name]
    answer = CliRunner().invoke(cli.main, arguments)
    assert answer.exit_code == 0
    assert f"default.{table} in the Iceberg catalog" in answer.stdout


def test_published_when_the_application_ends(script: Script, tmp_path: Path) -> None:
    assert script("publish_async.py", tmp_path / "warehouse").endswith("done\n")
    metadata = tmp_path / "warehouse" / "t" / "metadata"
    newest = metadata / f"v{(metadata / 'version-hint.text').read_text()}.metadata.json"
    found = StaticTable.from_metadata(f"file:{newest}")
    assert found.metadata.properties["delta-version"] == "5"
    assert found.scan().to_arrow().num_rows == 5


def test_refusal_by_name(table: Table) -> None:
    table.create("a INT, p BINARY", "PARTITIONED BY (p)")
    with pytest.raises(UnsupportedOperationException, match="binary column p"):
        publish(table.spark, table.name)
    assert not (table.folder / "metadata").exists()


def test_commands(table: Table) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli.main, [*arguments])
        return result.exit_code, result.stdout

    table.create()
    table.spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
    name = str(table.folder)
    assert run("status", name) == (1, f"{name}: version 1, not published\n")
    code, text = run("publish", name)
    assert code == 0
    assert text.startswith(f"{name}: version 1 is published by 1 snapshot: 1 file added, 0 ")
    code, text = run("publish", name, "--format", "json")
    assert (code, json.loads(text)["snapshots"]) == (0, 0)
    code, text = run("status", name)
    assert code == 0 and "up to date" in text
    code, text = run("status", name, "--format", "json")
    assert (code, json.loads(text)["lag"]) == (0, 0)


def test_char_and_varchar_in_other_readers(table: Table, duck: duckdb.DuckDBPyConnection) -> None:
    """Spark shows a CHAR filled up with spaces, so that is how it has to be stored."""
    table.create(
        "id INT, c CHAR(5), v VARCHAR(5), s STRUCT<c: CHAR(3)>, a ARRAY<CHAR(3)>, "
        "m MAP<CHAR(2), VARCHAR(3)>",
        "PARTITIONED BY (c)",
    )
    spark = table.spark
    row = "'ab' AS c, 'ab' AS v, named_struct('c', 'x') AS s, array('y') AS a, map('k', 'v') AS m"
    spark.sql(f"INSERT INTO {table} SELECT 1 AS id, {row}")
    spark.sql(f"SELECT 2 AS id, {row}").writeTo(table.name).append()
    spark.sql(f"INSERT INTO {table} VALUES (3, null, null, null, null, null)")
    location = publish(spark, table.name).metadata_location
    expected = by_delta(spark.table(table.name))
    assert "'ab   '" in expected[0]
    assert by_pyiceberg(location) == expected
    assert by_duckdb(duck, location) == expected
    where = "c = 'ab   '"
    found = by_delta(spark.table(table.name).where(where))
    assert len(found) == 2
    assert by_pyiceberg(location, row_filter=where) == found
    assert by_duckdb(duck, location, where) == found


NAMES = ["a b", "a%20b", "a%b", "ä😀", "a`b", "a'b", "a&b+c;d", "a=b", "[a]{b}*"]


@pytest.fixture(scope="module")
def partitioned(spark: SparkSession, warehouse: Path) -> Table:
    """A table in partitions of odd values, of which tests make copies."""
    made = Table(spark, "odd_partitions", warehouse / "odd_partitions")
    made.create("a INT, p STRING", "PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {made} VALUES (1, 'x y'), (2, 'a%b#?')")
    return made


@pytest.mark.parametrize("name", NAMES)
def test_odd_folders(
    partitioned: Table, duck: duckdb.DuckDBPyConnection, tmp_path: Path, name: str
) -> None:
    table = partitioned
    folder = Path(shutil.copytree(table.folder, tmp_path / name))
    result = publish(table.spark, folder)
    expected = by_delta(table.spark.table(table.name))
    path = f"{folder}/metadata/v1.metadata.json"
    assert result.metadata_location == f"file:{path}"
    for location in (path, f"file:{path}", f"file://{path}"):
        assert by_pyiceberg(location) == expected
        assert by_duckdb(duck, location.replace("'", "''")) == expected
    assert status(table.spark, folder).problems == ()


@pytest.mark.parametrize("character", ["#", "?", '"', "\t", "\n"])
def test_folders_that_nobody_can_open(table: Table, tmp_path: Path, character: str) -> None:
    table.create()
    folder = Path(shutil.copytree(table.folder, tmp_path / f"a{character}b"))
    with pytest.raises(UnsupportedOperationException) as refusal:
        publish(table.spark, folder)
    assert str(refusal.value.getCondition()).endswith("NOT_PUBLISHABLE.FOLDER")
    assert not (folder / "metadata").exists()
    remedy = str(refusal.value).splitlines()[-1].removeprefix("Run: ")
    if character in "#?":
        eval(remedy, {"spark": table.spark})
        assert publish(table.spark, "copy_to_publish").changed
        table.spark.sql("DROP TABLE copy_to_publish")


def test_moved_in_other_readers(
    table: Table, duck: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    table.create()
    spark = table.spark
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
    first = publish(spark, table.name)
    copy = Path(shutil.copytree(table.folder, tmp_path / "copy"))
    name = str(copy)
    (problem,) = status(spark, name).problems
    assert str(table.folder) in problem.text and name in problem.text
    run = CliRunner().invoke(cli.main, ["status", name])
    assert run.exit_code == 1 and problem.remedy.command[0] in run.stdout
    run = CliRunner().invoke(cli.main, ["publish", name])
    assert run.exit_code == 0 and "repaired: " in run.stdout
    spark.sql(f"DELETE FROM {table}")
    shutil.rmtree(table.folder / "metadata")
    for file in table.folder.glob("*.parquet"):
        file.unlink()
    location = f"file:{copy}/metadata/v2.metadata.json"
    assert (
        by_pyiceberg(location)
        == by_duckdb(duck, location)
        == by_delta(spark.read.format("delta").load(name))
    )
    assert StaticTable.from_metadata(location).metadata.table_uuid != uuid.UUID(
        oracle.read_log(copy).metadata["id"]
    )
    assert first.metadata_location != location


def test_pyiceberg_commits(
    table: Table, catalog_settings: dict[str, str], warehouse: Path, duck: duckdb.DuckDBPyConnection
) -> None:
    spark = table.spark
    table.create("a INT, s STRUCT<x: ARRAY<STRING>>, p DATE, q STRING", "PARTITIONED BY (p, q)")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
    spark.sql(
        f"INSERT INTO {table} VALUES (1, named_struct('x', array('k')), DATE'2026-01-01', 'w')"
    )
    catalog = SqlCatalog(
        "iceberg", uri=f"sqlite:///{warehouse}/iceberg-catalog.db", warehouse=str(warehouse)
    )
    theirs = catalog.load_table(f"default.{table}")
    rows = theirs.scan().to_arrow()

    def append() -> int:
        found = catalog.load_table(f"default.{table}")
        with pytest.raises(ValueError, match=r"this_table\.IsWrittenInDeltaOnly"):
            found.append(rows)
        with found.transaction() as transaction:
            transaction.remove_properties("write.py-location-provider.impl")
        catalog.load_table(f"default.{table}").append(rows)
        snapshot = catalog.load_table(f"default.{table}").metadata.current_snapshot_id
        assert snapshot is not None
        return snapshot

    snapshot = append()
    (problem,) = status(spark, table.name).problems
    assert str(snapshot) in problem.text
    assert f"--take-snapshot {snapshot}" in problem.remedy.command[0]
    assert f"take_snapshot => {snapshot}" in problem.remedy.sql[0]
    # A commit of Delta is made, and does not throw theirs away.
    spark.sql(f"INSERT INTO {table} VALUES (2, null, null, 'a%/ b')")
    with pytest.raises(UnsupportedOperationException, match=str(snapshot)):
        publish(spark, table.name)
    with pytest.raises(UnsupportedOperationException, match=str(snapshot)):
        spark.sql(f"VACUUM {table}")
    assert len(catalog.load_table(f"default.{table}").scan().to_arrow()) == 2
    answer = CliRunner().invoke(cli.main, ["publish", table.name, "--take-snapshot", str(snapshot)])
    assert answer.exit_code == 0, answer.stderr
    expected = by_delta(spark.table(table.name))
    assert len(expected) == 3

    def seen() -> list[str]:
        found = catalog.load_table(f"default.{table}")
        assert by_duckdb(duck, found.metadata_location) == by_pyiceberg(found.metadata_location)
        return by_pyiceberg(found.metadata_location)

    assert seen() == expected
    assert not publish(spark, table.name, take_snapshot=snapshot).changed
    assert by_delta(spark.table(table.name)) == expected
    assert verify(spark, table.name).compliant
    snapshot = append()
    assert len(seen()) == 4
    (problem,) = status(spark, table.name).problems
    assert "the same with discard in place of take" in problem.text
    assert not any(word in problem.text for word in ("CALL", "publish(", "--"))
    call = problem.remedy.python[0].replace("take", "discard")
    assert call.endswith(f"discard_snapshot={snapshot})")
    eval(call, {"publish": publish, "spark": spark})
    assert seen() == expected
    assert status(spark, table.name).problems == ()
    with pytest.raises(ValueError, match="exclude"):
        publish(spark, table.name, discard_snapshot=1, mend=True)


def test_pyiceberg_changes_columns(
    table: Table, catalog_settings: dict[str, str], warehouse: Path, duck: duckdb.DuckDBPyConnection
) -> None:
    spark = table.spark
    table.create()
    spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    publish(spark, table.name)
    catalog = SqlCatalog(
        "iceberg", uri=f"sqlite:///{warehouse}/iceberg-catalog.db", warehouse=str(warehouse)
    )
    with catalog.load_table(f"default.{table}").transaction() as transaction:
        transaction.remove_properties("write.py-location-provider.impl")
    with catalog.load_table(f"default.{table}").update_schema() as change:
        change.add_column("theirs", IntegerType())
        change.rename_column("b", "c")
    changed = catalog.load_table(f"default.{table}").metadata_location
    (problem,) = status(spark, table.name).problems
    for told in ("theirs int is added", "b string is now c string", "location-provider.impl is re"):
        assert told in problem.text
    spark.sql(f"INSERT INTO {table} VALUES (2, 'y')")
    with pytest.raises(UnsupportedOperationException, match="FOREIGN_CHANGE"):
        publish(spark, table.name)
    assert catalog.load_table(f"default.{table}").metadata_location == changed
    arguments = shlex.split(problem.remedy.command[0].removeprefix("iceberg-writer-compat "))
    answer = CliRunner().invoke(cli.main, arguments)
    assert answer.exit_code == 0, answer.stderr
    found = catalog.load_table(f"default.{table}")
    assert [field.name for field in found.schema().fields] == ["a", "b"]
    expected = by_delta(spark.table(table.name))
    assert len(expected) == 2
    assert by_pyiceberg(found.metadata_location) == expected
    assert by_duckdb(duck, found.metadata_location) == expected
    assert status(spark, table.name).problems == ()


@pytest.mark.parametrize("commits", [1, 2, 3], ids=["first", "second", "all"])
def test_killed_while_taking_snapshots(
    table: Table, catalog_settings: dict[str, str], warehouse: Path, tmp_path: Path, commits: int
) -> None:
    spark = table.spark
    table.create()
    name = f"default.{table}"
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('icebergWriterCompat.publish.table'='{name}')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (0, 'ours')")
    publish(spark, table.name)
    database = f"{warehouse}/iceberg-catalog.db"
    catalog = SqlCatalog("iceberg", uri=f"sqlite:///{database}", warehouse=str(warehouse))
    with catalog.load_table(name).transaction() as transaction:
        transaction.remove_properties("write.py-location-provider.impl")
    schema = pyarrow.schema([("a", pyarrow.int32()), ("b", pyarrow.string())])
    for row in (1, 2, 3):
        rows = pyarrow.Table.from_pylist([{"a": row, "b": "theirs"}], schema)
        catalog.load_table(name).append(rows)
    snapshot = catalog.load_table(name).metadata.current_snapshot_id
    assert snapshot is not None
    before = max(oracle.versions(table.folder))
    awaited = table.folder / "_delta_log" / f"{before + commits:020}.json"
    arguments = (tmp_path / "warehouse", table.folder, f"jdbc:sqlite:{database}", str(snapshot))
    with to_be_killed("take.py", *arguments) as printed:
        assert printed.readline() == "ready\n"
        end = time.monotonic() + 300
        while not awaited.exists() and time.monotonic() < end:
            time.sleep(0.001)
    taken = max(oracle.versions(table.folder)) - before
    assert taken >= commits
    assert [row[0] for row in table.rows()] == list(range(taken + 1))
    publish(spark, table.name, take_snapshot=snapshot)
    assert [row[0] for row in table.rows()] == [0, 1, 2, 3]
    assert max(oracle.versions(table.folder)) == before + 3
    expected = by_delta(spark.table(table.name))
    assert by_pyiceberg(catalog.load_table(name).metadata_location) == expected
    assert status(spark, table.name).problems == ()
    assert not publish(spark, table.name, take_snapshot=snapshot).changed
