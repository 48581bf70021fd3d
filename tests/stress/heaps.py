"""A table of many files in a heap of 512 MB."""

from __future__ import annotations

import argparse
import json
import os
import random
from pathlib import Path

from pyiceberg.table import StaticTable

import oracle
from stress.judge import PROPERTY, Judge
from stress.kills import output, started

LINKS_PER_FILE = 10_000


def run(
    judge: Judge, folder: Path, some: random.Random, end: float, arguments: argparse.Namespace
) -> None:
    """Checks, verifies, publishes and enables, once."""
    count = arguments.files
    guarded, plain = folder / "guarded", folder / "plain"
    _make(judge, guarded, count, PROPERTY)
    _make(
        judge,
        plain,
        count,
        "'delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true'",
    )
    with judge.counts.judging(f"{count} files in a heap of 512 MB"):
        with started("large", folder / "warehouse", guarded, plain) as worker:
            said = [line.strip() for line in output(worker)]
        hold = judge.counts.hold
        hold("large: begin and end", (said[:1], said[-1:]), (["ready"], ["end"]))
        answers = dict(line.split(" ", 1) for line in said[1:-1])
        hold("large: check", answers.get("check"), "True 0")
        hold("large: verify", answers.get("verify"), "0")
        hold("large: enable", answers.get("enable"), "True")
        files, location = answers["publish"].split(" ", 1)
        hold("large: files published", files, str(count))
        current = StaticTable.from_metadata(location).current_snapshot()
        assert current is not None and current.summary is not None
        hold("large: rows published", current.summary["total-records"], str(count))
        hold("large: version of the enabled table", len(oracle.read_log(plain).files), count)
        judge.counts.count("large: files", 2 * count)


def _make(judge: Judge, table: Path, count: int, properties: str) -> None:
    # One file under many names, and as many copies of it as a file system lets have names.
    judge.spark.sql(
        f"CREATE TABLE delta.`{table}` USING delta TBLPROPERTIES ({properties}) AS "
        "SELECT id, CAST(id AS STRING) AS name FROM range(0, 1, 1, 1)"
    )
    add = oracle.read_log(table).files[0].add
    data = (table / add["path"]).read_bytes()
    with (table / "_delta_log" / f"{1:020d}.json").open("w", encoding="utf-8") as log:
        for i in range(1, count):
            path = f"f{i}.parquet"
            if (i - 1) % LINKS_PER_FILE == 0:
                original = table / path
                original.write_bytes(data)
            else:
                os.link(original, table / path)
            log.write(json.dumps({"add": add | {"path": path}}) + "\n")
