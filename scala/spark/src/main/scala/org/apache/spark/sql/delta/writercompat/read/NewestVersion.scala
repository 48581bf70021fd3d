package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}

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
  // removed and made again by another process. Some stores complete commits when they list.
  private def isNewest(log: DeltaLog, known: Snapshot): Boolean =
    known.version >= 0 && known.tableCommitCoordinatorClientOpt.isEmpty && Try {
      def file(version: Long) = FileNames.unsafeDeltaFile(log.logPath, version)
      FileLooks.quickIn(log).exists { fs =>
        known.logSegment.deltas.lastOption.exists { last =>
          last.getPath.getName == file(known.version).getName && FileLooks.isSame(fs, last)
        } && !FileLooks.isThere(fs, file(known.version + 1))
      }
    }.getOrElse(false)
}
