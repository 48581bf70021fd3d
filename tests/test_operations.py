"""Operations and what each must leave behind: rows, log and footers, or an untouched table."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import oracle
from conftest import PROPERTIES, PROPERTY, Table, session_conf

VIOLATION = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION"
COLUMNS = "id INT, p STRING, v STRING"
ROWS = [(1, "a", "one"), (2, "a", "two"), (3, "b", "three")]
VALUES = "(1, 'a', 'one'), (2, 'a', 'two'), (3, 'b', 'three')"

Action = Callable[[Table], object]
Rows = list[tuple[Any, ...]]


def sql(*statements: str) -> Action:
    """Runs statements in which {t} is the table."""

    def run(table: Table) -> None:
        for statement in statements:
            table.spark.sql(statement.format(t=table, folder=table.folder)).collect()

    return run


def with_conf(key: str, value: str, action: Action) -> Action:
    """Runs an action under a session setting."""

    def run(table: Table) -> None:
        with session_conf(table.spark, {key: value}):
            action(table)

    return run


def frame(spark: SparkSession, values: str, columns: str = "id, p, v") -> DataFrame:
    """A frame of literal rows."""
    return spark.sql(f"SELECT * FROM VALUES {values} AS rows({columns})")


def write(mode: str, values: str, **options: str) -> Action:
    """Writes literal rows by path with the DataFrame writer."""
    return lambda table: (
        frame(table.spark, values)
        .write.format("delta")
        .mode(mode)
        .options(**options)
        .save(str(table.folder))
    )


def stream(mode: str, batch: bool = False) -> Action:
    """Streams the rows of a plain table into the table, three times as many at the end."""

    def run(table: Table) -> None:
        source = table.folder.parent / f"{table.name}_source"
        frame(table.spark, VALUES).write.format("delta").mode("append").save(str(source))
        rows = table.spark.readStream.format("delta").load(str(source))
        if mode == "complete":
            rows = rows.groupBy("p").count().selectExpr("CAST(count AS INT) id", "p", "'n' v")
        writer = rows.writeStream.option(
            "checkpointLocation", str(table.folder.parent / f"{table.name}_checkpoint")
        ).trigger(availableNow=True)
        if batch:
            query = writer.foreachBatch(
                lambda f, _: f.write.format("delta").mode("append").save(str(table.folder))
            ).start()
        else:
            query = writer.outputMode(mode).format("delta").start(str(table.folder))
        query.awaitTermination()

    return run


MERGE = """MERGE {clause} INTO {{t}} t USING (SELECT 2 AS id, 'a' AS p, 'TWO' AS v{more}
    UNION ALL SELECT 4, 'c', 'four'{more}) s ON t.id = s.id
    WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
    WHEN NOT MATCHED BY SOURCE AND t.id = 3 THEN DELETE"""
UPSERTED = [(1, "a", "one"), (2, "a", "TWO"), (4, "c", "four")]


@dataclass(frozen=True)
class Accepted:
    """An operation that must succeed."""

    name: str
    action: Action
    rows: Rows
    layout: str = ""
    log: Callable[[oracle.Log], bool] = field(default=lambda log: True)
    keeps_history: bool = True

    def __str__(self) -> str:
        """The name of the test case."""
        return self.name


def same_names(log: oracle.Log) -> bool:
    """The columns are still those of the CREATE statement."""
    return log.names == {"id": "col-1", "p": "col-2", "v": "col-3"}


PARTITIONED = "PARTITIONED BY (p)"
CLUSTERED = "CLUSTER BY (id)"

ACCEPTED = [
    Accepted(
        "insert",
        sql("INSERT INTO {t} VALUES (4, 'c', 'four')"),
        [*ROWS, (4, "c", "four")],
    ),
    Accepted(
        "insert into partitions",
        sql("INSERT INTO {t} VALUES (4, 'c', 'four'), (5, NULL, 'five')"),
        [*ROWS, (4, "c", "four"), (5, None, "five")],
        PARTITIONED,
    ),
    Accepted(
        "insert overwrite",
        sql("INSERT OVERWRITE {t} VALUES (4, 'c', 'four')"),
        [(4, "c", "four")],
        log=same_names,
    ),
    Accepted(
        "insert replace where",
        sql("INSERT INTO {t} REPLACE WHERE p = 'a' VALUES (9, 'a', 'nine')"),
        [(3, "b", "three"), (9, "a", "nine")],
        PARTITIONED,
    ),
    Accepted(
        "dynamic partition overwrite",
        with_conf(
            "spark.sql.sources.partitionOverwriteMode",
            "dynamic",
            sql("INSERT OVERWRITE {t} VALUES (9, 'a', 'nine')"),
        ),
        [(3, "b", "three"), (9, "a", "nine")],
        PARTITIONED,
    ),
    Accepted(
        "frame append",
        write("append", "(4, 'c', 'four')"),
        [*ROWS, (4, "c", "four")],
        PARTITIONED,
    ),
    Accepted("frame overwrite", write("overwrite", "(4, 'c', 'four')"), [(4, "c", "four")]),
    Accepted(
        "frame replace where",
        write("overwrite", "(9, 'b', 'nine')", replaceWhere="p = 'b'"),
        [*ROWS[:2], (9, "b", "nine")],
    ),
    Accepted(
        "update",
        sql("UPDATE {t} SET v = upper(v) WHERE id = 2"),
        [*UPSERTED[:2], ROWS[2]],
    ),
    Accepted(
        "update partition column",
        sql("UPDATE {t} SET p = 'z' WHERE id = 3"),
        [*ROWS[:2], (3, "z", "three")],
        PARTITIONED,
    ),
    Accepted("delete rows", sql("DELETE FROM {t} WHERE id = 1"), ROWS[1:]),
    Accepted("delete partition", sql("DELETE FROM {t} WHERE p = 'a'"), ROWS[2:], PARTITIONED),
    Accepted(
        "delete all",
        sql("DELETE FROM {t}", "INSERT INTO {t} VALUES (1, 'a', 'one')"),
        ROWS[:1],
    ),
    Accepted("truncate", sql("TRUNCATE TABLE {t}"), []),
    Accepted("merge", sql(MERGE.format(clause="", more="")), UPSERTED),
    Accepted(
        "merge in partitions",
        sql(MERGE.format(clause="", more="")),
        UPSERTED,
        PARTITIONED,
    ),
    Accepted(
        "merge with schema evolution",
        sql(MERGE.format(clause="WITH SCHEMA EVOLUTION", more=", array(1) AS extra")),
        [(1, "a", "one", None), (2, "a", "TWO", [1]), (4, "c", "four", [1])],
        log=lambda log: log.names["extra"] == "col-4",
    ),
    Accepted("stream append", stream("append"), sorted([*ROWS, *ROWS]), PARTITIONED),
    Accepted("stream complete", stream("complete"), [(1, "b", "n"), (2, "a", "n")]),
    Accepted("stream by batches", stream("append", batch=True), sorted([*ROWS, *ROWS])),
    Accepted(
        "add, rename, drop, reorder",
        sql(
            "ALTER TABLE {t} ADD COLUMNS (w STRUCT<x: ARRAY<INT>> AFTER id)",
            "ALTER TABLE {t} RENAME COLUMN v TO value",
            "ALTER TABLE {t} ALTER COLUMN value FIRST",
            "ALTER TABLE {t} DROP COLUMN w",
        ),
        [("one", 1, "a"), ("three", 3, "b"), ("two", 2, "a")],
        log=lambda log: log.names == {"value": "col-3", "id": "col-1", "p": "col-2"},
    ),
    Accepted(
        "comment",
        sql("ALTER TABLE {t} ALTER COLUMN v COMMENT 'text'"),
        ROWS,
        log=same_names,
    ),
    Accepted(
        "widen int to long",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
            "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
            "INSERT INTO {t} VALUES (5000000000, 'c', 'big')",
        ),
        [*ROWS, (5000000000, "c", "big")],
        log=lambda log: same_names(log) and "typeWidening" in log.protocol["writerFeatures"],
    ),
    Accepted(
        "cluster by, then not",
        sql(
            "ALTER TABLE {t} CLUSTER BY (v)",
            "OPTIMIZE {t}",
            "ALTER TABLE {t} CLUSTER BY NONE",
            "INSERT INTO {t} VALUES (4, 'c', 'four')",
        ),
        [*ROWS, (4, "c", "four")],
        CLUSTERED,
    ),
    Accepted(
        "set and unset properties",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'my.own' = 'x')",
            "INSERT INTO {t} VALUES (4, 'c', 'four')",
            "ALTER TABLE {t} UNSET TBLPROPERTIES ('delta.appendOnly', 'my.own')",
        ),
        [*ROWS, (4, "c", "four")],
    ),
    Accepted(
        "optimize",
        sql("INSERT INTO {t} VALUES (4, 'c', 'four')", "OPTIMIZE {t}"),
        [*ROWS, (4, "c", "four")],
    ),
    Accepted(
        "optimize a partition",
        sql("INSERT INTO {t} VALUES (4, 'a', 'four')", "OPTIMIZE {t} WHERE p = 'a'"),
        [*ROWS, (4, "a", "four")],
        PARTITIONED,
    ),
    Accepted("z-order", sql("OPTIMIZE {t} ZORDER BY (id, v)"), ROWS),
    Accepted(
        "reorg purge",
        sql("ALTER TABLE {t} DROP COLUMN v", "REORG TABLE {t} APPLY (PURGE)"),
        [r[:2] for r in ROWS],
    ),
    Accepted(
        "auto compaction",
        with_conf(
            "spark.databricks.delta.autoCompact.enabled",
            "true",
            with_conf(
                "spark.databricks.delta.autoCompact.minNumFiles",
                "2",
                sql(
                    "INSERT INTO {t} VALUES (4, 'c', 'four')",
                    "INSERT INTO {t} VALUES (5, 'c', 'five')",
                ),
            ),
        ),
        [*ROWS, (4, "c", "four"), (5, "c", "five")],
        log=lambda log: len(log.files) == 1,
    ),
    Accepted(
        "optimized write",
        with_conf(
            "spark.databricks.delta.optimizeWrite.enabled",
            "true",
            sql("INSERT INTO {t} VALUES (4, 'c', 'four')"),
        ),
        [*ROWS, (4, "c", "four")],
        PARTITIONED,
    ),
    Accepted(
        "vacuum",
        with_conf(
            "spark.databricks.delta.retentionDurationCheck.enabled",
            "false",
            sql("UPDATE {t} SET v = upper(v)", "VACUUM {t} RETAIN 0 HOURS"),
        ),
        [(1, "a", "ONE"), (2, "a", "TWO"), (3, "b", "THREE")],
        keeps_history=False,
    ),
    Accepted(
        "restore",
        sql("DELETE FROM {t}", "RESTORE TABLE {t} TO VERSION AS OF 1"),
        ROWS,
        PARTITIONED,
    ),
    Accepted(
        "restore to fewer columns, then add one",
        sql(
            "ALTER TABLE {t} ADD COLUMN late INT",
            "RESTORE TABLE {t} TO VERSION AS OF 1",
            "ALTER TABLE {t} ADD COLUMN other INT",
        ),
        [(*row, None) for row in ROWS],
        log=lambda log: log.names["other"] == "col-5",
    ),
    Accepted(
        "restore to before a widening",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
            "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
            "RESTORE TABLE {t} TO VERSION AS OF 1",
        ),
        ROWS,
        log=same_names,
    ),
    Accepted(
        "drop the feature and take it on again",
        sql(
            "ALTER TABLE {t} DROP FEATURE icebergWriterCompatV1",
            "INSERT INTO {t} VALUES (4, 'c', 'four')",
            f"ALTER TABLE {{t}} SET {PROPERTIES}",
        ),
        [*ROWS, (4, "c", "four")],
        PARTITIONED,
    ),
    Accepted(
        "replace",
        sql("CREATE OR REPLACE TABLE {t} (id INT, p STRING, v BIGINT) USING delta " + PARTITIONED),
        [],
        PARTITIONED,
        log=lambda log: log.names == {"id": "col-1", "p": "col-2", "v": "col-4"},
    ),
    Accepted(
        "replace as select from itself",
        sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT *, array(id) AS l FROM {t}"),
        [(*row, [row[0]]) for row in ROWS],
        log=lambda log: log.names["id"] == "col-1" and log.names["l"] == "col-4",
    ),
    Accepted(
        "partition an unpartitioned table by replacing it",
        sql("CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (p) AS SELECT * FROM {t}"),
        ROWS,
    ),
    Accepted(
        "checkpoints",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')",
            "INSERT INTO {t} VALUES (4, 'c', 'four')",
            "INSERT INTO {t} VALUES (5, 'c', 'five')",
        ),
        [*ROWS, (4, "c", "four"), (5, "c", "five")],
    ),
    Accepted("z-order in partitions", sql("OPTIMIZE {t} ZORDER BY (id)"), ROWS, PARTITIONED),
    Accepted(
        "comment on the table",
        sql("COMMENT ON TABLE {t} IS 'text'"),
        ROWS,
        log=lambda log: log.metadata["description"] == "text" and same_names(log),
    ),
    Accepted(
        "key in another case",
        sql("ALTER TABLE {t} SET TBLPROPERTIES ('Delta.EnableIcebergWriterCompatV1' = 'TRUE')"),
        ROWS,
        log=lambda log: (
            {k: v for k, v in log.properties.items() if k.lower() == PROPERTY.lower()}
            == {PROPERTY: "true"}
        ),
    ),
    Accepted(
        "v2 checkpoints",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
            "'delta.checkpointInterval' = '1')",
            "INSERT INTO {t} VALUES (4, 'c', 'four')",
        ),
        [*ROWS, (4, "c", "four")],
        log=lambda log: "v2Checkpoint" in log.protocol["readerFeatures"],
    ),
    Accepted(
        "in-commit timestamps",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
            "INSERT INTO {t} VALUES (4, 'c', 'four')",
        ),
        [*ROWS, (4, "c", "four")],
        log=lambda log: "inCommitTimestamp" in log.protocol["writerFeatures"],
    ),
    Accepted(
        "vacuum protocol check",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.vacuumProtocolCheck' = 'supported')",
            "INSERT INTO {t} VALUES (4, 'c', 'four')",
        ),
        [*ROWS, (4, "c", "four")],
    ),
    Accepted(
        "timestamps without time zone",
        sql(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')",
            "ALTER TABLE {t} ADD COLUMN n TIMESTAMP_NTZ",
        ),
        [(*row, None) for row in ROWS],
        log=lambda log: "timestampNtz" in log.protocol["readerFeatures"],
    ),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_accepted(table: Table, case: Accepted) -> None:
    table.create_with(VALUES, COLUMNS, case.layout)
    case.action(table)
    assert oracle.check(table.folder) == []
    assert table.rows() == sorted(case.rows, key=repr)
    assert case.log(table.log), table.log.names
    if case.keeps_history:
        old = table.spark.sql(f"SELECT * FROM {table} VERSION AS OF 1").collect()
        assert sorted(map(tuple, old)) == ROWS


def test_time_travel(table: Table) -> None:
    """Each version reads as it was, by its own columns, by version and by time."""
    table.create(COLUMNS, PARTITIONED)
    sql(
        f"INSERT INTO {{t}} VALUES {VALUES}",
        "ALTER TABLE {t} RENAME COLUMN v TO value",
        "ALTER TABLE {t} ADD COLUMN l ARRAY<INT>",
        "DELETE FROM {t} WHERE id > 1",
    )(table)
    history = table.spark.sql(f"DESCRIBE HISTORY {table}").collect()
    times = {row["version"]: row["timestamp"] for row in history}
    longer = [(*row, None) for row in ROWS]
    expected = [(3, []), (3, ROWS), (3, ROWS), (4, longer), (4, longer[:1])]
    for version, (width, rows) in enumerate(expected):
        for clause in (
            f"VERSION AS OF {version}",
            f"TIMESTAMP AS OF '{times[version]}'",
        ):
            old = table.spark.sql(f"SELECT * FROM {table} {clause}")
            assert len(old.columns) == width
            assert sorted(map(tuple, old.collect())) == rows
    assert oracle.check(table.folder) == []


def test_nullability(table: Table) -> None:
    """A required column may become nullable; the way back is closed while rows stay."""
    table.create("id INT NOT NULL, s STRUCT<x: INT NOT NULL> NOT NULL, v STRING")
    insert = "INSERT INTO {t} SELECT 1, named_struct('x', 1), 'one'"
    sql(insert)(table)
    with pytest.raises(Py4JJavaError, match="NOT_NULL"):
        table.spark.sql(f"INSERT INTO {table} SELECT NULL, named_struct('x', 1), 'one'")
    sql(
        "ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL",
        "ALTER TABLE {t} ALTER COLUMN s.x DROP NOT NULL",
        "INSERT INTO {t} SELECT NULL, named_struct('x', NULL), 'two'",
    )(table)
    version = table.log.version
    for column in ("id", "s.x", "v"):
        with pytest.raises(PySparkException):
            table.spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL")
    with pytest.raises(PySparkException):
        table.spark.sql(f"ALTER TABLE {table} ADD COLUMN w INT NOT NULL")
    assert oracle.versions(table.folder) == list(range(version + 1))
    assert table.rows() == [(1, (1,), "one"), (None, (None,), "two")]
    assert oracle.check(table.folder) == []


def test_log_clean_up(table: Table) -> None:
    """Once a checkpoint has taken over from old commits, the table is what it was."""
    table.create(COLUMNS)
    sql(
        f"INSERT INTO {{t}} VALUES {VALUES}",
        "ALTER TABLE {t} ADD COLUMN w INT",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '2', "
        "'delta.logRetentionDuration' = 'interval 1 days', "
        "'delta.deletedFileRetentionDuration' = 'interval 1 days')",
    )(table)
    names = table.log.names
    long_ago = time.time() - 10 * 24 * 3600
    for path in (table.folder / "_delta_log").iterdir():
        os.utime(path, (long_ago, long_ago))
    for number in range(4, 8):
        table.spark.sql(f"INSERT INTO {table} VALUES ({number}, 'd', 'more', 1)")
    assert 0 not in oracle.versions(table.folder)
    with pytest.raises(PySparkException, match="SMALLINT"):
        table.spark.sql(f"ALTER TABLE {table} ADD COLUMN s SMALLINT")
    sql("ALTER TABLE {t} ADD COLUMN l ARRAY<INT>", "DELETE FROM {t} WHERE id > 3")(table)
    assert table.rows() == [(*row, None, None) for row in ROWS]
    # What the checkpoint holds of the table, a stranger reads again from the metadata.
    commit = oracle.versions(table.folder)[-2]
    text = (table.folder / "_delta_log" / f"{commit:020}.json").read_text(encoding="utf-8")
    metadata = next(json.loads(line) for line in text.splitlines() if '"metaData"' in line)
    again = oracle.Log(commit, {}, metadata["metaData"], (), ())
    assert again.names == names | {"l": "col-5"}
    assert again.properties[PROPERTY] == "true"
    assert again.properties["delta.columnMapping.maxColumnId"] == "6"


@dataclass(frozen=True)
class Refused:
    """An operation that must change nothing."""

    name: str
    action: Action
    condition: str
    mentions: tuple[str, ...]
    layout: str = ""
    prepare: Action = field(default=lambda table: None)

    def __str__(self) -> str:
        """The name of the test case."""
        return self.name


def property_set(key: str, value: str) -> Action:
    """Sets one property."""
    return sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{key}' = '{value}')")


WIDENING = property_set("delta.enableTypeWidening", "true")

REFUSED = [
    Refused(
        "unset",
        sql(f"ALTER TABLE {{t}} UNSET TBLPROPERTIES ('{PROPERTY}')"),
        "DISABLING_REQUIRED_TABLE_FEATURE",
        ("DROP FEATURE icebergWriterCompatV1",),
    ),
    Refused(
        "set to false",
        property_set(PROPERTY, "False"),
        "DISABLING_REQUIRED_TABLE_FEATURE",
        ("DROP FEATURE",),
    ),
    Refused(
        "key in another case",
        property_set(PROPERTY.upper(), "FALSE"),
        "DISABLING_REQUIRED_TABLE_FEATURE",
        ("DROP FEATURE",),
    ),
    Refused(
        "change data feed",
        property_set("delta.enableChangeDataFeed", "true"),
        "WRONG_REQUIRED_TABLE_PROPERTY",
        ("delta.enableChangeDataFeed", "B7"),
    ),
    Refused(
        "row tracking",
        property_set("delta.enableRowTracking", "true"),
        "WRONG_REQUIRED_TABLE_PROPERTY",
        ("delta.enableRowTracking",),
    ),
    Refused(
        "deletion vectors",
        property_set("delta.enableDeletionVectors", "TRUE"),
        "WRONG_REQUIRED_TABLE_PROPERTY",
        ("delta.enableDeletionVectors",),
    ),
    Refused(
        "IcebergCompatV3",
        property_set("delta.enableIcebergCompatV3", "true"),
        "WRONG_REQUIRED_TABLE_PROPERTY",
        ("delta.enableIcebergCompatV3",),
    ),
    Refused(
        "mapping by name",
        property_set("delta.columnMapping.mode", "name"),
        "WRONG_REQUIRED_TABLE_PROPERTY",
        ("delta.columnMapping.mode",),
    ),
    Refused(
        "row tracking feature",
        property_set("delta.feature.rowTracking", "supported"),
        "INCOMPATIBLE_TABLE_FEATURE",
        ("rowTracking", "rfc-current"),
    ),
    Refused(
        "column defaults",
        property_set("delta.feature.allowColumnDefaults", "supported"),
        "INCOMPATIBLE_TABLE_FEATURE",
        ("allowColumnDefaults",),
    ),
    Refused(
        "preview of type widening",
        property_set("delta.feature.typeWidening-preview", "supported"),
        "INCOMPATIBLE_TABLE_FEATURE",
        ("typeWidening-preview", "rfc-current"),
    ),
    Refused(
        "check constraint",
        sql("ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)"),
        "INCOMPATIBLE_TABLE_FEATURE",
        ("positive", "B8"),
    ),
    Refused(
        "byte column",
        sql("ALTER TABLE {t} ADD COLUMN b TINYINT"),
        "UNSUPPORTED_DATA_TYPE",
        ("TINYINT", "INT"),
    ),
    Refused(
        "short element",
        sql("ALTER TABLE {t} ADD COLUMN b ARRAY<SMALLINT>"),
        "UNSUPPORTED_DATA_TYPE",
        ("b.element",),
    ),
    Refused(
        "byte key",
        sql("ALTER TABLE {t} ADD COLUMN b MAP<TINYINT, INT>"),
        "UNSUPPORTED_DATA_TYPE",
        ("b.key",),
    ),
    Refused(
        "short value",
        sql("ALTER TABLE {t} ADD COLUMN b MAP<INT, STRUCT<s: SMALLINT>>"),
        "UNSUPPORTED_DATA_TYPE",
        ("b.value.s",),
    ),
    Refused(
        "variant",
        sql("ALTER TABLE {t} ADD COLUMN b VARIANT"),
        "UNSUPPORTED_DATA_TYPE",
        ("VARIANT",),
    ),
    Refused(
        "collation",
        sql("ALTER TABLE {t} ADD COLUMN b STRING COLLATE UNICODE_CI"),
        "UNSUPPORTED_DATA_TYPE",
        ("b",),
    ),
    Refused(
        "short in an evolving write",
        lambda t: (
            t.spark.sql("SELECT 4 AS id, 'c' AS p, 'four' AS v, 1S AS s")
            .write.format("delta")
            .mode("append")
            .option("mergeSchema", "true")
            .save(str(t.folder))
        ),
        "UNSUPPORTED_DATA_TYPE",
        ("SMALLINT", "C7"),
    ),
    Refused(
        "int to double",
        sql("ALTER TABLE {t} ALTER COLUMN id TYPE DOUBLE"),
        "INCOMPATIBLE_SCHEMA_CHANGE",
        ("id", "DOUBLE"),
        prepare=WIDENING,
    ),
    Refused(
        "int to decimal",
        sql("ALTER TABLE {t} ALTER COLUMN id TYPE DECIMAL(20, 2)"),
        "INCOMPATIBLE_SCHEMA_CHANGE",
        ("id",),
        prepare=WIDENING,
    ),
    Refused(
        "reserved name",
        sql("ALTER TABLE {t} ADD COLUMN _POS INT"),
        "INCOMPATIBLE_COLUMN_NAME",
        ("_POS",),
    ),
    Refused(
        "rename to a reserved name",
        sql("ALTER TABLE {t} RENAME COLUMN v TO _file"),
        "INCOMPATIBLE_COLUMN_NAME",
        ("_file",),
    ),
    Refused(
        "dotted name that collides",
        sql("ALTER TABLE {t} ADD COLUMN `s.x` INT"),
        "INCOMPATIBLE_COLUMN_NAME",
        ("s.x", "N1"),
        prepare=sql("ALTER TABLE {t} ADD COLUMN s STRUCT<x: INT>"),
    ),
    Refused(
        "short name of a list's field in other letters",
        sql("ALTER TABLE {t} ADD COLUMN `L.X` INT"),
        "INCOMPATIBLE_COLUMN_NAME",
        ("L.X", "l.element.x", "N1"),
        prepare=sql("ALTER TABLE {t} ADD COLUMN l ARRAY<STRUCT<x: INT>>"),
    ),
    Refused(
        "field in a map key",
        sql("ALTER TABLE {t} ADD COLUMN m.key.y INT"),
        "CANNOT_CHANGE_MAP_STRUCT_KEY",
        ("m.key", "C17"),
        prepare=sql("ALTER TABLE {t} ADD COLUMN m MAP<STRUCT<x: INT>, INT>"),
    ),
    Refused(
        "rename in a map key",
        sql("ALTER TABLE {t} RENAME COLUMN m.key.x TO y"),
        "CANNOT_CHANGE_MAP_STRUCT_KEY",
        ("m.key",),
        prepare=sql("ALTER TABLE {t} ADD COLUMN m MAP<STRUCT<x: INT>, INT>"),
    ),
    Refused(
        "unpartition by replacing",
        sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {t}"),
        "INCOMPATIBLE_PARTITIONING",
        ("C15",),
        PARTITIONED,
    ),
    Refused(
        "rename the partition column",
        sql("ALTER TABLE {t} RENAME COLUMN p TO q"),
        "INCOMPATIBLE_PARTITIONING",
        ("C15", "p"),
        PARTITIONED,
    ),
    Refused(
        "replace and switch off",
        sql(
            "CREATE OR REPLACE TABLE {t} (a INT) USING delta "
            f"TBLPROPERTIES ('{PROPERTY}' = 'false')"
        ),
        "DISABLING_REQUIRED_TABLE_FEATURE",
        ("DROP FEATURE",),
    ),
    Refused(
        "replace with a short",
        sql("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1S AS s"),
        "UNSUPPORTED_DATA_TYPE",
        ("SMALLINT",),
    ),
    Refused(
        "restore to before the feature",
        sql("RESTORE TABLE {t} TO VERSION AS OF 2"),
        "DISABLING_REQUIRED_TABLE_FEATURE",
        ("DROP FEATURE",),
        prepare=sql(
            "ALTER TABLE {t} DROP FEATURE icebergWriterCompatV1",
            f"ALTER TABLE {{t}} SET {PROPERTIES}",
        ),
    ),
    Refused(
        "clone a plain table over it",
        sql(
            "CREATE TABLE {t}_plain USING delta AS SELECT 1 AS a",
            "CREATE OR REPLACE TABLE {t} SHALLOW CLONE {t}_plain",
        ),
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        ("id",),
        prepare=sql("TRUNCATE TABLE {t}"),
    ),
    Refused(
        "drop a feature in several commits",
        sql("ALTER TABLE {t} DROP FEATURE vacuumProtocolCheck"),
        "INCOMPATIBLE_TABLE_FEATURE",
        ("checkpointProtection", "TRUNCATE HISTORY", "rfc-current"),
        prepare=property_set("delta.feature.vacuumProtocolCheck", "supported"),
    ),
    Refused(
        "partition values in local time",
        with_conf(
            "spark.databricks.delta.write.utcTimestampPartitionValues",
            "false",
            sql("INSERT INTO {t} VALUES (2, TIMESTAMP'2024-01-01 00:00:00', 'x')"),
        ),
        "INCOMPATIBLE_FILE_ACTION",
        ("D4", "utcTimestampPartitionValues=true"),
        "(PARTITION BY TIMESTAMP)",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(table: Table, case: Refused) -> None:
    if case.layout == "(PARTITION BY TIMESTAMP)":
        table.create("id INT, p TIMESTAMP, v STRING", PARTITIONED)
        table.spark.sql(f"INSERT INTO {table} VALUES (1, TIMESTAMP'2024-01-01 00:00:00', 'x')")
    else:
        table.create_with(VALUES, COLUMNS, case.layout)
    case.prepare(table)
    version, rows, log = table.log.version, table.rows(), table.log
    with pytest.raises(PySparkException) as refused:
        case.action(table)
    error = refused.value
    if case.condition.startswith("DELTA_"):
        assert error.getCondition() == case.condition
    else:
        assert error.getCondition() == f"{VIOLATION}.{case.condition}", str(error)
        assert error.getSqlState() == "KD00E"
    for text in case.mentions:
        assert text in str(error)
    assert oracle.versions(table.folder) == list(range(version + 1))
    assert table.log == log
    assert table.rows() == rows
    table.spark.sql(f"INSERT INTO {table} (id) VALUES (9)")
    assert table.log.version == version + 1
    assert oracle.check(table.folder) == []


def test_profile_decides_on_features(table: Table) -> None:
    """What only a later text of the RFC accepts needs that profile, and stays inactive."""
    table.create()
    accepted = ["rowTracking", "typeWidening-preview", "checkpointProtection"]
    for feature in accepted:
        with pytest.raises(PySparkException, match="rfc-current"):
            property_set(f"delta.feature.{feature}", "supported")(table)
    profile = "spark.icebergWriterCompat.profile"
    for feature in accepted:
        with_conf(
            profile,
            "rfc-current",
            property_set(f"delta.feature.{feature}", "supported"),
        )(table)
    assert set(accepted) <= set(table.log.protocol["writerFeatures"])
    with pytest.raises(PySparkException, match="enableRowTracking"):
        with_conf(profile, "rfc-current", property_set("delta.enableRowTracking", "true"))(table)
    with pytest.raises(PySparkException, match="rowTracking"):
        table.spark.sql(f"INSERT INTO {table} VALUES (1, 'x')")
    with_conf(profile, "RFC-CURRENT", sql("INSERT INTO {t} VALUES (1, 'x')"))(table)
    assert table.rows() == [(1, "x")]
    with pytest.raises(PySparkException, match="rfc or rfc-current"):
        with_conf(profile, "newest", sql("INSERT INTO {t} VALUES (1, 'x')"))(table)


def test_clone_of_a_compliant_table(table: Table) -> None:
    table.create(COLUMNS, PARTITIONED)
    sql(f"INSERT INTO {{t}} VALUES {VALUES}", "CREATE TABLE {t}_clone SHALLOW CLONE {t}")(table)
    sql("INSERT INTO {t}_clone VALUES (4, 'c', 'four')")(table)
    clone = Table(table.spark, f"{table}_clone", table.folder.parent / f"{table.name}_clone")
    assert clone.rows() == [*ROWS, (4, "c", "four")]
    assert clone.log.names == table.log.names
    assert oracle.check(table.folder) == []


@pytest.mark.parametrize(
    "properties",
    [
        "",
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'id', 'delta.enableIcebergCompatV2' = 'true')",
    ],
)
def test_clone_with_the_property_of_a_table_without(table: Table, properties: str) -> None:
    sql(f"CREATE TABLE {{t}}_plain USING delta {properties} AS SELECT 1 AS a")(table)
    with pytest.raises(PySparkException, match=VIOLATION):
        sql(f"CREATE TABLE {{t}} SHALLOW CLONE {{t}}_plain {PROPERTIES}")(table)
    assert oracle.versions(table.folder) == []
    sql("DROP TABLE {t}_plain")(table)


def test_an_append_writes_no_metadata(table: Table) -> None:
    table.create()
    sql("INSERT INTO {t} VALUES (1, 'x')", "UPDATE {t} SET b = 'y'", "OPTIMIZE {t}")(table)
    for version in oracle.versions(table.folder)[1:]:
        text = (table.folder / "_delta_log" / f"{version:020}.json").read_text()
        assert '"metaData"' not in text and '"protocol"' not in text


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_replace_of_a_table_with_other_names(table: Table, mode: str) -> None:
    """A column that stays may not keep the random name it had."""
    sql(
        f"CREATE TABLE {{t}} (a INT, l ARRAY<STRUCT<x: INT>>) USING delta "
        f"TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')",
        "INSERT INTO {t} VALUES (1, array(named_struct('x', 2)))",
        f"CREATE OR REPLACE TABLE {{t}} USING delta {PROPERTIES} AS SELECT * FROM {{t}}",
    )(table)
    assert oracle.check(table.folder) == []
    assert table.rows() == [(1, [(2,)])]


def test_create_like_and_from_frames_with_foreign_metadata(table: Table) -> None:
    """Ids and names that come along from another table are not taken for this one's."""
    sql(
        "CREATE TABLE {t}_other (x INT, a STRING) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "INSERT INTO {t}_other VALUES (1, 'text')",
    )(table)
    other = table.spark.table(f"{table}_other").select("a", "x")
    other.write.format("delta").option(PROPERTY, "true").saveAsTable(table.name)
    assert oracle.check(table.folder) == []
    assert table.log.names == {"a": "col-1", "x": "col-2"}
    sql("CREATE TABLE {t}_like LIKE {t} USING delta")(table)
    like = Table(table.spark, f"{table}_like", table.folder.parent / f"{table.name}_like")
    sql("INSERT INTO {t}_like SELECT * FROM {t}")(table)
    assert oracle.check(like.folder) == []
    assert like.rows() == table.rows() == [("text", 1)]
    sql("DROP TABLE {t}_other", "DROP TABLE {t}_like")(table)
