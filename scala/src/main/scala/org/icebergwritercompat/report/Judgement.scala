package org.icebergwritercompat.report

import org.apache.spark.sql.types.{ByteType, ShortType}
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.rules._

/**
 * Weighs what the rules find on a table, and tells what it takes to switch the feature on.
 *
 * @param hasFiles
 *   whether files bind the layout of columns
 */
final class Judgement(table: TableState, hasFiles: Boolean) {

  private val enabled = WriterCompat.isEnabled(table.properties)

  /** The violation as a finding, with its weight and the statement that mends it on this table. */
  def finding(violation: Violation): Finding = severity(violation) match {
    case Severity.Error   => Finding.of(table, violation, Severity.Error)
    case Severity.Warning =>
      Finding.of(table, violation, Severity.Warning).copy(fix = Fix.copyInto(table))
    case Severity.Info =>
      val switchOn = Fix.setProperty(table, WriterCompat.Enabled, "true")
      Finding.of(table, violation, Severity.Info).copy(fix = switchOn)
  }

  /** How much it weighs that a data file is not as it should be. */
  def severityOfFile(rule: Rule): Severity =
    if (enabled || rule == FooterRules.FootersAreReadable) Severity.Error else Severity.Warning

  private def severity(violation: Violation): Severity =
    if (enabled) Severity.Error
    else if (Judgement.derived(violation.rule)) Severity.Info
    else if (Judgement.laidOutAnew(violation.rule))
      if (hasFiles) Severity.Warning else Severity.Info
    else if (violation.fix == Fix.copyInto(table) || widenedByCopy(violation)) Severity.Warning
    else Severity.Error

  // A byte or short keeps its values as an int, and a table without rows needs no copy.
  private def widenedByCopy(violation: Violation): Boolean = violation.location match {
    case Location.Column(path, _, _)
        if hasFiles && violation.rule == SchemaRules.TypesAreSupported =>
      table.nodesByPath.get(path.toVector).map(_.dataType).exists {
        case ByteType | ShortType => true
        case _                    => false
      }
    case _ => false
  }

  /** What it takes to switch the feature on, after all that was found. */
  def enabling(findings: Seq[Finding], files: Long, bytes: Long): EnablingFact = {
    val blockers = findings.filter(_.severity == Severity.Error)
    if (enabled) fact(Verdict.Enabled, "The feature is on.")
    else if (blockers.nonEmpty)
      fact(Verdict.Blocked, s"Mend ${rulesOf(blockers)} first; each finding says how.")
    else if (findings.exists(_.severity == Severity.Warning))
      EnablingFact(
        Verdict.Rewrite,
        s"The rows have to be copied, because of ${rulesOf(findings.filter(_.severity == Severity.Warning))}.",
        files,
        bytes,
        exact = false
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

  // Delta derives these from the property.
  private val derived: Set[Rule] = Set(
    PropertyRules.WriterCompatEnabled,
    ProtocolRules.ReaderKnowsColumnMapping,
    ProtocolRules.WriterVersionIsSeven,
    ProtocolRules.WriterFeaturesListed,
    ProtocolRules.ReaderVersionFitsFeatures,
    SchemaRules.TimestampNtzIsSupported
  )

  // Delta lays columns out anew where no file depends on it.
  private val laidOutAnew: Set[Rule] = Set(
    PropertyRules.IcebergCompatV2Enabled,
    PropertyRules.ColumnMappingById,
    PropertyRules.MaxColumnIdCoversAllIds,
    SchemaRules.FieldsHaveIdAndPhysicalName,
    SchemaRules.PhysicalNameIsColId,
    SchemaRules.CollectionsHaveNestedIds
  )
}
