package org.icebergwritercompat.upgrade

import org.icebergwritercompat.contract.{Fix, Rule, Violation}
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.rules.{PropertyRules, SchemaRules}

/**
 * A kind of blocker that the option `drop` of an upgrade removes.
 *
 * @param name
 *   the value of the option `drop`
 */
sealed abstract class Drop(val name: String, rules: Set[Rule], features: Set[String] = Set.empty) {

  /** The keys of field metadata that the commit removes, if no statement can. */
  def fieldMetadata: Set[String] = Set.empty

  /** Whether the remedy of the violation is one of these. */
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

  /** A property of columns that the commit removes; the values are kept. */
  sealed abstract class OfColumns(name: String, rule: SchemaRules.LegacyFeatureInactive)
      extends Drop(name, Set(rule)) {
    override val fieldMetadata: Set[String] = rule.keys.toSet
  }

  case object GeneratedColumns
      extends OfColumns(Fix.GeneratedColumns, SchemaRules.NoGeneratedColumns)

  case object IdentityColumns extends OfColumns(Fix.IdentityColumns, SchemaRules.NoIdentityColumns)

  case object Invariants extends OfColumns(Fix.Invariants, SchemaRules.NoInvariants)

  /** All of them, in the order of removal: Delta drops the first two only after some time. */
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

  /** The value of `drop` that removes the violation, if there is one. */
  def of(violation: Violation): Option[Drop] = all.find(_.covers(violation))
}
