"""The rows that other readers get from a published table, with filters and without.

What a reader finds is compared with Delta's rows in plain Python, without any code of the product:
every row of every published version, and for each plain column the rows equal to, below and above
its values, and those with null. A wrong bound, partition value, id or count shows as a lost row.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow
import pytest
from pyiceberg import expressions
from pyiceberg.expressions import literals
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame

from conftest import Table, session_conf
from iceberg_writer_compat import (
    disable_iceberg_writer_compat,
    enable_iceberg_writer_compat,
    publish,
    verify,
)
from row_cases import CASES, ENABLED, Case
from test_publish import duck

__all__ = ["duck"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows(table: Table, duck: duckdb.DuckDBPyConnection, case: Case) -> None:
    more = case.more.replace("TBLPROPERTIES (", f"TBLPROPERTIES ({ENABLED}, ")
    if "TBLPROPERTIES" not in more:
        more += f" TBLPROPERTIES ({ENABLED})"
    with session_conf(table.spark, case.conf):
        table.spark.sql(f"CREATE TABLE {table} ({case.columns}) USING delta {more}")
        for statement in case.statements:
            run(table, statement)
        location = publish(table.spark, table.name).metadata_location
        found = verify(table.spark, table.name).findings
        # A clone has files elsewhere, which is no fault.
        assert [finding.found for finding in found if finding.severity != "info"] == []
    assert table.spark.table(table.name).count() == case.rows
    compare(table, duck, location, case)


def run(table: Table, line: str) -> None:
    what, _, rest = line.partition(" ")
    spark = table.spark
    if what == "PUBLISH":
        publish(spark, table.name)
    elif what == "EACH":
        with session_conf(spark, {"spark.sql.files.maxRecordsPerFile": "1"}):
            spark.sql(f"INSERT INTO {table} VALUES {rest}")
    elif what == "ROWS":
        spark.sql(f"INSERT INTO {table} VALUES {rest}")
    else:
        spark.sql(line.replace("{t}", table.name))


def compare(table: Table, duck: duckdb.DuckDBPyConnection, location: str, case: Case) -> None:
    """Compares all versions, and all filters on the newest."""
    iceberg = StaticTable.from_metadata(location)
    scan = f"iceberg_scan('{location}'"
    expected = table.spark.table(table.name).toArrow()
    wrong: list[str] = []

    def check(what: str, found: list[str], wanted: list[str]) -> None:
        if found != wanted:
            other = sorted(set(found) ^ set(wanted))[:4]
            wrong.append(f"{what}: {len(found)} rows instead of {len(wanted)}, such as {other}")

    def by_duckdb(source: str) -> list[str]:
        return rows(duck.execute(f"SELECT * FROM {source}").to_arrow_table())

    def by_pyiceberg(**scan: Any) -> list[str]:
        return rows(iceberg.scan(**scan).to_arrow())

    check("DuckDB", by_duckdb(f"{scan})"), rows(expected))
    if not case.unread:
        check("pyiceberg", by_pyiceberg(), rows(expected))
    for snapshot in iceberg.metadata.snapshots:
        assert snapshot.summary is not None
        version = snapshot.summary["delta-version"]
        then = rows(at_version(table, int(str(version))).toArrow())
        at = f"{scan}, snapshot_from_id = {snapshot.snapshot_id}::UBIGINT)"
        check(f"DuckDB at {version}", by_duckdb(at), then)
        if not case.unread:
            found = by_pyiceberg(snapshot_id=snapshot.snapshot_id)
            check(f"pyiceberg at {version}", found, then)
    for column, sign, value, kept in filters(expected):
        wanted = rows(expected.take(kept)) if kept else []
        what = f"{column} {sign} {value!r:.60}"
        kind = expected.schema.field(column).type
        check(f"DuckDB where {what}", by_duckdb(f"{scan}) WHERE {condition(column, sign, value, kind)}"), wanted)  # fmt: skip  # noqa: E501
        if not case.unread and column not in case.unfiltered:
            found = by_pyiceberg(row_filter=expression(column, sign, value, kind))
            check(f"pyiceberg where {what}", found, wanted)
    assert not wrong, "\n".join(wrong)


def at_version(table: Table, version: int) -> DataFrame:
    return table.spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}")


def rows(table: pyarrow.Table) -> list[str]:
    """All rows in an order, with the names of their columns."""
    columns = [bare(column) for column in table.columns]
    names = ",".join(table.column_names)
    return sorted(f"{names}: {row!r}" for row in zip(*columns, strict=True))


def bare(column: pyarrow.ChunkedArray) -> list[Any]:
    """Values without Python's classes for times, which have no negative years."""
    kind = column.type
    if pyarrow.types.is_timestamp(kind):
        column = column.cast(pyarrow.timestamp("us", kind.tz)).cast(pyarrow.int64())
    elif pyarrow.types.is_date(kind):
        column = column.cast(pyarrow.date32()).cast(pyarrow.int32())
    return [same(value) for value in column.to_pylist(maps_as_pydicts="strict")]


