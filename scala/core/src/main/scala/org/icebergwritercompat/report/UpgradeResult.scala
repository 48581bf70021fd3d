package org.icebergwritercompat.report

import org.icebergwritercompat.remedy.Remedy

/**
 * The result of switching the feature on.
 *
 * @param contract
 *   the feature of the contract that the table follows
 * @param changed
 *   false if the feature was on before
 * @param version
 *   the newest version of the table now
 * @param mode
 *   the mode; [[PlanMode.NoChange]] if the feature was on before
 * @param filesKept
 *   the number of data files that were kept
 * @param orphans
 *   folders of the table with rewritten files that were not committed; VACUUM removes them
 * @param warnings
 *   failures after the commit; for a table that has the feature, the warnings of `check`
 */
final case class UpgradeResult(
    table: String,
    contract: String,
    changed: Boolean,
    version: Long,
    mode: PlanMode,
    filesRewritten: Long,
    bytesRewritten: Long,
    filesKept: Long,
    orphans: Seq[String],
    warnings: Seq[UpgradeWarning]
)

/**
 * A warning in the result of switching the feature on.
 *
 * @param remedy
 *   what mends it; [[Remedy.Nothing]] for a failure after the commit
 */
final case class UpgradeWarning(text: String, remedy: Remedy)

object UpgradeWarning {

  /** The warning of a finding of `check`. */
  def of(finding: Finding): UpgradeWarning =
    UpgradeWarning(s"${finding.rule}: ${finding.found}", finding.remedy)

  /** The warning that something failed after the commit. */
  def afterCommit(what: String, failure: String): UpgradeWarning =
    UpgradeWarning(s"The commit is made, but $what failed: $failure", Remedy.Nothing)
}
