package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.fs.Path
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg.{LocationProviders, Snapshot, TableMetadata, TableOperations}

import java.util.UUID
import scala.jdk.CollectionConverters._

/**
 * The place where a table is published: its current metadata, and the atomic commit of new
 * metadata.
 *
 * `current` is null before the first commit, whose base is null too. If another publisher commits
 * first, the commit throws `CommitFailedException` and has no effect. After any other failure it is
 * unknown whether the commit was made.
 */
trait PublishTarget extends TableOperations {

  /** The state of the metadata; read once until it is refreshed or changed. */
  def found(): Found

  /** The metadata to continue; null if there is none, or none that can be continued. */
  override def current(): TableMetadata = found() match {
    case Found.Line(metadata)         => metadata
    case theirs: Found.ByOthers       => theirs.metadata
    case Found.Unreadable(refusal)    => throw refusal
    case Found.Absent | _: Found.Lost => null
  }

  /** A location by the scheme that metadata contains. */
  def spelled(location: Path): Path = location

  /** Does not continue the existing metadata: the next commit begins a new line. */
  def abandon(lost: Found.Lost): Unit

  /** Renames a file to a name that readers do not use as metadata. */
  def putAside(file: String): Unit

  /**
   * The id of a line that begins here. A line that replaces another one has a new id, so that a
   * reader which still has the other one fails and does not mix them.
   */
  def lineId(tableId: String): String = found() match {
    case _: Found.Lost => newLineId
    case _             => tableId
  }

  private lazy val newLineId = UUID.randomUUID.toString

  /** The files that could not be read, by their new names. */
  def setAside: Seq[String]

  /** Refuses a place where two publishers could write the same version. */
  def checkExclusive(): Unit = ()

  /** Refuses metadata that must not be continued here. */
  def check(metadata: TableMetadata): Unit

  /** Continues metadata here that was begun in another place. */
  def continueHere(): Unit

  /** A problem that makes readers find other metadata than this, if there is one. */
  def misleading: Option[String]

  /**
   * Whether the place may refuse a snapshot that is more than a minute older than the last change
   * of the metadata. Iceberg's library does not, some servers do.
   */
  def refusesOldSnapshots: Boolean = false

  /** Completes the work of a publisher that was interrupted. */
  def repair(): Unit

  /** The properties that name the place where the metadata is continued. */
  def properties: Map[String, String]

  /** The name of the table in a catalog, for messages. */
  def catalogTable: Option[String]
}

private[iceberg] object PublishTarget {

  /** The metadata, or its damage if the current snapshot cannot be read. */
  def whole(metadata: TableMetadata, io: FileIO): Found =
    Damage.ofCurrent(metadata, io, whole = false) match {
      case Nil     => Found.Line(metadata)
      case damages => lost(damages)
    }

  /** Damaged metadata is not continued. */
  def lost(damages: Seq[Damage]): Found.Lost = {
    val more = if (damages.size > 1) s", and ${damages.size - 1} more" else ""
    Found.Lost(s"${damages.head}$more", damages.filter(_.isThere).map(_.file))
  }
}

/** Table operations in memory, for a change that becomes part of another commit. */
private[iceberg] final class StagedOperations(start: TableMetadata, real: TableOperations)
    extends TableOperations {

  private var metadata = start

  private var wantedId = Option.empty[Long]

  /** The next snapshot that is made gets this id. */
  def nextId(id: Long): Unit = wantedId = Some(id)

  override def newSnapshotId(): Long = {
    val id = wantedId.getOrElse(super.newSnapshotId())
    wantedId = None
    id
  }

  private val before = start.snapshots.asScala.map(_.snapshotId).toSet

  override def current(): TableMetadata = metadata

  override def refresh(): TableMetadata = metadata

  /** The snapshots that were made here, oldest first. */
  def made: Seq[Snapshot] =
    metadata.snapshots.asScala.filterNot(snapshot => before(snapshot.snapshotId)).toSeq

  override def commit(base: TableMetadata, updated: TableMetadata): Unit = {
    if (base ne metadata) throw new CommitFailedException("the staged table has changed")
    metadata = updated
  }

  override def io(): FileIO = real.io()

  override def metadataFileLocation(fileName: String): String = real.metadataFileLocation(fileName)

  override def locationProvider(): LocationProvider =
    LocationProviders.locationsFor(metadata.location, metadata.properties)
}