def same(value: Any) -> Any:
    """One form for what is equal to SQL."""
    if isinstance(value, dict):
        return {key: same(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return [same(item) for item in value]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, decimal.Decimal):
        return decimal.Context(prec=80).normalize(value)
    return value


SIGNS = {"=": operator.eq, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def filters(expected: pyarrow.Table) -> Iterator[tuple[str, str, Any, list[int]]]:
    """For each plain column, filters and the rows that they have to find."""
    for column, chunks in zip(expected.column_names, expected.columns, strict=True):
        if pyarrow.types.is_nested(chunks.type):
            continue
        found = bare(chunks)
        for sign in ("IS NULL", "IS NOT NULL"):
            wanted = sign == "IS NULL"
            yield column, sign, None, [i for i, v in enumerate(found) if (v is None) == wanted]
        values = sorted({v for v in found if v is not None and v != "nan"})
        for number, value in enumerate(values):
            for sign, test in SIGNS.items():
                # Readers do not agree on whether NaN is the greatest of all, or less than nothing.
                if "nan" in found and sign.startswith(">"):
                    continue
                # Each value by itself; ranges from the least, the greatest and some between.
                if sign != "=" and number % 5 and number != len(values) - 1:
                    continue
                kept = [i for i, v in enumerate(found) if v not in (None, "nan") and test(v, value)]
                yield column, sign, value, kept


def expression(column: str, sign: str, value: Any, kind: pyarrow.DataType) -> Any:
    """The filter for pyiceberg."""
    of_null: dict[str, Any] = {"IS NULL": expressions.IsNull, "IS NOT NULL": expressions.NotNull}
    if sign in of_null:
        return of_null[sign](column)
    if pyarrow.types.is_timestamp(kind):
        value = literals.TimestampLiteral(value)
    elif pyarrow.types.is_date(kind):
        value = literals.DateLiteral(value)
    elif isinstance(value, decimal.Decimal):
        value = value.quantize(decimal.Decimal(1).scaleb(-kind.scale), context=decimal.Context(80))
    compared = {
        "=": expressions.EqualTo,
        "<=": expressions.LessThanOrEqual,
        ">": expressions.GreaterThan,
        ">=": expressions.GreaterThanOrEqual,
    }
    return compared[sign](column, value)


def condition(column: str, sign: str, value: Any, kind: pyarrow.DataType) -> str:
    """The filter for DuckDB, with a constant, so that it passes over files."""
    quoted = '"' + column.replace('"', '""') + '"'
    return f"{quoted} {sign}" if value is None else f"{quoted} {sign} {constant(value, kind)}"


def constant(value: Any, kind: pyarrow.DataType) -> str:
    if pyarrow.types.is_timestamp(kind):
        made = f"make_timestamp({value}::BIGINT)"
        return f"timezone('UTC', {made})" if kind.tz else made
    if pyarrow.types.is_date(kind):
        return f"(DATE '1970-01-01' + {value})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
        return "(" + " || chr(0) || ".join(parts) + ")"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if isinstance(value, float):
        return f"'{value!r}'::DOUBLE"
    if isinstance(value, decimal.Decimal):
        return f"'{value:f}'::DECIMAL({kind.precision}, {kind.scale})"
    return str(value)


def test_a_partition_of_floats_that_became_doubles(
    table: Table, duck: duckdb.DuckDBPyConnection
) -> None:
    """Delta makes a double of the text in its log, which is not the float in the file."""
    spark = table.spark
    table.create("i INT, p FLOAT", "PARTITIONED BY (p)")
    disable_iceberg_writer_compat(spark, table.name)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    spark.sql(f"INSERT INTO {table} VALUES (1, 0.1), (2, 0.5), (3, null)")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN p TYPE DOUBLE")
    before = rows(spark.table(table.name).toArrow())
    assert before == ["i,p: (1, 0.1)", "i,p: (2, 0.5)", "i,p: (3, None)"]
    with pytest.raises(Exception, match="E5"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({ENABLED})")
    result = enable_iceberg_writer_compat(spark, table.name, rewrite=True)
    # The others have the same double in the log and in the file.
    assert (result.files_rewritten, result.files_kept) == (1, 2)
    assert rows(spark.table(table.name).toArrow()) == before
    location = publish(spark, table.name).metadata_location
    assert not verify(spark, table.name).findings
    compare(table, duck, location, Case("floats", "", "", 3, unfiltered=frozenset({"p"})))


def test_a_partition_of_floats_stays_one(table: Table) -> None:
    spark = table.spark
    table.create("i INT, p FLOAT", "PARTITIONED BY (p)")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    spark.sql(f"INSERT INTO {table} VALUES (1, 0.1)")
    version = table.log.version
    with pytest.raises(Exception, match=r"rule C14: .* 0\.10000000149011612"):
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN p TYPE DOUBLE")
    doubles = spark.sql("SELECT 2 AS i, 0.2D AS p")
    with pytest.raises(Exception, match="C14"):
        doubles.write.format("delta").option("mergeSchema", "true").mode("append").saveAsTable(
            table.name
        )
    assert table.log.version == version
