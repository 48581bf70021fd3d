package org.apache.spark.sql.delta.writercompat.publish

import org.apache.spark.sql.delta.actions.AddFile
import org.icebergwritercompat.contract.{TableState, Violation}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.apache.spark.sql.delta.writercompat.datafiles.DataActions

/**
 * Keeps what breaks a rule from being published: readers of Iceberg would see other rows.
 *
 * @param isKnown
 *   whether there is a file system for the scheme of a path
 */
private[writercompat] final class PublishRules(
    version: Long,
    table: TableState,
    isKnown: String => Boolean
) {

  private val live = new DataActions(table, isKnown)

  private lazy val violations: Seq[Violation] = table.violations.toSeq

  /** Whether the version breaks a rule, its files aside. */
  def isBroken: Boolean = violations.nonEmpty

  /** Refuses a version that breaks a rule. */
  def refuse(): Unit = if (isBroken) throw refusal(violations)

  /** Refuses a live file that breaks a rule. */
  def refuse(file: AddFile): Unit = {
    val broken = table.contract.rules.check(table, live.ofLive(file))
    if (broken.hasNext) throw refusal(broken.toSeq)
  }

  /** What the files of a commit break, which are to be shown one after the other. */
  def ofCommit: AddFile => Iterator[Violation] = {
    val shown = new DataActions(table, isKnown)
    file => table.contract.rules.check(table, shown.of(file))
  }

  private def refusal(broken: Seq[Violation]): IcebergWriterCompatException =
    IcebergWriterCompatException.brokenVersion(table, version, broken)
}
