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

  /** The fields of the statistics that have a value for each column. */
  val ByColumn: Set[String] = Set("minValues", "maxValues", "nullCount")

  /**
   * Parses statistics in one pass; `None` if they are not a JSON object.
   *
   * @param names
   *   the physical names that the keys of the column statistics are compared with
   */
  def parse(json: String, names: PhysicalNameTree): Option[FileStatistics] =
    parse(json, Some(names))

  /** The same without the names, for callers that do not check them. */
  def parse(json: String): Option[FileStatistics] = parse(json, None)

  private def parse(json: String, names: Option[PhysicalNameTree]): Option[FileStatistics] =
    try Using.resource(factory.createParser(json))(read(_, names))
    catch { case NonFatal(_) => None }

  /** The row count in statistics that may be missing. */
  def rowCount(json: String): Option[Long] =
    Option(json).flatMap(parse(_)).flatMap(_.rowCount)

  /**
   * What [[parse]] finds in the text that [[withRowCount]] makes of statistics without a row count.
   *
   * @param parsed
   *   what it finds in `json`
   */
  def parsedWithRowCount(
      json: String,
      parsed: Option[FileStatistics],
      rows: Long
  ): Option[FileStatistics] =
    if (json == null || json.isBlank) Some(FileStatistics(Some(rows), Set.empty))
    else parsed.map(_.copy(rowCount = Some(rows)))

  /**
   * The statistics with a row count and otherwise unchanged; statistics that are not a JSON object
   * are returned unchanged.
   */
  def withRowCount(json: String, rows: Long): String =
    if (json == null || json.isBlank) s"""{"numRecords":$rows}"""
    else
      parse(json) match {
        case Some(FileStatistics(None, _)) =>
          // At the end, because the last of several equal keys counts.
          val fields = json.substring(0, json.lastIndexOf('}'))
          val comma = if (fields.trim == "{") "" else ","
          s"""$fields$comma"numRecords":$rows}"""
        case _ => json
      }

  private def read(
      parser: JsonParser,
      names: Option[PhysicalNameTree]
  ): Option[FileStatistics] = {
    var rowCount: Option[Long] = None
    val unknown = mutable.LinkedHashSet.empty[Vector[String]]
    val isObject = parser.nextToken() == JsonToken.START_OBJECT
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val field = parser.currentName
      val value = parser.nextToken()
      if (field == "numRecords" && value == JsonToken.VALUE_NUMBER_INT)
        rowCount = Some(parser.getLongValue).filter(_ >= 0)
      else if (ByColumn(field) && value == JsonToken.START_OBJECT)
        names.foreach(collectUnknown(parser, _, Vector.empty, unknown))
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
