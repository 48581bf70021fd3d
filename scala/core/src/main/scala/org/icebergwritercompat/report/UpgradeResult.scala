package org.icebergwritercompat.report

/**
 * The result of switching the feature on.
 *
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
    changed: Boolean,
    version: Long,
    mode: PlanMode,
    filesRewritten: Long,
    bytesRewritten: Long,
    filesKept: Long,
    orphans: Seq[String],
    warnings: Seq[String]
)
