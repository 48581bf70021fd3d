package org.icebergwritercompat.report

import org.icebergwritercompat.remedy.Remedy

/**
 * What publishing a table as Iceberg did.
 *
 * @param metadataLocation
 *   the metadata file that Iceberg readers open
 * @param deltaVersion
 *   the version that is published now
 * @param previousVersion
 *   the version that was published before; `None` the first time
 * @param snapshotId
 *   the current Iceberg snapshot; `None` where no version had files
 * @param snapshots
 *   how many snapshots this run published, with so many files added and removed
 * @param catalogTable
 *   the name of the table in the Iceberg catalog; `None` where there is none
 * @param mended
 *   what readers could not go by, and can now
 * @param setAside
 *   files that could not be read, by the names under which they are kept
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
 * How far a table is published as Iceberg.
 *
 * @param publishedVersion
 *   `None` where it never was, as are the others
 * @param lag
 *   how many versions readers of Iceberg do not see
 * @param catalogTable
 *   the name of the table in the Iceberg catalog; `None` where there is none
 * @param problems
 *   what readers of Iceberg should not wait for to go away by itself
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
 * What is wrong with what is published of a table.
 *
 * @param text
 *   what is the case, in one line
 * @param remedy
 *   what to run or to set
 */
final case class PublishProblem(text: String, remedy: Remedy)

/**
 * A table as Iceberg metadata has it.
 *
 * @param deltaVersion
 *   the newest version of the table
 * @param publishedVersion
 *   the version that readers see
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

/** An Iceberg snapshot, and the version that it is of. */
final case class PublishedSnapshot(snapshotId: Long, deltaVersion: Long)
