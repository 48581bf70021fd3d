package org.icebergwritercompat.report

import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules._
import org.icebergwritercompat.upgrade.{Drop, FileUpgrade, UpgradeRequest}

/**
 * Weighs what the rules find on a table, and tells what it takes to switch the feature on.
 *
 * @param hasFiles
 *   whether files bind the layout of columns
 */
final class Judgement(table: TableState, hasFiles: Boolean) {

  private val enabled = WriterCompat.isEnabled(table.properties)

  private val isMapped = FileUpgrade.modeOf(table) != FileUpgrade.unmapped

  /** The violation as a finding, with its weight and what mends it on this table. */
  def finding(violation: Violation): Finding = severity(violation) match {
    case Severity.Error   => Finding.of(table, violation, Severity.Error)
    case Severity.Warning =>
      Finding
        .of(table, violation, Severity.Warning)
        .copy(remedy = UpgradeRequest.rewriting.call(table))
    case Severity.Info =>
      val switchOn =
        if (hasFiles) Fix.callEnable(table)
        else Fix.setProperty(table, WriterCompat.Enabled, "true")
      Finding.of(table, violation, Severity.Info).copy(remedy = switchOn)
  }

  /** How much it weighs that a data file is not as it should be. */
  def severityOfFile(rule: Rule): Severity =
    if (enabled || rule == FooterRules.FootersAreReadable) Severity.Error else Severity.Warning

  private def severity(violation: Violation): Severity =
    if (enabled) Severity.Error
    else if (Judgement.derived(violation.rule) || isLeftBehind(violation)) Severity.Info
    else if (Judgement.laidOutAnew(violation.rule))
      if (hasFiles && (!isMapped || Judgement.boundByFiles(violation.rule))) Severity.Warning
      else Severity.Info
    else if (violation.rule == FileRules.LiveFilesWereWrittenById)
      // The footers tell; without mapping nothing in them counts.
      if (isMapped) Severity.Info else Severity.Warning
    else if (violation.rule == ActionRules.FilesHaveRowCount) Severity.Info
    else if (violation.rule == ActionRules.PathsAreWithinReach || isReadAsText(violation))
      Severity.Error
    else if (violation.rule.isInstanceOf[ActionRule] || isWidened(violation) || isPast(violation))
      Severity.Warning
    else Severity.Error

  // Written anew, the rows would be others.
  private def isReadAsText(violation: Violation): Boolean = violation.location match {
    case Location.Column(path, _, _) if violation.rule == ActionRules.NoMarkersOfNull =>
      table.nodesByPath.get(path.toVector).exists(ActionRules.NoMarkersOfNull.isText)
    case _ => false
  }

  private def isLeftBehind(violation: Violation): Boolean = violation.location match {
    case Location.Feature(feature) => ProtocolRules.LeftBehind(feature)
    case _                         => false
  }

  // A byte or short keeps its values as an int, and a table without rows is altered by a statement.
  private def isWidened(violation: Violation): Boolean = violation.location match {
    case Location.Column(path, _, _)
        if hasFiles && violation.rule == SchemaRules.TypesAreSupported =>
      table.nodesByPath.get(path.toVector).exists(node => SupportedTypes.widensToInt(node.dataType))
    case _ => false
  }

  // No live file is older than the type change once those that are have been written anew.
  private def isPast(violation: Violation): Boolean = violation.location match {
    case Location.Column(path, _, _)
        if violation.rule == SchemaRules.RecordedTypeChangesArePromotions =>
      table.nodesByPath
        .get(path.toVector)
        .exists(SchemaRules.RecordedTypeChangesArePromotions.isPastWithFilesWrittenAnew)
    case _ => false
  }

  /**
   * What switches the feature on, and keeps all rows, where a plain statement is refused because of
   * these violations.
   */
  def remedyOf(violations: Seq[Violation]): Remedy = {
    val inTheWay = violations.filter(severityBefore(_) == Severity.Error)
    val drops = inTheWay.map(Drop.of)
    if (drops.forall(_.isDefined))
      UpgradeRequest(rewrites = true, drops.flatten.toSet).call(table)
    else Fix.copyInto(table)
  }

  private def severityBefore(violation: Violation): Severity = violation.rule match {
    case rule: FooterRule if FileUpgrade.mends(table, rule) => Severity.Warning
    case _                                                  => beforeEnabling.severity(violation)
  }

  private lazy val beforeEnabling: Judgement =
    if (enabled)
      new Judgement(table.copy(properties = table.properties - WriterCompat.Enabled), hasFiles)
    else this

  /** What it takes to switch the feature on, after all that was found. */
  def enabling(findings: Seq[Finding], files: Long, bytes: Long): EnablingFact = {
    val blockers = findings.filter(_.severity == Severity.Error)
    if (enabled) fact(Verdict.Enabled, "The feature is on.")
    else if (blockers.nonEmpty)
      fact(Verdict.Blocked, s"Mend ${rulesOf(blockers)} first; each finding says how.")
    else if (findings.exists(_.severity == Severity.Warning))
      EnablingFact(
        Verdict.Rewrite,
        s"Files have to be written anew, because of ${rulesOf(findings.filter(_.severity == Severity.Warning))}.",
        files,
        bytes,
        exact = false
      )
    else if (findings.exists(_.rule == FileRules.LiveFilesWereWrittenById.id))
      fact(
        Verdict.MetadataOnly,
        "One commit switches it on if the footers of the data files are in order, which verify tells."
      )
    else fact(Verdict.MetadataOnly, "One commit switches it on; no data file is written.")
  }

  private def fact(verdict: Verdict, reason: String) =
    EnablingFact(verdict, reason, filesToRewrite = 0, bytesToRewrite = 0, exact = false)

  private def rulesOf(findings: Seq[Finding]): String = {
    val rules = findings.map(_.rule).distinct
    (if (rules.sizeIs > 1) "rules " else "rule ") + rules.mkString(", ")
  }

}

object Judgement {

  // These follow from the property.
  private val derived: Set[Rule] = Set(
    PropertyRules.WriterCompatEnabled,
    PropertyRules.IcebergCompatV1Off,
    PropertyRules.IcebergCompatV3Off,
    ProtocolRules.ReaderKnowsColumnMapping,
    ProtocolRules.WriterVersionIsSeven,
    ProtocolRules.WriterFeaturesListed,
    ProtocolRules.ReaderVersionFitsFeatures,
    SchemaRules.TimestampNtzIsSupported
  )

  // Columns are laid out anew where no file depends on it.
  private val laidOutAnew: Set[Rule] = Set(
    PropertyRules.IcebergCompatV2Enabled,
    PropertyRules.ColumnMappingById,
    PropertyRules.MaxColumnIdCoversAllIds,
    SchemaRules.FieldsHaveIdAndPhysicalName,
    SchemaRules.PhysicalNameIsColId,
    SchemaRules.CollectionsHaveNestedIds
  )

  // The files of a table with column mapping have names and ids already, but not these.
  private val boundByFiles: Set[Rule] = Set(
    SchemaRules.FieldsHaveIdAndPhysicalName,
    SchemaRules.CollectionsHaveNestedIds
  )
}
