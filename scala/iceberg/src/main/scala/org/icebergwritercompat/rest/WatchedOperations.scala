package org.icebergwritercompat.rest

import org.apache.iceberg.exceptions.{
  AlreadyExistsException,
  CommitFailedException,
  CommitStateUnknownException,
  NoSuchTableException,
  ValidationException
}
import org.apache.iceberg.{
  DataFile,
  ManifestContent,
  ManifestFile,
  ManifestFiles,
  Snapshot,
  TableMetadata,
  TableOperations
}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.target.{LiveDifference, SnapshotHistory}
import org.icebergwritercompat.iceberg.metadata.MetadataCopies

import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

/**
 * The operations on a table for clients elsewhere: they may name only files in certain places, and
 * an error after the commit never says that there was none.
 *
 * @param table
 *   the table, for a person
 * @param folders
 *   where its files may be, besides its own folder
 */
final class WatchedOperations(operations: TableOperations, table: String, folders: => Seq[String])
    extends PassedOnOperations(operations) {

  import Progress._

  override def current(): TableMetadata = sure(operations.current())

  override def refresh(): TableMetadata = sure(operations.refresh())

  // Reading is what follows a commit, in the same request.
  private def sure[T](body: => T): T =
    try body
    catch {
      case NonFatal(e) if Progress.current.stage == Committed =>
        throw new CommitStateUnknownException(e)
    }

  override def commit(base: TableMetadata, updated: TableMetadata): Unit = {
    val progress = Progress.current
    check(Option(base), updated)
    progress.stage = Committing
    try {
      operations.commit(base, updated)
      progress.stage = Committed
    } catch {
      case nothing @ (_: CommitFailedException | _: ValidationException |
          _: AlreadyExistsException | _: NoSuchTableException) =>
        progress.stage = Applying
        throw nothing
      case unknown: CommitStateUnknownException => throw unknown
      case NonFatal(e)                          => throw new CommitStateUnknownException(e)
    }
  }

  /**
   * The data files that a client has appended to an older snapshot of a table; `None` if it has
   * done anything else, or if that snapshot is gone.
   */
  def appended(table: TableMetadata, snapshot: Snapshot): Option[Seq[DataFile]] = {
    val parent = Option(snapshot.parentId).map(id => Option(table.snapshot(id)))
    if (parent.contains(None)) None
    else {
      val before = parent.flatten.map(MetadataCopies.of(_: Snapshot))
      val there = before.toSeq.flatMap(manifests).toSet
      added(table, snapshot, placed(Some(table), table), there)
      val difference = LiveDifference.of(table, before, Some(snapshot), operations.io)
      Option.when(
        difference.removed.isEmpty && difference.twice.isEmpty && difference.added.nonEmpty &&
          snapshot.deleteManifests(operations.io).isEmpty
      ) {
        val locations = difference.added.map(_.location).toSet
        manifests(snapshot)
          .filterNot(there)
          .flatMap(SnapshotHistory.liveWithMetrics(table, operations.io, _))
          .filter(file => locations(file.location))
      }
    }
  }

  // The table's own folder is where it is, not where the client says that it is.
  private def placed(base: Option[TableMetadata], updated: TableMetadata): String => Unit = {
    val places = new Places(base.map(_.location).toSeq ++ folders)
    location =>
      if (!places.has(location))
        throw IcebergWriterCompatException.commitRefused(
          "PLACE",
          table,
          Map("location" -> location, "folder" -> base.fold(updated)(identity).location)
        )
  }

  private def check(base: Option[TableMetadata], updated: TableMetadata): Unit = {
    val named = placed(base, updated)
    named(updated.location)
    val known = base.fold(Set.empty[Long])(_.snapshots.asScala.map(_.snapshotId).toSet)
    val made = updated.snapshots.asScala.filterNot(s => known(s.snapshotId))
    if (made.nonEmpty) {
      // What is there was looked at when it came.
      val there = base.flatMap(b => Option(b.currentSnapshot)).toSeq.flatMap(manifests(_)).toSet
      made.foreach(added(updated, _, named, there))
    }
  }

  private def manifests(snapshot: Snapshot): Seq[ManifestFile] =
    snapshot.allManifests(operations.io).asScala.toSeq

  private def added(
      of: TableMetadata,
      snapshot: Snapshot,
      named: String => Unit,
      there: Set[ManifestFile]
  ): Unit = {
    // Format version 1 has snapshots without.
    if (snapshot.manifestListLocation == null)
      throw new IllegalArgumentException(s"Snapshot ${snapshot.snapshotId} has no manifest list")
    named(snapshot.manifestListLocation)
    val fresh = manifests(snapshot).filterNot(there)
    fresh.foreach(manifest => named(manifest.path))
    fresh.foreach { manifest =>
      val reader =
        if (manifest.content == ManifestContent.DATA)
          ManifestFiles.read(manifest, operations.io, of.specsById)
        else ManifestFiles.readDeleteManifest(manifest, operations.io, of.specsById)
      Using.resource(reader)(_.iterator.forEachRemaining(file => named(file.location)))
    }
  }
}
