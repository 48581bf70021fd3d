package org.icebergwritercompat.iceberg.manifest

import org.apache.iceberg.{DataFile, ManifestFile, ManifestFiles, PartitionSpec}
import org.apache.iceberg.io.FileIO
import org.apache.iceberg.relocated.com.google.common.hash.Hashing
import org.apache.iceberg.util.Tasks
import org.icebergwritercompat.iceberg.target.{PublishThreads, StoreSchemes}

import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Arrays, LinkedHashMap, Map => JMap}
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * Finds the manifests that may list a file, by 64-bit hashes of the paths in each manifest.
 *
 * A manifest never changes, so its hashes are kept in memory. The least recently used ones are
 * dropped when there are too many; such a manifest is read again when it is asked for.
 */
private[iceberg] object ManifestIndex {

  /** Collects the hashes of one manifest while it is written. */
  final class Builder {

    private val hashes = new mutable.ArrayBuilder.ofLong

    def isEmpty: Boolean = hashes.length == 0

    def add(location: String): Unit = { hashes += hash(location); () }

    private[icebergwritercompat] def result(): Array[Long] = {
      val all = hashes.result()
      Arrays.sort(all)
      all
    }
  }

  private val known = new LinkedHashMap[String, Array[Long]](16, 0.75f, true)

  private var size = 0L

  // 32 MB.
  private val mostHashes = 4L * 1024 * 1024

  /** Keeps the hashes of a manifest. */
  def keep(manifest: String, paths: Builder): Unit = keep(manifest, paths.result())

  private def keep(manifest: String, hashes: Array[Long]): Unit = known.synchronized {
    size += hashes.length - Option(known.put(manifest, hashes)).fold(0)(_.length)
    val oldest = known.values.iterator
    while (size > mostHashes && oldest.hasNext) {
      size -= oldest.next().length
      oldest.remove()
    }
  }

  /** Those of the manifests that may list one of the files. */
  def holding(
      manifests: Seq[ManifestFile],
      locations: Set[String],
      io: FileIO,
      specs: JMap[Integer, PartitionSpec]
  ): Seq[ManifestFile] = {
    val wanted = locations.iterator.map(hash).toArray
    Arrays.sort(wanted)
    val found = java.util.concurrent.ConcurrentHashMap.newKeySet[String]
    Tasks
      .foreach(manifests: _*)
      .executeWith(PublishThreads.pool)
      .stopOnFailure()
      .throwFailureWhenFinished()
      .run { manifest =>
        val hashes = of(manifest, io, specs)
        if (meet(wanted, hashes)) found.add(manifest.path)
      }
    manifests.filter(manifest => found.contains(manifest.path))
  }

  private def of(
      manifest: ManifestFile,
      io: FileIO,
      specs: JMap[Integer, PartitionSpec]
  ): Array[Long] =
    known.synchronized(Option(known.get(manifest.path))).getOrElse {
      val paths = new Builder
      Using.resource(ManifestFiles.read(manifest, io, specs).select(onlyPath)) { reader =>
        Using.resource(reader.iterator())(_.forEachRemaining(file => paths.add(file.location)))
      }
      val hashes = paths.result()
      keep(manifest.path, hashes)
      hashes
    }

  private val onlyPath = Seq(DataFile.FILE_PATH.name).asJava

  private def meet(some: Array[Long], others: Array[Long]): Boolean = {
    val (few, many) = if (some.length < others.length) (some, others) else (others, some)
    few.exists(hash => Arrays.binarySearch(many, hash) >= 0)
  }

  private def hash(location: String): Long =
    Hashing.farmHashFingerprint64().hashString(StoreSchemes.key(location), UTF_8).asLong
}
