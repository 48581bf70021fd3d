package org.icebergwritercompat.upgrade

import org.icebergwritercompat.contract.{Fix, Rule, Violation}
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.rules.{PropertyRules, SchemaRules}

/**
 * Something that stands in the way of the feature, and that can be taken away when asked.
 *
 * @param name
 *   how a user asks for it
 */
sealed abstract class Drop(val name: String, rules: Set[Rule], features: Set[String] = Set.empty) {

  /** The metadata of fields that the commit of an upgrade leaves out, which no statement does. */
  def fieldMetadata: Set[String] = Set.empty

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

  /** What makes a column more than its values, which stay. */
  sealed abstract class OfColumns(name: String, rule: SchemaRules.LegacyFeatureInactive)
      extends Drop(name, Set(rule)) {
    override val fieldMetadata: Set[String] = rule.keys.toSet
  }

  case object GeneratedColumns
      extends OfColumns(Fix.GeneratedColumns, SchemaRules.NoGeneratedColumns)

  case object IdentityColumns extends OfColumns(Fix.IdentityColumns, SchemaRules.NoIdentityColumns)

  case object Invariants extends OfColumns(Fix.Invariants, SchemaRules.NoInvariants)

  /** All that can be asked for, in this order, as Delta lets the first two go only in time. */
  val all: Seq[Drop] = Seq(
    DeletionVectors,
    CheckpointProtection,
    Constraints,
    ChangeDataFeed,
    Defaults,
    RowTracking,
    GeneratedColumns,
    IdentityColumns,
    Invariants
  )

  /** What takes the violation away, if anything does. */
  def of(violation: Violation): Option[Drop] = all.find(_.covers(violation))
}
