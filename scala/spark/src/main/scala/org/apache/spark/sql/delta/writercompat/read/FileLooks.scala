package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import scala.annotation.nowarn

/** Looks at single files, in place of a list or of what is in them. */
private[writercompat] object FileLooks {

  /** Whether this costs less than anything else: elsewhere a list is one request too. */
  def areQuickIn(fs: FileSystem): Boolean = schemes(fs.getScheme)

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
