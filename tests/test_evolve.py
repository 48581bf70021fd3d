"""What happens to a table after it was created: each change leaves it right."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import oracle
from conftest import PROPERTIES, Table, rows


@pytest.fixture
def orders(table: Table) -> Table:
    """A table with nested columns and one row."""
    table.create("id INT, s STRUCT<x: INT>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>")
    table.spark.sql(
        f"""INSERT INTO {table} VALUES (1, named_struct('x', 10), array(named_struct('x', 100)),
            map('k', named_struct('x', 1000)))"""
    )
    return table


FIRST = (1, (10,), [(100,)], {"k": (1000,)})
# The first row, after the struct, the array and the map value got a second field.
FIRST_GROWN = (1, (10, None), [(100, None)], {"k": (1000, None)})
SECOND_GROWN = (2, (20, 21), [(200, 201)], {"k": (2000, 2001)})
SECOND_QUERY = """
    SELECT 2 AS id, named_struct('x', 20, 'y', 21) AS s, array(named_struct('x', 200, 'y', 201)) l,
           map('k', named_struct('x', 2000, 'y', 2001)) AS m
"""
NAMES = {
    "id": "col-1",
    "s": "col-2",
    "s.x": "col-3",
    "l": "col-4",
    "l.element.x": "col-5",
    "m": "col-6",
    "m.value.x": "col-7",
}


def assert_right(table: Table, expected: list[tuple[object, ...]]) -> None:
    assert oracle.check(table.folder) == []
    assert table.rows() == expected


def test_append(orders: Table) -> None:
    more = orders.spark.sql(
        """SELECT 2 AS id, named_struct('x', 20) AS s, array(named_struct('x', 200)) AS l,
           map('k', named_struct('x', 2000)) AS m"""
    )
    more.write.format("delta").mode("append").saveAsTable(orders.name)
    more.write.format("delta").mode("append").save(str(orders.folder))
    more.writeTo(orders.name).append()
    assert_right(orders, [FIRST, *[(2, (20,), [(200,)], {"k": (2000,)})] * 3])
    assert len(orders.log.files) == 4


def test_overwrite(orders: Table) -> None:
    frame = orders.spark.table(orders.name).selectExpr("id + 1 AS id", "s", "l", "m")
    frame.write.format("delta").mode("overwrite").saveAsTable(orders.name)
    assert_right(orders, [(2, *FIRST[1:])])
    orders.spark.sql(f"INSERT OVERWRITE {orders} SELECT 3, s, l, m FROM {orders}")
    assert_right(orders, [(3, *FIRST[1:])])
    frame.sparkSession.table(orders.name).limit(0).write.format("delta").mode("overwrite").option(
        "replaceWhere", "id = 3"
    ).saveAsTable(orders.name)
    assert_right(orders, [])
    assert orders.log.names == NAMES


def test_add_columns_at_every_depth(orders: Table) -> None:
    for column in ("s.y", "l.element.y", "m.value.y"):
        orders.spark.sql(f"ALTER TABLE {orders} ADD COLUMN {column} INT")
        assert oracle.check(orders.folder) == []
    orders.spark.sql(f"INSERT INTO {orders} {SECOND_QUERY}")
    assert_right(orders, [FIRST_GROWN, SECOND_GROWN])
    orders.spark.sql(f"ALTER TABLE {orders} ADD COLUMNS (n ARRAY<MAP<INT, STRUCT<z: INT>>> FIRST)")
    orders.spark.sql(
        f"INSERT INTO {orders} SELECT array(map(1, named_struct('z', 2))), * FROM ({SECOND_QUERY})"
    )
    assert_right(
        orders,
        [(None, *FIRST_GROWN), (None, *SECOND_GROWN), ([{1: (2,)}], *SECOND_GROWN)],
    )
    assert {path: orders.log.names[path] for path in NAMES} == NAMES


def test_rename_drop_and_add_again(orders: Table) -> None:
    sql = orders.spark.sql
    sql(f"ALTER TABLE {orders} RENAME COLUMN id TO key")
    sql(f"ALTER TABLE {orders} RENAME COLUMN s.x TO z")
    assert_right(orders, [FIRST])
    assert orders.log.names["key"] == "col-1"
    assert orders.log.names["s.z"] == "col-3"
    sql(f"ALTER TABLE {orders} DROP COLUMN key")
    assert_right(orders, [FIRST[1:]])
    sql(f"ALTER TABLE {orders} ADD COLUMN key INT FIRST")
    assert_right(orders, [(None, *FIRST[1:])])
    assert orders.log.names["key"] not in NAMES.values()


def test_reorder_and_comment(orders: Table) -> None:
    orders.spark.sql(f"ALTER TABLE {orders} ALTER COLUMN m FIRST")
    orders.spark.sql(f"ALTER TABLE {orders} ALTER COLUMN id COMMENT 'the key'")
    assert_right(orders, [(FIRST[3], *FIRST[:3])])
    assert orders.log.names == NAMES


def second(spark: SparkSession) -> DataFrame:
    return spark.sql(SECOND_QUERY)


def test_merge_schema_by_option(orders: Table) -> None:
    frame = second(orders.spark)
    frame.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(
        orders.name
    )
    assert_right(orders, [FIRST_GROWN, SECOND_GROWN])
    frame.selectExpr("*", "'new' AS n").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(str(orders.folder))
    assert_right(orders, [(*FIRST_GROWN, None), (*SECOND_GROWN, "new"), (*SECOND_GROWN, None)])


def test_merge_with_schema_evolution(orders: Table) -> None:
    second(orders.spark).selectExpr("*", "'new' AS n").createOrReplaceTempView("source")
    orders.spark.sql(
        f"""MERGE WITH SCHEMA EVOLUTION INTO {orders} t USING source s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    )
    assert_right(orders, [(*FIRST_GROWN, None), (*SECOND_GROWN, "new")])


