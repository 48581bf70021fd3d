package org.icebergwritercompat.iceberg.source

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.model.{DataAction, FileLocation, FileStatistics}

/**
 * The columns and the partitioning of a Delta table at one version.
 *
 * @param id
 *   the id of the table
 * @param maxColumnId
 *   the highest column id given out
 * @param properties
 *   those that Iceberg clients have set, by the names that they gave them
 * @param formatVersion
 *   the version of Iceberg's table format that the contract of the table asks for
 */
final case class TableDefinition(
    id: String,
    schema: StructType,
    partitionColumns: Seq[String],
    maxColumnId: Int,
    properties: Map[String, String] = Map.empty,
    formatVersion: Int = Contracts.default.formatVersion
)

object TableDefinition {

  /** The definition of the table with this id that the rules see as `state`. */
  def of(id: String, state: TableState): TableDefinition =
    TableDefinition(
      id,
      state.schema,
      state.partitionColumns,
      Some(state.maxColumnId).filter(_.isValidInt).fold(0)(_.toInt),
      ofClients(state.properties),
      state.contract.formatVersion
    )

  /** The properties that Iceberg clients have set, of all of a Delta table. */
  def ofClients(properties: Map[String, String]): Map[String, String] = properties.collect {
    case (key, value) if key.startsWith(ClientPrefix) && value != null =>
      key.stripPrefix(ClientPrefix) -> value
  }

  /** What the names of properties that Iceberg clients have set begin with in Delta's log. */
  val ClientPrefix = "iceberg."
}

/**
 * A version of a Delta table.
 *
 * @param timestamp
 *   when it was committed, in milliseconds
 * @param commit
 *   the id of its commit; `None` if the log does not have the commit any more
 */
final case class DeltaVersion(number: Long, timestamp: Long, commit: Option[String]) {

  /** The note that is written into published metadata; `None` without the id of the commit. */
  def mark: Option[CommitMark] = commit.map(CommitMark(number, _))
}

/**
 * The commit that a version was published from, as it is noted in the published metadata. The
 * number alone is not enough: a log that was put back to an older version and written again has
 * other commits of the same numbers.
 */
final case class CommitMark(version: Long, commit: String) {

  override def toString: String = s"$version:$commit"
}

object CommitMark {

  /** Reads a note of the form `version:commit`; `None` for any other text. */
  def parse(text: String): Option[CommitMark] = text.split(":", 2) match {
    case Array(version, commit) => version.toLongOption.map(CommitMark(_, commit))
    case _                      => None
  }
}

/**
 * A file that a commit adds.
 *
 * @param path
 *   as the log has it: URI-encoded, and relative to the table or absolute
 * @param statistics
 *   as JSON; null if there are none
 */
final case class AddedFile(
    path: String,
    partitionValues: Map[String, String],
    size: Long,
    statistics: String,
    dataChange: Boolean,
    hasDeletionVector: Boolean = false
) {

  /**
   * The file as the rules look at it.
   *
   * @param decoded
   *   what the rules use of its statistics
   * @param repeated
   *   whether the same commit adds the path already
   * @param isKnown
   *   whether there is a file system for the scheme and host of a path
   */
  def toAction(
      decoded: Option[FileStatistics],
      repeated: Boolean,
      isKnown: String => Boolean
  ): DataAction.Added = {
    val file = DataAction.Added(
      path,
      partitionValues,
      decoded,
      hasDeletionVector,
      repeated,
      size
    )
    file.location match {
      case FileLocation.Absolute(root) => file.copy(isWithinReach = isKnown(root))
      case _                           => file
    }
  }
}

/** A file that a commit removes. */
final case class RemovedFile(path: String, dataChange: Boolean)

/**
 * A commit of a Delta table.
 *
 * @param definition
 *   the definition of the table from this commit on, if the commit changes it
 * @param state
 *   the same for the rules
 * @param client
 *   the snapshots of an Iceberg client that the commit was made from
 */
final case class DeltaCommit(
    version: DeltaVersion,
    definition: Option[TableDefinition],
    added: Seq[AddedFile],
    removed: Seq[RemovedFile],
    state: Option[TableState] = None,
    client: Option[ClientSnapshots] = None
) {

  /** Whether the commit adds or removes files. */
  def changesFiles: Boolean = added.nonEmpty || removed.nonEmpty
}

/** The number of files of a version, and their size; `None` where that is not known. */
final case class FileTotals(files: Option[Long], bytes: Option[Long])

object FileTotals {

  val unknown: FileTotals = FileTotals(None, None)
}

/** What was published: the number of snapshots, and of the files added and removed in them. */
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
