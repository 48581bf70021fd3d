package org.icebergwritercompat.contract

import org.icebergwritercompat.model.{Condition, Location}
import org.icebergwritercompat.remedy.Remedy

/**
 * A place where a rule does not hold.
 *
 * @param remedy
 *   the statements that remove it
 * @param parameters
 *   the values of the named parameters in the text of `condition`, except the rule
 */
final case class Violation(
    rule: Rule,
    condition: Condition,
    location: Location,
    remedy: Remedy,
    parameters: Map[String, String]
) {

  /** The violation in one line: the rule, the place and the requirement. */
  def summary: String = s"${rule.id}, $location. Required: ${rule.statement}"
}
