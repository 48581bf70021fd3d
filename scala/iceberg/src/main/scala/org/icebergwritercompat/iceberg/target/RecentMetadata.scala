package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.iceberg.io.FileIO
import org.apache.iceberg.{TableMetadata, TableMetadataParser}

import java.lang.ref.SoftReference
import java.nio.ByteBuffer
import java.util.{LinkedHashMap, Map => JMap}
import scala.util.{Try, Using}

/**
 * The metadata that this process has last read or written of some path tables: a commit changes
 * little of it, and a long history takes long to parse. It is forgotten when memory is short.
 *
 * What is kept is shared: who reads manifests takes a copy of the snapshot, which remembers them.
 */
private[iceberg] object RecentMetadata {

  /** What tells a file from another that had its name before. */
  private final case class Mark(location: String, length: Long, millis: Long, head: ByteBuffer)

  private final case class Entry(mark: Mark, metadata: SoftReference[TableMetadata])

  private val mostTables = 64

  // There the id of the table and the time of its last change are.
  private val headBytes = 1024

  private val entries = new LinkedHashMap[Path, Entry](16, 0.75f, true) {
    override def removeEldestEntry(eldest: JMap.Entry[Path, Entry]): Boolean = size > mostTables
  }

  /** The metadata in a file. */
  def read(file: Path, fs: FileSystem, io: FileIO): TableMetadata = {
    // A file that cannot be looked at is for the parser to say so.
    val mark = Try(markOf(file, fs)).toOption
    val known = Option(entries.synchronized(entries.get(file.getParent)))
      .filter(entry => mark.contains(entry.mark))
      .flatMap(entry => Option(entry.metadata.get))
    known.getOrElse {
      val metadata = TableMetadataParser.read(io, file.toString)
      mark.foreach(put(file, _, metadata))
      metadata
    }
  }

  /** Remembers what was written to a file. */
  def keep(file: Path, fs: FileSystem, written: TableMetadata): Unit = {
    // It is read where it cannot be remembered.
    Try {
      val asRead = TableMetadata
        .buildFrom(written)
        .discardChanges()
        .withMetadataLocation(file.toString)
        .build()
      put(file, markOf(file, fs), asRead)
    }
    ()
  }

  private def markOf(file: Path, fs: FileSystem): Mark = {
    val status = fs.getFileStatus(file)
    val head = Using.resource(fs.open(file))(_.readNBytes(headBytes))
    Mark(file.toString, status.getLen, status.getModificationTime, ByteBuffer.wrap(head))
  }

  private def put(file: Path, mark: Mark, metadata: TableMetadata): Unit =
    entries.synchronized {
      entries.put(file.getParent, Entry(mark, new SoftReference(metadata)))
      ()
    }
}
