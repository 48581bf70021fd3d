package org.icebergwritercompat.iceberg.metadata

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.iceberg.{Snapshot, SnapshotParser, TableMetadata, TableMetadataParser}

import scala.jdk.CollectionConverters._

/**
 * Keeps the timestamps of metadata non-decreasing, whatever the clock is.
 *
 * Iceberg uses the current time for each change, and refuses a time that is more than a minute
 * before the last change. The clocks of several writers can differ by more, or be set back. The
 * time of a snapshot is another one: that of the commit, which can be days before it is published;
 * in the folder of the table so is the time of the change.
 */
private[iceberg] object MetadataTimes {

  /** The changed metadata, with the time of the last change if the clock is behind it. */
  def build(builder: TableMetadata.Builder, base: Option[TableMetadata]): TableMetadata = {
    base.filter(_.lastUpdatedMillis > System.currentTimeMillis()).foreach { table =>
      // The only method that keeps the time. It clears the metadata file location.
      builder.withMetadataLocation(null).setPreviousFileLocation(table.metadataFileLocation)
    }
    builder.build()
  }

  /**
   * The metadata with the time of the Delta commit that it shows as that of its last change, or the
   * nearest time that does not go back.
   *
   * It may be published long after that commit, by the first client that asks. DuckDB takes
   * metadata that is younger than its statement for a change that came after it, and reads the file
   * before: the statement would not see columns that Delta had when it began.
   */
  def asOfCommit(base: Option[TableMetadata], made: TableMetadata): TableMetadata = {
    val committed = Option(made.property(PublishedMetadata.DeltaTimestampProperty, null))
    val last = base.map(_.lastUpdatedMillis) ++
      made.snapshotLog.asScala.lastOption.map(_.timestampMillis)
    committed
      .flatMap(_.toLongOption)
      .map(time => (Seq(time) ++ last).max)
      .filter(_ < made.lastUpdatedMillis && made.formatVersion == MetadataJson.formatVersion)
      .fold(made)(updatedAt(made, _))
  }

  // The builder sets no time, and keeps that of parsed metadata. Snapshots stay the same objects.
  private def updatedAt(made: TableMetadata, millis: Long): TableMetadata = {
    val parsed = TableMetadataParser.fromJson(null: String, MetadataJson.updatedAt(made, millis))
    val snapshots = made.snapshots
    val dated = TableMetadata
      .buildFrom(parsed)
      .setSnapshotsSupplier(() => snapshots)
      .withMetadataLocation(null)
      .build()
    // Asks the supplier, once.
    dated.snapshots()
    dated
  }

  /**
   * The metadata from which the next snapshot is made: with the current snapshot and without
   * history, so that no timestamp in it is later than the current time.
   */
  def withoutPast(table: TableMetadata): TableMetadata = {
    val current = Option(table.currentSnapshot).map { snapshot =>
      val json = tree(SnapshotParser.toJson(snapshot))
      json.remove("parent-snapshot-id")
      SnapshotParser.fromJson(json.toString)
    }
    TableMetadataParser.fromJson(null: String, MetadataJson.withoutPast(table, current))
  }

  /**
   * The snapshot with the time of its Delta commit, or the nearest time that time travel allows:
   * after all that was current before, and not in the future.
   *
   * @param recent
   *   whether the time must be at most half a minute before the last change of the table, however
   *   old the commit is
   */
  def withCommitTime(
      base: Option[TableMetadata],
      made: Snapshot,
      committed: Long,
      recent: Boolean
  ): Snapshot = {
    val earliest = base.fold(0L) { table =>
      val changed = table.lastUpdatedMillis
      // The log has also the times at which an older snapshot became current again.
      val last = (Option(table.currentSnapshot).map(_.timestampMillis) ++
        table.snapshotLog.asScala.lastOption.map(_.timestampMillis)).maxOption.getOrElse(0L)
      val next = if (last < changed + allowedMillis) last + 1 else last
      if (recent) math.max(next, changed - allowedMillis) else next
    }
    val latest = math.max(System.currentTimeMillis(), earliest)
    val json = tree(SnapshotParser.toJson(made))
    json.put("timestamp-ms", math.min(math.max(committed, earliest), latest))
    SnapshotParser.fromJson(json.toString)
  }

  private def tree(json: String): ObjectNode = mapper.readTree(json).asInstanceOf[ObjectNode]

  // Half of what Iceberg allows.
  private val allowedMillis = 30000L

  private val mapper = new ObjectMapper
}
