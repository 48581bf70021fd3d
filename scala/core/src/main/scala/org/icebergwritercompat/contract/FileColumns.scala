package org.icebergwritercompat.contract

import org.apache.parquet.schema.{GroupType, LogicalTypeAnnotation, Type}
import org.apache.parquet.schema.LogicalTypeAnnotation.{listType, mapType}
import org.apache.parquet.schema.Type.Repetition
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructType}
import org.icebergwritercompat.model.{DataFile, ParquetForm, SchemaNode}

import scala.jdk.CollectionConverters._

/**
 * The columns of a data file, matched with the columns of its table.
 *
 * Fields are matched by id. If the file or the table has no id for a field, it is matched by name,
 * so that its other faults are found as well; a reader would not find the field.
 *
 * @param stored
 *   the nodes of the schema that are in the file, parents before children
 * @param unknown
 *   the fields of the file that are not in the schema
 * @param absent
 *   the fields of the schema that are not in the file, although the enclosing struct is
 */
final class FileColumns private (
    val table: TableState,
    val file: DataFile,
    val stored: Vector[StoredNode],
    val unknown: Vector[UnknownField],
    val absent: Vector[SchemaNode]
) {

  /** Whether any field in the file has an id. */
  lazy val hasIds: Boolean = file.footer.exists(footer => FileColumns.hasIds(footer.schema))
}

/**
 * A node of the schema, and the field of the file that was matched with it.
 *
 * @param path
 *   the names in the file from the root
 */
final case class StoredNode(node: SchemaNode, stored: Type, path: Vector[String]) {

  /** The field id in the file. */
  def id: Option[Long] = FileColumns.idOf(stored)

  /** Its name, type and id in the file, in one line. */
  def description: String = FileColumns.describe(path, stored)
}

/** A field of the file that is not in the schema. */
final case class UnknownField(stored: Type, path: Vector[String]) {

  /** The field id in the file. */
  def id: Option[Long] = FileColumns.idOf(stored)

  /** Its name, type and id in the file, in one line. */
  def description: String = FileColumns.describe(path, stored)
}

object FileColumns {

  /** The columns of `file`, matched with those of `table`; none if the file has no footer. */
  def of(table: TableState, file: DataFile): FileColumns = {
    val stored = Vector.newBuilder[StoredNode]
    val unknown = Vector.newBuilder[UnknownField]
    val absent = Vector.newBuilder[SchemaNode]

    def physicalNames(node: SchemaNode): Seq[String] =
      node.id.flatMap(file.namesById.get).toSeq ++ node.physicalName

    def visitFields(nodes: Seq[SchemaNode], group: GroupType, above: Vector[String]): Unit = {
      val fields = group.getFields.asScala.toVector
      val byId = fields.reverseIterator.flatMap(field => idOf(field).map(_ -> field)).toMap
      val byName = fields.reverseIterator.map(field => field.getName -> field).toMap
      val ids = nodes.iterator.flatMap(_.id).toSet
      // A physical name is never assigned twice, so it is preferred to an id that is not in the
      // schema.
      def isNamed(node: SchemaNode, field: Type) = node.id.isEmpty || idOf(field).forall { id =>
        physicalNames(node).contains(field.getName) && !ids(id)
      }
      val found = nodes.map { node =>
        def named = (physicalNames(node) :+ node.path.last).distinct
          .flatMap(byName.get)
          .find(isNamed(node, _))
        node -> node.id.flatMap(byId.get).orElse(named)
      }
      found.foreach {
        case (node, Some(field)) => visit(node, field, above :+ field.getName)
        case (node, None)        => absent += node
      }
      val taken = found.iterator.flatMap(_._2).map(_.getName).toSet
      fields.filterNot(field => taken(field.getName)).foreach { field =>
        unknown += UnknownField(field, above :+ field.getName)
      }
    }

    def visit(node: SchemaNode, field: Type, path: Vector[String]): Unit = {
      stored += StoredNode(node, field, path)
      def below = table.nodesBelow(node.path)
      node.dataType match {
        case _: StructType             => structFields(field).foreach(visitFields(below, _, path))
        case _: ArrayType | _: MapType =>
          entries(node.dataType, field).foreach { entry =>
            below.zip(entry.getFields.asScala).foreach { case (part, stored) =>
              visit(part, stored, path ++ Seq(entry.getName, stored.getName))
            }
          }
        case _ =>
      }
    }

    file.footer.foreach { footer =>
      visitFields(table.columns, footer.schema, Vector.empty)
    }
    new FileColumns(table, file, stored.result(), unknown.result(), absent.result())
  }

  /** The field as a struct, if it is one. */
  def structFields(field: Type): Option[GroupType] =
    Option.when(
      !field.isPrimitive && !field.isRepetition(Repetition.REPEATED) &&
        !Set[LogicalTypeAnnotation](listType, mapType).contains(field.getLogicalTypeAnnotation)
    )(field.asGroupType)

  /** The repeated group of a list or map, if the field is one in the form of three levels. */
  def entries(dataType: DataType, field: Type): Option[GroupType] = {
    val (annotation, entry, parts) = dataType match {
      case _: ArrayType => (listType, "list", Seq("element"))
      case _            => (mapType, "key_value", Seq("key", "value"))
    }
    Option
      .when(!field.isPrimitive && !field.isRepetition(Repetition.REPEATED))(field.asGroupType)
      .filter(group => group.getLogicalTypeAnnotation == annotation && group.getFieldCount == 1)
      .map(_.getType(0))
      .filter(middle => !middle.isPrimitive && middle.isRepetition(Repetition.REPEATED))
      .map(_.asGroupType)
      .filter { middle =>
        middle.getName == entry && middle.getFields.asScala.map(_.getName) == parts &&
        !middle.getFields.asScala.exists(_.isRepetition(Repetition.REPEATED))
      }
  }

  /** The field id in the file; some writers write an id below 1 instead of none. */
  def idOf(field: Type): Option[Long] =
    Option(field.getId).map(_.intValue.toLong).filter(_ > 0)

  /** The name, type and id of a field in the file, in one line. */
  def describe(path: Seq[String], field: Type): String =
    s"${path.mkString(".")} is ${ParquetForm.describe(field)}" +
      idOf(field).fold("")(id => s" with the field id $id")

  private def hasIds(field: Type): Boolean =
    idOf(field).isDefined ||
      (!field.isPrimitive && field.asGroupType.getFields.asScala.exists(hasIds))
}
