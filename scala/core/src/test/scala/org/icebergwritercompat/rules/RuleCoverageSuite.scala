package org.icebergwritercompat.rules

import org.icebergwritercompat.bytecode.ClassFiles
import org.icebergwritercompat.contract.Rule
import org.icebergwritercompat.contracts.V1
import org.scalatest.funsuite.AnyFunSuite

import java.lang.reflect.Modifier

/** The suites that test rules, found by their class, so that none has to be listed. */
object RuleSuites {

  lazy val all: Seq[RuleSuite] = ClassFiles
    .inLocationOf(classOf[RuleSuite])
    .map(_.name.replace('/', '.'))
    .filter(name => name.startsWith(classOf[RuleSuite].getPackageName + ".") && !name.contains('$'))
    .map(Class.forName(_))
    .filter(c => classOf[RuleSuite].isAssignableFrom(c) && !Modifier.isAbstract(c.getModifiers))
    .map(_.getDeclaredConstructor().newInstance().asInstanceOf[RuleSuite])
    .sortBy(_.suiteName)

  /** The suite with most of the tests in which a rule accepts or refuses something. */
  def of(rule: Rule): Option[RuleSuite] =
    all.filter(count(_, rule, "refuses") > 0).maxByOption(count(_, rule, "refuses"))

  /** How many tests say what a rule accepts, or what it refuses. */
  def count(suite: RuleSuite, rule: Rule, verb: String): Int =
    suite.testNames.count(_.startsWith(s"${rule.id} $verb "))
}

class RuleCoverageSuite extends AnyFunSuite {

  test("the suites are found") {
    assert(RuleSuites.all.map(_.suiteName).contains("SchemaRulesSuite"))
    assert(RuleSuites.all.sizeIs >= 8)
  }

  for (rule <- V1.rules.all; verb <- Seq("accepts", "refuses"))
    test(s"there is a test of what ${rule.id} $verb") {
      assert(RuleSuites.all.map(RuleSuites.count(_, rule, verb)).sum > 0)
    }
}
