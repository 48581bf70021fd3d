package org.icebergwritercompat.contract

import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.{Change, Remedy}
import org.icebergwritercompat.remedy.Remedy._

/** Which remedy mends a violation of a table, at the lifecycle when it is looked at. */
object Fix extends ColumnFixes with TableFixes {

  /** Gives the table the property `key` = `value`. */
  def setProperty(table: TableState, key: String, value: String): Remedy = table.lifecycle match {
    case _: Lifecycle.Creating => create(table, Change.Property(key, Some(value)))
    case _                     => SetProperty(table.name, key, value)
  }

  /** The same for a table that Delta cannot read, so that its rows cannot be copied either. */
  def enableUnread(table: TableState): Remedy =
    if (isStanding(table)) lookIntoHistory(table) else enable(table)

  /** Whether the table has the feature and is looked at as it is, not with a change to it. */
  private[contract] def isStanding(table: TableState): Boolean =
    table.lifecycle == Lifecycle.Changing && table.previous.isEmpty

  /**
   * Gives the table the mapping mode; of a table that has another one, Delta does not change it.
   */
  def setMappingMode(table: TableState, mode: String): Remedy =
    if (isStanding(table)) copyInto(table)
    else setProperty(table, WriterCompat.ColumnMappingMode, mode)

  /** Sets settings under which what was refused is written as it should be. */
  def setSetting(table: TableState, settings: (String, String)*): Remedy =
    // What is written already stays as it is, whatever is set now.
    if (isStanding(table)) copyInto(table) else SetSetting(settings)

  /** Creates a table that this project publishes, and UniForm does not. */
  def publishInstead(table: TableState): Remedy = {
    val others = Some(WriterCompat.otherUniversalFormats(table.properties)).filter(_.nonEmpty)
    create(
      table,
      Change.Property(WriterCompat.UniversalFormats, others),
      Change.Property(WriterCompat.Publish, Some("true"))
    )
  }

  /** Takes a property away. */
  def unsetProperty(table: TableState, key: String): Remedy = table.lifecycle match {
    case _: Lifecycle.Creating => create(table, Change.Property(key, None))
    case _                     => UnsetProperty(table.name, key)
  }

  /** Takes a CHECK constraint away. */
  def dropConstraint(table: TableState, constraint: String): Remedy = table.lifecycle match {
    case _: Lifecycle.Creating => create(table, Change.Property(constraintKey(constraint), None))
    case _ if table.previous.exists(!_.properties.contains(constraintKey(constraint))) =>
      leave(table)
    case _ => DropConstraint(table.name, constraint)
  }

  private def constraintKey(constraint: String): String = WriterCompat.ConstraintPrefix + constraint

  /** Takes the feature out of the table's protocol, or never puts it there. */
  def dropFeature(table: TableState, feature: String): Remedy = table.lifecycle match {
    case Lifecycle.Creating(false) =>
      create(table, Change.Property(s"delta.feature.$feature", None))
    case _ if table.previous.exists(!_.protocol.listedFeatures(feature)) =>
      DropFeature(table.name, table.contract.feature, None, asked = Some(feature))
    case Lifecycle.Enabling if leavesTraces(feature) && !table.profile.alsoAllowed(protection) =>
      DropFeature(table.name, feature, Some(truncationPeriod(table)), asked = Some(feature))
    case _ => DropFeature(table.name, feature, None, asked = Some(feature))
  }

  /** Takes a feature out with all that is left of it in older versions, which takes time. */
  def truncating(table: TableState, feature: String): Remedy =
    DropFeature(table.name, feature, Some(truncationPeriod(table)))

  /** How long after its last use Delta lets a feature be dropped so. */
  def truncationPeriod(table: TableState): String = table
    .property("delta.dropFeatureTruncateHistory.retentionDuration")
    .fold("24 hours")(_.stripPrefix("interval "))

  /** The profile under which a feature that leaves traces in older versions need not wait. */
  def profileThatDropsAtOnce(table: TableState): Option[Profile] =
    Profile.accepting(protection, table.profile)

  // Delta drops these at once only in exchange for another feature, which may not be allowed.
  private val protection = "checkpointProtection"

  private val leavesTraces: Set[String] = Set("deletionVectors", protection)

  /** Takes the whole feature out of the table. */
  def leave(table: TableState): Remedy = DropFeature(table.name, table.contract.feature, None)

  /** What a remedy costs that nobody should run without knowing. */
  def price(table: TableState, remedy: Remedy): String = remedy match {
    case DropFeature(_, feature, _, _) if feature == table.contract.feature =>
      s"; if the table needs it, drop the feature $feature"
    case _ => ""
  }

  /** Gives the table the layout that the contract asks for, which no statement of SQL can do. */
  def enable(table: TableState): Remedy = table.lifecycle match {
    case _: Lifecycle.Creating => create(table)
    case Lifecycle.Enabling    => callEnable(table)
    // The feature is on, so there is nothing to switch on; a new table has the right layout.
    case Lifecycle.Changing => copyInto(table)
  }

  /** The call that plans and makes the change on an existing table. */
  def callEnable(
      table: TableState,
      rewrite: Boolean = false,
      drop: Seq[String] = Nil
  ): Remedy = Enable(table.name, rewrite, drop, table.contract.feature)

  /** Shows who wrote what when, where no statement can bring lost values back. */
  def lookIntoHistory(table: TableState): Remedy = History(table.name)
}
