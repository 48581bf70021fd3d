package org.icebergwritercompat.report

/**
 * What switching the feature on did.
 *
 * @param contract
 *   the feature of the contract that the table follows
 * @param changed
 *   false if the feature was on before
 * @param version
 *   the newest version of the table now
 * @param mode
 *   which way it went; [[PlanMode.NoChange]] if the feature was on before
 * @param filesKept
 *   how many data files stayed as they were
 * @param orphans
 *   folders of the table with files that were written anew and came to nothing, which VACUUM
 *   removes
 * @param warnings
 *   what failed after the commit, which stands; of a table that has the feature, what `check` warns
 *   of
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
    warnings: Seq[String]
)
