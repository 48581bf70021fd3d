package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog

import scala.annotation.nowarn

/** Looks at single files, in place of a list or of what is in them. */
private[writercompat] object FileLooks {

  /**
   * The file system of a log, if a look costs less there than anything else: elsewhere a list is
   * one request too.
   */
  def quickIn(log: DeltaLog): Option[FileSystem] =
    Option(log.logPath.toUri.getScheme)
      .filter(schemes)
      .map(scheme => log.logPath.getFileSystem(configuration(log, scheme)))

  // Hadoop keeps the file system that Delta had made with the settings of the session; to copy these
  // takes longer than the looks.
  private def configuration(log: DeltaLog, scheme: String): Configuration = {
    val shared = SparkSession.active.sparkContext.hadoopConfiguration
    val isKept = !shared.getBoolean(s"fs.$scheme.impl.disable.cache", false)
    if (isKept && log.options.isEmpty) shared else log.newDeltaHadoopConf()
  }

  /** Whether a file is still the one that was seen; fails if there is none. */
  def isSame(fs: FileSystem, seen: FileStatus): Boolean = {
    val now = fs.getFileStatus(seen.getPath)
    now.getLen == seen.getLen && now.getModificationTime == seen.getModificationTime
  }

  /** Whether there is a file. */
  // `exists` would make more requests.
  @nowarn("cat=deprecation")
  def isThere(fs: FileSystem, file: Path): Boolean = fs.isFile(file)

  private val schemes = Set("file", "hdfs")
}
