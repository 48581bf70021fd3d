package org.icebergwritercompat.iceberg.metadata

import org.apache.iceberg.{ManifestContent, ManifestFile}

/**
 * Selects the manifests that are merged before a commit: up to ten that list about the same number
 * of files. So each file is written to about three manifests over time, and a table has few small
 * manifests, however many small commits there are. Iceberg's own merging rewrites a manifest for
 * each file until the manifest is full.
 */
private[iceberg] object ManifestMerging {

  /** The target size of a merged manifest, in bytes. */
  val targetBytes: Long = 256L * 1024

  /** The paths of the manifests to merge. */
  def due(manifests: Iterable[ManifestFile]): Set[String] =
    manifests
      .filter(m => m.content == ManifestContent.DATA && m.length < targetBytes / 2)
      .groupBy(m => m.partitionSpecId -> level(m))
      .valuesIterator
      .filter(_.size >= together)
      .flatMap(_.map(_.path))
      .toSet

  private val together = 10

  private def level(manifest: ManifestFile): Int = {
    val files = manifest.addedFilesCount + manifest.existingFilesCount
    Iterator.iterate(files / together)(_ / together).takeWhile(_ > 0).size
  }
}
