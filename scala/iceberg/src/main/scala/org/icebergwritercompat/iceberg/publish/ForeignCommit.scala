package org.icebergwritercompat.iceberg.publish

import org.apache.iceberg._
import org.icebergwritercompat.iceberg.metadata.EngineKeys
import org.icebergwritercompat.iceberg.target.{Damage, StagedOperations}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * A snapshot that an Iceberg writer has committed to a published table, past Delta.
 *
 * @param writer
 *   the names and versions that the writer gives itself in the summary
 * @param added
 *   the data files it adds
 * @param removed
 *   the locations of those it removes
 * @param obstacle
 *   why its rows cannot be appended to the Delta table; `None` if they can
 */
final case class ForeignCommit(
    snapshotId: Long,
    operation: String,
    writer: String,
    rows: Long,
    added: Seq[DataFile],
    removed: Seq[String],
    obstacle: Option[String]
) {

  /** A description of the commit in one line. */
  def text: String = {
    val files = ForeignCommit.some(added.map(f => s"+ ${f.location}") ++ removed.map("- " + _))
    s"snapshot $snapshotId by $writer ($operation, $rows rows added, files: $files)"
  }
}

object ForeignCommit {

  private val filesNamed = 5

  private def some(files: Seq[String]): String = {
    val more = if (files.size > filesNamed) s" and ${files.size - filesNamed} more" else ""
    if (files.isEmpty) "none named" else files.take(filesNamed).mkString(", ") + more
  }

  private def counted(summary: mutable.Map[String, String]): Long =
    summary.get(SnapshotSummary.ADDED_RECORDS_PROP).flatMap(_.toLongOption).getOrElse(0L)

  /**
   * The changes of a snapshot.
   *
   * @param lost
   *   why the metadata that has the snapshot is damaged; `None` if it is not
   */
  def of(
      table: TableMetadata,
      operations: TableOperations,
      snapshot: Snapshot,
      lost: Option[String]
  ): ForeignCommit = {
    val summary = snapshot.summary.asScala
    val named = EngineKeys.all.flatMap(key => summary.get(key).map(value => s"$key $value"))
    val changes = Try {
      val readable = new BaseTable(new StagedOperations(table, operations), table.location)
      val found = SnapshotChanges.builderFor(readable).snapshot(snapshot).build()
      val deletes = snapshot.deleteManifests(operations.io).asScala.nonEmpty
      (found.addedDataFiles.asScala.toSeq, found.removedDataFiles.asScala.toSeq, deletes)
    }
    val (added, removed, deletes) = changes.getOrElse((Nil, Nil, false))
    val rows = if (changes.isSuccess) added.map(_.recordCount).sum else counted(summary)
    val obstacle = lost
      .orElse(changes.failed.toOption.map(e => s"its manifests cannot be read (${e.getMessage})"))
      .orElse(Option.when(snapshot.operation != DataOperations.APPEND) {
        s"it is no append but '${snapshot.operation}'"
      })
      .orElse(Option.when(deletes || removed.nonEmpty)("it removes rows"))
      .orElse(Option.when(added.exists(_.format != FileFormat.PARQUET))("a file is not Parquet"))
      .orElse(Damage.ofFiles(added, operations.io).map(damage => s"$damage"))
    ForeignCommit(
      snapshot.snapshotId,
      snapshot.operation,
      if (named.isEmpty) "a writer that gives no name" else named.mkString(", "),
      rows,
      added,
      removed.map(_.location),
      obstacle
    )
  }
}
