package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.hadoop.fs.{FSDataInputStream, FSInputStream, FileStatus, Path, RawLocalFileSystem}

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger
import scala.jdk.CollectionConverters._

/** What a file system is asked about a file. */
sealed trait Request

object Request {
  case object Open extends Request
  case object Status extends Request

  /** A read that goes on nowhere near the one before: of a store, a request of its own. */
  case object Range extends Request
}

/** The local file system, which counts what it is asked about Parquet files. */
class CountingFileSystem extends RawLocalFileSystem {

  override def getScheme: String = "file"

  // Of its own accord the local file system looks whether there is a file; a store does not.
  private var isOpening = false

  override def open(path: Path, bufferSize: Int): FSDataInputStream = synchronized {
    CountingFileSystem.count(path, Request.Open)
    isOpening = true
    try
      new FSDataInputStream(
        new CountingStream(
          super.open(path, bufferSize),
          CountingFileSystem.count(path, Request.Range)
        )
      )
    finally isOpening = false
  }

  override def getFileStatus(path: Path): FileStatus = synchronized {
    if (!isOpening) CountingFileSystem.count(path, Request.Status)
    super.getFileStatus(path)
  }
}

private final class CountingStream(stream: FSDataInputStream, count: => Unit)
    extends FSInputStream {

  private var isAtNewPlace = true

  private def reading(): Unit = if (isAtNewPlace) {
    count
    isAtNewPlace = false
  }

  override def seek(position: Long): Unit = {
    if (position != getPos) isAtNewPlace = true
    stream.seek(position)
  }

  override def getPos: Long = stream.getPos

  override def seekToNewSource(position: Long): Boolean = stream.seekToNewSource(position)

  override def read(): Int = {
    reading()
    stream.read()
  }

  override def read(bytes: Array[Byte], offset: Int, length: Int): Int = {
    reading()
    stream.read(bytes, offset, length)
  }

  override def close(): Unit = stream.close()
}

object CountingFileSystem {

  private val counts = new ConcurrentHashMap[(String, Request), AtomicInteger]

  /** The session settings under which all local files are opened through this. */
  val settings: Seq[(String, String)] = Seq(
    "fs.file.impl" -> classOf[CountingFileSystem].getName,
    "fs.file.impl.disable.cache" -> "true"
  )

  private def count(path: Path, request: Request): Unit =
    if (path.getName.endsWith(".parquet")) {
      counts
        .computeIfAbsent(path.toUri.getPath -> request, _ => new AtomicInteger)
        .incrementAndGet()
      ()
    }

  /** How often each Parquet file was asked for, by path. */
  def requests: Map[(String, Request), Int] = counts.asScala.view.mapValues(_.get).toMap

  def reset(): Unit = counts.clear()
}
