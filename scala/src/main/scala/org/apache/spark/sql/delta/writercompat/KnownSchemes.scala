package org.apache.spark.sql.delta.writercompat

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem

import scala.collection.mutable
import scala.util.Try

/** Which schemes of paths lead to a file system here; no scheme is that of the table. */
final class KnownSchemes(configuration: => Configuration) extends (String => Boolean) {

  private val asked = mutable.HashMap.empty[String, Boolean]

  override def apply(scheme: String): Boolean = scheme.isEmpty ||
    asked.getOrElseUpdate(
      scheme,
      Try(FileSystem.getFileSystemClass(scheme, configuration)).isSuccess
    )
}
