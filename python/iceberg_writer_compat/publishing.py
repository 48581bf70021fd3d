"""Tables published as Apache Iceberg, for engines that read nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pyspark.sql import SparkSession

from iceberg_writer_compat import _codec, _jvm
from iceberg_writer_compat.remedy import Remedy


@dataclass(frozen=True)
class PublishResult:
    """What publishing did.

    Attributes:
        table: How a statement refers to the table.
        metadata_location: The metadata file that Iceberg readers open.
        delta_version: The version that is published now.
        previous_version: The version that was published before; None the first time.
        snapshot_id: The current Iceberg snapshot; None if no version had files.
        snapshots: How many snapshots this call published.
        files_added: How many files these added.
        files_removed: How many files these removed.
        catalog_table: The name of the table in the Iceberg catalog; None without a catalog.
        mended: What Iceberg readers could not go by before, and can now.
        set_aside: Files that could not be read, by the names under which they are kept.
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
        """False if the table was published already as it is."""
        return self.delta_version != self.previous_version


@dataclass(frozen=True)
class PublishProblem:
    """What is wrong with what is published of a table.

    Attributes:
        text: What is the case, in one line.
        remedy: What mends it.
    """

    text: str
    remedy: Remedy


@dataclass(frozen=True)
class PublishStatus:
    """How far a table is published.

    Attributes:
        table: How a statement refers to the table.
        delta_version: The newest version of the table.
        published_version: The version that Iceberg readers see; None if there is none yet, and
            then so are the others.
        lag: How many versions Iceberg readers do not see.
        snapshot_id: The current Iceberg snapshot; None if no version had files.
        metadata_location: The metadata file that Iceberg readers open.
        catalog_table: The name of the table in the Iceberg catalog; None without a catalog.
        problems: What will not go away by waiting, each with what to run.
    """

    table: str
    delta_version: int
    published_version: int | None
    lag: int | None
    snapshot_id: int | None
    metadata_location: str | None
    catalog_table: str | None
    problems: tuple[PublishProblem, ...] = ()


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

    Every commit since the last time becomes one Iceberg snapshot; the first time, the table as it
    is. No data file is written or copied. Whoever else publishes at the same time does no harm.
    With the settings `spark.icebergWriterCompat.catalog.*` it goes on in an Iceberg catalog.

    Args:
        spark: A session that has the extension and Iceberg's library.
        table: A table that has the feature, by name or path.
        take_snapshot: An Iceberg snapshot that an Iceberg writer has committed past the table,
            as `status` names it. The rows that it and those before it appended are appended to the
            table, each once however often this is called, and published from there.
        discard_snapshot: The same, to be left out instead, with those before it.
        discard_changes: The metadata file in which an Iceberg writer has changed columns,
            partitions or properties without a snapshot, as `status` names it. They become again
            what they are in the Delta table.
        mend: Look at all snapshots, and forget those that cannot be read.
        anew: Begin a new line of metadata, whatever there is; its files stay where they are.
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
    """Tells how far a table, given by name or path, is published; it writes nothing.

    Args:
        spark: A session that has the extension and Iceberg's library.
        table: The table, by name or path.
    """
    door, name = _jvm.require(spark), _jvm.table_name(table)
    with _jvm.without_stack():
        return _codec.loads(PublishStatus, door.publishStatus(spark._jsparkSession, name))
