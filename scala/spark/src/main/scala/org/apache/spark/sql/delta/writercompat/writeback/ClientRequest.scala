package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.exceptions.ValidationException
import org.apache.spark.sql.delta.Snapshot
import org.icebergwritercompat.iceberg.source.RequestMark

/**
 * What an Iceberg client tells a request by, so that it may send it again without doubling
 * anything. The commit that is made for it has the key as the application of a `txn` action.
 *
 * @param content
 *   a digest of what is asked for, as the version of that action; 1 if that is not known
 */
final case class ClientRequest(key: String, content: Long = ClientRequest.AnyContent) {

  import ClientRequest.AnyContent

  require(key.nonEmpty, "The key of a request is empty")

  /** The application id of the `txn` action. */
  def application: String = s"iceberg.request.$key"

  private[writeback] def mark: RequestMark = RequestMark(application, content)

  /**
   * Whether a commit of the table was made for it. A client that takes the key of another request
   * would else be told that it has committed what it has not.
   */
  private[writeback] def isIn(table: Snapshot): Boolean =
    Option.when(table.version >= 0)(table.transactions).flatMap(_.get(application)).exists { made =>
      if (made != content && made != AnyContent && content != AnyContent)
        throw new ValidationException(
          "The key %s was given to another request, which was committed; nothing was committed for " +
            "this one. Give it a key of its own",
          key
        )
      true
    }
}

object ClientRequest {

  private val AnyContent = 1L

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
