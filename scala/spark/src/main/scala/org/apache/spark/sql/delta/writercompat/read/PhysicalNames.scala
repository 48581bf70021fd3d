package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.delta.DeltaColumnMapping
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.types.{Metadata => FieldMetadata, _}
import org.icebergwritercompat.model.{SchemaNode, WriterCompat}

/** Gives fields the physical name that follows from their id. */
object PhysicalNames {

  /**
   * `metadata` with every field named `col-<id>` whose id is not one of `settled`.
   *
   * Delta has given every field an id and a random name before; no file has been written under that
   * name.
   */
  def followIds(metadata: Metadata, settled: Set[Long]): Metadata = {
    val schema = metadata.schema
    val renamed = rename(schema, settled)
    if (renamed == schema) metadata
    else {
      val result = metadata.copy(schemaString = renamed.json)
      DeltaColumnMapping.checkColumnIdAndPhysicalNameAssignments(result)
      result
    }
  }

  /**
   * `metadata` with every field named `col-<id>`. A field, element, key or value without an id gets
   * one above the highest that was ever given out.
   */
  def assigned(metadata: Metadata): Metadata = {
    val withIds = DeltaColumnMapping.assignColumnIdAndPhysicalName(
      newMetadata = metadata,
      oldMetadata = metadata,
      isChangingModeOnExistingTable = false,
      isOverwritingSchema = false
    )
    followIds(withIds, settled = Set.empty)
  }

  /** The ids of all fields of a schema. */
  def idsOf(schema: StructType): Set[Long] =
    SchemaNode.flatten(schema).iterator.filter(_.isField).flatMap(_.id).toSet

  private def rename(schema: StructType, settled: Set[Long]): StructType =
    StructType(schema.fields.map { field =>
      val below = field.copy(dataType = renameBelow(field.dataType, settled))
      if (!DeltaColumnMapping.hasColumnId(field)) below
      else {
        val id = DeltaColumnMapping.getColumnId(field).toLong
        val name = WriterCompat.physicalName(id)
        val old = DeltaColumnMapping.getPhysicalName(field)
        if (settled(id) || DeltaColumnMapping.hasPhysicalName(field) && old == name) below
        else below.copy(metadata = renameIn(field, old, name))
      }
    })

  private def renameBelow(dataType: DataType, settled: Set[Long]): DataType = dataType match {
    case s: StructType => rename(s, settled)
    case a: ArrayType  => a.copy(elementType = renameBelow(a.elementType, settled))
    case m: MapType    =>
      m.copy(
        keyType = renameBelow(m.keyType, settled),
        valueType = renameBelow(m.valueType, settled)
      )
    case other => other
  }

  // The keys of the nested ids begin with the field's physical name.
  private def renameIn(field: StructField, old: String, name: String): FieldMetadata = {
    val builder =
      new MetadataBuilder().withMetadata(field.metadata).putString(WriterCompat.PhysicalName, name)
    if (DeltaColumnMapping.hasNestedColumnIds(field)) {
      val ids = DeltaColumnMapping.getNestedColumnIds(field)
      val renamed = new MetadataBuilder
      waysBelow(field.dataType).filter(way => ids.contains(old + way)).foreach { way =>
        renamed.putLong(name + way, ids.getLong(old + way))
      }
      builder.putMetadata(WriterCompat.NestedIds, renamed.build())
    }
    builder.build()
  }

  /** The paths from a field to elements, keys and values without another field in between. */
  private def waysBelow(dataType: DataType, way: String = ""): Seq[String] = {
    def child(name: String, childType: DataType) =
      s"$way.$name" +: waysBelow(childType, s"$way.$name")
    dataType match {
      case a: ArrayType => child("element", a.elementType)
      case m: MapType   => child("key", m.keyType) ++ child("value", m.valueType)
      case _            => Nil
    }
  }
}
