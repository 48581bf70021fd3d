package org.icebergwritercompat.report

import org.icebergwritercompat.rules._
import org.scalatest.funsuite.AnyFunSuite

class JudgementSuite extends AnyFunSuite {

  test("every rule says why it matters") {
    WriterCompatRules.all.foreach { rule =>
      assert(Reasons.of(rule).isDefined, rule.id)
      assert(Reasons.of(rule).exists(text => text.endsWith(".") && text.length > 20), rule.id)
    }
  }
}
