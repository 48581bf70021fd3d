package org.icebergwritercompat.rules

import org.apache.spark.sql.types._

/** Ways to make one schema from another. */
object Schemas {

  /** The schema with the type at `path` changed; the way may end in an element, key or value. */
  def retyped(schema: StructType, path: Seq[String])(change: DataType => DataType): StructType = {
    def in(dataType: DataType, way: Seq[String]): DataType = (dataType, way) match {
      case (any, Seq())                  => change(any)
      case (s: StructType, name +: rest) =>
        require(s.fieldNames.contains(name), s"no $name in ${s.sql}")
        StructType(s.map(f => if (f.name == name) f.copy(dataType = in(f.dataType, rest)) else f))
      case (a: ArrayType, "element" +: rest) => a.copy(elementType = in(a.elementType, rest))
      case (m: MapType, "key" +: rest)       => m.copy(keyType = in(m.keyType, rest))
      case (m: MapType, "value" +: rest)     => m.copy(valueType = in(m.valueType, rest))
      case (other, _) => throw new IllegalArgumentException(s"no $path in ${other.sql}")
    }
    in(schema, path).asInstanceOf[StructType]
  }

  /** A field with an id and the name that follows from it. */
  def field(name: String, dataType: DataType, id: Long, nullable: Boolean = true): StructField =
    StructField(
      name,
      dataType,
      nullable,
      new MetadataBuilder()
        .putLong("delta.columnMapping.id", id)
        .putString("delta.columnMapping.physicalName", s"col-$id")
        .build()
    )

  /** The schema with a field more in the struct at `path`; the schema itself if that is empty. */
  def plus(schema: StructType, path: Seq[String], field: StructField): StructType =
    retyped(schema, path) {
      case s: StructType => s.add(field)
      case other         => throw new IllegalArgumentException(s"${other.sql} is no struct")
    }

  /** The schema without the field at `path`. */
  def minus(schema: StructType, path: Seq[String]): StructType =
    retyped(schema, path.init) {
      case s: StructType => StructType(s.filterNot(_.name == path.last))
      case other         => throw new IllegalArgumentException(s"${other.sql} is no struct")
    }

  /** The schema with this metadata on the field at `path`, besides what it has. */
  def marked(schema: StructType, path: Seq[String])(
      mark: MetadataBuilder => MetadataBuilder
  ): StructType =
    CompliantTable.changed(schema, path) { f =>
      f.copy(metadata = mark(new MetadataBuilder().withMetadata(f.metadata)).build())
    }
}
