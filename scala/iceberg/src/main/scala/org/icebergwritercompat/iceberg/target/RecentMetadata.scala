package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.iceberg.io.FileIO
import org.apache.iceberg.{TableMetadata, TableMetadataParser}

import java.lang.ref.SoftReference
import java.nio.ByteBuffer
import java.util.{LinkedHashMap, Map => JMap}
import scala.util.{Try, Using}

/**
 * A cache of the metadata that this process has last read or written, for some path tables: a
 * commit changes little of it, and a long history takes long to parse. Entries are softly
 * referenced.
 *
 * Cached metadata is shared. A snapshot caches its manifests, so code that reads manifests takes a
 * copy of the snapshot.
 */
private[iceberg] object RecentMetadata {

  /** Identifies a file, also if another file had its name before. */
  private sealed trait Mark

  private final case class ByEtag(location: String, length: Long, etag: String) extends Mark

  private final case class ByHead(location: String, length: Long, millis: Long, head: ByteBuffer)
      extends Mark

  private final case class Entry(mark: Mark, metadata: SoftReference[TableMetadata])

  private val mostTables = 64

  // The beginning contains the id of the table and the time of its last change.
  private val headBytes = 1024

  private val entries = new LinkedHashMap[Path, Entry](16, 0.75f, true) {
    override def removeEldestEntry(eldest: JMap.Entry[Path, Entry]): Boolean = size > mostTables
  }

  /**
   * The metadata in a file.
   *
   * @param status
   *   the status of the file, just read
   */
  def read(file: Path, status: FileStatus, fs: FileSystem, io: FileIO): TableMetadata = {
    // If the file cannot be read, the parser raises the error.
    val mark = Try(markOf(file, status, fs)).toOption
    val known = Option(entries.synchronized(entries.get(file.getParent)))
      .filter(entry => mark.contains(entry.mark))
      .flatMap(entry => Option(entry.metadata.get))
    known.getOrElse {
      val metadata = TableMetadataParser.read(io, file.toString)
      mark.foreach(put(file, _, metadata))
      metadata
    }
  }

  /**
   * Caches the metadata that was written to a file, and returns it as a reader gets it; `None` if
   * the file has to be read.
   *
   * @param file
   *   the location that readers use
   * @param stored
   *   the same file, by the scheme of the file system
   */
  def keep(
      file: Path,
      stored: Path,
      fs: FileSystem,
      written: TableMetadata
  ): Option[TableMetadata] =
    Try {
      val asRead = TableMetadata
        .buildFrom(written)
        .discardChanges()
        .withMetadataLocation(file.toString)
        .build()
      put(file, markOf(file, fs.getFileStatus(stored), fs), asRead)
      asRead
    }.toOption

  private def markOf(file: Path, status: FileStatus, fs: FileSystem): Mark =
    MetadataStore.etagOf(status) match {
      case Some(etag) => ByEtag(file.toString, status.getLen, etag)
      case None       =>
        val head = Using.resource(fs.open(status.getPath))(_.readNBytes(headBytes))
        ByHead(file.toString, status.getLen, status.getModificationTime, ByteBuffer.wrap(head))
    }

  private def put(file: Path, mark: Mark, metadata: TableMetadata): Unit =
    entries.synchronized {
      entries.put(file.getParent, Entry(mark, new SoftReference(metadata)))
      ()
    }
}
