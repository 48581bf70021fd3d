package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{TableRule, TableState}
import org.icebergwritercompat.model.Location
import org.scalatest.funsuite.AnyFunSuite

/** What a violation must say. */
final case class Expected(
    condition: String,
    location: Location,
    fix: String,
    parameters: Map[String, String]
)

/** Emits tests for rules: the whole violation is compared, not parts of it. */
abstract class RuleSuite extends AnyFunSuite {

  protected def expect(condition: String, location: Location, fix: String)(
      parameters: (String, String)*
  ): Expected =
    Expected(condition, location, fix, parameters.toMap)

  protected def passes(rule: TableRule, what: String)(table: => TableState): Unit =
    test(s"${rule.id} accepts $what") {
      assert(rule.check(table) == Nil)
    }

  protected def refuses(rule: TableRule, what: String)(
      table: => TableState
  )(expected: Expected*): Unit =
    test(s"${rule.id} refuses $what") {
      val found = rule.check(table)
      assert(found.map { v =>
        Expected(v.condition.name, v.location, v.remedy.text, v.parameters)
      } == expected)
      assert(found.forall(_.rule eq rule))
    }

  /** Every rule that has tests here accepts a compliant table of every shape. */
  protected def acceptsCompliantTables(rules: TableRule*): Unit =
    for (rule <- rules; shape <- CompliantTable.shapes)
      passes(rule, s"a compliant table with ${shape.name}")(CompliantTable.of(shape.schema))
}
