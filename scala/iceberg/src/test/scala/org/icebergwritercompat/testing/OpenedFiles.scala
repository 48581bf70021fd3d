package org.icebergwritercompat.testing

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataInputStream, Path, PathHandle}

import java.net.URI
import java.util.concurrent.ConcurrentLinkedQueue
import scala.jdk.CollectionConverters._

/** The local file system under another name, which notes each file that is opened to be read. */
class OpenNotingFileSystem extends ElsewhereFileSystem {

  override def getUri: URI = URI.create("counting:///")

  override def getScheme: String = "counting"

  override def open(file: Path, bufferSize: Int): FSDataInputStream = {
    OpenedFiles.note(file)
    super.open(file, bufferSize)
  }

  override def open(handle: PathHandle, bufferSize: Int): FSDataInputStream =
    throw new UnsupportedOperationException(s"$handle is not counted")
}

/** The same for `FileContext`. */
class OpenNotingAbstractFileSystem(uri: URI, conf: Configuration)
    extends ElsewhereAbstractFileSystem(uri, conf, new OpenNotingFileSystem, "counting")

/** Which files were opened, and by which classes. */
object OpenedFiles {

  /** What lets Hadoop find it. */
  val confs: Seq[(String, String)] = Seq(
    "fs.counting.impl" -> classOf[OpenNotingFileSystem].getName,
    "fs.AbstractFileSystem.counting.impl" -> classOf[OpenNotingAbstractFileSystem].getName,
    "spark.icebergWriterCompat.exclusive.counting" -> "rename"
  )

  private val opened = new ConcurrentLinkedQueue[(String, Seq[String])]

  private[testing] def note(file: Path): Unit = {
    val classes = Thread.currentThread.getStackTrace.toSeq.map(_.getClassName)
    opened.add(file.toUri.getPath -> classes)
    ()
  }

  /** How often a file was opened by calls that came through a class. */
  def count(file: java.nio.file.Path, through: String => Boolean): Int =
    opened.asScala.count { case (path, classes) =>
      path == file.toString && classes.exists(through)
    }
}
