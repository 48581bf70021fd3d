package org.icebergwritercompat.rules

import org.apache.spark.sql.execution.SparkSqlParser
import org.icebergwritercompat.contract.{
  ActionRule,
  ChangeRule,
  Rule,
  TableChange,
  TableRule,
  TableState,
  Violation
}
import org.icebergwritercompat.model.DataAction
import org.scalatest.Assertions

/** The statements of remedies, as Spark parses them. */
object Statements extends Assertions {

  private val parser = new SparkSqlParser

  // These are read by Delta's parser; Delta's classes are not to be loaded before a
  // session is guarded.
  private def isSparks(statement: String) =
    !statement.contains(" DROP FEATURE ") && !statement.startsWith("REORG ")

  /** Fails unless each statement of the fix can be parsed. */
  def assertParsed(fix: String): Unit =
    fix.split("\n").filter(isSparks).foreach { statement =>
      assert(parser.parsePlan(statement).toString.nonEmpty, statement)
    }
}

/**
 * Emits tests for rules of all kinds: the whole violation is compared, and its statement parsed.
 */
abstract class StepSuite extends RuleSuite {

  /** The one violation that is found. */
  protected def theOne(found: Seq[Violation]): Violation = {
    assert(found.sizeIs == 1, found)
    found.head
  }

  private def assertFound(rule: Rule, found: Seq[Violation], expected: Seq[Expected]): Unit = {
    assert(
      found.map(v =>
        Expected(v.condition.name, v.location, v.remedy.text, v.parameters)
      ) == expected
    )
    assert(found.nonEmpty && found.forall(_.rule eq rule))
    found.foreach(v => Statements.assertParsed(v.remedy.text))
  }

  override protected def refuses(rule: TableRule, what: String)(table: => TableState)(
      expected: Expected*
  ): Unit =
    test(s"${rule.id} refuses $what")(assertFound(rule, rule.check(table), expected))

  protected def passes(rule: ChangeRule, what: String)(change: => TableChange): Unit =
    test(s"${rule.id} accepts $what")(assert(rule.check(change) == Nil))

  protected def refuses(rule: ChangeRule, what: String)(change: => TableChange)(
      expected: Expected*
  ): Unit =
    test(s"${rule.id} refuses $what")(assertFound(rule, rule.check(change), expected))

  protected def passes(rule: ActionRule, what: String)(table: => TableState)(
      action: => DataAction
  ): Unit =
    test(s"${rule.id} accepts $what")(assert(rule.check(table, action) == Nil))

  protected def refuses(rule: ActionRule, what: String)(table: => TableState)(
      action: => DataAction
  )(expected: Expected*): Unit =
    test(s"${rule.id} refuses $what")(assertFound(rule, rule.check(table, action), expected))
}
