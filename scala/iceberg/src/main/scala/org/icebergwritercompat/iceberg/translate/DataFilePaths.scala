package org.icebergwritercompat.iceberg.translate

import org.apache.hadoop.fs.Path

import java.net.URI

/**
 * Paths of data files: Delta's log has them encoded, relative to the table or absolute; Iceberg has
 * them to the letter, and always absolute.
 *
 * @param root
 *   the folder of the table, by the scheme that metadata contains
 * @param spelled
 *   gives a file outside of the folder the same scheme
 */
final class DataFilePaths(root: Path, spelled: Path => Path = identity) {

  private val rootPrefix = new Path(root, "x").toString.stripSuffix("x")

  private val encodedPrefix = new Path(root, "x").toUri.toString.stripSuffix("x")

  /** The path that Iceberg readers open. */
  def location(path: String): String =
    if (isPlain(path)) s"$rootPrefix$path"
    else {
      val file = new Path(new URI(path))
      (if (file.toUri.isAbsolute) spelled(file) else new Path(root, file)).toString
    }

  /** What Delta's log has for a path of Iceberg: relative where it is below the table. */
  def logged(location: String): String = {
    val encoded = new Path(location).toUri.toString
    val relative = encoded.stripPrefix(encodedPrefix)
    // What has a colon before the first slash would be taken for a scheme.
    if (relative.takeWhile(_ != '/').contains(':')) encoded else relative
  }

  // Nothing in it is encoded, and nothing leads elsewhere.
  private def isPlain(path: String): Boolean = {
    var at = 0
    var before = '/'
    var plain = true
    while (plain && at < path.length) {
      val char = path.charAt(at)
      plain = char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' ||
        char >= '0' && char <= '9' || char == '-' || char == '_' || char == '=' ||
        (char == '.' || char == '/') && before != '/'
      before = char
      at += 1
    }
    plain && before != '/'
  }
}
