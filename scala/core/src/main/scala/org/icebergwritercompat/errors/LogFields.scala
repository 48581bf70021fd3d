package org.icebergwritercompat.errors

import com.fasterxml.jackson.core.{JsonFactory, JsonToken}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{MissingNode, ObjectNode}
import org.apache.spark.sql.types.DataType
import org.icebergwritercompat.model.{DataAction, FileLocation, WriterCompat}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/**
 * A malformed field of the log.
 *
 * @param field
 *   its path, such as `metaData.schemaString.fields.0.metadata`
 * @param found
 *   its JSON, or `nothing` if it is missing
 * @param required
 *   what Delta requires
 * @param isPassedOver
 *   whether Delta ignores it silently
 */
final case class MalformedField(
    field: String,
    found: String,
    required: String,
    isPassedOver: Boolean = false
)

/** The required form of the actions in a log, to find out why Delta cannot read the log. */
object LogFields {

  private val mapper = new ObjectMapper

  /** The first field of a line of the log that is malformed. */
  def malformed(line: String): Option[MalformedField] =
    Try(mapper.readTree(line)).toOption match {
      case Some(action: ObjectNode) =>
        actions.iterator
          .filter { case (name, _) => action.has(name) }
          .flatMap { case (name, kind) => kind.problem(Vector(name), action.get(name)) }
          .nextOption()
      case other => Some(noAction(line, other))
    }

  /**
   * The field of a line of the log that makes Delta ignore the line silently, or no JSON at all.
   */
  def passedOver(line: String): Option[MalformedField] =
    if (isPlainFile(line)) None
    else
      Try(mapper.readTree(line)).toOption match {
        case Some(action: ObjectNode) =>
          val there = action.properties.asScala.filterNot(_.getValue.isNull).map(_.getKey).toSeq
          if (there.isEmpty) {
            val way = action.fieldNames.asScala.nextOption().getOrElse("line")
            Some(ignored(problem(Vector(way), action.path(way), "an action")))
          } else
            there
              .filter(ofFiles)
              .flatMap(name => text.problem(Vector(name, "path"), action.path(name).path("path")))
              .headOption
              .map(ignored)
        case None  => Some(noAction(line, None))
        case other => Some(ignored(noAction(line, other)))
      }

  private def ignored(field: MalformedField): MalformedField = field.copy(isPassedOver = true)

  private def noAction(line: String, json: Option[JsonNode]): MalformedField =
    MalformedField("line", shortened(json.fold(line)(_.toString)), "a JSON object")

  private val ofFiles = Set("add", "remove")

  private val factory = new JsonFactory

  // Avoids parsing most lines of a log as a tree.
  private def isPlainFile(line: String): Boolean = Try {
    Using.resource(factory.createParser(line)) { parser =>
      parser.nextToken() == JsonToken.START_OBJECT &&
      Option(parser.nextFieldName()).exists(ofFiles) &&
      parser.nextToken() == JsonToken.START_OBJECT &&
      parser.nextFieldName() == "path" &&
      parser.nextToken() == JsonToken.VALUE_STRING
    }
  }.getOrElse(false)

  private def problem(way: Vector[String], node: JsonNode, required: String): MalformedField = {
    val found = if (node == null || node.isMissingNode) "nothing" else node.toString
    MalformedField(way.mkString("."), shortened(found), required)
  }

  private def shortened(text: String): String = {
    val printable = FileLocation.printable(text)
    if (printable.length > longest) printable.take(longest) + "…" else printable
  }

  private val longest = 100

  /** The required form of a field. */
  private sealed trait Kind {
    def problem(way: Vector[String], node: JsonNode): Option[MalformedField]
  }

