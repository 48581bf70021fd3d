package org.icebergwritercompat.errors

import org.apache.spark.SparkThrowable
import org.icebergwritercompat.remedy.{Remedy, RemedyJson, Rendering}

import java.util.{Map => JMap}
import scala.jdk.CollectionConverters._

/**
 * A refusal: its condition, SQLSTATE and parameters are the same in Scala, Java, SQL and Python.
 *
 * The base class is one that PySpark hands on with its condition.
 */
final class IcebergWriterCompatException private[errors] (
    text: ErrorText,
    cause: Throwable,
    rendering: Rendering = Rendering.Sql
) extends UnsupportedOperationException(text.message(rendering), cause)
    with SparkThrowable {

  def this(condition: String, parameters: Map[String, String], cause: Throwable) =
    this(ErrorText(condition, parameters), cause, Rendering.Sql)

  def this(condition: String, parameters: Map[String, String]) = this(condition, parameters, null)

  /** What mends it; its statements are the parameter `fix` of the text, one a line. */
  def remedy: Remedy = text.remedy

  /** What is wrong, without what mends it. */
  def explanation: String = text.explanation(rendering)

  /** The same error, with what mends it in another language. */
  def in(other: Rendering): IcebergWriterCompatException = {
    val same = new IcebergWriterCompatException(text, cause, other)
    same.setStackTrace(getStackTrace)
    same
  }

  /** The whole text in the rendering of this name: `sql`, `python` or `command`. */
  def messageIn(name: String): String =
    text.message(Rendering.all.find(_.name == name).getOrElse(rendering))

  /** What mends it in SQL, Python and at the command line, as JSON. */
  def remedyJson: String = RemedyJson.of(remedy)

  override def getCondition: String = text.condition

  override def getErrorClass: String = text.condition

  override def getSqlState: String = Conditions.sqlState(text.condition)

  override def getMessageParameters: JMap[String, String] =
    text.allParameters(rendering).asJava
}

/** Makes the errors of this project. */
object IcebergWriterCompatException
    extends Refusals
    with CallErrors
    with PublishErrors
    with LogErrors {

  /** The condition of every refused change to a table. */
  val Violation = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION"

  /** The condition of every session that could not be guarded. */
  val NotInstalled = "ICEBERG_WRITER_COMPAT_NOT_INSTALLED"

  /** An error without its stack, and what mends it, if that is known. */
  def inOneLine(error: Throwable): (String, Option[Remedy]) = error match {
    case own: IcebergWriterCompatException =>
      val known = Option.unless(own.remedy.isEmpty)(own.remedy)
      (own.explanation.linesIterator.mkString(" "), known)
    case other => (rootOf(other), None)
  }

  /** The refusal of a session, with the reason as sub-condition. */
  def notInstalled(
      reason: String,
      parameters: Map[String, String],
      cause: Throwable = null
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(s"$NotInstalled.$reason", parameters, cause)

  /** The answer to a call of a procedure where nothing is guarded. */
  def extensionMissing(extensions: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_EXTENSION_MISSING",
      Map("extensions" -> extensions)
    )

  /** The class and text of an error, and of what caused it in the first place. */
  private[errors] def rootOf(e: Throwable): String = {
    val root = Causes.of(e).last
    Seq(e, root).distinct
      .map { cause =>
        val text = Option(cause.getMessage).flatMap(_.linesIterator.nextOption()).getOrElse("")
        s"${cause.getClass.getSimpleName}: $text"
      }
      .mkString(", because of ")
  }
}
