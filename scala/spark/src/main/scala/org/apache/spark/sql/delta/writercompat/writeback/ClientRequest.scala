package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.spark.sql.delta.Snapshot

/**
 * What an Iceberg client tells a request by, so that it may send it again without doubling
 * anything. The commit that is made for it has the key as the application of a `txn` action.
 */
final case class ClientRequest(key: String) {

  require(key.nonEmpty, "The key of a request is empty")

  /** The application id of the `txn` action. */
  def application: String = s"iceberg.request.$key"

  /** Whether a commit of the table was made for it. */
  private[writeback] def isIn(table: Snapshot): Boolean =
    table.version >= 0 && table.transactions.contains(application)
}

object ClientRequest {

  private val running = new ThreadLocal[Option[ClientRequest]] {
    override def initialValue: Option[ClientRequest] = None
  }

  /** The request that the commits of this thread are made for. */
  def current: Option[ClientRequest] = running.get

  /** Runs `body`, whose one commit on this thread is made for the request. */
  def during[T](request: ClientRequest)(body: => T): T = {
    val before = running.get
    running.set(Some(request))
    try body
    finally running.set(before)
  }
}
