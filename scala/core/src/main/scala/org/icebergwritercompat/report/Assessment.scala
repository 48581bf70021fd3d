package org.icebergwritercompat.report

import org.icebergwritercompat.contract.{Fix, FooterRule, Obstacle, TableState, Violation}
import org.icebergwritercompat.model.SchemaNode
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.{ActionRules, FileRules, FooterRules, SchemaRules}
import org.icebergwritercompat.upgrade.{Drop, FileUpgrade, UpgradeRequest}

/**
 * Assigns severities to violations, and derives from them how the feature can be switched on.
 *
 * @param hasFiles
 *   whether the table has data files, whose columns have certain names and ids
 */
final class Assessment(table: TableState, hasFiles: Boolean) {

  private val enabled = table.isEnabled

  /** The violation as a finding, with its severity and its remedy for this table. */
  def finding(violation: Violation): Finding = severity(violation) match {
    // The features and properties that come with deletion vectors block the call below.
    case Severity.Warning if violation.rule == ActionRules.NoDeletionVectors =>
      Finding.of(table, violation, Severity.Warning)
    case Severity.Warning if !enabled =>
      Finding
        .of(table, violation, Severity.Warning)
        .copy(remedy = UpgradeRequest.rewriting.call(table))
    case Severity.Info =>
      val switchOn =
        if (hasFiles) Fix.callEnable(table)
        else Fix.setProperty(table, table.contract.property, "true")
      Finding.of(table, violation, Severity.Info).copy(remedy = switchOn)
    case Severity.Error if !enabled && isPlainCall(violation.remedy) =>
      // What has to be mended first is not mended by the call that it blocks.
      Finding.of(table, violation, Severity.Error).copy(remedy = Fix.copyInto(table))
    case severity => Finding.of(table, violation, severity)
  }

  /** The severity of a violation in a data file. */
  def severityOfFile(rule: FooterRule): Severity =
    if (enabled || rule == FooterRules.FootersAreReadable) Severity.Error else Severity.Warning

  private def isPlainCall(remedy: Remedy): Boolean = remedy match {
    case call: Remedy.Enable => call.drop.isEmpty
    case _                   => false
  }

  private def severity(violation: Violation): Severity =
    if (enabled) if (violation.rule.isAdvice) Severity.Warning else Severity.Error
    else
      violation.rule.obstacle(table, violation, hasFiles) match {
        case Obstacle.None    => Severity.Info
        case Obstacle.Rewrite => Severity.Warning
        case Obstacle.Blocker => Severity.Error
      }

  /**
   * The remedy that switches the feature on and keeps all rows, if a SQL statement was refused
   * because of these violations.
   */
  def remedyOf(violations: Seq[Violation]): Remedy = {
    val drops = violations.filter(isInTheWay).map(Drop.of)
    if (drops.forall(_.isDefined))
      UpgradeRequest(rewrites = true, drops.flatten.toSet).call(table)
    else Fix.copyInto(table)
  }

  private def isInTheWay(violation: Violation): Boolean = violation.rule match {
    case rule: FooterRule => !FileUpgrade.rewriteResolves(table, rule)
    case rule             => rule.obstacle(table, violation, hasFiles) == Obstacle.Blocker
  }

  /** How the feature can be switched on, given all findings. */
  def enabling(findings: Seq[Finding], files: Long, bytes: Long): EnablingFact = {
    val blockers = findings.filter(_.severity == Severity.Error)
    val changed = if (hasFiles) Nil else typeChanges(findings)
    if (enabled) fact(Verdict.Enabled, "The feature is on.")
    else if (blockers.nonEmpty)
      fact(Verdict.Blocked, s"Fix the findings of ${rulesOf(blockers)} first; each has a remedy.")
        .copy(typesOnly = changed.nonEmpty)
    else if (changed.nonEmpty) EnablingFact.ofTypes(changed, exact = false)
    else if (findings.exists(_.severity == Severity.Warning))
      EnablingFact(
        Verdict.Rewrite,
        "Files have to be rewritten, because of " +
          s"${rulesOf(findings.filter(_.severity == Severity.Warning))}.",
        files,
        bytes,
        exact = false,
        typesOnly = false
      )
    else if (findings.exists(_.rule == FileRules.LiveFilesWereWrittenById.id))
      fact(
        Verdict.MetadataOnly,
        "One commit switches it on if the footers of the data files comply; verify checks them."
      )
    else fact(Verdict.MetadataOnly, "One commit switches it on; no data file is written.")
  }

  private def typeChanges(findings: Seq[Finding]): Seq[SchemaNode] = {
    val found = findings
      .filter(f => f.severity == Severity.Warning && f.rule == SchemaRules.TypesAreSupported.id)
      .map(_.place.name)
      .toSet
    table.nodes.filter(node => found(node.sqlPath))
  }

  private def fact(verdict: Verdict, reason: String) =
    EnablingFact(
      verdict,
      reason,
      filesToRewrite = 0,
      bytesToRewrite = 0,
      exact = false,
      typesOnly = false
    )

  private def rulesOf(findings: Seq[Finding]): String = {
    val rules = findings.map(_.rule).distinct
    (if (rules.sizeIs > 1) "rules " else "rule ") + rules.mkString(", ")
  }
}
