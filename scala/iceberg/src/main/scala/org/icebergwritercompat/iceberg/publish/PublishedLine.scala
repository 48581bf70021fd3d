package org.icebergwritercompat.iceberg.publish

import org.apache.iceberg.TableMetadata
import org.icebergwritercompat.iceberg.metadata.{MetadataCopies, PublishedMetadata}
import org.icebergwritercompat.iceberg.source.CommitMark
import org.icebergwritercompat.iceberg.target.{Damage, Found, PublishTarget, SnapshotHistory}

import scala.jdk.CollectionConverters._

/**
 * What is published of a table. A line is the metadata that is there with all that came before it,
 * each version made of the one before.
 *
 * @param name
 *   the table, for a person
 * @param operations
 *   where it is published
 */
private[publish] class PublishedLine(name: String, operations: PublishTarget) {

  import PublishedMetadata._

  /** The metadata that readers see; `None` if there is none yet. */
  def metadata: Option[TableMetadata] = Option(operations.current())

  /** What is there, and whether publishing can go on from it. */
  def found: Found = operations.found()

  /** The files that could not be read, by the names under which they are kept. */
  def setAside: Seq[String] = operations.setAside

  /** What leads readers to other metadata than this, if anything does. */
  def misleading: Option[String] = operations.misleading

  /** Snapshots before the current one that readers cannot open, and why. */
  def unreadableHistory: Map[Long, String] = found match {
    // Metadata that was copied here refers to files of another place.
    case theirs: Found.ByOthers if theirs.lost.nonEmpty => Map.empty
    case _                                              =>
      metadata.fold(Map.empty[Long, String]) { published =>
        Damage.ofOlder(published, operations.io).map { case (id, damage) => id -> damage.toString }
      }
  }

  /** Whether somebody has made an older snapshot the current one again. */
  def isRolledBack: Boolean = metadata.exists { published =>
    val newest = published.snapshots.asScala.flatMap(versionOf(_)).maxOption
    newest.exists(_ > Option(published.currentSnapshot).flatMap(versionOf(_)).getOrElse(-1L))
  }

  /** What others have committed after what was published, oldest first. */
  def foreign: Seq[ForeignCommit] = found match {
    case Found.Foreign(published, snapshots, lost) =>
      snapshots.map { snapshot =>
        ForeignCommit.of(published, operations, MetadataCopies.of(snapshot), lost)
      }
    case _ => Nil
  }

  /** What others have changed of the table, without a snapshot. */
  def altered: Seq[String] = found match {
    case Found.Altered(_, changes, _) => changes
    case _                            => Nil
  }

  /** Whether the current metadata, or one before it, is in a file of this name. */
  def hasBeen(file: String): Boolean = metadata.exists { published =>
    (published.previousFiles.asScala.map(_.file) :+ published.metadataFileLocation)
      .exists(PublishedMetadata.fileName(_) == file)
  }

  /** The Delta version that readers see; refused if the metadata is not of this table. */
  def publishedVersion: Option[Long] = metadata.map { published =>
    val noted = versionOf(name, published)
    operations.check(published)
    // In a catalog a publisher that lost a race may set the property back, but not the snapshot.
    val seen = Option(published.currentSnapshot).flatMap(versionOf(_))
    math.max(noted, seen.getOrElse(noted))
  }

  /** The newest commit that is noted as published; older metadata may have no such note. */
  def publishedCommit: Option[CommitMark] = metadata.flatMap { published =>
    val noted = Option(published.property(DeltaCommitProperty, null)).flatMap(CommitMark.parse)
    (noted ++ Option(published.currentSnapshot).flatMap(markOf)).maxByOption(_.version)
  }

  /** The commits of the current snapshot and of those it was made from, oldest first. */
  def publishedCommits: Seq[CommitMark] =
    metadata.toSeq.flatMap(SnapshotHistory.line(_).flatMap(markOf)).distinct.sortBy(_.version)

  /** The id of the Delta table that is published, if it is noted. */
  def publishedTable: Option[String] =
    metadata.flatMap(published => Option(published.property(DeltaTableProperty, null)))

  /** The snapshots after this commit, and others of its version. */
  def partedAfter(common: CommitMark): Set[Long] =
    metadata.fold(Set.empty[Long])(partedAfter(_, common))

  /** The same of some metadata of the table. */
  def partedAfter(table: TableMetadata, common: CommitMark): Set[Long] =
    table.snapshots.asScala.iterator
      .filter { snapshot =>
        versionOf(snapshot).exists { version =>
          version > common.version ||
          version == common.version && markOf(snapshot).exists(_ != common)
        }
      }
      .map(_.snapshotId)
      .toSet

  /** The name of the table in a catalog, for a person. */
  def catalogTable: Option[String] = operations.catalogTable

  /**
   * The data files that the current snapshot does not have and older ones have. Snapshots that were
   * replaced before a time are left out, and those that are named.
   */
  def filesOnlyInHistory(endedBefore: Long, without: Set[Long]): Seq[String] =
    metadata.toSeq.flatMap { known =>
      // A copy, because snapshots cache their manifests, and there may be many.
      val published = MetadataCopies.of(known)
      val ended = SnapshotHistory.endedBefore(published, endedBefore)
      SnapshotHistory.onlyInOlder(published, operations, without = ended ++ without)
    }
}
