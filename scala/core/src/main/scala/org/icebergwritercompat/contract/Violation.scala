package org.icebergwritercompat.contract

import org.icebergwritercompat.model.{Condition, Location}
import org.icebergwritercompat.remedy.Remedy

/**
 * One broken requirement.
 *
 * @param remedy
 *   what mends it
 * @param parameters
 *   the named values the text of `condition` is filled with, besides the rule
 */
final case class Violation(
    rule: Rule,
    condition: Condition,
    location: Location,
    remedy: Remedy,
    parameters: Map[String, String]
) {

  /** The violation in one line: the rule, the place, and what should hold there. */
  def summary: String = s"${rule.id}, $location. Required: ${rule.statement}"
}
