package org.icebergwritercompat.testing

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import java.net.URI
import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._

/**
 * A Delta table as its log says it is when it is first asked, read by nothing of Delta's and
 * nothing of the project's.
 */
final class LoggedTable(val folder: Path) {

  private val mapper = new ObjectMapper

  private def commitFile(version: Long): Path =
    folder.resolve("_delta_log").resolve(f"$version%020d.json")

  /** The versions the log has, in order. */
  lazy val versions: Seq[Long] =
    Iterator.from(0).map(_.toLong).takeWhile(v => Files.exists(commitFile(v))).toSeq

  /** The last version; -1 if there is none. */
  def version: Long = versions.lastOption.getOrElse(-1L)

  /** The actions of one commit: their kind and their fields. */
  def actions(version: Long): Seq[(String, JsonNode)] = entries(version).toSeq

  // A commit may have more actions than there is room for at a time.
  private def entries(version: Long): Iterator[(String, JsonNode)] =
    Files.readAllLines(commitFile(version)).iterator.asScala.filter(_.nonEmpty).map { line =>
      val entry = mapper.readTree(line).properties().asScala.head
      entry.getKey -> entry.getValue
    }

  /** The kinds of actions in the last commit. */
  def lastKinds: Set[String] = actions(version).map(_._1).toSet

  private def latest(kind: String): JsonNode =
    versions.reverseIterator
      .flatMap(v => entries(v).collect { case (`kind`, fields) => fields }.toSeq.lastOption)
      .next()

  lazy val protocol: JsonNode = latest("protocol")

  lazy val metadata: JsonNode = latest("metaData")

  def readerVersion: Int = protocol.get("minReaderVersion").asInt

  def writerVersion: Int = protocol.get("minWriterVersion").asInt

  def readerFeatures: Set[String] = texts(protocol.get("readerFeatures")).toSet

  def writerFeatures: Set[String] = texts(protocol.get("writerFeatures")).toSet

  lazy val properties: Map[String, String] =
    metadata
      .get("configuration")
      .properties()
      .asScala
      .map(entry => entry.getKey -> entry.getValue.asText)
      .toMap

  def schemaString: String = metadata.get("schemaString").asText

  lazy val partitionColumns: Seq[String] = texts(metadata.get("partitionColumns"))

  /** The columns of the schema. */
  lazy val columns: Seq[LoggedColumn] = {
    val schema = mapper.readTree(schemaString)
    schema.get("fields").asScala.toSeq.map(LoggedColumn.of)
  }

  /** The `add` actions of the files that are live. */
  lazy val liveFiles: Map[Path, JsonNode] =
    filesAt.foldLeft(Map.empty[Path, JsonNode])((_, at) => at)

  /** The same of each version, in order. */
  def filesAt: Iterator[Map[Path, JsonNode]] =
    versions.iterator
      .scanLeft(Map.empty[Path, JsonNode]) { (before, version) =>
        entries(version).foldLeft(before) {
          case (live, ("add", add))       => live + (pathOf(add) -> add)
          case (live, ("remove", remove)) => live - pathOf(remove)
          case (live, _)                  => live
        }
      }
      .drop(1)

  /** The files that the log had before the feature was on, which keep the names they have. */
  lazy val filesBefore: Set[Path] = versions
    .takeWhile { version =>
      !entries(version).exists { case (kind, fields) =>
        kind == "metaData" &&
        fields.at("/configuration").path("delta.enableIcebergWriterCompatV1").asText == "true"
      }
    }
    .iterator
    .flatMap(entries)
    .collect { case ("add", add) => pathOf(add) }
    .toSet

  private def pathOf(action: JsonNode): Path = {
    val uri = new URI(action.get("path").asText)
    if (uri.isAbsolute) Path.of(uri.getPath) else folder.resolve(uri.getPath)
  }

  private def texts(list: JsonNode): Seq[String] =
    Option(list).map(_.asScala.toSeq.map(_.asText)).getOrElse(Nil)
}

/** The type of a column, as far as ids hang on it. */
sealed trait LoggedType
object LoggedType {
  final case class Primitive(name: String) extends LoggedType
  final case class Struct(fields: Seq[LoggedColumn]) extends LoggedType
  final case class Array(element: Nested) extends LoggedType
  final case class Map(key: Nested, value: Nested) extends LoggedType

  /** An element, key or value; the id is that which the nearest field above gives it. */
  final case class Nested(id: Option[Long], dataType: LoggedType)
}

/** A field of the schema, as the log has it. */
final case class LoggedColumn(
    name: String,
    id: Option[Long],
    physicalName: Option[String],
    dataType: LoggedType
) {

  /** This field and all fields below it, by the way to them. */
  def below: Seq[(String, LoggedColumn)] = {
    def in(dataType: LoggedType, way: String): Seq[(String, LoggedColumn)] = dataType match {
      case LoggedType.Primitive(_)   => Nil
      case LoggedType.Struct(fields) =>
        fields.flatMap(_.below).map { case (path, column) => s"$way.$path" -> column }
      case LoggedType.Array(element)  => in(element.dataType, s"$way.element")
      case LoggedType.Map(key, value) =>
        in(key.dataType, s"$way.key") ++ in(value.dataType, s"$way.value")
    }
    (name -> this) +: in(dataType, name)
  }

  /** The ids of the elements, keys and values that this field holds. */
  def nestedIds: Seq[Option[Long]] = {
    def in(dataType: LoggedType): Seq[Option[Long]] = dataType match {
      case LoggedType.Array(element)  => element.id +: in(element.dataType)
      case LoggedType.Map(key, value) =>
        Seq(key, value).flatMap(nested => nested.id +: in(nested.dataType))
      case _ => Nil
    }
    in(dataType)
  }
}

object LoggedColumn {

  def of(field: JsonNode): LoggedColumn = {
    val metadata = field.get("metadata")
    val id = Option(metadata.get("delta.columnMapping.id")).map(_.asLong)
    val physicalName = Option(metadata.get("delta.columnMapping.physicalName")).map(_.asText)
    val nestedIds = Option(metadata.get("delta.columnMapping.nested.ids"))
    def nested(way: String, dataType: JsonNode): LoggedType.Nested =
      LoggedType.Nested(
        nestedIds.flatMap(ids => Option(ids.get(way))).map(_.asLong),
        typeOf(dataType, way)
      )
    def typeOf(dataType: JsonNode, way: String): LoggedType =
      if (dataType.isTextual) LoggedType.Primitive(dataType.asText)
      else
        dataType.get("type").asText match {
          case "struct" => LoggedType.Struct(dataType.get("fields").asScala.toSeq.map(of))
          case "array"  => LoggedType.Array(nested(s"$way.element", dataType.get("elementType")))
          case "map"    =>
            LoggedType.Map(
              nested(s"$way.key", dataType.get("keyType")),
              nested(s"$way.value", dataType.get("valueType"))
            )
        }
    LoggedColumn(
      field.get("name").asText,
      id,
      physicalName,
      typeOf(field.get("type"), physicalName.getOrElse(""))
    )
  }
}
