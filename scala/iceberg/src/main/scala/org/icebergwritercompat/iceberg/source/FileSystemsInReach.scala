package org.icebergwritercompat.iceberg.source

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

import java.net.URI
import scala.collection.concurrent.TrieMap
import scala.util.Try

/**
 * Whether this JVM has a file system for the scheme and host of a path, such as `hdfs://host`. The
 * empty string stands for the file system of the table itself. A host name is resolved; no request
 * is sent to the host.
 */
final class FileSystemsInReach(configuration: => Configuration) extends (String => Boolean) {

  private val asked = TrieMap.empty[String, Boolean]

  override def apply(root: String): Boolean = root.isEmpty ||
    asked.getOrElseUpdate(root, Try(FileSystem.get(new URI(s"$root/"), configuration)).isSuccess)
}
