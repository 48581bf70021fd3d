package org.icebergwritercompat.iceberg.source

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.errors.IcebergWriterCompatException

/** Where a change that was not made by Delta becomes a commit of a Delta table. */
trait DeltaSink {

  /**
   * Makes a change the next version of the table, or nothing of it.
   *
   * @param at
   *   the version that the change was made on, -1 for a table that does not exist yet; nothing is
   *   committed on any other
   */
  def commit(proposed: ProposedCommit, at: Long): CommitOutcome
}

/**
 * A change of a Delta table.
 *
 * @param definition
 *   what the table is to be; `None` where that stays
 * @param set
 *   properties of Delta that get a value
 * @param unset
 *   properties of Delta that are removed
 * @param added
 *   files; their statistics need tell no more than the number of rows, because the sink takes them
 *   from the footers, which it judges before it commits
 * @param removed
 *   files of the version that the change was made on
 * @param operation
 *   what the history of the table is to say
 * @param client
 *   the snapshots of the client, noted in the commit
 * @param request
 *   what a request is told by: a second commit with it is not made
 * @param replacesRows
 *   whether the table begins anew, without any of the rows that it had
 * @param deletes
 *   rows that are not in the table any more, of files that it has and of added ones: the sink
 *   writes these files anew
 */
final case class ProposedCommit(
    operation: ClientOperation,
    definition: Option[ProposedDefinition] = None,
    set: Map[String, String] = Map.empty,
    unset: Set[String] = Set.empty,
    added: Seq[AddedFile] = Nil,
    removed: Seq[RemovedFile] = Nil,
    client: Option[ClientSnapshots] = None,
    request: Option[RequestMark] = None,
    replacesRows: Boolean = false,
    deletes: Option[RowDeletes] = None
)

/**
 * What a request is told by, as a `txn` action of Delta.
 *
 * @param application
 *   its application
 * @param content
 *   its version, which tells requests with the same application apart
 */
final case class RequestMark(application: String, content: Long)

/**
 * What a table is to be.
 *
 * @param id
 *   the id of the table, another one only where nobody has seen the one that it has
 * @param schema
 *   with ids and physical names at every depth
 * @param maxColumnId
 *   the highest column id given out, used or not
 */
final case class ProposedDefinition(
    id: String,
    schema: StructType,
    partitionColumns: Seq[String],
    maxColumnId: Int
)

/**
 * What a client says to have done.
 *
 * @param name
 *   such as `append`
 * @param parameters
 *   such as the engine, for the history of the table
 */
final case class ClientOperation(name: String, parameters: Map[String, String] = Map.empty)

/** What has become of a proposed change. */
sealed trait CommitOutcome

object CommitOutcome {

  /** It is this version of the table. */
  final case class Committed(version: Long) extends CommitOutcome

  /** A commit with the same request is there already. */
  case object Repeated extends CommitOutcome

  /** Another version came before it, and nothing was committed. */
  final case class Overtaken(newest: Long) extends CommitOutcome

  /** It may not be made, and nothing was committed. */
  final case class Refused(why: IcebergWriterCompatException) extends CommitOutcome

  /** It may be committed. */
  final case class Unknown(cause: Throwable) extends CommitOutcome
}
