package org.icebergwritercompat.iceberg.metadata

import org.apache.iceberg.{ManifestContent, ManifestFile}

/**
 * Which manifests are merged before a commit: as many as ten that list about as many files as each
 * other. So a file is written to about three manifests in its life, and a table has a few small
 * manifests, however many commits of few files there were. Iceberg's own merging writes a manifest
 * anew for each file that still fits into it.
 */
private[iceberg] object ManifestMerging {

  /** The size from which on a merged manifest ends, in bytes. */
  val targetBytes: Long = 256L * 1024

  /** The paths of those that are due. */
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
