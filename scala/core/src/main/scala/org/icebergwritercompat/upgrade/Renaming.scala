package org.icebergwritercompat.upgrade

import com.fasterxml.jackson.core.{JsonFactory, JsonGenerator, JsonParser, JsonToken}
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.model.{FileStatistics, PhysicalNameTree, SchemaNode}

import java.io.StringWriter
import scala.util.Using

/**
 * The new physical names of the fields of a schema, and the file actions with these names.
 */
final class Renaming private (fields: Map[String, Renaming.Renamed]) extends Serializable {

  /** Whether every field keeps its name. */
  val isEmpty: Boolean =
    fields.forall { case (name, renamed) => name == renamed.name && renamed.below.isEmpty }

  /** The new names from the root to a field; `None` if there is no such field. */
  def path(names: Seq[String]): Option[Seq[String]] = names match {
    case name +: rest =>
      for (renamed <- fields.get(name); below <- renamed.below.path(rest))
        yield renamed.name +: below
    case _ => Some(Nil)
  }

  /** Partition values under the new names. */
  def partitionValues(values: Map[String, String]): Map[String, String] =
    values.map { case (name, value) => fields.get(name).fold(name)(_.name) -> value }

  /**
   * Statistics under the new names, with the text of each value unchanged, and without columns that
   * were dropped. Statistics that are not JSON are not changed; a rule refuses them.
   */
  def statistics(json: String): String =
    if (json == null || isEmpty) json
    else
      try {
        val text = new StringWriter(json.length)
        Using.resource(Renaming.factory.createParser(json)) { parser =>
          Using.resource(Renaming.factory.createGenerator(text)) { generator =>
            parser.nextToken()
            Renaming.copyStatistics(parser, generator, this)
          }
        }
        text.toString
      } catch { case _: java.io.IOException => json }

  /**
   * What the rules ask of statistics under the new names, read from the text under the old ones.
   *
   * @param names
   *   the new names
   */
  def parsed(json: String, names: PhysicalNameTree): Option[FileStatistics] =
    // [[statistics]] leaves out every name that the schema does not have, so none is unknown.
    if (isEmpty) FileStatistics.parse(json, names) else FileStatistics.parse(json)

  private def renamed(name: String): Option[Renaming.Renamed] = fields.get(name)
}

object Renaming {

  private final case class Renamed(name: String, below: Renaming)

  private val factory = new JsonFactory

  /** The renaming from one schema to another with the same fields. */
  def of(before: StructType, after: StructType): Renaming =
    new Renaming(
      before.fields
        .zip(after.fields)
        .map { case (was, is) =>
          val below = (was.dataType, is.dataType) match {
            case (a: StructType, b: StructType) => of(a, b)
            case _                              => none
          }
          val names = Seq(was, is).map(f => SchemaNode.physicalNameOf(f).getOrElse(f.name))
          names.head -> Renamed(names.last, below)
        }
        .toMap
    )

  private val none: Renaming = new Renaming(Map.empty)

  private def copyStatistics(parser: JsonParser, to: JsonGenerator, all: Renaming): Unit =
    if (parser.currentToken != JsonToken.START_OBJECT) copy(parser, to)
    else {
      to.writeStartObject()
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        val name = parser.currentName
        parser.nextToken()
        to.writeFieldName(name)
        if (FileStatistics.ByColumn(name) && parser.currentToken == JsonToken.START_OBJECT)
          copyFields(parser, to, all)
        else copy(parser, to)
      }
      to.writeEndObject()
    }

  private def copyFields(parser: JsonParser, to: JsonGenerator, names: Renaming): Unit = {
    to.writeStartObject()
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val renamed = names.renamed(parser.currentName)
      parser.nextToken()
      renamed match {
        case None                       => parser.skipChildren()
        case Some(Renamed(name, below)) =>
          to.writeFieldName(name)
          if (parser.currentToken == JsonToken.START_OBJECT) copyFields(parser, to, below)
          else copy(parser, to)
      }
    }
    to.writeEndObject()
  }

  // A number is copied as text, because parsing might lose digits.
  private def copy(parser: JsonParser, to: JsonGenerator): Unit = parser.currentToken match {
    case JsonToken.VALUE_NUMBER_INT | JsonToken.VALUE_NUMBER_FLOAT => to.writeNumber(parser.getText)
    case JsonToken.START_OBJECT                                    =>
      to.writeStartObject()
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        to.writeFieldName(parser.currentName)
        parser.nextToken()
        copy(parser, to)
      }
      to.writeEndObject()
    case JsonToken.START_ARRAY =>
      to.writeStartArray()
      while (parser.nextToken() != JsonToken.END_ARRAY) copy(parser, to)
      to.writeEndArray()
    case _ => to.copyCurrentEvent(parser)
  }
}
