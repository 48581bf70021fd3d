package org.icebergwritercompat.testing

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{DelegateToFileSystem, FileAlreadyExistsException, Path}
import org.apache.hadoop.fs.RawLocalFileSystem

import java.net.URI

/** The local file system under another name, as one that is not known to be local. */
class ElsewhereFileSystem extends RawLocalFileSystem {
  override def getUri: URI = URI.create("elsewhere:///")
  override def getScheme: String = "elsewhere"
}

/** The same for `FileContext`; a rename replaces a file only if it is asked to. */
class ElsewhereAbstractFileSystem(
    uri: URI,
    conf: Configuration,
    fs: ElsewhereFileSystem,
    scheme: String
) extends DelegateToFileSystem(uri, fs, conf, scheme, false) {

  // The one that Hadoop calls.
  def this(uri: URI, conf: Configuration) = this(uri, conf, new ElsewhereFileSystem, "elsewhere")

  override def getUriDefaultPort: Int = -1

  override def renameInternal(from: Path, to: Path): Unit = ElsewhereFileSystem.synchronized {
    if (new java.io.File(to.toUri.getPath).exists)
      throw new FileAlreadyExistsException(to.toString)
    super.renameInternal(from, to)
    ElsewhereFileSystem.created(to)
  }
}

object ElsewhereFileSystem {

  /** What lets Hadoop find it. */
  val confs: Seq[(String, String)] = Seq(
    "fs.elsewhere.impl" -> classOf[ElsewhereFileSystem].getName,
    "fs.AbstractFileSystem.elsewhere.impl" -> classOf[ElsewhereAbstractFileSystem].getName,
    "spark.icebergWriterCompat.exclusive.elsewhere" -> "rename"
  )

  private var awaited = Option.empty[(String, () => Unit)]

  /** Does something once, in the thread that renames a file to this name, right after it. */
  def after(name: String)(action: => Unit): Unit = synchronized {
    awaited = Some(name -> (() => action))
  }

  private[testing] def created(file: Path): Unit =
    awaited.filter(_._1 == file.getName).foreach { case (_, action) =>
      awaited = None
      action()
    }
}
