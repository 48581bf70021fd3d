package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.fs.Path
import org.apache.iceberg.{Snapshot, TableMetadata}
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.DefinitionStamp

import java.nio.file.{Files, Path => LocalPath}
import scala.util.Try

/** The state of the metadata at the place where a table is published. */
sealed trait Found

object Found {

  /** No metadata. */
  case object Absent extends Found

  /** Metadata of this table, whose current snapshot can be read. */
  final case class Line(metadata: TableMetadata) extends Found

  /** Metadata of this project with foreign commits or changes. */
  sealed trait ByOthers extends Found {

    def metadata: TableMetadata

    /** Why it could not be used even without the foreign commits. */
    def lost: Option[String]

    /** Why it cannot be continued, even if the foreign commits are discarded. */
    def dead: Option[String] = lost.orElse(DefinitionStamp.raised(metadata))
  }

  /**
   * Metadata with snapshots of Iceberg writers.
   *
   * @param snapshots
   *   the snapshots of Iceberg writers, oldest first
   */
  final case class Foreign(
      metadata: TableMetadata,
      snapshots: Seq[Snapshot],
      lost: Option[String]
  ) extends ByOthers

  /**
   * Metadata in which Iceberg writers changed columns, partitions or properties without a snapshot.
   *
   * @param changes
   *   descriptions of the changes
   */
  final case class Altered(metadata: TableMetadata, changes: Seq[String], lost: Option[String])
      extends ByOthers

  /** An entry of a catalog whose metadata cannot be read; it may belong to another table. */
  final case class Unreadable(refusal: IcebergWriterCompatException) extends Found

  /**
   * Metadata of this project that cannot be continued. The next commit begins a new line, which
   * does not refer to it.
   *
   * @param why
   *   the reason, as text for the user
   * @param unreadable
   *   files that exist but cannot be read
   */
  final case class Lost(why: String, unreadable: Seq[String]) extends Found

  /**
   * The foreign commits or changes in metadata of this project, if there are any.
   *
   * @param lost
   *   why it could not be used even without them
   */
  private[iceberg] def byOthers(metadata: TableMetadata, lost: Option[String]): Option[ByOthers] =
    Option(PublishedMetadata.foreignTo(metadata))
      .filter(_.nonEmpty)
      .map(Foreign(metadata, _, lost))
      .orElse {
        val changes = DefinitionStamp.changes(metadata)
        Option.when(changes.nonEmpty)(Altered(metadata, changes, lost))
      }

  /** Whether metadata was published by this project. */
  private[iceberg] def isOurs(metadata: TableMetadata): Boolean =
    metadata.properties.containsKey(PublishedMetadata.DeltaVersionProperty)

  /** Whether two locations are the same folder, by their text or on the local disk. */
  private[iceberg] def samePlace(one: Path, other: Path): Boolean = {
    def scheme(path: Path): String =
      Option(path.toUri.getScheme).map(s => families.getOrElse(s, s)).getOrElse("")
    def authority(path: Path): Option[String] = Option(path.toUri.getAuthority)
    def local(path: Path): LocalPath = LocalPath.of(path.toUri.getPath)
    val (schemes, authorities) = (Set(scheme(one), scheme(other)) - "", (one, other))
    schemes.size < 2 &&
    (authority(authorities._1).toSet ++ authority(authorities._2)).size < 2 &&
    (one.toUri.getPath == other.toUri.getPath ||
      schemes == Set("file") && Try(Files.isSameFile(local(one), local(other))).getOrElse(false))
  }

  // Different schemes of the same file system.
  private val families =
    Map("s3" -> "s3a", "s3n" -> "s3a", "abfs" -> "abfss", "wasb" -> "wasbs", "webhdfs" -> "hdfs")
}
