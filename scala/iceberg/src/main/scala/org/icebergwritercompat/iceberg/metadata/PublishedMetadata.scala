package org.icebergwritercompat.iceberg.metadata

import org.apache.iceberg.{Snapshot, TableMetadata, TableProperties}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.source.CommitMark

import scala.jdk.CollectionConverters._

/** The properties of published metadata about Delta, and all others that publishing sets. */
object PublishedMetadata {

  /** The property, of the table and of each snapshot, with the Delta version. */
  final val DeltaVersionProperty = "delta-version"

  /** The property with the time of that commit, in milliseconds. */
  val DeltaTimestampProperty = "delta-timestamp"

  /**
   * The property, of the table and of each snapshot, with the commit id of that version: the
   * version, a colon, and the id of the transaction or a digest of the commit file.
   */
  val DeltaCommitProperty = "delta-commit"

  /** The property with the id of the Delta table. */
  val DeltaTableProperty = "delta-table-id"

  /** The property of a snapshot that an Iceberg client has made. */
  private[iceberg] val ClientProperty = "delta-by-client"

  /** The Delta version of a snapshot. */
  private[iceberg] def versionOf(snapshot: Snapshot): Option[Long] =
    snapshot.summary.asScala.get(DeltaVersionProperty).flatMap(_.toLongOption)

  /** The Delta commit of a snapshot. */
  private[iceberg] def markOf(snapshot: Snapshot): Option[CommitMark] =
    snapshot.summary.asScala.get(DeltaCommitProperty).flatMap(CommitMark.parse)

  /** The Delta version of metadata; refuses metadata without it. */
  private[iceberg] def versionOf(table: String, metadata: TableMetadata): Long =
    Option(metadata.property(DeltaVersionProperty, null)).flatMap(_.toLongOption).getOrElse {
      throw IcebergWriterCompatException.notPublishable(
        "NOT_OURS",
        Map("table" -> table, "metadata" -> metadata.metadataFileLocation)
      )
    }

  /** The newest snapshots, as far as they have no Delta version, oldest first. */
  private[iceberg] def foreignTo(metadata: TableMetadata): Seq[Snapshot] =
    Iterator
      .iterate(Option(metadata.currentSnapshot)) { snapshot =>
        snapshot.flatMap(s => Option(s.parentId)).flatMap(id => Option(metadata.snapshot(id)))
      }
      .takeWhile(_.isDefined)
      .flatten
      .takeWhile(!_.summary.containsKey(DeltaVersionProperty))
      .toSeq
      .reverse

  /** The prefix of the properties for metrics; the name of a column follows. */
  private[iceberg] val metricsPrefix = TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX

  // A reader that starts at one of them can find the newest.
  private val previousVersions = 8

  // Not a class; the name appears in the error that a user sees.
  private val lock = "this_table.IsWrittenInDeltaOnly"

  /**
   * Properties of each published table. They make Iceberg writers fail; writers that ignore this
   * are kept from row-level deletes and from deleting files, which Delta could not take over.
   */
  private[iceberg] val steering = Map(
    TableProperties.DEFAULT_FILE_FORMAT -> "parquet",
    TableProperties.DELETE_MODE -> "copy-on-write",
    TableProperties.UPDATE_MODE -> "copy-on-write",
    TableProperties.MERGE_MODE -> "copy-on-write",
    TableProperties.GC_ENABLED -> "false",
    // Writers load this class for the location of data files, and fail; readers do not.
    TableProperties.WRITE_LOCATION_PROVIDER_IMPL -> lock,
    "write.py-location-provider.impl" -> lock,
    // Each version of the metadata lists all snapshots.
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX -> previousVersions.toString,
    // A commit that removes a file rewrites one manifest.
    TableProperties.MANIFEST_TARGET_SIZE_BYTES -> ManifestMerging.targetBytes.toString,
    TableProperties.MANIFEST_MERGE_ENABLED -> "false"
  )

  /**
   * Those of them that a client that commits by way of the Delta table does without: it may write,
   * and what it appends is merged as it appends it.
   */
  private[iceberg] val forReadersOnly = Set(
    TableProperties.WRITE_LOCATION_PROVIDER_IMPL,
    "write.py-location-provider.impl",
    TableProperties.MANIFEST_MERGE_ENABLED
  )

  /** Whether publishing sets or removes a property of this name. */
  private[iceberg] def isSetByPublishing(key: String): Boolean =
    steering.contains(key) || key.startsWith(metricsPrefix)

  /** The name of a file in its folder. */
  def fileName(location: String): String = location.substring(location.lastIndexOf('/') + 1)
}
