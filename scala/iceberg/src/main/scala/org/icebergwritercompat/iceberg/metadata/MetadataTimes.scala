package org.icebergwritercompat.iceberg.metadata

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.iceberg.{Snapshot, SnapshotParser, TableMetadata, TableMetadataParser}

/**
 * The times of metadata never go back, whatever the clock says.
 *
 * Iceberg takes the present time for each change, and refuses one that is more than a minute before
 * that of the last change. Clocks of several writers differ by more, and are set back.
 */
private[iceberg] object MetadataTimes {

  /** The changed metadata, with the time of the last change if the clock is behind it. */
  def build(builder: TableMetadata.Builder, base: Option[TableMetadata]): TableMetadata = {
    base.filter(_.lastUpdatedMillis > System.currentTimeMillis()).foreach { table =>
      // The only way to keep that time. It names no new location, and forgets the old one.
      builder.withMetadataLocation(null).setPreviousFileLocation(table.metadataFileLocation)
    }
    builder.build()
  }

  /**
   * The table as its next snapshot is made of it: with its current snapshot, and without a past, so
   * that nothing in it is later than the present time.
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
   * The snapshot with the time of its commit, or the nearest that Iceberg and readers who look for
   * a time can take: after the snapshot before, at most half a minute before the table's last
   * change, and not in the future.
   */
  def dated(base: Option[TableMetadata], made: Snapshot, committed: Long): Snapshot = {
    val earliest = base.fold(0L) { table =>
      val changed = table.lastUpdatedMillis
      val last = Option(table.currentSnapshot).fold(0L)(_.timestampMillis)
      val next = if (last < changed + allowedMillis) last + 1 else last
      math.max(next, changed - allowedMillis)
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
