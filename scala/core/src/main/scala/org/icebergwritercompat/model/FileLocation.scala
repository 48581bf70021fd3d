package org.icebergwritercompat.model

import java.net.{URI, URISyntaxException}
import scala.util.Try

/** Where the path of a file in the log leads to. */
sealed trait FileLocation {

  /** What is wrong with the path. */
  def problem: Option[String]
}

object FileLocation {

  /** Below the folder of the table. */
  case object Inside extends FileLocation {
    override def problem: Option[String] = None
  }

  /**
   * Anywhere, as a shallow clone has it.
   *
   * @param root
   *   the scheme and host, as `hdfs://host`; empty for those of the table
   */
  final case class Absolute(root: String) extends FileLocation {
    override def problem: Option[String] = None
  }

  /** To no file that the table may have. */
  final case class Nowhere(why: String) extends FileLocation {
    override def problem: Option[String] = Some(why)
  }

  /** Where a path leads to, as Delta reads it: a URI, relative to the folder of the table. */
  def of(path: String): FileLocation =
    if (path == null || path.isBlank) Nowhere("it has no path")
    else if (isPlainName(path)) Inside
    else
      try of(new URI(path))
      catch { case _: URISyntaxException => Nowhere("its path is no URI") }

  // Most files of most tables; it spares them the parsing of a URI.
  private def isPlainName(path: String): Boolean =
    path.charAt(0) != '.' && path.forall { c =>
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
      c == '-' || c == '_' || c == '.'
    }

  /** Whether a path is a URI of a file, wherever that is; Delta reads no other. */
  def isUri(path: String): Boolean =
    path != null && Try(new URI(path)).toOption.exists { uri =>
      !uri.isOpaque && !names(uri.getPath).lastOption.forall(folders)
    }

  private def of(uri: URI): FileLocation = {
    val path = uri.getPath
    if (uri.isOpaque) Nowhere("its path is a URI that names no file")
    else if (uri.getRawQuery != null || uri.getRawFragment != null)
      Nowhere("its path has a query or a fragment, which no file has")
    else if (path.exists(c => Character.isISOControl(c)))
      Nowhere("its path has a control character")
    else if (names(path).lastOption.forall(folders)) Nowhere("its path names no file")
    else if ("file".equalsIgnoreCase(uri.getScheme) && uri.getRawAuthority != null)
      Nowhere("its path is on another host, where no local file is")
    else if (uri.isAbsolute || uri.getRawAuthority != null || path.startsWith("/"))
      if (leaves(path)) Nowhere("its path goes above the root") else Absolute(rootOf(uri))
    else if (leaves(path)) Nowhere("its path leaves the folder of the table")
    else Inside
  }

  private def rootOf(uri: URI): String =
    Option(uri.getScheme).fold("")(_ + ":") + Option(uri.getRawAuthority).fold("")("//" + _)

  // What separates folders on any system that the table may be read on.
  private def names(path: String): Seq[String] =
    path.split("[/\\\\]", -1).toSeq

  private val folders = Set("", ".", "..")

  private def leaves(path: String): Boolean =
    names(path)
      .scanLeft(0) {
        case (depth, "" | ".") => depth
        case (depth, "..")     => depth - 1
        case (depth, _)        => depth + 1
      }
      .exists(_ < 0)

  /** The path in one line. */
  def printable(path: String): String =
    String.valueOf(path).map(c => if (Character.isISOControl(c)) '\uFFFD' else c)
}
