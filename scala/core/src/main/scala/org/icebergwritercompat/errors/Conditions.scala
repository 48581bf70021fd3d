package org.icebergwritercompat.errors

import com.fasterxml.jackson.databind.json.JsonMapper
import org.apache.spark.ErrorClassesJsonReader

import scala.jdk.CollectionConverters._
import scala.util.matching.Regex

/** The texts of the conditions. */
private[errors] object Conditions {

  private val resource = "/error/iceberg-writer-compat-conditions.json"

  private val reader = new ErrorClassesJsonReader(Seq(getClass.getResource(resource)))

  /** A text without its last line, where that is there for the remedy, which may be missing. */
  def body(condition: String, parameters: Map[String, String], hasRemedy: Boolean): String = {
    val text = s"[$condition] ${reader.getErrorMessage(condition, parameters)}"
    if (hasRemedy)
      endings.foldLeft(text)((all, end) => all.stripSuffix(s"$end${parameters("fix")}"))
    else text
  }

  private val endings = Seq("\nRun: ", "\nUse: ")

  /** What the text of a violation says besides the table, the rule and the remedy. */
  def explanation(condition: String, parameters: Map[String, String]): String = {
    val template = texts
      .path(IcebergWriterCompatException.Violation)
      .path("subClass")
      .path(condition.stripPrefix(s"${IcebergWriterCompatException.Violation}."))
      .path("message")
      .elements
      .asScala
      .map(_.asText)
      .mkString("\n")
    val said = endings
      .foldLeft(template)((all, end) => all.stripSuffix(s"$end<fix>"))
      .stripPrefix("Table <table>, rule <rule>: ")
    """<([a-zA-Z]+)>""".r
      .replaceAllIn(said, found => Regex.quoteReplacement(parameters(found.group(1))))
      .capitalize
  }

  private val texts =
    new JsonMapper().readTree(getClass.getResourceAsStream(resource))

  def sqlState(condition: String): String = reader.getSqlState(condition)
}
