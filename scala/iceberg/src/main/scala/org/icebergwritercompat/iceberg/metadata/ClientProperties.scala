package org.icebergwritercompat.iceberg.metadata

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.iceberg.{TableMetadata, TableProperties}

import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * Properties of Iceberg clients. A property `k` of a client is `iceberg.k` of the Delta table, and
 * is given back when the table is published.
 */
object ClientProperties {

  /** Whether a property is not a client's to change. */
  def isReserved(key: String): Boolean =
    PublishedMetadata.isSetByPublishing(key) || key.startsWith("delta-") || places(key) ||
      key.startsWith("write.object-storage.")

  /** Those that may be published, of the ones that a Delta table has. */
  private[iceberg] def published(properties: Map[String, String]): Map[String, String] =
    properties.filterNot { case (key, _) => isReserved(key) }

  /**
   * The metadata as a client that may write is to see it, in the same file: without what keeps
   * other writers away, and what only the publisher goes by.
   *
   * The current snapshot is a copy. A client reads its manifests, which the snapshot then keeps,
   * and the original stays in memory as long as it is part of the history.
   *
   * @param rowDeletes
   *   what becomes of delete files; where they are taken, each client chooses how it deletes rows
   * @param chosen
   *   the properties that clients have set, by which they chose
   */
  def writable(
      published: TableMetadata,
      rowDeletes: RowLevelDeletes = RowLevelDeletes.Refuse,
      chosen: Map[String, String] = Map.empty
  ): TableMetadata = {
    val modes =
      if (rowDeletes == RowLevelDeletes.Rewrite) RowLevelDeletes.modes else Set.empty[String]
    val hidden =
      (PublishedMetadata.forReadersOnly ++ modes).filter(published.properties.containsKey)
    val current = Option(published.currentSnapshot)
    val snapshots = published.snapshots.asScala.map { snapshot =>
      if (current.contains(snapshot)) MetadataCopies.of(snapshot) else snapshot
    }.asJava
    val seen = TableMetadata
      .buildFrom(published)
      .removeProperties(hidden.asJava)
      .setProperties(chosen.filter { case (key, _) => modes(key) }.asJava)
      .setSnapshotsSupplier(() => snapshots)
      .discardChanges()
      // Keeps the time, and does not note the file as one of the past.
      .withMetadataLocation(published.metadataFileLocation)
      .build()
    // Asks the supplier, once.
    seen.snapshots()
    seen
  }

  /** The property of published metadata that lists the names of those that clients have set. */
  private[iceberg] val ListProperty = "delta-client-properties"

  /** The names that metadata lists. */
  private[iceberg] def listed(published: TableMetadata): Set[String] =
    Option(published.property(ListProperty, null))
      .flatMap(text => Try(mapper.readTree(text).elements.asScala.map(_.asText).toSet).toOption)
      .getOrElse(Set.empty)

  /** Those names as metadata lists them. */
  private[iceberg] def list(names: Iterable[String]): String =
    mapper.writeValueAsString(names.toSeq.sorted.asJava)

  /** The value that publishing gives a property, if it gives it one. */
  def steering(key: String): Option[String] = PublishedMetadata.steering.get(key)

  private val mapper = new ObjectMapper

  // Files elsewhere are not removed by VACUUM, and are lost for a table that is moved.
  private val places = Set(
    TableProperties.WRITE_DATA_LOCATION,
    TableProperties.WRITE_METADATA_LOCATION,
    TableProperties.OBJECT_STORE_ENABLED
  )
}
