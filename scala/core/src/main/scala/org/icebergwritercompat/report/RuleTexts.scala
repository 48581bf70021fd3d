package org.icebergwritercompat.report

import org.icebergwritercompat.contracts.Contracts

/** The texts of the rules, which the build puts into the jar: Python reads them without a JVM. */
object RuleTexts {

  /** All rules as a JSON array. */
  def all: String = ReportJson.of(Contracts.default.rules.all)
}
