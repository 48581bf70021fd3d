package org.icebergwritercompat.contract

import org.icebergwritercompat.model.{DataAction, DataFile, WriterCompat}

/**
 * A writer feature under which a Delta table can be read and written as an Iceberg table.
 *
 * A contract is a value: another version of the feature is another value of this class. The guard,
 * reports, upgrades and publishing read everything that depends on the version from the contract.
 *
 * @param feature
 *   the name of the feature in the protocol
 * @param property
 *   the table property that switches it on
 * @param formatVersion
 *   the version of Iceberg's table format that such a table is published in
 * @param requiredFeatures
 *   the other features that must be supported
 * @param requiredProperties
 *   the properties, with their values, that are set together with [[property]]
 * @param excludedProperties
 *   the properties that must not be `true`
 * @param superseded
 *   the excluded properties that an upgrade removes without being asked
 * @param readings
 *   the versions of the specification that a session can choose, the default first
 */
final case class Contract(
    feature: String,
    property: String,
    formatVersion: Int,
    requiredFeatures: Seq[String],
    requiredProperties: Seq[(String, String)],
    excludedProperties: Seq[String],
    superseded: Set[String],
    features: FeatureLists,
    readings: Seq[Profile],
    rules: RuleSet
) {

  /** Whether a table with these properties has the feature switched on. */
  def isEnabled(properties: Map[String, String]): Boolean =
    properties.get(property).exists(WriterCompat.isTrue)
}

/**
 * Which other features a table with the contract can have.
 *
 * @param allowed
 *   the features that may be supported, the contract's own among them
 * @param allowedIfInactive
 *   the features that may be supported as long as nothing uses them
 * @param forbidden
 *   the features that may not be supported, each with the reason
 * @param leftOut
 *   the forbidden features that an upgrade removes from the protocol: they are writer features,
 *   Delta cannot drop them, and they leave nothing in the log if they are not in use
 */
final case class FeatureLists(
    allowed: Set[String],
    allowedIfInactive: Set[String],
    forbidden: Map[String, String],
    leftOut: Set[String]
)

/**
 * The rules of a contract, each list in the order in which it is checked.
 *
 * @param declaration
 *   rules on the declared properties, columns and partitioning of a table, which can be checked
 *   before Delta assigns ids and derives the protocol
 * @param layout
 *   rules on what Delta derives from the declaration
 * @param change
 *   rules on each change from one version to the next of a table with the feature
 * @param action
 *   rules on each action that is committed to a table with the feature
 * @param footer
 *   rules on the footer of each live data file
 */
final case class RuleSet(
    declaration: Seq[TableRule],
    layout: Seq[TableRule],
    change: Seq[ChangeRule],
    action: Seq[ActionRule],
    footer: Seq[FooterRule]
) {

  /**
   * The rules on each version of a table, those on the declaration first: they cause most of the
   * other violations.
   */
  val table: Seq[TableRule] = declaration ++ layout

  /** All rules. */
  val all: Seq[Rule] = table ++ change ++ action ++ footer

  private lazy val byId: Map[String, Rule] = all.map(rule => rule.id -> rule).toMap

  /** The rule with this id. */
  def apply(id: String): Rule = byId(id)

  /** All rules except one. */
  def without(rule: Rule): RuleSet = RuleSet(
    declaration.filter(_ != rule),
    layout.filter(_ != rule),
    change.filter(_ != rule),
    action.filter(_ != rule),
    footer.filter(_ != rule)
  )

  /** All violations of `table`, in rule order; lazily, so that a caller may stop at the first. */
  def check(table: TableState): Iterator[Violation] = table.violationsOf(this.table).iterator

  /** All violations of a step from one version to the next, likewise. */
  def check(step: TableChange): Iterator[Violation] = change.iterator.flatMap(_.check(step))

  /** All violations of an action on `table`, likewise. */
  def check(table: TableState, committed: DataAction): Iterator[Violation] =
    action.iterator.flatMap(_.check(table, committed))

  /** All violations of a live data file of `table`, likewise. */
  def check(table: TableState, file: DataFile): Iterator[Violation] = {
    val columns = FileColumns.of(table, file)
    footer.iterator.flatMap(_.check(columns))
  }
}
