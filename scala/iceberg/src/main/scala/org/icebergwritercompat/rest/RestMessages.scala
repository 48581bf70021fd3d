package org.icebergwritercompat.rest

import org.apache.iceberg.catalog.TableIdentifier
import org.apache.iceberg.rest.responses.{ErrorResponse, ErrorResponseParser}

/**
 * A request whose body is complete.
 *
 * @param path
 *   its parts between slashes, decoded
 */
private[rest] final case class RestRequest(
    method: String,
    path: Seq[String],
    query: Map[String, String],
    header: String => Option[String],
    body: String
)

/**
 * What a client gets.
 *
 * @param version
 *   the version of the Delta table that it is of, for the log
 */
private[rest] final case class RestAnswer(
    status: Int,
    body: Option[String] = None,
    headers: Map[String, String] = Map.empty,
    version: Option[String] = None
)

private[rest] object RestAnswer {

  /** Success without content. */
  val Done: RestAnswer = RestAnswer(204)

  /** An error in the form that Iceberg's clients expect. */
  def error(status: Int, kind: String, message: String): RestAnswer = {
    val response =
      ErrorResponse.builder().responseCode(status).withType(kind).withMessage(message).build()
    RestAnswer(status, Some(ErrorResponseParser.toJson(response)))
  }
}

/**
 * A request that has been understood.
 *
 * @param table
 *   the table that it is about
 * @param line
 *   whether it changes that table: such requests are worked on one after the other, in their order
 * @param key
 *   what its client knows it by, and may send it with again
 * @param again
 *   the answer if it was done before; `None` for the same as then
 */
private[rest] final case class Prepared(
    table: Option[TableIdentifier],
    line: Boolean,
    run: () => RestAnswer,
    key: Option[RequestKey] = None,
    again: Option[() => RestAnswer] = None
)

/**
 * What a client knows a request by, and may send it with again.
 *
 * @param key
 *   its header `Idempotency-Key`
 * @param content
 *   a digest of what it asks for, above 1: another request with the same key is a mistake
 */
final case class RequestKey(key: String, content: Long)