  private final class Plain(required: String, isRight: JsonNode => Boolean) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      Option.unless(isRight(node))(LogFields.problem(way, node, required))
  }

  private final case class Optional(kind: Kind) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      if (node.isMissingNode || node.isNull) None else kind.problem(way, node)
  }

  /** May be missing, but not null. */
  private final case class Present(kind: Kind) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      if (node.isMissingNode) None else kind.problem(way, node)
  }

  private final case class ListOf(kind: Kind) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      if (!node.isArray) Some(LogFields.problem(way, node, "a list"))
      else
        node.elements.asScala.zipWithIndex
          .flatMap { case (element, i) => kind.problem(way :+ i.toString, element) }
          .nextOption()
  }

  private final case class MapOf(kind: Kind) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      if (!node.isObject) Some(LogFields.problem(way, node, "an object"))
      else
        node.properties.asScala.iterator
          .flatMap(entry => kind.problem(way :+ entry.getKey, entry.getValue))
          .nextOption()
  }

  private final case class Fields(kinds: (String, Kind)*) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      if (!node.isObject) Some(LogFields.problem(way, node, "an object"))
      else
        kinds.iterator
          .flatMap { case (name, kind) =>
            kind.problem(way :+ name, Option(node.get(name)).getOrElse(MissingNode.getInstance))
          }
          .nextOption()
  }

  private final case class All(kinds: Kind*) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      kinds.iterator.flatMap(_.problem(way, node)).nextOption()
  }

  private final case class When(name: String, value: Int, kind: Kind) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      if (node.path(name).asInt == value) kind.problem(way, node) else None
  }

  /** Text that contains JSON. */
  private final case class Json(kind: Kind) extends Kind {
    override def problem(way: Vector[String], node: JsonNode): Option[MalformedField] =
      Option(node.textValue).flatMap(text => Try(mapper.readTree(text)).toOption) match {
        case Some(inner) if !inner.isMissingNode => kind.problem(way, inner)
        case _                                   =>
          Some(LogFields.problem(way, node, "text that is JSON"))
      }
  }

  private val text = new Plain("text", _.isTextual)

  private val whole = new Plain(
    "a whole number",
    node => node.isIntegralNumber && node.canConvertToLong
  )

  private val fromZero = new Plain(
    "a whole number, 0 or more",
    node => node.isIntegralNumber && node.canConvertToLong && node.longValue >= 0
  )

  // Delta adds the sizes up, in a Long.
  private val size = new Plain(
    "a whole number, 0 or more and below 2^53",
    node =>
      node.isIntegralNumber && node.canConvertToLong &&
        node.longValue >= 0 && node.longValue < DataAction.ImpossibleSize
  )

  private val version = new Plain(
    "a whole number, 1 or more",
    node => node.isIntegralNumber && node.canConvertToInt && node.intValue > 0
  )

  private val anything = new Plain("anything", _ => true)

  private val boolean = new Plain("true or false", _.isBoolean)

  private val dataType = new Plain(
    "a Spark data type",
    node => Try(DataType.fromJson(node.toString)).isSuccess
  )

  private val path = new Plain(
    "the path of a file, as a URI",
    node => FileLocation.isUri(node.textValue)
  )

  private val column = Fields(
    "name" -> text,
    "nullable" -> boolean,
    "metadata" -> Present(
      Fields(
        WriterCompat.ColumnId -> Present(whole),
        WriterCompat.PhysicalName -> Present(text),
        WriterCompat.NestedIds -> Present(MapOf(whole))
      )
    ),
    "type" -> dataType
  )

  private val schema = Fields(
    "type" -> new Plain("\"struct\"", node => node.isTextual && node.textValue == "struct"),
    "fields" -> ListOf(column)
  )

  private val actions: Seq[(String, Kind)] = Seq(
    "protocol" -> All(
      Fields(
        "minReaderVersion" -> version,
        "minWriterVersion" -> version,
        "readerFeatures" -> Optional(ListOf(text)),
        "writerFeatures" -> Optional(ListOf(text))
      ),
      // These versions require the lists of features.
      When("minReaderVersion", 3, Fields("readerFeatures" -> ListOf(text))),
      When("minWriterVersion", 7, Fields("writerFeatures" -> ListOf(text)))
    ),
    "metaData" -> Fields(
      "id" -> text,
      "format" -> Fields("provider" -> text, "options" -> MapOf(text)),
      "schemaString" -> Json(schema),
      "partitionColumns" -> ListOf(text),
      "configuration" -> MapOf(text),
      "createdTime" -> Optional(whole)
    ),
    "add" -> Fields(
      "path" -> path,
      "partitionValues" -> MapOf(Optional(text)),
      "size" -> size,
      "modificationTime" -> whole,
      "dataChange" -> boolean,
      "stats" -> Optional(
        Json(
          Fields(
            "numRecords" -> Optional(fromZero),
            "minValues" -> Optional(MapOf(anything)),
            "maxValues" -> Optional(MapOf(anything)),
            "nullCount" -> Optional(MapOf(anything))
          )
        )
      ),
      "tags" -> Optional(MapOf(Optional(text))),
      "deletionVector" -> Optional(
        Fields(
          "storageType" -> text,
          "pathOrInlineDv" -> text,
          "sizeInBytes" -> fromZero,
          "cardinality" -> fromZero
        )
      )
    ),
    "remove" -> Fields("path" -> path, "dataChange" -> boolean)
  )
}
