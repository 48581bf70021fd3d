package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta.DeltaColumnMapping
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.types.{Metadata => FieldMetadata, _}
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.model.WriterCompat

/**
 * Assigns new ids to fields that a new schema would move to another parent.
 *
 * When a table is overwritten, Delta keeps the id of a field if its type is unchanged, and examines
 * each field separately. A struct with an additional field is a new column, but its fields keep
 * their ids. In Iceberg an id always has the same parent, so the fields would have been moved.
 */
object MovedColumns {

  /** `metadata`, which replaces `before`, with new ids for fields that have another parent. */
  def renumbered(before: TableState, metadata: Metadata): Metadata = {
    val numbering = new Numbering(before, metadata)
    val schema = numbering.fields(metadata.schema, parent = None)
    if (!numbering.hasMoved) metadata
    else
      metadata.copy(
        schemaString = schema.json,
        configuration =
          metadata.configuration + (WriterCompat.MaxColumnId -> numbering.highest.toString)
      )
  }

  private final class Numbering(before: TableState, metadata: Metadata) {

    private val parents: Map[Long, Option[Long]] =
      before.nodes.iterator.flatMap(node => node.id.map(_ -> node.parentId)).toMap

    var highest: Long = metadata.columnMappingMaxId

    var hasMoved: Boolean = false

    def fields(struct: StructType, parent: Option[Long]): StructType =
      StructType(struct.fields.map { field =>
        val id = DeltaColumnMapping.getColumnId(field).toLong
        if (parents.get(id).forall(_ == parent)) below(field, id, keepsNestedIds = true)
        else {
          hasMoved = true
          val renamed = new MetadataBuilder()
            .withMetadata(field.metadata)
            .putLong(WriterCompat.ColumnId, next())
            .remove(WriterCompat.PhysicalName)
            .build()
          below(field.copy(metadata = renamed), highest, keepsNestedIds = false)
        }
      })

    private def below(field: StructField, id: Long, keepsNestedIds: Boolean): StructField = {
      val prefix = DeltaColumnMapping.getPhysicalName(field)
      val nestedIds = new MetadataBuilder
      val known =
        if (keepsNestedIds && DeltaColumnMapping.hasNestedColumnIds(field))
          DeltaColumnMapping.getNestedColumnIds(field)
        else FieldMetadata.empty

      def part(dataType: DataType, way: String): DataType = {
        val key = prefix + way
        val partId = if (known.contains(key)) known.getLong(key) else next()
        nestedIds.putLong(key, partId)
        visit(dataType, partId, way)
      }

      def visit(dataType: DataType, parent: Long, way: String): DataType = dataType match {
        case s: StructType => fields(s, Some(parent))
        case a: ArrayType  => a.copy(elementType = part(a.elementType, s"$way.element"))
        case m: MapType    =>
          val key = part(m.keyType, s"$way.key")
          m.copy(keyType = key, valueType = part(m.valueType, s"$way.value"))
        case other => other
      }

      val dataType = visit(field.dataType, id, "")
      val metadata = new MetadataBuilder()
        .withMetadata(field.metadata)
        .putMetadata(WriterCompat.NestedIds, nestedIds.build())
        .build()
      field.copy(dataType = dataType, metadata = metadata)
    }

    private def next(): Long = { highest += 1; highest }
  }
}
