package org.icebergwritercompat.iceberg.metadata

import org.apache.iceberg.{Snapshot, SnapshotParser, TableMetadata, TableMetadataParser}

/** Copies of what remembers what was read of it, for who reads it without being remembered. */
object MetadataCopies {

  /** A copy of the metadata that does not share the caches of its snapshots. */
  def of(table: TableMetadata): TableMetadata =
    TableMetadataParser.fromJson(table.metadataFileLocation, TableMetadataParser.toJson(table))

  /** A copy of the snapshot that does not share its caches. */
  def of(snapshot: Snapshot): Snapshot = SnapshotParser.fromJson(SnapshotParser.toJson(snapshot))
}
