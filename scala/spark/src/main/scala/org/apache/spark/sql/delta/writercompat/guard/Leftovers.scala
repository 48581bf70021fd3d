package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.files.DelayedCommitProtocol
import org.apache.spark.sql.delta.util.FileNames
import org.slf4j.LoggerFactory

import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * Removes what a refused transaction has written: Delta creates the folders of a new table, and
 * writes data files, before the commit.
 *
 * @param isNew
 *   whether the table does not exist yet, so that its folders may not exist either
 */
final class Leftovers(deltaLog: DeltaLog, isNew: Boolean) {

  private val logger = LoggerFactory.getLogger(getClass)

  private val root = deltaLog.dataPath

  private lazy val fileSystem = root.getFileSystem(deltaLog.newDeltaHadoopConf())

  /** The folders that did not exist when the transaction began, the innermost first. */
  private val missing: Seq[Path] =
    if (!isNew) Nil
    else
      Iterator
        .iterate(FileNames.commitDirPath(deltaLog.logPath))(_.getParent)
        .takeWhile(folder => folder != null && isMissing(folder))
        .toSeq

  // The session may have no permission to list folders above the table.
  private def isMissing(folder: Path): Boolean =
    try !fileSystem.exists(folder)
    catch { case NonFatal(_) => false }

  private val committers = mutable.Buffer.empty[DelayedCommitProtocol]

  /** Records the committer, which knows the files that the transaction has written. */
  def written(by: DelayedCommitProtocol): Unit = { committers += by; () }

  /** Removes the data files that the transaction has written, and folders that become empty. */
  def removeFiles(): Unit = {
    val files = committers
      .flatMap(committer => committer.addedStatuses ++ committer.changeFiles)
      .map(file => new Path(file.pathAsUri))
      .collect { case path if !path.isAbsolute => new Path(root, path) }
      .toSeq
    files.foreach(file => attempt(fileSystem.delete(file, false)))
    files
      .flatMap(file => Iterator.iterate(file.getParent)(_.getParent).takeWhile(_ != root))
      .distinct
      .sortBy(-_.depth)
      .foreach(removeIfEmpty)
  }

  /** Removes the folders that did not exist before, if they are empty. */
  def removeFolders(): Unit = missing.foreach(removeIfEmpty)

  private def removeIfEmpty(folder: Path): Unit = attempt {
    if (fileSystem.exists(folder) && fileSystem.listStatus(folder).isEmpty)
      fileSystem.delete(folder, false)
  }

  // An error while removing must not replace the reason for the refusal.
  private def attempt(removal: => Any): Unit =
    try { removal; () }
    catch {
      case NonFatal(e) =>
        logger.warn(
          "Files of a refused statement could not be removed from " +
            s"$root",
          e
        )
    }
}
