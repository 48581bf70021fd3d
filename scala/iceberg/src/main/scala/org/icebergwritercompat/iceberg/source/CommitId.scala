package org.icebergwritercompat.iceberg.source

import com.fasterxml.jackson.databind.ObjectMapper

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import scala.util.Try

/**
 * The id of a commit. It differs between two commits of the same version number, as they exist
 * after a log was put back to an older version and written again.
 */
object CommitId {

  /**
   * The id of the commit whose file has these lines: `commitInfo.txnId` if one of the first lines
   * has it, and otherwise the SHA-256 digest of all lines.
   */
  def of(lines: Iterator[String]): String = {
    val head = Vector.newBuilder[String]
    var read = 0
    while (read < linesBeforeInfo && lines.hasNext) {
      head += lines.next()
      read += 1
    }
    of(head.result(), lines)
  }

  private def of(head: Vector[String], lines: Iterator[String]): String =
    head.iterator.flatMap(transaction).nextOption().getOrElse(digest(head.iterator ++ lines))

  private def transaction(line: String): Option[String] =
    Option
      .when(line.contains(infoKey))(line)
      .flatMap(text => Try(mapper.readTree(text).path("commitInfo").path("txnId")).toOption)
      .filter(_.isTextual)
      .map(_.asText)

  private def digest(lines: Iterator[String]): String = {
    val sum = MessageDigest.getInstance("SHA-256")
    lines.foreach { line =>
      sum.update(line.getBytes(UTF_8))
      sum.update('\n'.toByte)
    }
    sum.digest.map(byte => f"$byte%02x").mkString
  }

  // Delta's writers put commitInfo into the first line.
  private val linesBeforeInfo = 2

  private val infoKey = "\"commitInfo\""

  private val mapper = new ObjectMapper
}
