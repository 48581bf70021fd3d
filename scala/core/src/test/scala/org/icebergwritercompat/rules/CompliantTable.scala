package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{Lifecycle, ProtocolState, TableState}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.Location

/**
 * Tables that meet every rule, made by code of the tests' own, and ways to break them.
 *
 * Keys and names are spelled out here: the constants under test are not to vouch for themselves.
 */
object CompliantTable {

  private val columnId = "delta.columnMapping.id"
  private val nestedIds = "delta.columnMapping.nested.ids"
  private val physicalName = "delta.columnMapping.physicalName"

  /**
   * A schema with one place in it that the tests break.
   *
   * @param path
   *   the way to a field, in logical names
   * @param id
   *   the id this field gets
   * @param highest
   *   the highest id the schema gets
   * @param casts
   *   the columns of a query that casts the field to the type `?`
   */
  final case class Shape(
      name: String,
      ddl: String,
      path: Seq[String],
      id: Long,
      highest: Long,
      casts: String
  ) {
    def schema: StructType = withIds(StructType.fromDDL(ddl))
    def sqlPath: String = path.mkString(".")
    def location: Location = Location.Column(path, Some(id), Some(s"col-$id"))

    /** The statement that copies the table and gives the field another type. */
    def copyWith(dataType: String): String =
      "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT " +
        casts.replace("?", dataType) + " FROM db.t"
  }

  val shapes: Seq[Shape] = Seq(
    Shape("a flat schema", "a INT, b STRING", Seq("b"), 2, 2, "a, CAST(b AS ?) AS b"),
    Shape(
      "a nested struct",
      "s STRUCT<x: INT, y: STRUCT<z: DATE>>",
      Seq("s", "y", "z"),
      id = 4,
      highest = 4,
      "CAST(s AS STRUCT<x: INT, y: STRUCT<z: ?>>) AS s"
    ),
    Shape(
      "an array",
      "l ARRAY<STRUCT<x: INT>>",
      Seq("l", "element", "x"),
      id = 3,
      highest = 3,
      "CAST(l AS ARRAY<STRUCT<x: ?>>) AS l"
    ),
    Shape(
      "a map value",
      "m MAP<STRING, STRUCT<x: INT>>",
      Seq("m", "value", "x"),
      id = 4,
      highest = 4,
      "CAST(m AS MAP<STRING, STRUCT<x: ?>>) AS m"
    ),
    Shape(
      "a map key",
      "m MAP<STRUCT<x: INT>, INT>",
      Seq("m", "key", "x"),
      id = 3,
      highest = 4,
      "CAST(m AS MAP<STRUCT<x: ?>, INT>) AS m"
    ),
    Shape(
      "collections in collections",
      "m MAP<INT, ARRAY<ARRAY<STRUCT<x: INT>>>>",
      Seq("m", "value", "element", "element", "x"),
      id = 6,
      highest = 6,
      "CAST(m AS MAP<INT, ARRAY<ARRAY<STRUCT<x: ?>>>>) AS m"
    )
  )

  val properties: Map[String, String] = Map(
    "delta.enableIcebergWriterCompatV1" -> "true",
    "delta.enableIcebergCompatV2" -> "true",
    "delta.columnMapping.mode" -> "id"
  )

  val features: Set[String] = Set("columnMapping", "icebergCompatV2", "icebergWriterCompatV1")

  val protocol: ProtocolState = ProtocolState(2, 7, None, Some(features))

  /** A table with this schema, which has its ids already. */
  def of(schema: StructType): TableState = TableState(
    "db.t",
    Lifecycle.Changing,
    protocol,
    properties + ("delta.columnMapping.maxColumnId" -> highestId(schema).toString),
    schema,
    Nil,
    V1.contract
  )

  /** A table with these columns, which get their ids here. */
  def of(ddl: String): TableState = of(withIds(StructType.fromDDL(ddl)))

  /** The schema with ids, physical names and nested ids, as PROTOCOL.md lays them down. */
  def withIds(schema: StructType): StructType = {
    var last = 0L
    def next(): Long = { last += 1; last }
    def fields(struct: StructType): StructType = StructType(struct.fields.map(field))
    def field(f: StructField): StructField = {
      val id = next()
      val nested = new MetadataBuilder
      var hasNested = false
      def nest(key: String): Unit = { hasNested = true; nested.putLong(key, next()); () }
      def below(dataType: DataType, key: String): DataType = dataType match {
        case s: StructType => fields(s)
        case a: ArrayType  =>
          nest(s"$key.element")
          a.copy(elementType = below(a.elementType, s"$key.element"))
        case m: MapType =>
          nest(s"$key.key")
          val keyType = below(m.keyType, s"$key.key")
          nest(s"$key.value")
          m.copy(keyType = keyType, valueType = below(m.valueType, s"$key.value"))
        case other => other
      }
      val dataType = below(f.dataType, s"col-$id")
      val metadata =
        new MetadataBuilder().putLong(columnId, id).putString(physicalName, s"col-$id")
      if (hasNested) metadata.putMetadata(nestedIds, nested.build())
      f.copy(dataType = dataType, metadata = metadata.build())
    }
    fields(schema)
  }

  private def highestId(schema: StructType): Long =
    (0L +: "(?<=\"(?:delta\\.columnMapping\\.id|col-\\d+[a-z.]*)\":)\\d+".r
      .findAllIn(schema.json)
      .map(_.toLong)
      .toSeq).max

  /** The schema with the field at `path` changed. */
  def changed(schema: StructType, path: Seq[String])(
      change: StructField => StructField
  ): StructType = {
    def in(dataType: DataType, way: Seq[String]): DataType = (dataType, way) match {
      case (s: StructType, Seq(name)) =>
        StructType(s.fields.map(f => if (f.name == name) change(f) else f))
      case (s: StructType, name +: rest) =>
        StructType(s.fields.map { f =>
          if (f.name == name) f.copy(dataType = in(f.dataType, rest)) else f
        })
      case (a: ArrayType, "element" +: rest) => a.copy(elementType = in(a.elementType, rest))
      case (m: MapType, "key" +: rest)       => m.copy(keyType = in(m.keyType, rest))
      case (m: MapType, "value" +: rest)     => m.copy(valueType = in(m.valueType, rest))
      case (other, _) => throw new IllegalArgumentException(s"no $path in ${other.sql}")
    }
    in(schema, path).asInstanceOf[StructType]
  }

  private def withMetadata(f: StructField)(change: MetadataBuilder => MetadataBuilder) =
    f.copy(metadata = change(new MetadataBuilder().withMetadata(f.metadata)).build())

  def withId(id: Long)(f: StructField): StructField = withMetadata(f)(_.putLong(columnId, id))

  def withoutId(f: StructField): StructField = withMetadata(f)(_.remove(columnId))

  def named(name: String)(f: StructField): StructField =
    withMetadata(f)(_.putString(physicalName, name))

  def withoutName(f: StructField): StructField = withMetadata(f)(_.remove(physicalName))

  def withoutNestedIds(f: StructField): StructField = withMetadata(f)(_.remove(nestedIds))

  def withNestedIds(ids: (String, Long)*)(f: StructField): StructField =
    withNestedIdsUnder(nestedIds, ids: _*)(f)

  def withNestedIdsUnder(key: String, ids: (String, Long)*)(f: StructField): StructField = {
    val nested = ids.foldLeft(new MetadataBuilder) { case (all, (k, id)) => all.putLong(k, id) }
    withMetadata(withoutNestedIds(f))(_.putMetadata(key, nested.build()))
  }
}
