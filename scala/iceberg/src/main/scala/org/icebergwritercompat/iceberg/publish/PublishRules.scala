package org.icebergwritercompat.iceberg.publish

import org.icebergwritercompat.contract.{TableState, Violation}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.manifest.FileCheck
import org.icebergwritercompat.iceberg.source.{AddedFile, DeltaCommit}
import org.icebergwritercompat.model.{FileStatistics, PhysicalNameTree}

import scala.collection.mutable

/**
 * Checks the rules on what is about to be published. A version that breaks one is refused, because
 * Iceberg readers would see other rows than Delta.
 *
 * @param isKnown
 *   whether there is a file system for the scheme and host of a path
 */
private[publish] final class PublishRules(
    version: Long,
    table: TableState,
    isKnown: String => Boolean
) extends FileCheck {

  private def isBroken: Boolean = table.violations.nonEmpty

  /** Refuses a version whose protocol or metadata breaks a rule. */
  def refuse(): Unit = if (isBroken) throw refusal(table.violations)

  override def names: Option[PhysicalNameTree] = Some(table.physicalNames)

  /** Refuses a live file that breaks a rule. */
  override def apply(file: AddedFile, statistics: Option[FileStatistics]): Unit = {
    val broken = violations(file, repeated = false, statistics)
    if (broken.hasNext) throw refusal(broken.toSeq)
  }

  /** Whether the table or a file that the commit adds breaks a rule. */
  def isBrokenBy(commit: DeltaCommit): Boolean = isBroken || {
    val repeated = repeatedPaths(commit)
    commit.added.exists { file =>
      val statistics = FileStatistics.parse(file.statistics, table.physicalNames)
      violations(file, repeated(file.path), statistics).hasNext
    }
  }

  /**
   * The same, checked file by file while the commit is published, so that the statistics of a file
   * are decoded once.
   *
   * @param broken
   *   called if the table or a file breaks a rule; it may accept that by returning
   */
  def of(commit: DeltaCommit, broken: () => Unit): FileCheck = {
    if (isBroken) broken()
    lazy val repeated = repeatedPaths(commit)
    new FileCheck {
      override def names: Option[PhysicalNameTree] = PublishRules.this.names
      override def apply(file: AddedFile, statistics: Option[FileStatistics]): Unit =
        if (violations(file, repeated(file.path), statistics).hasNext) broken()
    }
  }

  private def repeatedPaths(commit: DeltaCommit): Set[String] = {
    val paths = mutable.HashSet.empty[String]
    commit.added.iterator.map(_.path).filterNot(paths.add).toSet
  }

  private def violations(
      file: AddedFile,
      repeated: Boolean,
      statistics: Option[FileStatistics]
  ): Iterator[Violation] =
    table.contract.rules.check(table, file.toAction(statistics, repeated, isKnown))

  private def refusal(broken: Seq[Violation]): IcebergWriterCompatException =
    IcebergWriterCompatException.brokenVersion(table, version, broken)
}
