package org.icebergwritercompat.rest

import org.apache.hadoop.fs.Path

/**
 * The folders that a request may name files in.
 *
 * @param folders
 *   with all that is below them
 */
private[rest] final class Places(folders: Seq[String]) {

  private val known = folders.flatMap(Places.whole)

  /** Whether a file or folder is one of them, or is below one. */
  def has(location: String): Boolean = Places.whole(location).exists { place =>
    known.exists(folder => place == folder || place.startsWith(s"$folder/"))
  }
}

private[rest] object Places {

  // Hadoop's path has no `..` any more, unless it leads out of the file system.
  private def whole(location: String): Option[String] =
    try {
      val uri = new Path(location).toUri
      val scheme = Option(uri.getScheme).getOrElse("file").toLowerCase
      val path = uri.getPath.stripSuffix("/")
      Option.unless(path.split('/').contains("..")) {
        s"$scheme://${Option(uri.getAuthority).getOrElse("")}$path"
      }
    } catch { case _: IllegalArgumentException => None }
}
