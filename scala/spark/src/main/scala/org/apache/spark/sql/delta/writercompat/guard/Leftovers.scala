package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.files.DelayedCommitProtocol
import org.apache.spark.sql.delta.util.FileNames
import org.slf4j.LoggerFactory

import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * What a transaction would leave behind if it is refused: Delta makes the folders of a new table,
 * and writes data files, before the commit.
 *
 * @param isNew
 *   whether the table does not exist yet, so that its folders may be missing
 */
final class Leftovers(deltaLog: DeltaLog, isNew: Boolean) {

  private val logger = LoggerFactory.getLogger(getClass)

  private val root = deltaLog.dataPath

  private lazy val fileSystem = root.getFileSystem(deltaLog.newDeltaHadoopConf())

  /** The folders that were not there when the transaction began, the innermost first. */
  private val missing: Seq[Path] =
    if (!isNew) Nil
    else
      Iterator
        .iterate(FileNames.commitDirPath(deltaLog.logPath))(_.getParent)
        .takeWhile(folder => folder != null && isMissing(folder))
        .toSeq

  // Folders above the table may be nothing that one may ask about.
  private def isMissing(folder: Path): Boolean =
    try !fileSystem.exists(folder)
    catch { case NonFatal(_) => false }

  private val committers = mutable.Buffer.empty[DelayedCommitProtocol]

  /** Remembers who tells which files the transaction has written. */
  def written(by: DelayedCommitProtocol): Unit = { committers += by; () }

  /** Removes the data files that the transaction has written, and what is empty without them. */
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

  /** Removes the folders that were not there, as far as nobody has put anything into them. */
  def removeFolders(): Unit = missing.foreach(removeIfEmpty)

  private def removeIfEmpty(folder: Path): Unit = attempt {
    if (fileSystem.exists(folder) && fileSystem.listStatus(folder).isEmpty)
      fileSystem.delete(folder, false)
  }

  // What cannot be removed must not take the place of the reason for the refusal.
  private def attempt(removal: => Any): Unit =
    try { removal; () }
    catch {
      case NonFatal(e) => logger.warn(s"Something is left of a refused statement in $root", e)
    }
}
