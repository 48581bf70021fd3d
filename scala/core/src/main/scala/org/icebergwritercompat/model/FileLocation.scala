package org.icebergwritercompat.model

import java.net.{URI, URISyntaxException}
import scala.util.Try

/** The location of a file, from its path in the log. */
sealed trait FileLocation {

  /** What is wrong with the path, if anything. */
  def problem: Option[String]
}

object FileLocation {

  /** In the folder of the table. */
  case object Inside extends FileLocation {
    override def problem: Option[String] = None
  }

  /**
   * An absolute path, as in a shallow clone.
   *
   * @param root
   *   the scheme and host, as `hdfs://host`; empty if they are those of the table
   */
  final case class Absolute(root: String) extends FileLocation {
    override def problem: Option[String] = None
  }

  /** A path that is not allowed. */
  final case class Nowhere(why: String) extends FileLocation {
    override def problem: Option[String] = Some(why)
  }

  /** The location of a path, which Delta reads as a URI relative to the folder of the table. */
  def of(path: String): FileLocation =
    if (path == null || path.isBlank) Nowhere("it has no path")
    else if (isPlainName(path)) Inside
    else
      try of(new URI(path))
      catch { case _: URISyntaxException => Nowhere("its path is not a URI") }

  // Most paths are of this form and need not be parsed as URIs.
  private def isPlainName(path: String): Boolean =
    path.charAt(0) != '.' && path.forall { c =>
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
      c == '-' || c == '_' || c == '.'
    }

  /** Whether a path is a URI of a file; Delta reads no other path. */
  def isUri(path: String): Boolean =
    path != null && Try(new URI(path)).toOption.exists { uri =>
      !uri.isOpaque && !names(uri.getPath).lastOption.forall(folders)
    }

  private def of(uri: URI): FileLocation = {
    val path = uri.getPath
    if (uri.isOpaque) Nowhere("its path is a URI without a file path")
    else if (uri.getRawQuery != null || uri.getRawFragment != null)
      Nowhere("its path has a query or a fragment")
    else if (path.exists(c => Character.isISOControl(c)))
      Nowhere("its path has a control character")
    else if (names(path).lastOption.forall(folders)) Nowhere("its path is not that of a file")
    else if ("file".equalsIgnoreCase(uri.getScheme) && uri.getRawAuthority != null)
      Nowhere("its path is a local file on another host")
    else if (uri.isAbsolute || uri.getRawAuthority != null || path.startsWith("/"))
      if (leaves(path)) Nowhere("its path goes above the root") else Absolute(rootOf(uri))
    else if (leaves(path)) Nowhere("its path leaves the folder of the table")
    else Inside
  }

  private def rootOf(uri: URI): String =
    Option(uri.getScheme).fold("")(_ + ":") + Option(uri.getRawAuthority).fold("")("//" + _)

  // The separators of folders on all systems on which the table may be read.
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

  /** The path with control characters escaped. */
  def printable(path: String): String =
    String.valueOf(path).map(c => if (Character.isISOControl(c)) '\uFFFD' else c)
}
