package org.icebergwritercompat.rules

import org.scalatest.funsuite.AnyFunSuite

class ReasonsSuite extends AnyFunSuite {

  WriterCompatRules.all.foreach { rule =>
    test(s"${rule.id} says why it matters") {
      val reason = Reasons.of(rule)
      assert(reason.exists(text => text.endsWith(".") && text != rule.statement))
    }
  }
}
