package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.fs.FileSystem
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

import scala.annotation.nowarn
import scala.util.Try

/** The newest version of a table. */
private[writercompat] object NewestVersion {

  /**
   * The newest version. Where the log is in a file system of files, and this process knows the
   * newest version already, two files are looked at instead of a list of the log.
   *
   * @param acceptedMillis
   *   how long ago the log may have been listed, for a caller who finds out anyway whether there is
   *   another version by now
   */
  def of(
      log: DeltaLog,
      catalogTable: Option[CatalogTable],
      acceptedMillis: Long = 0
  ): Snapshot =
    Option(log.unsafeVolatileSnapshot).filter(isNewest(log, _)).getOrElse {
      val since = Option.when(acceptedMillis > 0)(System.currentTimeMillis() - acceptedMillis)
      log.update(checkIfUpdatedSinceTs = since, catalogTableOpt = catalogTable)
    }

  // Versions have no gaps. The file of the known one is compared, because the table may have been
  // removed and made again by another process.
  private def isNewest(log: DeltaLog, known: Snapshot): Boolean =
    known.version >= 0 && known.tableCommitCoordinatorClientOpt.isEmpty && Try {
      val fs = log.logPath.getFileSystem(log.newDeltaHadoopConf())
      val file = FileNames.unsafeDeltaFile(log.logPath, known.version)
      isQuickIn(fs) && known.logSegment.deltas.lastOption.exists { last =>
        last.getPath.getName == file.getName && {
          val now = fs.getFileStatus(file)
          now.getLen == last.getLen && now.getModificationTime == last.getModificationTime
        }
      } && !isThere(fs, log, known.version + 1)
    }.getOrElse(false)

  // `exists` would make more requests.
  @nowarn("cat=deprecation")
  private def isThere(fs: FileSystem, log: DeltaLog, version: Long): Boolean =
    fs.isFile(FileNames.unsafeDeltaFile(log.logPath, version))

  /** Whether looking at a few files costs less than anything else. */
  def isQuickIn(fs: FileSystem): Boolean = schemes(fs.getScheme)

  // Elsewhere listing takes one request, and some stores complete commits when they list.
  private val schemes = Set("file", "hdfs")
}
