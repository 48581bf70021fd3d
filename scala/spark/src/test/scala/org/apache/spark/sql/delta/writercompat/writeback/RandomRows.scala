package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.data.GenericRecord
import org.apache.iceberg.types.{Type, Types}

import java.nio.ByteBuffer
import java.time.format.DateTimeFormatter.ISO_LOCAL_DATE_TIME
import java.time.{LocalDate, LocalDateTime, OffsetDateTime}
import scala.jdk.CollectionConverters._
import scala.util.Random

/** What the random test knows of a column: a serial number that it keeps, its name and its type. */
private[writeback] final case class Column(serial: Int, name: String, kind: Kind)

/** The type of a column, by which Iceberg and Delta call it. */
private[writeback] sealed trait Kind

private[writeback] object Kind {

  /** A type without parts, and values of it. */
  final case class Plain(iceberg: Type.PrimitiveType, sql: String, values: IndexedSeq[Any])
      extends Kind {
    override def toString: String = iceberg.toString
  }

  final case class Struct(fields: Vector[Column]) extends Kind {
    override def toString: String =
      fields.map(f => s"${f.name}: ${f.kind}").mkString("struct<", ", ", ">")
  }

  final case class Items(element: Plain) extends Kind {
    override def toString: String = s"list<$element>"
  }

  final case class Pairs(value: Plain) extends Kind {
    override def toString: String = s"map<string, $value>"
  }

  private def decimal(precision: Int, texts: String*) = Plain(
    Types.DecimalType.of(precision, 2),
    s"DECIMAL($precision, 2)",
    texts.map(new java.math.BigDecimal(_)).toVector
  )

  val long: Plain =
    Plain(Types.LongType.get, "BIGINT", Vector(0L, -1L, Long.MinValue, Long.MaxValue, 1L << 53))
  val int: Plain =
    Plain(Types.IntegerType.get, "INT", Vector(0, 7, Int.MinValue, Int.MaxValue))
  val double: Plain = Plain(
    Types.DoubleType.get,
    "DOUBLE",
    Vector(0.1, -0.0, Double.NaN, Double.NegativeInfinity, Double.MaxValue)
  )
  val float: Plain = Plain(
    Types.FloatType.get,
    "FLOAT",
    Vector(0.5f, -0.0f, Float.NaN, Float.PositiveInfinity, -1.25f)
  )
  val text: Plain = Plain(
    Types.StringType.get,
    "STRING",
    Vector("", "a", "null", "it's \\ \"so\"", "ü😀" * 20, "x" * 40, " ")
  )
  val date: Plain = Plain(
    Types.DateType.get,
    "DATE",
    Vector("0001-01-01", "1969-12-31", "2024-02-29", "9999-12-31").map(LocalDate.parse(_))
  )
  val timestamp: Plain = Plain(
    Types.TimestampType.withZone,
    "TIMESTAMP",
    Vector("0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2026-03-29T01:30:00.000001Z")
      .map(OffsetDateTime.parse(_))
  )
  val local: Plain = Plain(
    Types.TimestampType.withoutZone,
    "TIMESTAMP_NTZ",
    Vector("0001-01-01T00:00:00", "2026-03-29T02:30:00.000001", "9999-12-31T23:59:59.999999")
      .map(LocalDateTime.parse(_))
  )
  val boolean: Plain = Plain(Types.BooleanType.get, "BOOLEAN", Vector(true, false))
  val binary: Plain = Plain(
    Types.BinaryType.get,
    "BINARY",
    Vector(ByteBuffer.wrap(Array[Byte]()), ByteBuffer.wrap(Array[Byte](0, -1)))
  )
  val narrow: Plain = decimal(5, "0.00", "999.99", "-999.99")
  val wide: Plain = decimal(20, "0.01", "999999999999999999.99")

  val plain: Vector[Plain] =
    Vector(long, int, double, float, text, date, timestamp, local, boolean, binary, narrow, wide)

  /** The types that both Iceberg and Delta partition by; an empty text cannot be in Delta's log. */
  val partitions: Vector[Plain] = Vector(
    text.copy(values = Vector("a", "a b/c%20=ü&?#:+'\"\\é", "null", "x=y", " ")),
    int,
    date,
    timestamp
  )

  /** What a type may become later. */
  val widened: Map[Plain, Plain] = Map(int -> long, float -> double, narrow -> wide)
}

