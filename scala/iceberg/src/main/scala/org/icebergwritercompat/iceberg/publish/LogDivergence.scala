package org.icebergwritercompat.iceberg.publish

import org.icebergwritercompat.iceberg.source.{CommitMark, TableAtVersion}

import scala.annotation.tailrec

/**
 * The published metadata and Delta's log have different commits of the same versions: the log was
 * put back to an older version, or the table was replaced.
 *
 * @param found
 *   what was found, for a person
 * @param common
 *   the newest published commit that the log has too, if there is one
 * @param snapshots
 *   how many published snapshots are of commits that the log does not have
 */
private[publish] final case class LogDivergence(
    found: String,
    common: Option[CommitMark],
    snapshots: Int
) {

  /** What publishing will do about it. */
  def remedy: String = common.fold(
    "Publishing begins a new line of metadata, which has the newest version only."
  ) { last =>
    s"Publishing goes back to version ${last.version}, forgets $snapshots snapshots of what came " +
      "after it, and goes on to the newest version."
  }

  /** What publishing has done about it. */
  def done: String = common.fold("A new line of metadata has begun.") { last =>
    s"Readers go on from version ${last.version}; $snapshots snapshots after it are forgotten."
  }
}

private[publish] object LogDivergence {

  /** The difference between what is published and the log; `None` if there is none. */
  def of(newest: TableAtVersion, publisher: IcebergPublisher): Option[LogDivergence] =
    found(newest, publisher).map { what =>
      val common = lastOf(publisher.publishedCommits, newest)
      LogDivergence(
        s"Iceberg readers may see rows that Delta does not have: $what. The log was put back to an " +
          "earlier version, or the table was replaced or made anew.",
        common,
        common.fold(0)(publisher.partedAfter(_).size)
      )
    }

  private def found(newest: TableAtVersion, publisher: IcebergPublisher): Option[String] =
    publisher.publishedCommit.flatMap { noted =>
      newest.commitId(noted.version) match {
        case Some(commit) =>
          Option.when(commit != noted.commit) {
            s"its version ${noted.version} was published from the commit ${noted.commit}, but is " +
              s"the commit $commit in Delta's log"
          }
        // The log's clean-up has removed the commit, so only the table's id can be compared.
        case None =>
          publisher.publishedTable.filter(_ != newest.tableId).map { id =>
            s"its version ${noted.version} was published from the Delta table with the id $id, but " +
              s"the log is that of ${newest.tableId}"
          }
      }
    }

  /**
   * The newest of some commits that the log has.
   *
   * @param noted
   *   the commits, oldest first
   */
  private def lastOf(noted: Seq[CommitMark], newest: TableAtVersion): Option[CommitMark] = {
    // The log may have cleaned up the oldest ones. All commits that both have are older than all
    // that only one of them has, so the last common one is found by halving.
    @tailrec def search(from: Int, until: Int, found: Option[CommitMark]): Option[CommitMark] =
      if (from >= until) found
      else {
        val middle = (from + until) / 2
        val mark = noted(middle)
        newest.commitId(mark.version) match {
          case Some(mark.commit)                     => search(middle + 1, until, Some(mark))
          case None if mark.version <= newest.number => search(middle + 1, until, found)
          case _                                     => search(from, middle, found)
        }
      }
    search(0, noted.size, None)
  }
}
