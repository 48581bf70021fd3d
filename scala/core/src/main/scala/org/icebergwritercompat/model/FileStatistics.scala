package org.icebergwritercompat.model

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}

import scala.collection.mutable
import scala.util.Using
import scala.util.control.NonFatal

/**
 * The values of a file's statistics that the rules use.
 *
 * @param rowCount
 *   the value of `numRecords`, if it is a valid number of rows
 * @param unknownNames
 *   the keys of the column statistics that are not physical names, each as a path
 */
final case class FileStatistics(rowCount: Option[Long], unknownNames: Set[Vector[String]])

object FileStatistics {

  private val factory = new JsonFactory

  private val byColumn = Set("minValues", "maxValues", "nullCount")

  /** Parses statistics in one pass; `None` if they are not a JSON object. */
  def parse(json: String, names: PhysicalNameTree): Option[FileStatistics] =
    try Using.resource(factory.createParser(json))(read(_, names))
    catch { case NonFatal(_) => None }

  /**
   * The statistics with a row count and otherwise unchanged; statistics that are not a JSON object
   * are returned unchanged.
   */
  def withRowCount(json: String, rows: Long): String =
    if (json == null || json.isBlank) s"""{"numRecords":$rows}"""
    else
      parse(json, PhysicalNameTree(Map.empty)) match {
        case Some(FileStatistics(None, _)) =>
          // At the end, because the last of several equal keys counts.
          val fields = json.substring(0, json.lastIndexOf('}'))
          val comma = if (fields.trim == "{") "" else ","
          s"""$fields$comma"numRecords":$rows}"""
        case _ => json
      }

  private def read(parser: JsonParser, names: PhysicalNameTree): Option[FileStatistics] = {
    var rowCount: Option[Long] = None
    val unknown = mutable.LinkedHashSet.empty[Vector[String]]
    val isObject = parser.nextToken() == JsonToken.START_OBJECT
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val field = parser.currentName
      val value = parser.nextToken()
      if (field == "numRecords" && value == JsonToken.VALUE_NUMBER_INT)
        rowCount = Some(parser.getLongValue).filter(_ >= 0)
      else if (byColumn(field) && value == JsonToken.START_OBJECT)
        collectUnknown(parser, names, Vector.empty, unknown)
      parser.skipChildren()
    }
    Option.when(isObject)(FileStatistics(rowCount, unknown.toSet))
  }

  // Moves the parser to the end of the current object.
  private def collectUnknown(
      parser: JsonParser,
      names: PhysicalNameTree,
      path: Vector[String],
      unknown: mutable.Set[Vector[String]]
  ): Unit =
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val name = parser.currentName
      val below = names.fields.get(name)
      if (below.isEmpty) unknown += path :+ name
      (parser.nextToken(), below) match {
        case (JsonToken.START_OBJECT, Some(tree)) if tree.fields.nonEmpty =>
          collectUnknown(parser, tree, path :+ name, unknown)
        case _ => parser.skipChildren()
      }
    }
}
