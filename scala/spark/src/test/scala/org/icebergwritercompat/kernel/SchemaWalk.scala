package org.icebergwritercompat.kernel

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.types._

/** A field of a schema, and the way to it in the terms of `CompliantTable.changed`. */
final case class FoundField(
    path: Seq[String],
    field: StructField,
    inCollection: Boolean = false,
    belowMapKey: Boolean = false
) {

  def metadata: Metadata = field.metadata

  def has(key: String): Boolean = metadata.contains(key)

  /** The keys that the nested ids of this field must have. */
  def nestedKeys: Seq[String] = {
    val name =
      if (has(SchemaWalk.physicalName)) metadata.getString(SchemaWalk.physicalName) else field.name
    SchemaWalk.waysBelow(field.dataType).map(name + _)
  }

  /** The nested ids as they are written down, whether or not they belong to anything. */
  def nestedIds: Map[String, Any] =
    if (!has(SchemaWalk.nestedIds)) Map.empty
    else SchemaWalk.entries(metadata.getMetadata(SchemaWalk.nestedIds))
}

/** Reads schemas without the code under test. */
object SchemaWalk {

  val columnId = "delta.columnMapping.id"
  val physicalName = "delta.columnMapping.physicalName"
  val nestedIds = "delta.columnMapping.nested.ids"

  /** All fields of structs, at every depth. */
  def fields(schema: StructType): Seq[FoundField] =
    below(schema, Nil, inCollection = false, belowMapKey = false)

  private def below(
      dataType: DataType,
      path: Seq[String],
      inCollection: Boolean,
      belowMapKey: Boolean
  ): Seq[FoundField] = dataType match {
    case struct: StructType =>
      struct.fields.toSeq.flatMap { field =>
        val here = path :+ field.name
        FoundField(here, field, inCollection, belowMapKey) +:
          below(field.dataType, here, inCollection, belowMapKey)
      }
    case array: ArrayType =>
      below(array.elementType, path :+ "element", inCollection = true, belowMapKey)
    case map: MapType =>
      below(map.keyType, path :+ "key", inCollection = true, belowMapKey = true) ++
        below(map.valueType, path :+ "value", inCollection = true, belowMapKey)
    case _ => Nil
  }

  /** All types, at every depth. */
  def types(dataType: DataType): Seq[DataType] = dataType +: (dataType match {
    case struct: StructType => struct.fields.toSeq.flatMap(field => types(field.dataType))
    case array: ArrayType   => types(array.elementType)
    case map: MapType       => types(map.keyType) ++ types(map.valueType)
    case _                  => Nil
  })

  /** The ways from a field to the elements, keys and values that have no field in between. */
  def waysBelow(dataType: DataType): Seq[String] = dataType match {
    case array: ArrayType => way("element", array.elementType)
    case map: MapType     => way("key", map.keyType) ++ way("value", map.valueType)
    case _                => Nil
  }

  private def way(part: String, dataType: DataType): Seq[String] =
    s".$part" +: waysBelow(dataType).map(s".$part" + _)

  private val mapper = new ObjectMapper

  // Spark shows the keys of metadata in its JSON only.
  private[kernel] def entries(metadata: Metadata): Map[String, Any] = {
    val found = Map.newBuilder[String, Any]
    mapper.readTree(metadata.json).properties().forEach { entry =>
      val value = entry.getValue
      found += entry.getKey -> (if (value.isIntegralNumber) value.asLong else value.asText)
    }
    found.result()
  }
}
