package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path}
import org.apache.hadoop.fs.Options.OpenFileOptions._
import org.apache.hadoop.util.functional.FutureIO
import org.apache.parquet.io.{DelegatingSeekableInputStream, InputFile, SeekableInputStream}

import java.io.InputStream

/**
 * The end of a file of known length, for Parquet's reader of footers.
 *
 * The last bytes are fetched by one request when the first of them is asked for; a longer footer
 * takes one more. Nothing asks for the status of the file.
 */
private[read] final class FileTail private (
    path: Path,
    length: Long,
    stream: FSDataInputStream
) extends InputFile
    with AutoCloseable {

  // The bytes from `start` to the end of the file.
  private var bytes = Array.emptyByteArray
  private var start = length

  /** Whether the file goes on behind its length; asks for no more than what has been fetched. */
  def isLonger: Boolean = goesOn

  private var goesOn = false

  override def getLength: Long = length

  /** Parquet closes this one; the file stays open until [[close]]. */
  override def newStream(): SeekableInputStream = new AtPosition

  override def close(): Unit = stream.close()

  // Parquet's errors name the file by this.
  override def toString: String = path.toString

  private def fetch(from: Long): Unit = if (from < start) {
    val isFirst = start == length
    val first = if (isFirst) math.max(0L, math.min(from, length - FileTail.FetchedBytes)) else from
    val fetched = new Array[Byte](Math.toIntExact(start - first))
    stream.seek(first)
    stream.readFully(fetched)
    // Stores answer this from the length that the file was opened with, without a request.
    if (isFirst) goesOn = stream.read() >= 0
    bytes = fetched ++ bytes
    start = first
  }

  private final class Fetched extends InputStream {

    var position = 0L

    override def read(): Int =
      if (position >= length) -1
      else {
        fetch(position)
        position += 1
        bytes((position - 1 - start).toInt) & 0xff
      }

    override def read(into: Array[Byte], offset: Int, count: Int): Int =
      if (count == 0) 0
      else if (position >= length) -1
      else {
        fetch(position)
        val read = math.min(count.toLong, length - position).toInt
        System.arraycopy(bytes, (position - start).toInt, into, offset, read)
        position += read
        read
      }
  }

  private final class AtPosition(fetched: Fetched) extends DelegatingSeekableInputStream(fetched) {

    def this() = this(new Fetched)

    override def getPos: Long = fetched.position

    override def seek(to: Long): Unit = fetched.position = to
  }
}

private[read] object FileTail {

  /**
   * How much is fetched at once: the footers of most files, and no more than a store reads ahead.
   */
  private val FetchedBytes = 64L * 1024

  /** Opens a file that is said to have this length. */
  def open(file: Path, length: Long, configuration: Configuration): FileTail = {
    val opening = file
      .getFileSystem(configuration)
      .openFile(file)
      .optLong(FS_OPTION_OPENFILE_LENGTH, length)
      .opt(
        FS_OPTION_OPENFILE_READ_POLICY,
        s"parquet, columnar, $FS_OPTION_OPENFILE_READ_POLICY_RANDOM"
      )
      .build()
    new FileTail(file, length, FutureIO.awaitFuture(opening))
  }
}
