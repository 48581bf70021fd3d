package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.icebergwritercompat.contract.{Fix, Rule, TableState, Violation}
import org.icebergwritercompat.errors.{Causes, IcebergWriterCompatException}
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.remedy.{Door, Remedy, Together}
import org.icebergwritercompat.report.Assessment
import org.apache.spark.sql.delta.writercompat.read.RunningStatement

import scala.collection.mutable
import scala.util.control.NoStackTrace

/** The protocol, metadata and clustering that a commit would create. */
final case class Intended(
    table: String,
    snapshot: Snapshot,
    replacing: Boolean,
    protocol: Protocol,
    metadata: Metadata
)

/**
 * The result of a dry run.
 *
 * @param violations
 *   the violations for which the statement would be refused
 * @param intended
 *   the state after its first commit; `None` if it made no commit
 * @param failure
 *   the error, if it failed for another reason
 */
final case class DryRunOutcome(
    violations: Seq[Violation],
    intended: Option[Intended],
    failure: Option[Throwable]
)

/**
 * Runs a statement up to its first commit, which is not made.
 *
 * During a dry run a transaction records all violations, instead of refusing at the first.
 */
object Enforcement {

  private final class Recorded {
    val violations = mutable.LinkedHashMap.empty[(Rule, Any), Violation]
    var intended: Option[Intended] = None
  }

  private object Stopped
      extends RuntimeException("a dry run ends before its commit")
      with NoStackTrace

  private val running = new ThreadLocal[Recorded]

  /** Whether this thread is running a dry run. */
  def isRunning: Boolean = running.get != null

  /** Runs `statement` as a dry run. */
  def apply(statement: => Any): DryRunOutcome = {
    val notes = new Recorded
    running.set(notes)
    val failure =
      try {
        statement
        None
      } catch {
        case e: Exception if Causes.of(e).contains(Stopped) => None
        case e: Exception                                   => Some(e)
      } finally running.remove()
    DryRunOutcome(notes.violations.values.toSeq, notes.intended, failure)
  }

  /** Ends a dry run at the commit of its transaction; does nothing otherwise. */
  def stop(intended: => Intended): Unit = if (isRunning) {
    running.get.intended = Some(intended)
    throw Stopped
  }

  /**
   * Refuses because of the first violation, and names the others; a dry run records all of them.
   *
   * @param more
   *   other violations of the same statement, computed only if it is refused
   */
  def refuseFirst(
      table: TableState,
      found: IterableOnce[Violation],
      more: => Iterator[Violation] = Iterator.empty,
      door: => Option[Door] = RunningStatement.door
  ): Unit =
    if (isRunning) record(found.iterator)
    else {
      val violations = found.iterator
      violations.nextOption().foreach { first =>
        // Violations that follow from a wrong declaration are not reported.
        val declared = table.contract.rules.declaration.contains[Rule](first.rule)
        def isCause(other: Violation) =
          !declared || !table.contract.rules.layout.contains[Rule](other.rule)
        val others = (violations.filter(isCause) ++ more).toSeq
        // What was wrong before has to be mended before anything else.
        val standing = table.previous.toSeq.flatMap(_.violations).map(_.remedy)
        val remedy = (first.remedy, RunningStatement.cloning) match {
          case _ if standing.nonEmpty =>
            Together.standing(standing, table.previous.fold(first.remedy)(Fix.copyInto))
          case (_: Remedy.Create, Some((create, clone))) =>
            new ClonedRows(SparkSession.active).of(create, clone, table.contract)
          case _ => Together.of((first +: others).map(_.remedy), door)
        }
        throw IcebergWriterCompatException.of(table, first, others, remedy)
      }
    }

  /**
   * Refuses because of all of these violations; a dry run records them.
   *
   * @param later
   *   violations that the statement would be refused for next, computed only if what is offered
   *   does not mend them too
   */
  def refuseAll(
      table: TableState,
      violations: Seq[Violation],
      later: => Seq[Violation] = Nil
  ): Unit =
    if (isRunning) record(violations.iterator)
    else if (violations.nonEmpty) {
      val remedy = new Assessment(table, hasFiles = true).remedyOf(violations)
      def refusal(all: Seq[Violation]) =
        IcebergWriterCompatException.notCompliant(table, all, remedy)
      val first = refusal(violations)
      throw (first.remedy match {
        case _: Remedy.Enable | _: Remedy.CopyInto => first
        case _                                     =>
          val places = violations.map(found => found.rule -> found.location).toSet[(Rule, Location)]
          refusal(violations ++ later.filterNot(found => places(found.rule -> found.location)))
      })
    }

  private def record(violations: Iterator[Violation]): Unit =
    violations.foreach { violation =>
      // A column is checked when it is declared, and again when it has its id.
      val place = violation.location match {
        case column: Location.Column => column.path
        case other                   => other
      }
      running.get.violations((violation.rule, place)) = violation
    }
}
