package org.icebergwritercompat.contract

import org.icebergwritercompat.model.{DataAction, DataFile, WriterCompat}

/**
 * A writer feature under which a Delta table can be read and written as an Iceberg table.
 *
 * It is a value: another version of the feature is another value of this class, and the guard, the
 * reports, upgrades and publishing ask the table's contract for whatever depends on the version.
 *
 * @param feature
 *   the name of the feature in the protocol
 * @param property
 *   the table property that switches it on
 * @param formatVersion
 *   the version of Iceberg's table format that such a table is published in
 * @param requiredFeatures
 *   the features that must be supported beside it
 * @param requiredProperties
 *   the properties, with their values, that are set together with [[property]]
 * @param excludedProperties
 *   the properties that must not be `true` beside it
 * @param superseded
 *   those of the excluded properties that an upgrade removes by itself
 * @param readings
 *   the texts of the specification that a session can choose between, the default first
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
 * What a contract says of the other features of a table.
 *
 * @param allowed
 *   the features that may be supported, the contract's own among them
 * @param allowedIfInactive
 *   the features that may be supported as long as nothing uses them
 * @param forbidden
 *   the features that may not be supported, each with the reason
 * @param leftOut
 *   the forbidden features that an upgrade leaves out of the protocol: only writers know them,
 *   Delta cannot drop them, and nothing of them is left in the log once nothing uses them
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
 *   what the declared properties, columns and partitioning of a table must meet; it can be told
 *   before Delta gives out ids and derives the protocol
 * @param layout
 *   what Delta derives from the declaration must meet
 * @param change
 *   what each step from one version to the next must meet, once the table has the feature
 * @param action
 *   what each action must meet that is committed to a table with the feature
 * @param footer
 *   what the footer of each live data file must meet
 */
final case class RuleSet(
    declaration: Seq[TableRule],
    layout: Seq[TableRule],
    change: Seq[ChangeRule],
    action: Seq[ActionRule],
    footer: Seq[FooterRule]
) {

  /**
   * What each version of a table must meet; most other violations follow from a wrong declaration.
   */
  val table: Seq[TableRule] = declaration ++ layout

  /** Every rule there is. */
  val all: Seq[Rule] = table ++ change ++ action ++ footer

  private lazy val byId: Map[String, Rule] = all.map(rule => rule.id -> rule).toMap

  /** The rule of this id. */
  def apply(id: String): Rule = byId(id)

  /** The same rules but for one. */
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
