"""What settings, and values of partition columns, make of the rows that Iceberg's readers see."""

from __future__ import annotations

import pytest

from conftest import Table, rows, session_conf
from iceberg_writer_compat import enable_iceberg_writer_compat, prove, publish, verify
from iceberg_writer_compat.proving import READERS
from test_rewrite import LEGACY

MARKER = "__HIVE_DEFAULT_PARTITION__"

SETTINGS = [
    LEGACY,
    {"parquet.writer.version": "v2"},
    {"parquet.writer.version": "v2", "parquet.enable.dictionary": "false"},
    {"parquet.bloom.filter.enabled": "true", "parquet.page.write-checksum.enabled": "false"},
    {"parquet.statistics.truncate.length": "1", "parquet.block.row.count.limit": "1"},
    *({"spark.sql.parquet.compression.codec": codec} for codec in ("none", "gzip", "zstd")),
    {"spark.sql.parquet.compression.codec": "lz4_raw"},
]


def test_files_of_any_settings_have_the_same_rows(table: Table) -> None:
    table.create(
        "i INT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, l ARRAY<INT>, m DECIMAL(9, 2), s STRING,"
        " x DOUBLE, f FLOAT, z BOOLEAN, w DECIMAL(38, 9)"
    )
    for values in SETTINGS:
        with session_conf(table.spark, values):
            table.spark.sql(
                f"INSERT INTO {table} SELECT CAST(id AS INT), DATE'1500-01-01' + CAST(id AS INT),"
                " TIMESTAMP'1500-01-01 00:00:00Z', TIMESTAMP_NTZ'1500-01-01', array(1, 2),"
                " CAST(id + 0.25 AS DECIMAL(9, 2)), concat('a rather long text ', id), id / 3,"
                " CAST(id / 7 AS FLOAT), id % 2 = 0, CAST(id AS DECIMAL(38, 9))"
                " FROM range(0, 20, 1, 1)"
            )
    publish(table.spark, table.name)
    proof = prove(table.spark, table.name, READERS)
    assert proof.proven, str(proof)
    assert proof.readings[0].rows == 20 * len(SETTINGS)
    assert not verify(table.spark, table.name).findings


@pytest.mark.parametrize("zone", ["Europe/Zurich"])
def test_partition_values_that_the_log_cannot_hold(table: Table, zone: str) -> None:
    table.create("a INT, p STRING, t TIMESTAMP", "PARTITIONED BY (p, t)")
    with session_conf(table.spark, {"spark.sql.session.timeZone": zone}):
        table.spark.sql(
            f"INSERT INTO {table} VALUES (1, '{MARKER}', TIMESTAMP'2026-10-25 00:30:00Z'),"
            " (2, '', TIMESTAMP'2026-10-25 01:30:00Z'), (3, CAST(X'FF61' AS STRING), null),"
            f" (4, ' {MARKER}', null), (5, null, null)"
        )
        publish(table.spark, table.name)
        proof = prove(table.spark, table.name, READERS)
        assert proof.proven, str(proof)
        nulls = table.spark.sql(f"SELECT a FROM {table} WHERE p IS NULL ORDER BY a").collect()
        assert [row.a for row in nulls] == [1, 2, 5]


def test_converted_partitions_without_a_value(table: Table) -> None:
    spark = table.spark
    spark.sql(f"CREATE TABLE {table} (i INT, p STRING, n INT) USING parquet PARTITIONED BY (p, n)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'x', 1), (2, null, null)")
    spark.sql(f"CONVERT TO DELTA {table}")
    assert (2, MARKER, None) in table.rows()
    with pytest.raises(Exception, match="UPGRADE_BLOCKED") as blocked:
        enable_iceberg_writer_compat(spark, table.name, rewrite=True)
    eval(str(blocked.value).rsplit("Run: ", 1)[1].splitlines()[0], {"spark": spark})
    before = rows(spark, table.name)
    assert before == [(1, "x", 1), (2, None, None)]
    enable_iceberg_writer_compat(spark, table.name, rewrite=True)
    assert rows(spark, table.name) == before
    publish(spark, table.name)
    proof = prove(spark, table.name, READERS)
    assert proof.proven, str(proof)
    assert not verify(spark, table.name).findings
