package org.icebergwritercompat.iceberg.translate

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.iceberg.{PartitionSpec, PartitionSpecParser, Schema}
import org.apache.iceberg.types.{Type, Types}
import org.apache.iceberg.types.Types.NestedField
import org.apache.spark.sql.types._
import org.icebergwritercompat.model.SchemaNode

import scala.jdk.CollectionConverters._

/** Translates Delta schemas and partitions to Iceberg; ids are those of Delta. */
object IcebergSchemas {

  /** The Iceberg schema with the ids, order, comments and nullability of Delta. */
  def schema(delta: StructType): Schema = {
    val ids = SchemaNode.flatten(delta).map(node => node.path -> node.id).toMap

    def id(path: Vector[String]): Int = ids
      .getOrElse(path, None)
      .filter(_.isValidInt)
      .map(_.toInt)
      .getOrElse(throw new IllegalArgumentException(s"${SchemaNode.sqlPath(path)} has no id"))

    def fields(struct: StructType, path: Vector[String]): Seq[NestedField] =
      struct.fields.toSeq.map { field =>
        val here = path :+ field.name
        NestedField
          .builder()
          .withId(id(here))
          .withName(field.name)
          .isOptional(field.nullable)
          .ofType(typeOf(field.dataType, here))
          .withDoc(field.getComment().orNull)
          .build()
      }

    def typeOf(dataType: DataType, path: Vector[String]): Type = dataType match {
      case struct: StructType => Types.StructType.of(fields(struct, path).asJava)
      case array: ArrayType   =>
        val below = path :+ "element"
        val element = typeOf(array.elementType, below)
        if (array.containsNull) Types.ListType.ofOptional(id(below), element)
        else Types.ListType.ofRequired(id(below), element)
      case map: MapType =>
        val (forKey, forValue) = (path :+ "key", path :+ "value")
        val (key, value) = (typeOf(map.keyType, forKey), typeOf(map.valueType, forValue))
        if (map.valueContainsNull) Types.MapType.ofOptional(id(forKey), id(forValue), key, value)
        else Types.MapType.ofRequired(id(forKey), id(forValue), key, value)
      case primitive => primitiveType(primitive, path)
    }

    new Schema(fields(delta, Vector.empty).asJava)
  }

  private def primitiveType(dataType: DataType, path: Vector[String]): Type = dataType match {
    case BooleanType          => Types.BooleanType.get
    case IntegerType          => Types.IntegerType.get
    case LongType             => Types.LongType.get
    case FloatType            => Types.FloatType.get
    case DoubleType           => Types.DoubleType.get
    case decimal: DecimalType => Types.DecimalType.of(decimal.precision, decimal.scale)
    case _: StringType        => Types.StringType.get
    case BinaryType           => Types.BinaryType.get
    case DateType             => Types.DateType.get
    case TimestampType        => Types.TimestampType.withZone
    case TimestampNTZType     => Types.TimestampType.withoutZone
    case other                =>
      throw new IllegalArgumentException(
        s"${SchemaNode.sqlPath(path)} has the type ${other.sql}, which Iceberg does not have"
      )
  }

  /**
   * The partition spec with identity transforms of these columns.
   *
   * @param known
   *   the earlier specs of the table; a column keeps its partition field id
   * @param lastAssigned
   *   the highest assigned partition field id
   */
  def spec(
      schema: Schema,
      partitionColumns: Seq[String],
      known: Seq[PartitionSpec],
      lastAssigned: Int
  ): PartitionSpec = {
    val assigned =
      known.flatMap(_.fields.asScala).map(field => field.sourceId -> field.fieldId).toMap
    val next = Iterator.from(math.max(lastAssigned, firstPartitionId - 1) + 1)
    val root = mapper.createObjectNode()
    root.put("spec-id", known.map(_.specId).maxOption.fold(0)(_ + 1))
    val fields = root.putArray("fields")
    partitionColumns.foreach { name =>
      val source = columnId(schema, name)
      fields
        .addObject()
        .put("name", name)
        .put("transform", "identity")
        .put("source-id", source)
        .put("field-id", assigned.getOrElse(source, next.next()))
    }
    PartitionSpecParser.fromJson(schema, root.toString)
  }

  // A top-level column may have a dot in its name.
  private def columnId(schema: Schema, name: String): Int =
    schema.columns.asScala
      .find(_.name == name)
      .map(_.fieldId)
      .getOrElse(throw new IllegalArgumentException(s"there is no partition column $name"))

  private val firstPartitionId = 1000

  private val mapper = new ObjectMapper
}
