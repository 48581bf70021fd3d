"""Published tables, read by independent Iceberg readers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner
from pyiceberg.conversions import to_bytes
from pyiceberg.types import IntegerType
from pyspark.errors import UnsupportedOperationException

import changed_metadata
from changed_metadata import Entries, Json
from conftest import Table, session_conf
from iceberg_writer_compat import (
    Proof,
    ReaderNotInstalledError,
    cli,
    prove,
    publish,
)
from iceberg_writer_compat.proving import CHECKS, READERS, readers

# --- Every type, and every change -----------------------------------------------------------------

COLUMNS = """
    i INT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38, 9), s STRING, b BINARY, z BOOLEAN, day DATE,
    t TIMESTAMP, n TIMESTAMP_NTZ, int INT, float FLOAT, dec DECIMAL(9, 2), old STRING,
    must BIGINT NOT NULL,
    deep STRUCT<x: INT, y: STRUCT<k: STRING, z: STRUCT<d: DATE, t: TIMESTAMP>>>,
    list ARRAY<STRUCT<a: INT, b: ARRAY<MAP<STRING, INT>>>>,
    map MAP<STRING, STRUCT<v: DOUBLE, w: ARRAY<DECIMAL(10, 2)>>>
"""
GREATEST = """
    2147483647, 9223372036854775807, CAST('Infinity' AS FLOAT), 1.7976931348623157E308D,
    99999999999999999999999999999.999999999, repeat('\U0010ffff', 40), X'FFFFFF', true,
    DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999',
    TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', 2147483647, CAST(3.4028235E38 AS FLOAT),
    9999999.99, 'old', 1,
    named_struct('x', 1, 'y', named_struct('k', 'v', 'z',
      named_struct('d', DATE'9999-12-31', 't', TIMESTAMP'2026-01-01 00:00:00.000001'))),
    array(named_struct('a', 1, 'b', array(map('k', 1, 'l', null), map()))),
    map('m', named_struct('v', -0.0D, 'w', array(99999999.99, null)))
"""
LEAST = """
    -2147483648, -9223372036854775808, CAST('-Infinity' AS FLOAT), -1.7976931348623157E308D,
    -99999999999999999999999999999.999999999, '', X'', false,
    DATE'1900-01-01', TIMESTAMP'1900-01-01 00:00:00.000001',
    TIMESTAMP_NTZ'1900-01-01 00:00:00.000001', -2147483648, CAST(-1.17549435E-38 AS FLOAT),
    -9999999.99, '', 2,
    named_struct('x', null, 'y', named_struct('k', '', 'z',
      named_struct('d', DATE'1900-01-01', 't', TIMESTAMP'1900-01-01 00:00:00.999999'))),
    array(null, named_struct('a', null, 'b', array())), map()
"""
NULLS = ", ".join([*["null"] * 15, "3", *["null"] * 3])
ODD = """
    0, 9007199254740993, CAST('NaN' AS FLOAT), -0.0D, 0.000000001, '\U0001f600 grin', X'00FF41',
    null, DATE'1970-01-01', TIMESTAMP'2026-01-01 00:00:00.123456',
    TIMESTAMP_NTZ'1969-12-31 23:59:59.999999', 0, CAST(0.1 AS FLOAT), 0.01, 'é', 4,
    named_struct('x', 2, 'y', null), array(), map('n', null)
"""
ZEROS = """
    1, 0, CAST(-0.0 AS FLOAT), 0.0D, 0, repeat('\U0001f600', 33), X'7F', true,
    DATE'2026-01-01', TIMESTAMP'2026-01-01 00:00:00.999999',
    TIMESTAMP_NTZ'2026-01-01 00:00:00', 1, CAST(1.5 AS FLOAT), -0.01, null, 5,
    null, array(named_struct('a', 2, 'b', null)), map('o', named_struct('v', 0.0D, 'w', array()))
