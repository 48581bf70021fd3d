package org.icebergwritercompat.iceberg.target

import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg.{LocationProviders, Snapshot, TableMetadata, TableOperations}

import java.util.UUID
import scala.jdk.CollectionConverters._

/**
 * Where a table is published: the metadata that readers see there, and the atomic step to the next.
 *
 * `current` is null before the first step, whose base is null too. A step that somebody else was
 * faster with throws `CommitFailedException`, and nothing has happened then; after any other
 * failure it is open whether it was taken.
 */
trait PublishTarget extends TableOperations {

  /** What is there; it is looked at once until it is refreshed or changed. */
  def found(): Found

  /** The metadata to go on with; null if there is none, or none that can be gone on with. */
  override def current(): TableMetadata = found() match {
    case Found.Line(metadata)         => metadata
    case theirs: Found.ByOthers       => theirs.metadata
    case Found.Unreadable(refusal)    => throw refusal
    case Found.Absent | _: Found.Lost => null
  }

  /** Leaves what is there: the next step begins a new line. */
  def abandon(lost: Found.Lost): Unit

  /** Keeps a file under a name that no reader takes for metadata. */
  def putAside(file: String): Unit

  /**
   * The id of a line that begins here. One that takes the place of another has its own, so that who
   * still holds the other fails and does not mix them.
   */
  def lineId(tableId: String): String = found() match {
    case _: Found.Lost => newLineId
    case _             => tableId
  }

  private lazy val newLineId = UUID.randomUUID.toString

  /** The files that could not be read, by the names under which they are kept. */
  def setAside: Seq[String]

  /** Refuses metadata that is not the one to go on with here. */
  def check(metadata: TableMetadata): Unit

  /** Makes this the place where the metadata goes on, if it was begun elsewhere. */
  def takeOver(): Unit

  /** What misleads readers to other metadata than this, if anything. */
  def misleading: Option[String]

  /** Completes what a publisher that did not get so far has left open. */
  def mend(): Unit

  /** Properties that tell where the metadata goes on. */
  def properties: Map[String, String]

  /** The name of the table in a catalog, for a person. */
  def catalogTable: Option[String]
}

private[iceberg] object PublishTarget {

  /** Metadata of the place, unless readers of its current snapshot miss something. */
  def whole(metadata: TableMetadata, io: FileIO): Found =
    Damage.ofCurrent(metadata, io, whole = false) match {
      case Nil     => Found.Line(metadata)
      case damages => lost(damages)
    }

  /** What is damaged is not gone on with. */
  def lost(damages: Seq[Damage]): Found.Lost = {
    val more = if (damages.size > 1) s", and ${damages.size - 1} more" else ""
    Found.Lost(s"${damages.head}$more", damages.filter(_.isThere).map(_.file))
  }
}

/** Operations in memory, for a change that is to become part of a commit elsewhere. */
private[iceberg] final class StagedOperations(start: TableMetadata, real: TableOperations)
    extends TableOperations {

  private var metadata = start

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
