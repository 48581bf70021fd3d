"""Looks at tables from outside, with a session, pyiceberg and the oracle."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot
from pyspark.sql import SparkSession

import oracle
from iceberg_writer_compat import (
    configure_spark_with_iceberg_writer_compat,
    publish,
    status,
)
from sessions import local_builder
from stress.counts import Counts

Rows = list[tuple[object, ...]]

PROPERTY = "'delta.enableIcebergWriterCompatV1' = 'true'"


class Judge:
    """One session for all that is looked at, and the counts of it."""

    def __init__(self, warehouse: Path, counts: Counts) -> None:
        """Starts the session."""
        self.counts = counts
        builder = configure_spark_with_iceberg_writer_compat(local_builder(warehouse))
        # Retention is what VACUUM of the workers goes by, too.
        builder.config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        # Small tables are looked at again and again.
        builder.config("spark.databricks.delta.snapshotPartitions", "2")
        self.spark: SparkSession = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")

    def close(self) -> None:
        """Ends the session."""
        self.spark.stop()

    def create(self, folder: Path, publishes: bool) -> None:
        """Makes an empty table with the feature, of columns `id BIGINT, name STRING`."""
        published = f", 'icebergWriterCompat.publish' = '{str(publishes).lower()}'"
        self.spark.sql(
            f"CREATE TABLE delta.`{folder}` (id BIGINT, name STRING) USING delta TBLPROPERTIES "
            f"({PROPERTY}, 'icebergWriterCompat.publish.table' = 'stress.t'{published})"
        )

    def rows(self, folder: Path, version: int | None = None) -> Rows:
        """What Delta has."""
        at = "" if version is None else f" VERSION AS OF {version}"
        found = self.spark.sql(f"SELECT * FROM delta.`{folder}`{at}").collect()
        return in_order([tuple(row) for row in found])

    def published_as_it_is(self, what: str, folder: Path) -> None:
        """Publishes a table of any columns; pyiceberg finds as many rows, and the log is right."""
        table = StaticTable.from_metadata(publish(self.spark, folder).metadata_location)
        count = self.spark.sql(f"SELECT * FROM delta.`{folder}`").count()
        self.counts.hold(f"{what}: rows in pyiceberg", table.scan().to_arrow().num_rows, count)
        self.counts.hold(f"{what}: what the log breaks", oracle.check(folder), [])

    def published(self, what: str, folder: Path, some: random.Random, history: bool = True) -> None:
        """Publishes what is missing; then readers have Delta's rows, now and then."""
        location = publish(self.spark, folder).metadata_location
        hold = self.counts.hold
        table = StaticTable.from_metadata(location)
        hold(f"{what}: rows in pyiceberg", by_pyiceberg(table), self.rows(folder))
        seen = status(self.spark, folder)
        hold(f"{what}: lag and problems", (seen.lag, seen.problems), (0, ()))
        versions = [version_of(snapshot) for snapshot in table.metadata.snapshots]
        hold(f"{what}: snapshots in order, each once", versions, sorted(set(versions)))
        hold(f"{what}: what the log breaks", oracle.check(folder), [])
        if history:
            for snapshot in some.sample(table.metadata.snapshots, min(2, len(versions))):
                version = version_of(snapshot)
                then = by_pyiceberg(table, snapshot.snapshot_id)
                hold(f"{what}: rows of version {version}", then, self.rows(folder, version))
        self.counts.count("snapshots published", len(versions))


def version_of(snapshot: Snapshot) -> int:
    """The version of Delta that a snapshot is of."""
    assert snapshot.summary is not None
    return int(str(snapshot.summary["delta-version"]))


def by_pyiceberg(table: StaticTable, snapshot: int | None = None) -> Rows:
    """What pyiceberg has."""
    found = table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
    return in_order([tuple(row.values()) for row in found])


def in_order(rows: Rows) -> Rows:
    """Rows in an order of their own."""
    return sorted(rows, key=repr)


def command(kind: str, *arguments: object) -> list[str]:
    """What starts a worker."""
    return [sys.executable, "-m", "stress.worker", kind, *map(str, arguments)]


def environment() -> dict[str, str]:
    """With the tests' modules at hand."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
