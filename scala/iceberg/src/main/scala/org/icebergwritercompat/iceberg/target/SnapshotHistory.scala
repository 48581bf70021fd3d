package org.icebergwritercompat.iceberg.target

import org.apache.iceberg.io.FileIO
import org.apache.iceberg.util.SnapshotUtil
import org.apache.iceberg._

import scala.jdk.CollectionConverters._
import scala.util.Using

/** The snapshots of a table over time. */
object SnapshotHistory {

  /**
   * The snapshots that were replaced before a time, without those of branches and tags.
   *
   * @param millis
   *   the time, in the same clock as that of snapshots
   */
  def endedBefore(table: TableMetadata, millis: Long): Set[Long] =
    if (table.snapshots.asScala.forall(_.timestampMillis >= millis)) Set.empty
    else ended(table, millis)

  private def ended(table: TableMetadata, millis: Long): Set[Long] = {
    val named = table.refs.values.asScala.map(_.snapshotId).toSet
    val ends = line(table)
      .sliding(2)
      .collect { case Seq(next, replaced) => replaced.snapshotId -> next.timestampMillis }
      .toMap
    table.snapshots.asScala.iterator
      .filterNot(snapshot => named(snapshot.snapshotId))
      .filter(s => ends.getOrElse(s.snapshotId, s.timestampMillis) < millis)
      .map(_.snapshotId)
      .toSet
  }

  /**
   * The data files of older snapshots that are not in the current one.
   *
   * @param without
   *   snapshots that are ignored
   */
  def onlyInOlder(
      table: TableMetadata,
      operations: TableOperations,
      without: Set[Long]
  ): Iterator[String] = {
    val kept = line(table).takeWhile(snapshot => !without(snapshot.snapshotId)).toSeq
    val readable = new BaseTable(new StagedOperations(table, operations), table.location)
    val removed = kept.iterator
      .take(kept.size - 1)
      .filter(snapshot => mayRemove(snapshot))
      .flatMap { snapshot =>
        SnapshotChanges.builderFor(readable).snapshot(snapshot).build().removedDataFiles.asScala
      }
      .map(_.location)
    val others =
      table.snapshots.asScala.toSet.diff(kept.toSet).filterNot(s => without(s.snapshotId))
    removed ++ others.iterator.flatMap(live(table, operations.io, _)).map(_.location)
  }

  // Clients need not say how many files they remove.
  private def mayRemove(snapshot: Snapshot): Boolean =
    snapshot.operation != DataOperations.APPEND ||
      snapshot.summary.containsKey(SnapshotSummary.DELETED_FILES_PROP)

  /** The live data files of a snapshot, without their metrics. */
  def live(table: TableMetadata, io: FileIO, snapshot: Snapshot): Iterator[DataFile] =
    snapshot.dataManifests(io).asScala.iterator.flatMap(live(table, io, _))

  /** The live data files of a manifest, without their metrics. */
  def live(table: TableMetadata, io: FileIO, manifest: ManifestFile): Seq[DataFile] =
    Using.resource(ManifestFiles.read(manifest, io, table.specsById).select(withoutMetrics))(files)

  /** The same with their metrics, by which readers skip files. */
  def liveWithMetrics(table: TableMetadata, io: FileIO, manifest: ManifestFile): Seq[DataFile] =
    Using.resource(ManifestFiles.read(manifest, io, table.specsById))(files)

  private def files(reader: ManifestReader[DataFile]): Seq[DataFile] =
    Using.resource(reader.iterator())(_.asScala.toVector)

  private val withoutMetrics =
    Seq(
      DataFile.FILE_PATH,
      DataFile.FILE_FORMAT,
      DataFile.RECORD_COUNT,
      DataFile.FILE_SIZE
    ).map(_.name).appended(DataFile.PARTITION_NAME).asJava

  /** The snapshots, from the current one backwards. */
  def line(table: TableMetadata): Iterator[Snapshot] =
    Option(table.currentSnapshot).iterator.flatMap { current =>
      SnapshotUtil.ancestorsOf(current.snapshotId, id => table.snapshot(id)).asScala
    }
}
