package org.icebergwritercompat.rest

import org.apache.iceberg.exceptions._
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Rendering
import org.slf4j.LoggerFactory

import java.util.UUID

/**
 * What an error means for a client: whether something was committed, and what to do.
 *
 * Clients remove the files that they have written if a commit was surely not made, so 409 and 400
 * are only for that; what may have been made is 500.
 */
private[rest] object RestErrors {

  private val logger = LoggerFactory.getLogger("org.icebergwritercompat.rest")

  /**
   * The answer to a request that came as far as this.
   *
   * @param unreadable
   *   what is wrong with the table of the request, if that is why it failed
   */
  def answer(
      error: Throwable,
      stage: Progress.Stage,
      unreadable: Throwable => Option[String] = _ => None
  ): RestAnswer = (stage, error) match {
    case (Progress.Committed | Progress.Committing, _) => unknown(error)
    case (_, e: CommitStateUnknownException)           => unknown(e)
    case (_, e: IcebergWriterCompatException)          =>
      known(400, "ValidationException", e.in(Rendering.Sql).getMessage)
    case (_, e: NotAuthorizedException)                                   => known(401, e)
    case (_, e @ (_: NoSuchTableException | _: NoSuchNamespaceException)) => known(404, e)
    case (
          _,
          e @ (_: AlreadyExistsException | _: CommitFailedException | _: NamespaceNotEmptyException)
        ) =>
      known(409, e)
    case (_, e @ (_: ValidationException | _: IllegalArgumentException)) => known(400, e)
    case (_, e: UnsupportedOperationException)                           => known(406, e)
    case (_, e)                                                          =>
      (unreadable(e), stage) match {
        case (Some(why), _) => failed("ServiceFailureException", why, e)
        // What a client sent and Iceberg's library does not expect.
        case (None, Progress.Applying) =>
          logger.info("A request cannot be applied", e)
          val why = "What the request changes cannot be applied to the table"
          known(400, "BadRequestException", why)
        case (None, _) => failed("ServiceFailureException", "The server could not do it", e)
      }
  }

  private def unknown(e: Throwable): RestAnswer = failed(
    "CommitStateUnknownException",
    "It is not known whether the commit was made; the table tells when it is loaded again",
    e
  )

  // What went wrong inside is for whoever runs the server.
  private def failed(kind: String, message: String, e: Throwable): RestAnswer = {
    val id = UUID.randomUUID.toString.take(8)
    logger.error(s"Request failed, error $id", e)
    known(500, kind, s"${message.stripSuffix(".")}. The log of the server has more under $id")
  }

  private def known(status: Int, e: Throwable): RestAnswer = e match {
    case _: RestBodies.Malformed => known(status, "BadRequestException", text(e))
    case _                       => known(status, e.getClass.getSimpleName, text(e))
  }

  private def text(e: Throwable): String = Option(e.getMessage).getOrElse(e.getClass.getSimpleName)

  private def known(status: Int, kind: String, message: String): RestAnswer =
    RestAnswer.error(status, kind, message)
}
