package org.icebergwritercompat.testing

import com.fasterxml.jackson.databind.node.{ArrayNode, JsonNodeFactory, ObjectNode}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * One field of the log that does not have what it should.
 *
 * @param field
 *   the way to it: action, fields, and `#` before the fields of JSON that the log holds as text
 * @param what
 *   what it has instead
 * @param value
 *   the same as JSON; `None` if the field is not there
 */
final case class Malformation(field: Seq[String], what: String, value: Option[JsonNode]) {

  /** The field as a person writes it. */
  def place: String = field.filter(_ != "#").mkString(".")

  override def toString: String = s"$place $what"
}

/** Copies of a table that have one malformed field in the log. */
object MalformedLogs {

  private val mapper = new ObjectMapper
  private val nodes = JsonNodeFactory.instance

  private val kinds: Seq[(String, Option[JsonNode])] = Seq(
    "is missing" -> None,
    "is null" -> Some(nodes.nullNode),
    "is text" -> Some(nodes.textNode("x")),
    "is negative" -> Some(nodes.numberNode(-1)),
    "is huge" -> Some(nodes.numberNode(BigInt(10).pow(30).bigInteger)),
    "is a list with null" -> Some(nodes.arrayNode.addNull()),
    "is an object with null" -> Some(nodes.objectNode.set[ObjectNode]("x", nodes.nullNode))
  )

  private val fields: Seq[String] = Seq(
    "protocol",
    "protocol/minReaderVersion",
    "protocol/minWriterVersion",
    "protocol/writerFeatures",
    "metaData",
    "metaData/id",
    "metaData/format",
    "metaData/format/provider",
    "metaData/format/options",
    "metaData/schemaString",
    "metaData/schemaString/#/fields",
    "metaData/schemaString/#/fields/0",
    "metaData/schemaString/#/fields/0/name",
    "metaData/schemaString/#/fields/0/type",
    "metaData/schemaString/#/fields/0/nullable",
    "metaData/schemaString/#/fields/0/metadata",
    "metaData/schemaString/#/fields/0/metadata/delta.columnMapping.id",
    "metaData/schemaString/#/fields/0/metadata/delta.columnMapping.physicalName",
    "metaData/schemaString/#/fields/1/metadata/delta.columnMapping.nested.ids",
    "metaData/schemaString/#/fields/1/metadata/delta.columnMapping.nested.ids/col-2.element",
    "metaData/partitionColumns",
    "metaData/configuration",
    "metaData/configuration/delta.columnMapping.mode",
    "metaData/configuration/delta.columnMapping.maxColumnId",
    "metaData/configuration/delta.enableIcebergCompatV2",
    "add/path",
    "add/partitionValues",
    "add/partitionValues/col-3",
    "add/size",
    "add/modificationTime",
    "add/dataChange",
    "add/stats",
    "add/stats/#/numRecords",
    "add/stats/#/minValues",
    "add/stats/#/nullCount/col-1",
    "add/tags",
    "add/deletionVector"
  )

  /** Every field with every kind of value. */
  val all: Seq[Malformation] =
    for (field <- fields; (what, value) <- kinds)
      yield Malformation(field.split('/').toSeq, what, value)

  /** A copy of the table with the malformed field wherever an action has it. */
  def copyOf(table: TestTable, malformation: Malformation): TestTable = {
    val copy = ForeignFiles.copyOf(table)
    val log = copy.folder.resolve("_delta_log")
    Using.resource(Files.list(log))(_.iterator.asScala.toSeq).foreach { file =>
      val name = file.getFileName.toString
      if (name.endsWith(".crc")) Files.delete(file)
      else if (name.endsWith(".json")) rewrite(file, malformation)
    }
    copy
  }

  private def rewrite(commit: Path, malformation: Malformation): Unit = {
    val lines = Files.readAllLines(commit).asScala.toSeq.filter(_.nonEmpty).map { line =>
      val action = mapper.readTree(line)
      if (action.has(malformation.field.head)) put(action, malformation.field, malformation.value)
      action.toString
    }
    Files.write(commit, lines.asJava)
    ()
  }

  private def put(in: JsonNode, field: Seq[String], value: Option[JsonNode]): Unit =
    (in, field) match {
      case (list: ArrayNode, Seq(index)) =>
        value.fold(list.remove(index.toInt))(list.set(index.toInt, _))
        ()
      case (of: ObjectNode, Seq(name)) =>
        value.fold(of.remove(name))(of.set[JsonNode](name, _))
        ()
      case (of: ObjectNode, Seq(text, "#", below @ _*)) =>
        val inner = mapper.readTree(of.get(text).textValue)
        put(inner, below, value)
        of.put(text, inner.toString)
        ()
      case (list: ArrayNode, Seq(index, below @ _*)) => put(list.get(index.toInt), below, value)
      case (of, Seq(name, below @ _*))               => put(of.get(name), below, value)
      case (_, _)                                    =>
    }
}
