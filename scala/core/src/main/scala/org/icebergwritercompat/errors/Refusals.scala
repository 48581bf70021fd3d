package org.icebergwritercompat.errors

import org.icebergwritercompat.contract.{
  Contract,
  Fix,
  FooterRule,
  Profile,
  Rule,
  TableState,
  Violation
}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.{ActionRules, FileRules, NameRules}

/** The refusals of changes that would break a contract. */
private[errors] trait Refusals {

  /** The refusal of a change because of one violation. */
  def of(table: TableState, violation: Violation): IcebergWriterCompatException =
    of(table, violation, Nil, violation.remedy)

  /**
   * The refusal of a change because of its first violation.
   *
   * @param others
   *   what else is wrong with the statement
   * @param remedy
   *   what mends the first violation, and the others if that is possible
   */
  def of(
      table: TableState,
      violation: Violation,
      others: Seq[Violation],
      remedy: Remedy
  ): IcebergWriterCompatException =
    refusal(
      violation.condition.name,
      table.contract,
      remedy,
      also = others.map(other => s"rule ${other.rule.id}: ${explanation(table, other)}").distinct
    )(parametersOf(table, violation).toSeq: _*)

  /** What the refusal says of the violation itself, without the table, the rule and the remedy. */
  def explanation(table: TableState, violation: Violation): String =
    Conditions.explanation(
      conditionOf(violation.condition.name),
      parametersOf(table, violation)
    )

  private def conditionOf(name: String): String =
    s"${IcebergWriterCompatException.Violation}.$name"

  private def parametersOf(table: TableState, violation: Violation): Map[String, String] =
    violation.parameters ++ Map("table" -> table.name, "rule" -> violation.rule.id)

  /** A refusal of this condition; its text names the contract that the change would break. */
  private[icebergwritercompat] def refusal(
      condition: String,
      contract: Contract,
      remedy: Remedy,
      cause: Throwable = null,
      also: Seq[String] = Nil,
      findings: Seq[(String, Remedy)] = Nil
  )(parameters: (String, String)*): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      ErrorText(
        conditionOf(condition),
        parameters.toMap + ("contract" -> contract.feature),
        remedy,
        also,
        findings
      ),
      cause
    )

  /**
   * The refusal to switch the feature on, with everything that stands against it.
   *
   * @param remedy
   *   what mends all of it, where that keeps all rows
   */
  def notCompliant(
      table: TableState,
      findings: Seq[Violation],
      remedy: Remedy
  ): IcebergWriterCompatException =
    findings.find(isLostInCopy(table, _)) match {
      case Some(lost) if remedy == Fix.copyInto(table) =>
        of(table, lost, findings.filterNot(_ eq lost), lost.remedy)
      case _ => allOf(table, findings, remedy)
    }

  // A copy would have other rows, or none where they cannot be read; a column can be renamed
  // where it is.
  private def isLostInCopy(table: TableState, finding: Violation): Boolean = finding.rule match {
    case ActionRules.NoMarkersOfNull                            => true
    case NameRules.NoReservedNames | NameRules.NamesAreDistinct => table.protocol.isWritable
    case _: FooterRule => finding.remedy != Fix.copyInto(table)
    case _             => false
  }

  private def allOf(
      table: TableState,
      findings: Seq[Violation],
      remedy: Remedy
  ): IcebergWriterCompatException = {
    val way = remedy match {
      case _: Remedy.Enable =>
        "The feature can be switched on for the table in place; data files that cannot be kept " +
          "are rewritten."
      case _: Remedy.CopyInto => "The rows can be copied into a new table that has the feature."
      case _                  => "Fix the following first."
    }
    refusal("TABLE_NOT_COMPLIANT", table.contract, remedy)(
      "table" -> table.name,
      "rule" -> findings.map(_.rule.id).distinct.mkString(", "),
      "count" -> findings.size.toString,
      "findings" -> ErrorText.list(findings.map(_.summary)),
      "way" -> way
    )
  }

  /**
   * The refusal to switch the feature on, with everything that stands in the way.
   *
   * @param blockers
   *   the rule, what was found, and what mends it
   * @param remedy
   *   what mends all of them, where one call does
   */
  def upgradeBlocked(
      table: String,
      contract: Contract,
      blockers: Seq[(String, String, Remedy)],
      remedy: Remedy
  ): IcebergWriterCompatException =
    withFindings("UPGRADE_BLOCKED", table, contract, blockers, remedy)

  /** The answer where the feature is on for a table that breaks its rules. */
  def enabledButBroken(
      table: String,
      contract: Contract,
      broken: Seq[(String, String, Remedy)]
  ): IcebergWriterCompatException =
    withFindings("ENABLED_BUT_BROKEN", table, contract, broken, broken.head._3)

  private def withFindings(
      condition: String,
      table: String,
      contract: Contract,
      findings: Seq[(String, String, Remedy)],
      remedy: Remedy
  ): IcebergWriterCompatException =
    refusal(
      condition,
      contract,
      remedy,
      findings = findings.map { case (rule, found, mending) => s"$rule: $found" -> mending }
    )(
      "table" -> table,
      "rule" -> findings.map(_._1).distinct.mkString(", "),
      "count" -> findings.size.toString
    )

  /** The refusal to write data files anew unasked. */
  def rewriteNeeded(
      table: String,
      contract: Contract,
      rules: Seq[String],
      reasons: Seq[String],
      what: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    refusal("REWRITE_NEEDED", contract, remedy)(
      "table" -> table,
      "rule" -> rules.distinct.mkString(", "),
      "what" -> what,
      "reasons" -> ErrorText.list(reasons)
    )

  /** The refusal where Delta lets a feature go only after some time. */
  def dropLater(
      table: TableState,
      rule: Rule,
      feature: String,
      remedy: Remedy,
      cause: Throwable
  ): IcebergWriterCompatException =
    refusal("DROP_LATER", table.contract, remedy, cause)(
      "table" -> table.name,
      "rule" -> rule.id,
      "feature" -> feature,
      "period" -> Fix.truncationPeriod(table),
      "atOnce" -> Fix.profileThatDropsAtOnce(table).fold("") { profile =>
        s" With the profile ${profile.name} it can be dropped now: SET " +
          s"${Profile.Conf}=${profile.name}"
      }
    )

  /** The refusal of files that were written while the table did not have the feature. */
  def writtenBeforeEnabling(
      table: String,
      contract: Contract,
      operation: String,
      remedy: Remedy,
      cause: Throwable
  ): IcebergWriterCompatException =
    refusal("WRITTEN_BEFORE_ENABLING", contract, remedy, cause)(
      "table" -> table,
      "rule" -> FileRules.LiveFilesWereWrittenById.id,
      "operation" -> operation
    )

  /** The refusal of a property or setting that has none of the values it may have. */
  def invalidValue(
      property: String,
      value: String,
      allowed: String,
      remedy: Remedy,
      contract: Contract = Contracts.default
  ): IcebergWriterCompatException =
    refusal("INVALID_PROPERTY_VALUE", contract, remedy)(
      "property" -> property,
      "value" -> value,
      "allowed" -> allowed
    )

  /** The refusal of a write that the rules would not see. */
  def unguarded(
      table: String,
      contract: Contract,
      setting: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    refusal("UNGUARDED_WRITE", contract, remedy)("table" -> table, "setting" -> setting)

  /** The refusal to encrypt data files. */
  def encrypting(
      table: String,
      contract: Contract,
      rule: Rule,
      setting: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    refusal("ENCRYPTED_DATA_FILES", contract, remedy)(
      "table" -> table,
      "rule" -> rule.id,
      "setting" -> setting
    )

  /** The refusal to make a table with the feature of files that have no column ids. */
  def notConvertible(
      folder: String,
      contract: Contract,
      setting: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    refusal("FILES_WITHOUT_COLUMN_IDS", contract, remedy)(
      "folder" -> folder,
      "rule" -> FileRules.LiveFilesWereWrittenById.id,
      "setting" -> setting
    )
}