def test_overwrite_schema(orders: Table) -> None:
    frame = orders.spark.sql("SELECT 'one' AS id, array(named_struct('z', 1)) AS fresh")
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable(
        orders.name
    )
    assert_right(orders, [("one", [(1,)])])
    assert not set(orders.log.names.values()) & set(NAMES.values())


def test_overwrite_schema_keeps_the_columns_that_stay(orders: Table) -> None:
    second(orders.spark).write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).saveAsTable(orders.name)
    assert_right(orders, [SECOND_GROWN])


def test_create_or_replace_keeps_the_feature(orders: Table) -> None:
    orders.spark.sql(f"CREATE OR REPLACE TABLE {orders} USING delta {PROPERTIES} AS {SECOND_QUERY}")
    assert_right(orders, [SECOND_GROWN])


def test_update_delete_and_optimize(orders: Table) -> None:
    sql = orders.spark.sql
    sql(f"INSERT INTO {orders} SELECT 2, s, l, m FROM {orders}")
    sql(f"UPDATE {orders} SET s.x = 11 WHERE id = 1")
    sql(f"DELETE FROM {orders} WHERE id = 2")
    sql(f"INSERT INTO {orders} SELECT 3, s, l, m FROM {orders}")
    sql(f"OPTIMIZE {orders}")
    assert_right(orders, [(1, (11,), *FIRST[2:]), (3, (11,), *FIRST[2:])])
    assert len(orders.log.files) == 1


def test_restore(orders: Table) -> None:
    orders.spark.sql(f"ALTER TABLE {orders} ADD COLUMN n INT")
    orders.spark.sql(f"INSERT INTO {orders} SELECT 2, s, l, m, 5 FROM {orders}")
    orders.spark.sql(f"RESTORE TABLE {orders} TO VERSION AS OF 1")
    assert_right(orders, [FIRST])
    orders.spark.sql(f"ALTER TABLE {orders} ADD COLUMN other STRING")
    assert_right(orders, [(*FIRST, None)])


# --- streams and threads --------------------------------------------------------------------------


@pytest.fixture
def source(orders: Table, tmp_path: Path) -> Path:
    """A folder to stream from, with one row that has new fields at every depth."""
    second(orders.spark).write.format("delta").save(str(tmp_path / "source"))
    return tmp_path / "source"


def test_streaming_append(orders: Table, source: Path, tmp_path: Path) -> None:
    stream = orders.spark.readStream.format("delta").load(str(source))
    stream.writeStream.format("delta").option("mergeSchema", "true").option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    ).trigger(availableNow=True).toTable(orders.name).awaitTermination()
    assert_right(orders, [FIRST_GROWN, SECOND_GROWN])


def test_foreach_batch_creates_and_evolves(
    orders: Table, table: Table, source: Path, tmp_path: Path
) -> None:
    created = f"{table}_created"

    def write(batch: DataFrame, number: int) -> None:
        batch.write.format("delta").mode("append").option("mergeSchema", "true").saveAsTable(
            orders.name
        )
        batch.sparkSession.sql(f"CREATE TABLE {created} USING delta {PROPERTIES} AS {SECOND_QUERY}")

    stream = orders.spark.readStream.format("delta").load(str(source))
    stream.writeStream.foreachBatch(write).option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    ).trigger(availableNow=True).start().awaitTermination()
    assert_right(orders, [FIRST_GROWN, SECOND_GROWN])
    assert oracle.check(orders.folder.with_name(created)) == []
    assert rows(orders.spark, created) == [SECOND_GROWN]
    orders.spark.sql(f"DROP TABLE {created}")


def test_thread_pool(orders: Table) -> None:
    names = [f"{orders}_thread{number}" for number in range(4)]

    def work(name: str) -> list[tuple[object, ...]]:
        orders.spark.sql(f"CREATE TABLE {name} USING delta {PROPERTIES} AS {SECOND_QUERY}")
        orders.spark.sql(f"ALTER TABLE {name} ADD COLUMN n INT")
        orders.spark.sql(f"INSERT INTO {orders} VALUES (2, NULL, NULL, NULL)")
        return rows(orders.spark, name)

    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        assert list(pool.map(work, names)) == [[(*SECOND_GROWN, None)]] * len(names)
    for name in names:
        assert oracle.check(orders.folder.with_name(name)) == []
        orders.spark.sql(f"DROP TABLE {name}")
    assert_right(orders, [FIRST, *[(2, None, None, None)] * len(names)])


def test_new_session(orders: Table) -> None:
    other = orders.spark.newSession()
    other.sql(f"ALTER TABLE {orders} ADD COLUMN n STRUCT<z: INT>")
    other.sql(f"INSERT INTO {orders} SELECT 2, s, l, m, named_struct('z', 1) FROM {orders}")
    assert_right(orders, [(*FIRST, None), (2, *FIRST[1:], (1,))])
    created = f"{orders}_other"
    other.sql(f"CREATE TABLE {created} USING delta {PROPERTIES} AS {SECOND_QUERY}")
    assert oracle.check(orders.folder.with_name(created)) == []
    other.sql(f"DROP TABLE {created}")
