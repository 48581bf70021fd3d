package org.apache.spark.sql.delta.writercompat.read

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.delta.util.DeltaCommitFileProvider
import org.icebergwritercompat.iceberg.source.CommitMark

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.NoSuchFileException
import java.security.MessageDigest
import scala.annotation.tailrec
import scala.util.{Try, Using}

/**
 * What tells the commits of a log from those of another, or of the same one before it was put back.
 *
 * @param newest
 *   the version up to which the log is looked at
 */
private[writercompat] final class CommitIds(log: DeltaLog, newest: Snapshot) {

  private lazy val files = DeltaCommitFileProvider(newest)

  /** The id of a version's commit; `None` if the log does not have it, or not any more. */
  def of(version: Long): Option[String] = Option.when(version <= newest.version)(()).flatMap { _ =>
    val file = files.deltaFile(version)
    try
      Using.resource(log.store.readAsIterator(file, log.newDeltaHadoopConf())) { lines =>
        Some(CommitIds.of(lines))
      }
    catch { case _: FileNotFoundException | _: NoSuchFileException => None }
  }

  /**
   * The newest of some commits that the log has.
   *
   * @param noted
   *   the commits, oldest first
   */
  def lastOf(noted: Seq[CommitMark]): Option[CommitMark] = {
    // The log may have cleaned up the oldest. What it shares with them is older than what it does
    // not share.
    @tailrec def search(from: Int, until: Int, found: Option[CommitMark]): Option[CommitMark] =
      if (from >= until) found
      else {
        val middle = (from + until) / 2
        val mark = noted(middle)
        of(mark.version) match {
          case Some(mark.commit)                      => search(middle + 1, until, Some(mark))
          case None if mark.version <= newest.version => search(middle + 1, until, found)
          case _                                      => search(from, middle, found)
        }
      }
    search(0, noted.size, None)
  }
}

private[writercompat] object CommitIds {

  /**
   * The id of a commit: that of its transaction, which is in the first lines, or else a digest of
   * all lines.
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

  // Delta's writers put it first.
  private val linesBeforeInfo = 2

  private val infoKey = "\"commitInfo\""

  private val mapper = new ObjectMapper
}
