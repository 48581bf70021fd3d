package org.icebergwritercompat.upgrade

import org.icebergwritercompat.rules._

/**
 * Something that stands in the way of the feature, and that Delta takes away when asked.
 *
 * @param name
 *   how a user asks for it
 */
sealed abstract class Drop(val name: String, rules: Set[Rule], features: Set[String] = Set.empty) {

  /** Whether the statement that mends the violation is one of these. */
  def covers(violation: Violation): Boolean = violation.location match {
    case Location.Feature(feature) => features(feature)
    case _                         => rules(violation.rule)
  }
}

object Drop {

  case object Constraints extends Drop("constraints", Set(PropertyRules.NoCheckConstraints))

  case object ChangeDataFeed extends Drop("change-data-feed", Set(PropertyRules.ChangeDataFeedOff))

  case object Defaults extends Drop("defaults", Set(SchemaRules.NoColumnDefaults))

  case object RowTracking
      extends Drop("row-tracking", Set(PropertyRules.RowTrackingOff), Set("rowTracking"))

  case object DeletionVectors
      extends Drop(
        "deletion-vectors",
        Set(PropertyRules.DeletionVectorsOff),
        Set("deletionVectors")
      )

  case object CheckpointProtection
      extends Drop("checkpoint-protection", Set.empty, Set("checkpointProtection"))

  /** All that can be asked for, in this order, as Delta lets the first two go only in time. */
  val all: Seq[Drop] = Seq(
    DeletionVectors,
    CheckpointProtection,
    Constraints,
    ChangeDataFeed,
    Defaults,
    RowTracking
  )

  /** What takes the violation away, if Delta can. */
  def of(violation: Violation): Option[Drop] = all.find(_.covers(violation))
}
