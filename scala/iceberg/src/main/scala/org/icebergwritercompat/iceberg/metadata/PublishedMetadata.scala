package org.icebergwritercompat.iceberg.metadata

import org.apache.iceberg.{Snapshot, TableMetadata, TableProperties}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.source.CommitMark

import scala.jdk.CollectionConverters._

/** What published metadata says of Delta, and the properties that publishing sets. */
object PublishedMetadata {

  /** The property, of the table and of each snapshot, that tells the Delta version. */
  val DeltaVersionProperty = "delta-version"

  /** The property that tells when that version was committed, in milliseconds. */
  val DeltaTimestampProperty = "delta-timestamp"

  /**
   * The property, of the table and of each snapshot, that tells the commit of that version: the
   * version, a colon, and the id of the transaction or a digest of the commit file.
   */
  val DeltaCommitProperty = "delta-commit"

  /** The property that tells the id of the Delta table. */
  val DeltaTableProperty = "delta-table-id"

  /** The version of Delta that a snapshot is of. */
  private[iceberg] def versionOf(snapshot: Snapshot): Option[Long] =
    snapshot.summary.asScala.get(DeltaVersionProperty).flatMap(_.toLongOption)

  /** The commit of Delta that a snapshot is of. */
  private[iceberg] def markOf(snapshot: Snapshot): Option[CommitMark] =
    snapshot.summary.asScala.get(DeltaCommitProperty).flatMap(CommitMark.parse)

  /** The version that metadata says it is of; refused if it says nothing. */
  private[iceberg] def versionOf(table: String, metadata: TableMetadata): Long =
    Option(metadata.property(DeltaVersionProperty, null)).flatMap(_.toLongOption).getOrElse {
      throw IcebergWriterCompatException.notPublishable(
        "NOT_OURS",
        Map("table" -> table, "metadata" -> metadata.metadataFileLocation)
      )
    }

  /** The snapshots on top that do not tell of a version of Delta, oldest first. */
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

  /** What the properties that steer metrics begin with; the name of a column follows. */
  private[iceberg] val metricsPrefix = TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX

  // A reader who begins with one of them can go on.
  private val previousVersions = 8

  // No class, but a name that a person reads in the error.
  private val lock = "this_table.IsWrittenInDeltaOnly"

  /**
   * Properties of each published table. They keep Iceberg's writers away, and whoever writes all
   * the same from what Delta cannot take: row-level deletes, and files that are deleted below it.
   */
  private[iceberg] val steering = Map(
    TableProperties.DEFAULT_FILE_FORMAT -> "parquet",
    TableProperties.DELETE_MODE -> "copy-on-write",
    TableProperties.UPDATE_MODE -> "copy-on-write",
    TableProperties.MERGE_MODE -> "copy-on-write",
    TableProperties.GC_ENABLED -> "false",
    // Writers ask it for the places of data files, and fail; readers have no need of it.
    TableProperties.WRITE_LOCATION_PROVIDER_IMPL -> lock,
    "write.py-location-provider.impl" -> lock,
    // Each version of the metadata lists all snapshots.
    TableProperties.METADATA_PREVIOUS_VERSIONS_MAX -> previousVersions.toString,
    // What removes a file rewrites one manifest.
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

  /** What a file is called in its folder. */
  def fileName(location: String): String = location.substring(location.lastIndexOf('/') + 1)
}
