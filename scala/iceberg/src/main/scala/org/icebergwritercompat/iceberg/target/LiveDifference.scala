package org.icebergwritercompat.iceberg.target

import org.apache.iceberg.io.FileIO
import org.apache.iceberg.{DataFile, ManifestFile, Snapshot, TableMetadata}

import scala.jdk.CollectionConverters._

/**
 * By which live data files two snapshots of a table differ. It costs by what has changed: manifests
 * that both have are not opened.
 *
 * @param added
 *   live in the second only
 * @param removed
 *   live in the first only
 * @param twice
 *   paths that the second has more than once in what is its own
 * @param common
 *   the manifests of data files that both have
 */
final case class LiveDifference(
    added: Seq[DataFile],
    removed: Seq[DataFile],
    twice: Set[String],
    common: Seq[ManifestFile]
)

object LiveDifference {

  /**
   * The difference. Snapshots remember their manifests; those of metadata that is kept for long are
   * given as copies.
   *
   * @param table
   *   metadata that has the partition specs of both
   */
  def of(
      table: TableMetadata,
      first: Option[Snapshot],
      second: Option[Snapshot],
      io: FileIO
  ): LiveDifference = {
    val (before, after) = (manifests(first, io), manifests(second, io))
    def own(manifests: Seq[ManifestFile], others: Seq[ManifestFile]): Seq[DataFile] = {
      val known = others.map(_.path).toSet
      manifests.filterNot(manifest => known(manifest.path)).flatMap(live(table, io, _))
    }
    val (was, is) = (own(before, after), own(after, before))
    val (gone, come) = (was.map(_.location).toSet, is.map(_.location).toSet)
    val kept = after.map(_.path).toSet
    LiveDifference(
      is.filterNot(file => gone(file.location)).distinctBy(_.location),
      was.filterNot(file => come(file.location)).distinctBy(_.location),
      is.groupBy(_.location).collect { case (path, files) if files.sizeIs > 1 => path }.toSet,
      before.filter(manifest => kept(manifest.path))
    )
  }

  // A manifest where nothing is live is not opened.
  private def live(table: TableMetadata, io: FileIO, manifest: ManifestFile): Seq[DataFile] =
    if (manifest.hasAddedFiles || manifest.hasExistingFiles)
      SnapshotHistory.live(table, io, manifest)
    else Nil

  private def manifests(snapshot: Option[Snapshot], io: FileIO): Seq[ManifestFile] =
    snapshot.toSeq.flatMap(_.dataManifests(io).asScala)
}
