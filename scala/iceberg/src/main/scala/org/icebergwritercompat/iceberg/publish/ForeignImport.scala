package org.icebergwritercompat.iceberg.publish

import org.apache.iceberg.TableMetadata
import org.icebergwritercompat.iceberg.source.DeltaSource
import org.icebergwritercompat.report.PublishResult

/** Puts the rows that an Iceberg writer has appended to a published table into its Delta table. */
trait ForeignAppends {

  /** Whether the Delta table has the rows of a snapshot already. */
  def has(snapshotId: Long): Boolean

  /** Why the rows of a commit cannot be read as rows of the Delta table; no file is opened. */
  def obstacle(commit: ForeignCommit): Option[String]

  /** Why a data file of a commit cannot be read; every row is read. */
  def unreadable(commit: ForeignCommit): Option[String]

  /** Appends the rows of a commit in one Delta commit, unless the table has them. */
  def append(commit: ForeignCommit): Unit
}

/**
 * Takes commits of Iceberg writers over into the Delta table.
 *
 * @param appends
 *   what writes to the Delta table, for the published metadata
 */
final class ForeignImport(
    source: DeltaSource,
    publishing: Publishing,
    appends: TableMetadata => ForeignAppends
) {

  /**
   * Appends to the table what an Iceberg writer has committed past it, and publishes that.
   *
   * Each snapshot of the writer becomes one Delta commit, which notes the snapshot. So a second
   * call, or two calls at once, append it once.
   *
   * @param snapshotId
   *   the last snapshot that is taken
   */
  def upTo(snapshotId: Long): PublishResult = {
    val newest = source.newest()
    PublishRefusals.refuse(source, newest)
    val publisher = publishing.open(newest)
    publisher.publishedVersion
    val commits = publisher.foreign
    def writer = appends(publisher.metadata.get)
    if (commits.lastOption.exists(_.snapshotId == snapshotId)) {
      // All are checked before the first is appended.
      val obstacles = Iterator(
        (commit: ForeignCommit) => commit.obstacle,
        writer.obstacle(_),
        writer.unreadable(_)
      ).flatMap(commits.flatMap(_))
      obstacles.nextOption().foreach { obstacle =>
        throw ForeignCommits.notTaken(source.name, publisher, commits, obstacle)
      }
      commits.foreach(writer.append)
    } else if (commits.isEmpty && publisher.metadata.isDefined && !writer.has(snapshotId))
      throw PublishRefusals.noSuchCommit(source.name, snapshotId)
    publishing.publish(PublishWay.Settled(snapshotId))
  }
}
