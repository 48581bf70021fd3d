package org.icebergwritercompat.docs

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import scala.jdk.CollectionConverters._
import scala.util.Using

/** The page `docs/errors.md`, made from the texts of the conditions. */
object ErrorsPage extends GeneratedPage("errors.md") {

  private val conditions: JsonNode = Using.resource(
    getClass.getResourceAsStream("/error/iceberg-writer-compat-conditions.json")
  )(new ObjectMapper().readTree(_))

  override def text: String = (header +: names(conditions).map(section)).mkString("\n\n") + "\n"

  private def header: String =
    s"""# Errors
       |
       |Which conditions this project raises, and their texts; words in *italics* are filled in. The text of an
       |error begins with the condition in brackets and ends with its remedy, after `Run:` or `Use:`, in the
       |language of the caller. In Python and Scala, `getCondition()` returns the condition and `getSqlState()`
       |the SQLSTATE. [Incidents](operations.md#incidents) says what to do about those that are no answer to
       |a statement of yours.
       |
       |This page is generated from the texts; run `${GeneratedPages.command}` after a change to them. A test
       |fails if the page is not up to date.""".stripMargin

  private def section(name: String): String = {
    val condition = conditions.get(name)
    val subs = Option(condition.get("subClass")).toSeq.flatMap(subs =>
      names(subs).map(sub =>
        s"| <a id=\"${anchor(name, sub)}\"></a>`$sub` | ${message(subs.get(sub))} |"
      )
    )
    val lines =
      Seq(s"## $name", s"SQLSTATE `${condition.get("sqlState").asText}`. ${message(condition)}")
    val table = Option.when(subs.nonEmpty)(
      ("| Sub-condition | Text |" +: "|---|---|" +: subs).mkString("\n")
    )
    (lines ++ table).mkString("\n\n")
  }

  private def anchor(name: String, sub: String): String =
    s"$name.$sub".toLowerCase.replaceAll("[^a-z]+", "-")

  private def names(node: JsonNode): Seq[String] = node.fieldNames.asScala.toSeq

  /** The text without the line that the remedy fills. */
  private def message(node: JsonNode): String = node
    .get("message")
    .asScala
    .map(_.asText)
    .filterNot(line => line == "Run: <fix>" || line == "Use: <fix>")
    .map(escaped)
    .mkString(" ")

  private def escaped(line: String): String =
    line
      .replace("&", "&amp;")
      .replace("*", "\\*")
      .replace("|", "\\|")
      .replace("_", "\\_")
      .replaceAll("<([A-Za-z]+)>", "*$1*")
      .replace("<", "&lt;")
}
