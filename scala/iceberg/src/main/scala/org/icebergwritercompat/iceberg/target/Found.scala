package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.fs.Path
import org.apache.iceberg.{Snapshot, TableMetadata}
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.DefinitionStamp

import java.nio.file.{Files, Path => LocalPath}
import scala.util.Try

/** What is found where a table is published. */
sealed trait Found

object Found {

  /** Nothing was published there. */
  case object Absent extends Found

  /** Metadata of this place; all that readers of its current snapshot open is there. */
  final case class Line(metadata: TableMetadata) extends Found

  /** Metadata of this project that others have changed. */
  sealed trait ByOthers extends Found {

    def metadata: TableMetadata

    /** Why readers of this folder cannot go by it, were it ours alone. */
    def lost: Option[String]

    /** Why it cannot be gone on with, even where that is to be dropped. */
    def dead: Option[String] = lost.orElse(DefinitionStamp.raised(metadata))
  }

  /**
   * Metadata on which others have put snapshots of their own.
   *
   * @param snapshots
   *   theirs, oldest first
   */
  final case class Foreign(
      metadata: TableMetadata,
      snapshots: Seq[Snapshot],
      lost: Option[String]
  ) extends ByOthers

  /**
   * Metadata whose columns, partitions or properties others have changed, without a snapshot.
   *
   * @param changes
   *   what they changed
   */
  final case class Altered(metadata: TableMetadata, changes: Seq[String], lost: Option[String])
      extends ByOthers

  /** An entry of a catalog whose metadata nobody can read, and which may be another table's. */
  final case class Unreadable(refusal: IcebergWriterCompatException) extends Found

  /**
   * Metadata of this project that cannot be gone on with. The next step begins a new line, which
   * leads to nothing of it.
   *
   * @param why
   *   for a person
   * @param unreadable
   *   files that are there and cannot be read
   */
  final case class Lost(why: String, unreadable: Seq[String]) extends Found

  /**
   * What others have done to metadata of this project, if anything.
   *
   * @param lost
   *   why readers cannot go by it, were it ours alone
   */
  private[iceberg] def byOthers(metadata: TableMetadata, lost: Option[String]): Option[ByOthers] =
    Option(PublishedMetadata.foreignTo(metadata))
      .filter(_.nonEmpty)
      .map(Foreign(metadata, _, lost))
      .orElse {
        val changes = DefinitionStamp.changes(metadata)
        Option.when(changes.nonEmpty)(Altered(metadata, changes, lost))
      }

  /** Whether metadata is of this project. */
  private[iceberg] def isOurs(metadata: TableMetadata): Boolean =
    metadata.properties.containsKey(PublishedMetadata.DeltaVersionProperty)

  /** Whether two locations are the same folder, as far as their spelling and the disk tell. */
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

  // Names of the same file systems.
  private val families =
    Map("s3" -> "s3a", "s3n" -> "s3a", "abfs" -> "abfss", "wasb" -> "wasbs", "webhdfs" -> "hdfs")
}
