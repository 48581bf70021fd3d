package org.icebergwritercompat.iceberg.source

import org.apache.spark.sql.types.StructType

/**
 * What a version of a Delta table is, its files aside.
 *
 * @param id
 *   the id of the table
 * @param maxColumnId
 *   the highest column id given out
 * @param properties
 *   those that Iceberg clients have set, by the names that they gave them
 */
final case class TableDefinition(
    id: String,
    schema: StructType,
    partitionColumns: Seq[String],
    maxColumnId: Int,
    properties: Map[String, String] = Map.empty
)

/**
 * A version of a Delta table.
 *
 * @param number
 *   how it is called
 * @param timestamp
 *   when it was committed, in milliseconds
 * @param commit
 *   what tells its commit from any other; `None` if the log does not have the commit any more
 */
final case class DeltaVersion(number: Long, timestamp: Long, commit: Option[String]) {

  /** What is noted of it with what is published. */
  def mark: Option[CommitMark] = commit.map(CommitMark(number, _))
}

/**
 * The commit that a version was published from, as it is noted: the number of a version says little
 * of a log that was put back and went on.
 */
final case class CommitMark(version: Long, commit: String) {

  override def toString: String = s"$version:$commit"
}

object CommitMark {

  /** Reads what was noted; `None` where that is no such mark. */
  def parse(text: String): Option[CommitMark] = text.split(":", 2) match {
    case Array(version, commit) => version.toLongOption.map(CommitMark(_, commit))
    case _                      => None
  }
}

/**
 * A file that a commit adds.
 *
 * @param path
 *   as the log has it: encoded, and relative to the table or absolute
 * @param statistics
 *   as JSON; null if there are none
 */
final case class AddedFile(
    path: String,
    partitionValues: Map[String, String],
    size: Long,
    statistics: String,
    dataChange: Boolean
)

/** A file that a commit removes. */
final case class RemovedFile(path: String, dataChange: Boolean)

/**
 * A commit of a Delta table.
 *
 * @param definition
 *   there if the commit changes it
 * @param client
 *   the snapshots of an Iceberg client that the commit was made from
 */
final case class DeltaCommit(
    version: DeltaVersion,
    definition: Option[TableDefinition],
    added: Seq[AddedFile],
    removed: Seq[RemovedFile],
    client: Option[ClientSnapshots] = None
) {

  /** Whether the commit adds or removes files. */
  def changesFiles: Boolean = added.nonEmpty || removed.nonEmpty
}

/** The number of files of a version, and their size; `None` where that is not known. */
final case class FileTotals(files: Option[Long], bytes: Option[Long])

/** What was published: how many snapshots, and the files in them. */
final case class Published(snapshots: Int, filesAdded: Long, filesRemoved: Long) {

  def and(other: Published): Published =
    Published(
      snapshots + other.snapshots,
      filesAdded + other.filesAdded,
      filesRemoved + other.filesRemoved
    )
}

object Published {

  val nothing: Published = Published(0, 0, 0)
}
