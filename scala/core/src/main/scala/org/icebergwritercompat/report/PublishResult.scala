package org.icebergwritercompat.report

import org.icebergwritercompat.remedy.Remedy

/**
 * The result of publishing a table.
 *
 * @param metadataLocation
 *   the metadata file that Iceberg readers open
 * @param deltaVersion
 *   the published version
 * @param previousVersion
 *   the version that was published before, if any
 * @param snapshotId
 *   the current Iceberg snapshot; `None` if no version had files
 * @param snapshots
 *   the number of snapshots that were published; then the files that they add and remove
 * @param catalogTable
 *   the name of the table in the Iceberg catalog, if it is published in one
 * @param mended
 *   the problems of the metadata that were repaired
 * @param setAside
 *   files that could not be read, by their new names
 */
final case class PublishResult(
    table: String,
    metadataLocation: String,
    deltaVersion: Long,
    previousVersion: Option[Long],
    snapshotId: Option[Long],
    snapshots: Int,
    filesAdded: Long,
    filesRemoved: Long,
    catalogTable: Option[String],
    mended: Seq[String],
    setAside: Seq[String]
)

/**
 * The state of publishing of a table.
 *
 * @param publishedVersion
 *   the published version; like the other values, `None` if the table is not published
 * @param lag
 *   the number of versions that Iceberg readers do not see
 * @param catalogTable
 *   the name of the table in the Iceberg catalog, if it is published in one
 * @param problems
 *   problems that need a call or a setting
 */
final case class PublishStatus(
    table: String,
    deltaVersion: Long,
    publishedVersion: Option[Long],
    lag: Option[Long],
    snapshotId: Option[Long],
    metadataLocation: Option[String],
    catalogTable: Option[String],
    problems: Seq[PublishProblem]
)

/**
 * A problem of a published table.
 *
 * @param text
 *   the problem, in one line
 * @param remedy
 *   the statements or settings that fix it
 */
final case class PublishProblem(text: String, remedy: Remedy)

/**
 * The content of Iceberg metadata.
 *
 * @param deltaVersion
 *   the newest version of the table
 * @param publishedVersion
 *   the version that Iceberg readers see
 * @param snapshots
 *   oldest first
 */
final case class PublishedTable(
    table: String,
    deltaVersion: Long,
    metadataLocation: String,
    publishedVersion: Long,
    snapshots: Seq[PublishedSnapshot]
)

/** An Iceberg snapshot, and its Delta version. */
final case class PublishedSnapshot(snapshotId: Long, deltaVersion: Long)
