package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

import java.net.URI
import scala.collection.mutable
import scala.util.Try

/**
 * For which schemes and hosts of paths, as `hdfs://host`, there is a file system here. None is that
 * of the table. A host is looked up, and asked for nothing.
 */
final class FileSystemsInReach(configuration: => Configuration) extends (String => Boolean) {

  private val asked = mutable.HashMap.empty[String, Boolean]

  override def apply(root: String): Boolean = root.isEmpty ||
    asked.getOrElseUpdate(root, Try(FileSystem.get(new URI(s"$root/"), configuration)).isSuccess)
}
