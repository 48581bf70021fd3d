package org.icebergwritercompat.iceberg.translate

import org.apache.iceberg.Schema
import org.apache.iceberg.types.{Type, Types}
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.NestedField
import org.apache.spark.sql.types._
import org.icebergwritercompat.model.{SchemaNode, WriterCompat}

import scala.jdk.CollectionConverters._

/** Schemas of Iceberg as those of Delta, the inverse of [[IcebergSchemas]]. */
object DeltaSchemas {

  /** A column, nested field, element, key or value whose type Delta does not have. */
  final case class Unsupported(path: Seq[String], id: Int, icebergType: Type)

  /** The first of them, parents before children. */
  def unsupported(iceberg: Schema): Option[Unsupported] = {
    def below(fields: Iterable[NestedField], path: Vector[String]): Iterator[Unsupported] =
      fields.iterator.flatMap { field =>
        val here = path :+ field.name
        if (field.`type`.isNestedType) below(field.`type`.asNestedType.fields.asScala, here)
        else
          Option
            .when(primitive(field.`type`).isEmpty)(Unsupported(here, field.fieldId, field.`type`))
            .iterator
      }
    below(iceberg.columns.asScala, Vector.empty).nextOption()
  }

  /**
   * The schema with Iceberg's ids at every depth, order, comments and nullability.
   *
   * @param known
   *   the schema before; what it says of a field besides, such as the changes of its type, is kept
   *   for the field with the same id, whatever it is called now
   */
  def schema(iceberg: Schema, known: StructType = StructType(Nil)): StructType = {
    val before: Map[Int, Metadata] = SchemaNode
      .flatten(known)
      .iterator
      .filter(_.isField)
      .flatMap(node => node.id.filter(_.isValidInt).map(_.toInt -> node.metadata))
      .toMap

    def fields(struct: Types.StructType): StructType =
      StructType(struct.fields.asScala.toSeq.map { field =>
        val dataType = typeOf(field)
        StructField(field.name, dataType, field.isOptional, metadata(field))
      })

    def metadata(field: NestedField): Metadata = {
      val name = WriterCompat.physicalName(field.fieldId.toLong)
      val builder = new MetadataBuilder()
        .withMetadata(before.getOrElse(field.fieldId, Metadata.empty))
        .putLong(WriterCompat.ColumnId, field.fieldId.toLong)
        .putString(WriterCompat.PhysicalName, name)
      if (field.doc == null) builder.remove(comment) else builder.putString(comment, field.doc)
      val nested = nestedIds(field, name)
      if (nested.nonEmpty) {
        val ids = new MetadataBuilder
        nested.foreach { case (way, id) => ids.putLong(way, id.toLong) }
        builder.putMetadata(WriterCompat.NestedIds, ids.build())
      }
      builder.build()
    }

    def typeOf(field: NestedField): DataType = field.`type`.typeId match {
      case TypeID.STRUCT => fields(field.`type`.asStructType)
      case TypeID.LIST   =>
        val element = field.`type`.asListType.fields.get(0)
        ArrayType(typeOf(element), element.isOptional)
      case TypeID.MAP =>
        val map = field.`type`.asMapType
        val (key, value) = (map.fields.get(0), map.fields.get(1))
        MapType(typeOf(key), typeOf(value), value.isOptional)
      case _ =>
        primitive(field.`type`).getOrElse(
          throw new IllegalArgumentException(
            s"${field.name} has the type ${field.`type`}, which Delta does not have"
          )
        )
    }

    fields(iceberg.asStruct)
  }

  // Those below a list or map that have no field of a struct in between.
  private def nestedIds(field: NestedField, way: String): Seq[(String, Int)] =
    if (field.`type`.isListType || field.`type`.isMapType)
      field.`type`.asNestedType.fields.asScala.toSeq.flatMap { part =>
        val here = s"$way.${part.name}"
        (here -> part.fieldId) +: nestedIds(part, here)
      }
    else Nil

  private def primitive(icebergType: Type): Option[DataType] = icebergType match {
    case _: Types.BooleanType      => Some(BooleanType)
    case _: Types.IntegerType      => Some(IntegerType)
    case _: Types.LongType         => Some(LongType)
    case _: Types.FloatType        => Some(FloatType)
    case _: Types.DoubleType       => Some(DoubleType)
    case number: Types.DecimalType => Some(DecimalType(number.precision, number.scale))
    case _: Types.StringType       => Some(StringType)
    case _: Types.BinaryType       => Some(BinaryType)
    case _: Types.DateType         => Some(DateType)
    case time: Types.TimestampType =>
      Some(if (time.shouldAdjustToUTC) TimestampType else TimestampNTZType)
    case _ => None
  }

  private val comment = "comment"
}
