"""Tables without the feature, made the same way with this project and without it."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import SparkSession

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMES = re.compile(
    r'(\\?"(?:timestamp|createdTime|modificationTime|deletionTimestamp|inCommitTimestamp|'
    r'[a-zA-Z]*TimeMs)\\?":\\?"?)\d+'
)
_NESTED_IDS = re.compile(r'(nested\.ids\\*":\{)([^}]*)')
_EXPRESSION_ID = re.compile(r"#\d+")
_RANDOM_PREFIX = re.compile(r'(?<=[/"])[A-Za-z0-9]{2}/(?=part-)')


def make(spark: SparkSession, folder: Path) -> None:
    """Makes and changes tables of many kinds in a folder."""

    def sql(statement: str) -> None:
        spark.sql(statement.format(f=folder))

    def properties(**values: str) -> str:
        listed = ", ".join(f"'delta.{k.replace('__', '.')}' = '{v}'" for k, v in values.items())
        return f"TBLPROPERTIES ({listed})"

    columns = "(a INT, s STRUCT<x: INT, l: ARRAY<INT>>, m MAP<STRING, INT>, p STRING)"
    row = "1, named_struct('x', 2, 'l', array(3)), map('k', 4), 'p'"
    for name, setting in {
        "by_id": properties(columnMapping__mode="id"),
        "compat_v2": properties(enableIcebergCompatV2="true"),
        "vectors": properties(enableDeletionVectors="true", enableInCommitTimestamps="true"),
        "feed": properties(enableChangeDataFeed="true", enableRowTracking="true"),
    }.items():
        table = f"delta.`{folder}/{name}`"
        sql(f"CREATE TABLE {table} {columns} USING delta PARTITIONED BY (p) {setting}")
        sql(f"INSERT INTO {table} SELECT {row}")
        sql(f"ALTER TABLE {table} ADD COLUMNS (t TINYINT, s.y INT)")
        sql(f"UPDATE {table} SET a = 2 WHERE a = 1")
    sql("CREATE TABLE delta.`{f}/replaced` USING delta AS SELECT 1 AS a")
    sql(
        "CREATE OR REPLACE TABLE delta.`{f}/replaced` USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name') AS SELECT 'x' AS b"
    )
    sql("ALTER TABLE delta.`{f}/replaced` RENAME COLUMN b TO c")
    sql("RESTORE TABLE delta.`{f}/replaced` TO VERSION AS OF 1")
    sql("CREATE TABLE delta.`{f}/clone` SHALLOW CLONE delta.`{f}/replaced`")
    frame = spark.range(1).coalesce(1)
    path = str(folder / "frame")
    frame.write.format("delta").save(path)
    frame.selectExpr("id", "'n' AS n").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(path)
    sql("DELETE FROM delta.`{f}/frame` WHERE n IS NULL")
    frame.selectExpr("'o' AS o").write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(path)


def normalise(folder: Path) -> dict[str, list[str]]:
    """The log of every table as text, without what differs from run to run."""
    logs: dict[str, list[str]] = {}
    for commit in sorted(folder.glob("*/_delta_log/*.json")):
        text = commit.read_text(encoding="utf-8").replace(str(folder), "<folder>")
        text = _TIMES.sub(r"\g<1><time>", text)
        text = _RANDOM_PREFIX.sub("<prefix>/", text)
        text = _UUID.sub("<uuid>", text)
        text = _EXPRESSION_ID.sub("#<id>", text)
        # A map of ids is ordered by the hash of random names.
        text = _NESTED_IDS.sub(lambda m: m[1] + ",".join(sorted(m[2].split(","))), text)
        logs[str(commit.relative_to(folder))] = text.splitlines()
    return logs