/** Values, and their forms in Iceberg, in SQL and as a text. */
private[writeback] object Values {

  type Row = Map[Int, Any]

  /** Any value of a type. */
  def some(kind: Kind, random: Random): Any =
    if (random.nextInt(6) == 0) null
    else
      kind match {
        case Kind.Plain(_, _, values) => values(random.nextInt(values.size))
        case Kind.Struct(fields)      => fields.map(f => f.serial -> some(f.kind, random)).toMap
        case Kind.Items(element)      => Vector.fill(random.nextInt(3))(some(element, random))
        case Kind.Pairs(value)        =>
          Seq("a", "", "b'c").take(random.nextInt(4)).map(_ -> some(value, random)).toMap
      }

  /** A value by the type that its column has by now. */
  def now(value: Any, kind: Kind): Any = (value, kind) match {
    case (i: Int, Kind.long)                   => i.toLong
    case (f: Float, Kind.double)               => f.toDouble
    case (row: Map[_, _], Kind.Struct(fields)) =>
      val known = row.asInstanceOf[Row]
      fields.map(f => f.serial -> now(known.getOrElse(f.serial, null), f.kind)).toMap
    case _ => value
  }

  /** A value as Iceberg's library writes it. */
  def iceberg(value: Any, kind: Kind, of: Type): Any = (now(value, kind), kind) match {
    case (null, _)                             => null
    case (row: Map[_, _], Kind.Struct(fields)) =>
      record(of.asStructType, fields, row.asInstanceOf[Row])
    case (list: Vector[_], _)    => list.asJava
    case (map: Map[_, _], _)     => map.asJava
    case (buffer: ByteBuffer, _) => buffer.duplicate
    case (other, _)              => other
  }

  /** A row as Iceberg's library writes it. */
  def record(struct: Types.StructType, columns: Vector[Column], row: Row): GenericRecord = {
    val made = GenericRecord.create(struct)
    columns.foreach { column =>
      val value = row.getOrElse(column.serial, null)
      made.setField(column.name, iceberg(value, column.kind, struct.fieldType(column.name)))
    }
    made
  }

  /** A value as an expression. */
  def sql(value: Any, kind: Kind): String = (now(value, kind), kind) match {
    case (null, _)                             => s"CAST(NULL AS ${typeSql(kind)})"
    case (bytes: ByteBuffer, _)                => s"X'${hex(bytes)}'"
    case (row: Map[_, _], Kind.Struct(fields)) =>
      val known = row.asInstanceOf[Row]
      fields
        .map(f => s"${quoted(f.name)}, ${sql(known.getOrElse(f.serial, null), f.kind)}")
        .mkString("named_struct(", ", ", ")")
    case (list: Vector[_], Kind.Items(element)) =>
      list.map(sql(_, element)).mkString("CAST(array(", ", ", s") AS ${typeSql(kind)})")
    case (map: Map[_, _], Kind.Pairs(of)) =>
      map
        .map { case (key, v) => s"${quoted(s"$key")}, ${sql(v, of)}" }
        .mkString("CAST(map(", ", ", s") AS ${typeSql(kind)})")
    case (other, _) => s"CAST(${quoted(literal(other))} AS ${typeSql(kind)})"
  }

  // A time always with its seconds.
  private def literal(value: Any): String = value match {
    case number: java.math.BigDecimal => number.toPlainString
    case time: OffsetDateTime         => time.toInstant.toString
    case time: LocalDateTime          => ISO_LOCAL_DATE_TIME.format(time)
    case other                        => other.toString
  }

  /** A type in a statement. */
  def typeSql(kind: Kind): String = kind match {
    case Kind.Plain(_, sql, _) => sql
    case Kind.Struct(fields)   =>
      fields.map(f => s"`${f.name}`: ${typeSql(f.kind)}").mkString("STRUCT<", ", ", ">")
    case Kind.Items(element) => s"ARRAY<${element.sql}>"
    case Kind.Pairs(value)   => s"MAP<STRING, ${value.sql}>"
  }

  /** A type of Iceberg whose ids begin at 1 000. */
  def typeOf(kind: Kind): Type = {
    val ids = Iterator.from(1000)
    def of(kind: Kind): Type = kind match {
      case Kind.Plain(iceberg, _, _) => iceberg
      case Kind.Struct(fields)       =>
        Types.StructType.of(fields.map { f =>
          Types.NestedField.optional(ids.next(), f.name, of(f.kind))
        }.asJava)
      case Kind.Items(element) => Types.ListType.ofOptional(ids.next(), of(element))
      case Kind.Pairs(value)   =>
        Types.MapType.ofOptional(ids.next(), ids.next(), Types.StringType.get, of(value))
    }
    of(kind)
  }

  /** A type of Iceberg as [[Kind]] spells it. */
  def shape(found: Type): String =
    if (found.isStructType)
      found.asStructType.fields.asScala
        .map(f => s"${f.name}: ${shape(f.`type`)}")
        .mkString("struct<", ", ", ">")
    else if (found.isListType) s"list<${shape(found.asListType.elementType)}>"
    else if (found.isMapType)
      s"map<${shape(found.asMapType.keyType)}, ${shape(found.asMapType.valueType)}>"
    else found.toString

  def quoted(text: String): String =
    "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

  private def hex(buffer: ByteBuffer): String = {
    val bytes = new Array[Byte](buffer.remaining)
    buffer.duplicate.get(bytes)
    bytes.map("%02x".format(_)).mkString
  }
}
