package org.icebergwritercompat.model

import org.apache.spark.sql.catalyst.util.QuotingUtils
import org.apache.spark.sql.types._

import scala.collection.immutable.VectorMap
import scala.util.Try

/** The role of a node of the schema in its parent. */
sealed abstract class Role(val name: String)

object Role {
  case object Field extends Role("field")
  case object Element extends Role("element")
  case object Key extends Role("key")
  case object Value extends Role("value")
}

/**
 * One node of a schema: a column or nested field, or the element, key or value of a collection.
 *
 * @param path
 *   the logical names from the root; `element`, `key` and `value` for the parts of lists and maps
 * @param id
 *   the column id of a field, the nested id of an element, key or value
 * @param metadata
 *   the metadata of a field, empty for an element, key or value
 */
final case class SchemaNode(
    path: Vector[String],
    role: Role,
    dataType: DataType,
    nullable: Boolean,
    id: Option[Long],
    physicalName: Option[String],
    parentId: Option[Long],
    belowMapKey: Boolean,
    metadata: Metadata
) {

  /** Whether this node is a column or a nested field of a struct. */
  def isField: Boolean = role == Role.Field

  /** The path as written in statements. */
  def sqlPath: String = SchemaNode.sqlPath(path)

  /** The same, for a report. */
  def location: Location = Location.Column(path, id, physicalName)
}

object SchemaNode {

  /** The path as written in statements, each part quoted if necessary. */
  def sqlPath(path: Seq[String]): String = path.map(QuotingUtils.quoteIfNeeded).mkString(".")

  /** All nodes of `schema`, parents before children. */
  def flatten(schema: StructType): Vector[SchemaNode] = {
    val nodes = Vector.newBuilder[SchemaNode]

    // The ids of elements, keys and values are in the metadata of the nearest enclosing field;
    // their keys are the physical name of that field followed by the path below it.
    final class NestedIds(field: Metadata, prefix: String) {
      private lazy val ids = read(field, WriterCompat.NestedIds)(_.getMetadata(_))
      def get(way: String): Option[Long] = ids.flatMap(longOf(_, s"$prefix$way"))
    }

    def visitFields(
        fields: Array[StructField],
        path: Vector[String],
        parentId: Option[Long],
        belowMapKey: Boolean
    ): Unit =
      fields.foreach { field =>
        val id = idOf(field)
        val physicalName = physicalNameOf(field)
        val here = path :+ field.name
        nodes += SchemaNode(
          here,
          Role.Field,
          field.dataType,
          field.nullable,
          id,
          physicalName,
          parentId,
          belowMapKey,
          field.metadata
        )
        val nested = new NestedIds(field.metadata, physicalName.getOrElse(field.name))
        visitBelow(field.dataType, here, id, belowMapKey, nested, "")
      }

    def visitCollection(
        role: Role,
        dataType: DataType,
        nullable: Boolean,
        path: Vector[String],
        parentId: Option[Long],
        belowMapKey: Boolean,
        nested: NestedIds,
        way: String
    ): Unit = {
      val below = s"$way.${role.name}"
      val id = nested.get(below)
      val here = path :+ role.name
      nodes += SchemaNode(
        here,
        role,
        dataType,
        nullable,
        id,
        None,
        parentId,
        belowMapKey,
        Metadata.empty
      )
      visitBelow(dataType, here, id, belowMapKey, nested, below)
    }

    def visitBelow(
        dataType: DataType,
        path: Vector[String],
        id: Option[Long],
        belowMapKey: Boolean,
        nested: NestedIds,
        way: String
    ): Unit =
      dataType match {
        case s: StructType => visitFields(s.fields, path, id, belowMapKey)
        case a: ArrayType  =>
          visitCollection(
            Role.Element,
            a.elementType,
            a.containsNull,
            path,
            id,
            belowMapKey,
            nested,
            way
          )
        case m: MapType =>
          visitCollection(Role.Key, m.keyType, nullable = false, path, id, true, nested, way)
          visitCollection(
            Role.Value,
            m.valueType,
            m.valueContainsNull,
            path,
            id,
            belowMapKey,
            nested,
            way
          )
        case _ =>
      }

    visitFields(schema.fields, Vector.empty, None, belowMapKey = false)
    nodes.result()
  }

  /** The id of a field; `None` if it is absent or not a whole number. */
  def idOf(field: StructField): Option[Long] = longOf(field.metadata, WriterCompat.ColumnId)

  /** The physical name of a field; `None` if it is absent or not text. */
  def physicalNameOf(field: StructField): Option[String] =
    read(field.metadata, WriterCompat.PhysicalName)(_.getString(_))

  // Spark reads a null as the number 0.
  private def longOf(metadata: Metadata, key: String): Option[Long] =
    read(metadata, key)(_.getLong(_)).filterNot(_ == 0 && isNull(metadata, key))

  private def isNull(metadata: Metadata, key: String): Boolean =
    Try(metadata.getString(key)).toOption.contains(null)

  /** The value of a metadata key; `None` if it is absent, null or of another type. */
  private def read[T](metadata: Metadata, key: String)(get: (Metadata, String) => T): Option[T] =
    if (metadata.contains(key)) Try(get(metadata, key)).toOption.flatMap(Option(_)) else None
}

/** The fields of a struct by physical name. */
final case class PhysicalNameTree(fields: Map[String, PhysicalNameTree]) {

  /** Decodes statistics, and finds the names in them that are not in the tree. */
  @transient lazy val decoder: StatisticsDecoder = StatisticsDecoder(Some(this))
}

object PhysicalNameTree {

  /**
   * The tree of a schema in its order, without elements, keys and values, which have no statistics.
   */
  def of(schema: StructType): PhysicalNameTree =
    PhysicalNameTree(VectorMap.from(schema.fields.iterator.map { field =>
      val name = SchemaNode.physicalNameOf(field).getOrElse(field.name)
      val below = field.dataType match {
        case struct: StructType => of(struct)
        case _                  => PhysicalNameTree(Map.empty)
      }
      name -> below
    }))
}