"""
EVOLUTION = (
    "ADD COLUMN (late STRING, deep.y.z.more INT, list.element.c DECIMAL(38, 0))",
    "RENAME COLUMN s TO text",
    "RENAME COLUMN deep.y.k TO kk",
    "DROP COLUMN (old, map.value.v)",
    "ADD COLUMN (old BIGINT, s DATE)",
    "ALTER COLUMN d FIRST",
    "ALTER COLUMN l AFTER z",
    "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
    "ALTER COLUMN int TYPE BIGINT",
    "ALTER COLUMN float TYPE DOUBLE",
    "ALTER COLUMN dec TYPE DECIMAL(18, 2)",
    "ALTER COLUMN must DROP NOT NULL",
)
LATER = (
    "INSERT INTO {t} (i, int, float, dec, old, s, late, must) VALUES"
    " (7, 9223372036854775807, 1.7976931348623157E308D, 9999999999999999.99, 9, DATE'2026-02-28',"
    " 'late', null)",
    "UPDATE {t} SET l = l - 1 WHERE must = 4",
    "DELETE FROM {t} WHERE must = 3",
)


def test_every_type_after_every_change(table: Table) -> None:
    table.create(COLUMNS)
    spark = table.spark
    publish(spark, table.name)
    for rows in (GREATEST, LEAST, f"{NULLS}), ({ODD}), ({ZEROS}"):
        spark.sql(f"INSERT INTO {table} VALUES ({rows})")
    for change in EVOLUTION:
        spark.sql(f"ALTER TABLE {table} {change}")
    for statement in LATER:
        spark.sql(statement.format(t=table))
    published = publish(spark, table.name)
    proof = prove(spark, table.name, READERS, versions=2)
    assert proof.proven, str(proof)
    assert proof.checks == CHECKS
    assert (proof.table, proof.metadata_location) == (
        f"default.{table}",
        published.metadata_location,
    )
    assert proof.published_version == proof.delta_version == published.delta_version
    assert proof.versions == (published.delta_version, published.delta_version - 1)
    for reader in READERS:
        checked = {o.check: o for o in proof.outcomes if o.reader == reader}
        assert checked["schema"].compared == 39
        assert checked["values"].compared == 29
        assert checked["versions"].compared == 2
        assert checked["filters"].compared > 150
    expected, *others = proof.readings
    assert (expected.reader, expected.rows) == ("delta", 5)
    assert [reading.reader for reading in others] == list(READERS)
    assert Proof.from_json(proof.to_json()) == proof


def test_partitions_of_every_type(table: Table) -> None:
    names = {
        "p1": "INT",
        "p2": "BIGINT",
        "p3": "FLOAT",
        "p4": "DOUBLE",
        "p5": "STRING",
        "p6": "BOOLEAN",
        "p7": "DATE",
        "p8": "TIMESTAMP",
        "p9": "TIMESTAMP_NTZ",
    }
    columns = ", ".join(f"{name} {kind}" for name, kind in names.items())
    table.create(f"{columns}, v INT", f"PARTITIONED BY ({', '.join(names)})")
    spark = table.spark
    publish(spark, table.name)
    rows = (
        "2147483647, 9223372036854775807, CAST('Infinity' AS FLOAT), 0.1D, 'a=b/c %41 \U0001f600',"
        " true, DATE'9999-12-31', TIMESTAMP'2026-01-01 00:00:00.123456',"
        " TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', 1",
        "-2147483648, -9223372036854775808, CAST('NaN' AS FLOAT), -0.0D, '', false,"
        " DATE'1900-01-01', TIMESTAMP'1970-01-01 00:00:00',"
        " TIMESTAMP_NTZ'1900-01-01 00:00:00.000001', 2",
        ", ".join(["null"] * 9 + ["3"]),
    )
    spark.sql(f"INSERT INTO {table} VALUES ({'), ('.join(rows)})")
    publish(spark, table.name)
    spark.sql(f"DELETE FROM {table} WHERE p1 IS NULL")
    spark.sql(f"INSERT INTO {table} (p4, v) VALUES (0.0D, 4)")
    publish(spark, table.name)
    proof = prove(spark, table.name, ["pyiceberg", "duckdb", "iceberg-spark"], versions=2)
    assert proof.proven, str(proof)
    assert proof.versions == (3, 2)


def test_names_that_are_syntax_elsewhere(table: Table) -> None:
    table.create("`x``y` INT, `a.b` STRING, `c d` STRUCT<`e.f`: INT, `g``h`: DATE>, `ü` INT")
    table.spark.sql(
        f"INSERT INTO {table} VALUES "
        "(1, 'x', named_struct('e.f', 2, 'g`h', DATE'2026-01-01'), 3), (null, null, null, null)"
    )
    publish(table.spark, table.name)
    proof = prove(table.spark, table.name)
    assert proof.proven, str(proof)


# --- Metadata that is wrong -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def wrong(spark: object, warehouse: Path) -> Table:
    """A published table of three files."""
    made = Table(spark, "wrong", warehouse / "wrong")  # type: ignore[arg-type]
    made.create("a INT NOT NULL, b STRING, c INT")
    for row in ("1, 'x', 10", "2, 'y', 20", "3, null, 30"):
        made.spark.sql(f"INSERT INTO {made} VALUES ({row})")
    publish(made.spark, made.name)
    return made


def swap_ids(metadata: Json) -> None:
    a, c = (changed_metadata.column(metadata, name) for name in ("a", "c"))
    a["id"], c["id"] = c["id"], a["id"]


def rename(metadata: Json) -> None:
    changed_metadata.column(metadata, "b")["name"] = "bb"


def allow_null(metadata: Json) -> None:
    changed_metadata.column(metadata, "a")["required"] = False


def raise_bound(entries: Entries) -> Entries:
    for entry in entries:
        bounds = entry.data_file.lower_bounds
        if bounds[1] == to_bytes(IntegerType(), 1):
            bounds[1] = entry.data_file.upper_bounds[1] = to_bytes(IntegerType(), 4)
    return entries


Found = dict[str, set[str]]


def test_right_metadata_copied(wrong: Table, tmp_path: Path) -> None:
    assert differing(wrong, tmp_path) == {}


def differing(
    wrong: Table,
    folder: Path,
    in_json: Callable[[Json], None] = lambda _metadata: None,
    in_manifest: Callable[[Entries], Entries] = lambda entries: entries,
) -> Found:
    """The places of differences that a proof finds in changed metadata, by check."""
    original = publish(wrong.spark, wrong.name).metadata_location
    location = changed_metadata.copy(original, folder / "metadata", in_json, in_manifest)
    proof = prove(
        wrong.spark,
        wrong.name,
        ["pyiceberg", "duckdb", "iceberg-spark"],
        versions=0,
        metadata_location=location,
    )
    assert proof.metadata_location == location
    assert proof.proven == (not proof.differences)
    found: Found = {}
    for outcome in proof.outcomes:
        for difference in outcome.differences:
            found.setdefault(outcome.check, set()).add(difference.place)
            assert difference.advice.endswith(f"iceberg-writer-compat publish default.{wrong}")
            assert difference.delta != difference.reader
            assert difference.place in str(proof)
    return found


def test_a_bound_that_hides_a_row(wrong: Table, tmp_path: Path) -> None:
    found = differing(wrong, tmp_path, in_manifest=raise_bound)
    assert found == {"filters": {"a"}, "aggregates": {"min(a)", "max(a)"}}


def test_ids_of_others(wrong: Table, tmp_path: Path) -> None:
    found = differing(wrong, tmp_path, in_json=swap_ids)
    assert found["schema"] == {"a", "c"}
    assert found["values"] == {"a", "c"}


def test_another_name(wrong: Table, tmp_path: Path) -> None:
    found = differing(wrong, tmp_path, in_json=rename)
    assert found["schema"] == {"b", "bb"}
    assert found["values"] == {"b"}


def test_another_nullability(wrong: Table, tmp_path: Path) -> None:
    assert differing(wrong, tmp_path, in_json=allow_null) == {"schema": {"a"}}


def test_a_lost_file(wrong: Table, tmp_path: Path) -> None:
    found = differing(wrong, tmp_path, in_manifest=lambda entries: entries[1:])
    assert found["rows"] == {"rows"}
    assert found["values"] == {"a", "b", "c"}


def test_a_doubled_file(wrong: Table, tmp_path: Path) -> None:
    found = differing(wrong, tmp_path, in_manifest=lambda entries: [*entries, entries[0]])
    assert found["rows"] == {"rows"}
    assert found["values"] == {"a", "b", "c"}


# --- What there is to prove -----------------------------------------------------------------------


def test_versions_that_delta_lost(table: Table) -> None:
    table.create("a INT")
    spark = table.spark
    publish(spark, table.name)
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    publish(spark, table.name)
    (first,) = table.folder.rglob("*.parquet")
    spark.sql(f"INSERT OVERWRITE {table} VALUES (2)")
    publish(spark, table.name)
    first.unlink()
    proof = prove(spark, table.name, ["duckdb"], checks=["versions"])
    assert (proof.versions, proof.gone, proof.proven) == ((2,), (1,), True)
    assert "versions that Delta cannot read any more: 1" in str(proof)
    assert proof.readings == ()


def test_a_version_behind(table: Table) -> None:
    table.create("a INT")
    publish(table.spark, table.name)
    table.spark.sql(f"INSERT INTO {table} VALUES (1)")
    proof = prove(table.spark, str(table.folder), READERS, checks=["rows", "values"])
    assert {reading.rows for reading in proof.readings} == {0}
    assert (proof.published_version, proof.delta_version) == (0, 1)
    assert proof.proven
    assert "1 version behind" in str(proof)


def test_advice_on_a_table_in_a_catalog(wrong: Table, tmp_path: Path) -> None:
    spark, key = wrong.spark, "spark.icebergWriterCompat.catalog."
    made = Table(spark, "in_catalog", wrong.folder.parent / "in_catalog")
    made.create("a INT")
    spark.sql(f"INSERT INTO {made} VALUES (1)")
    settings = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/c.db", "warehouse": str(tmp_path)}
    with session_conf(spark, {key + name: value for name, value in settings.items()}):
        original = publish(spark, made.name).metadata_location
        location = changed_metadata.copy(original, tmp_path / "metadata", another_column)
        proof = prove(spark, made.name, ["duckdb"], checks=["schema"], metadata_location=location)
    (difference, *_) = proof.differences
    assert "drop default.in_catalog in its catalog without purging, remove " in difference.advice


def another_column(metadata: Json) -> None:
    changed_metadata.column(metadata, "a")["name"] = "b"


def test_a_reader_that_fails(wrong: Table, tmp_path: Path) -> None:
    original = publish(wrong.spark, wrong.name).metadata_location

    def lose_manifests(metadata: Json) -> None:
        for snapshot in metadata["snapshots"]:
            snapshot["manifest-list"] = f"file:{tmp_path}/nowhere.avro"

    location = changed_metadata.copy(original, tmp_path / "metadata", lose_manifests)
    proof = prove(
        wrong.spark, wrong.name, ["pyiceberg"], checks=["rows"], metadata_location=location
    )
    (outcome,) = proof.outcomes
    assert (outcome.status, proof.proven) == ("could not run", False)
    assert "nowhere.avro" in str(outcome.reason)


def test_wrong_usage(wrong: Table, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    spark = table.spark
    with pytest.raises(ValueError, match="There is no reader 'trino'; there are pyiceberg, duckdb"):
        prove(spark, wrong.name, ["trino"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="given as a list"):
        prove(spark, wrong.name, "duckdb")  # type: ignore[arg-type]
    table.create()
    with pytest.raises(UnsupportedOperationException, match=rf'publish\(spark, "default.{table}"'):
        prove(spark, table.name)

    def missing(name: str) -> NoReturn:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(readers, "version", missing)
    with pytest.raises(ReaderNotInstalledError, match=r"duckdb is not installed.\n.* 'duckdb=="):
        prove(spark, wrong.name, ["duckdb"])
    proof = prove(spark, wrong.name, checks=["rows"])
    assert [reader.library is None for reader in proof.readers] == [True, True, False, False]
    for part in ("pip install '", " 'duckdb==", " 'pyiceberg>="):
        assert part in str(proof)


def test_executors_without_the_packages(
    wrong: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    # Local executors use the Python of this process.
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(ReaderNotInstalledError) as refusal:
        prove(wrong.spark, wrong.name)
    text = str(refusal.value)
    assert str(bare) in text and "PYSPARK_PYTHON" in text
    assert "has no pyarrow" in text or "has no numpy" in text


def test_command(wrong: Table, tmp_path: Path) -> None:
    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli.main, ["prove", str(wrong.folder), *arguments])
        return result.exit_code, result.output

    quick = ("--reader", "duckdb", "--check", "schema", "--check", "values", "--versions", "0")
    code, text = run(*quick)
    assert code == 0
    assert ": proven: 1 reader\n" in text
    code, text = run(*quick, "--format", "json")
    proof = Proof.from_json(text)
    assert (code, proof.checks, proof.versions) == (0, ("schema", "values"), ())
    page = tmp_path / "proof.html"
    assert run(*quick, "--output", str(page)) == (0, "")
    assert "duckdb" in page.read_text()
    original = publish(wrong.spark, wrong.name).metadata_location
    location = changed_metadata.copy(original, tmp_path / "metadata", rename)
    code, text = run(*quick, "--metadata", location, "--format", "json")
    assert (code, json.loads(text)["proven"]) == (1, False)
    code, text = run("--reader", "trino")
    assert code == 2 and "trino" in text
