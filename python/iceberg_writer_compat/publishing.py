"""Publishes tables as Apache Iceberg."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import SparkSession

from iceberg_writer_compat import _codec, _jvm, _text
from iceberg_writer_compat._result import Result
from iceberg_writer_compat.remedy import Remedy


@dataclass(frozen=True, repr=False)
class PublishResult(Result):
    """The result of publishing a table.

    Attributes:
        table: The table, as written in statements.
        metadata_location: The metadata file that Iceberg readers open.
        delta_version: The published version.
        previous_version: The version that was published before; None if there was none.
        snapshot_id: The current Iceberg snapshot; None if no version had files.
        snapshots: How many snapshots this call published.
        files_added: How many files these added.
        files_removed: How many files these removed.
        catalog_table: The name of the table in the Iceberg catalog; None without a catalog.
        mended: The problems of the metadata that were repaired.
        set_aside: Files that could not be read, by their new names.
    """

    table: str
    metadata_location: str
    delta_version: int
    previous_version: int | None
    snapshot_id: int | None
    snapshots: int
    files_added: int
    files_removed: int
    catalog_table: str | None
    mended: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """False if the newest version was already published."""
        return self.delta_version != self.previous_version

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.published(self)

    def _details(self) -> Iterator[tuple[str, str]]:
        yield "catalog", self.catalog_table or ""
        yield "metadata", self.metadata_location
        yield "snapshot", _shown(self.snapshot_id)
        yield "repaired", "\n".join(self.mended)
        yield "set aside", "\n".join(self.set_aside)


@dataclass(frozen=True)
class PublishProblem:
    """A problem of a published table.

    Attributes:
        text: The problem, in one line.
        remedy: The statements that fix it.
    """

    text: str
    remedy: Remedy


@dataclass(frozen=True, repr=False)
class PublishStatus(Result):
    """The state of publishing of a table.

    Attributes:
        table: The table, as written in statements.
        delta_version: The newest version of the table.
        published_version: The version that Iceberg readers see. This and the following attributes
            are None if the table is not published.
        lag: The number of versions that Iceberg readers do not see.
        snapshot_id: The current Iceberg snapshot; None if no version had files.
        metadata_location: The metadata file that Iceberg readers open.
        catalog_table: The name of the table in the Iceberg catalog; None without a catalog.
        problems: Problems that need a call or a setting, each with its remedy.
    """

    table: str
    delta_version: int
    published_version: int | None
    lag: int | None
    snapshot_id: int | None
    metadata_location: str | None
    catalog_table: str | None
    problems: tuple[PublishProblem, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in one line."""
        return _text.publish_state(self)

    def _details(self) -> Iterator[tuple[str, str]]:
        yield "catalog", self.catalog_table or ""
        yield "metadata", self.metadata_location or ""
        yield "newest version", str(self.delta_version)
        yield "snapshot", _shown(self.snapshot_id)
        for problem in self.problems:
            yield "problem", problem.text
            yield "fix", str(problem.remedy)


def _shown(value: int | None) -> str:
    return "" if value is None else str(value)


def publish(
    spark: SparkSession,
    table: str | os.PathLike[str],
    *,
    take_snapshot: int | None = None,
    discard_snapshot: int | None = None,
    discard_changes: str | None = None,
    mend: bool = False,
    anew: bool = False,
) -> PublishResult:
    """Publishes the newest version of a table as Iceberg metadata in its folder `metadata`.

    Every commit since the last call becomes one Iceberg snapshot; the first call publishes the
    newest version. No data file is written or copied. Concurrent calls are safe. With the settings
    `spark.icebergWriterCompat.catalog.*` the table is published in an Iceberg catalog.

    Args:
        spark: A session that has the extension and Iceberg's library.
        table: The name or path of a table with the feature.
        take_snapshot: The id of the last snapshot that an Iceberg writer committed, as reported by
            `status`. The rows of this snapshot and of those before it are appended to the Delta
            table and published. Repeated calls append no row twice.
        discard_snapshot: The same id, to discard these snapshots instead.
        discard_changes: The metadata file in which an Iceberg writer changed columns, partitions
            or properties without a snapshot, as reported by `status`. They are reset to those of
            the Delta table.
        mend: Read all snapshots, and remove those that cannot be read.
        anew: Begin a new line of metadata, whatever metadata exists; existing files are kept.
    """
    by_others = (take_snapshot, discard_snapshot, discard_changes)
    if sum(way is not None for way in by_others) + mend + anew > 1:
        raise ValueError(
            "take_snapshot, discard_snapshot, discard_changes, mend and anew exclude each other"
        )
    take = _jvm.whole_number("take_snapshot", take_snapshot, least=0)
    discard = _jvm.whole_number("discard_snapshot", discard_snapshot, least=0)
    door, name = _jvm.require(spark), _jvm.table_name(table)
    session = spark._jsparkSession
    with _jvm.without_stack():
        if take is not None:
            text = door.takeSnapshot(session, name, take)
        elif discard is not None:
            text = door.discardSnapshot(session, name, discard)
        elif discard_changes is not None:
            text = door.discardChanges(session, name, discard_changes)
        elif mend:
            text = door.publishMending(session, name)
        else:
            text = door.publishAnew(session, name) if anew else door.publish(session, name)
    return _codec.loads(PublishResult, text)


def status(spark: SparkSession, table: str | os.PathLike[str]) -> PublishStatus:
    """Returns the state of publishing of a table; writes nothing.

    Args:
        spark: A session that has the extension and Iceberg's library.
        table: The name or path of a table.
    """
    door, name = _jvm.require(spark), _jvm.table_name(table)
    with _jvm.without_stack():
        return _codec.loads(PublishStatus, door.publishStatus(spark._jsparkSession, name))
