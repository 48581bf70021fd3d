package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.delta.util.DeltaCommitFileProvider
import org.icebergwritercompat.iceberg.source.CommitId

import java.io.FileNotFoundException
import java.nio.file.NoSuchFileException
import scala.util.Using

/**
 * The ids of the commits of a log.
 *
 * @param newest
 *   the version up to which the log is looked at
 */
private[writercompat] final class CommitIds(log: DeltaLog, newest: Snapshot) {

  private lazy val files = DeltaCommitFileProvider(newest)

  /** The id of a version's commit; `None` if the log does not have it, or not any more. */
  def of(version: Long): Option[String] = Option.when(version <= newest.version)(()).flatMap { _ =>
    val file = files.deltaFile(version)
    try
      Using.resource(log.store.readAsIterator(file, log.newDeltaHadoopConf())) { lines =>
        Some(CommitId.of(lines))
      }
    catch { case _: FileNotFoundException | _: NoSuchFileException => None }
  }
}
