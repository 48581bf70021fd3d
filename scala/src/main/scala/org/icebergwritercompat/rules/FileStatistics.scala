package org.icebergwritercompat.rules

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}

import scala.util.Using
import scala.util.control.NonFatal

/** What the rules ask of a file's statistics.
  *
  * @param rowCount
  *   the value of `numRecords`
  * @param unknownName
  *   a key of the column statistics that is no physical name, as a path
  */
final case class FileStatistics(rowCount: Option[Long], unknownName: Option[String])

object FileStatistics {

  private val factory = new JsonFactory

  private val byColumn = Set("minValues", "maxValues", "nullCount")

  /** Reads statistics in one pass; `None` where they are no JSON object. */
  def parse(json: String, names: PhysicalNameTree): Option[FileStatistics] =
    try Using.resource(factory.createParser(json))(read(_, names))
    catch { case NonFatal(_) => None }

  private def read(parser: JsonParser, names: PhysicalNameTree): Option[FileStatistics] = {
    var rowCount: Option[Long] = None
    var unknownName: Option[String] = None
    val isObject = parser.nextToken() == JsonToken.START_OBJECT
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val field = parser.currentName
      val value = parser.nextToken()
      if (field == "numRecords" && value == JsonToken.VALUE_NUMBER_INT)
        rowCount = Some(parser.getLongValue)
      else if (byColumn(field) && value == JsonToken.START_OBJECT)
        unknownName = unknownName.orElse(firstUnknown(parser, names, Nil))
      parser.skipChildren()
    }
    Option.when(isObject)(FileStatistics(rowCount, unknownName))
  }

  // Leaves the parser at the end of the object it is in.
  private def firstUnknown(
      parser: JsonParser,
      names: PhysicalNameTree,
      path: List[String]): Option[String] = {
    var found: Option[String] = None
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val name = parser.currentName
      val here = name :: path
      val below = names.fields.get(name)
      if (below.isEmpty && found.isEmpty) found = Some(here.reverse.mkString("."))
      if (parser.nextToken() == JsonToken.START_OBJECT)
        below match {
          case Some(tree) if tree.fields.nonEmpty =>
            val deeper = firstUnknown(parser, tree, here)
            found = found.orElse(deeper)
          case _ => parser.skipChildren()
        }
    }
    found
  }
}
