package org.icebergwritercompat.iceberg

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node._
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{DecimalType, NestedField, TimestampType}
import org.apache.iceberg.types.{Conversions, Type}
import org.apache.iceberg.util.UnicodeUtil
import org.apache.iceberg.{Metrics, PartitionSpec, Schema, StructLike}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.unsafe.types.UTF8String

import java.lang.{Integer => JInteger, Long => JLong}
import java.nio.ByteBuffer
import java.time.ZoneOffset
import java.util.{HashMap => JHashMap}
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/**
 * The metrics of files, from Delta's statistics and partition values.
 *
 * A bound may be wider than the values of a column, and never narrower, whoever wrote the
 * statistics; what cannot be told is left out. Nothing is told of what is below a list or map.
 */
final class IcebergMetrics(schema: Schema, spec: PartitionSpec) {

  import IcebergMetrics._

  private val leaves: Map[Int, Leaf] = {
    val found = mutable.HashMap.empty[Int, Leaf]
    def visit(fields: Iterable[NestedField]): Unit = fields.foreach { field =>
      if (field.`type`.isStructType) visit(field.`type`.asStructType.fields.asScala)
      else if (field.`type`.isPrimitiveType)
        found(field.fieldId) = new Leaf(field.fieldId, field.`type`)
    }
    visit(schema.columns.asScala)
    found.toMap
  }

  // The keys are physical names, which the feature makes of the ids.
  private val byName = new JHashMap[String, Leaf]

  leaves.foreach { case (id, leaf) => byName.put(s"col-$id", leaf) }

  /** The metrics of a file; `None` where the statistics do not tell how many rows it has. */
  def of(statistics: String, partition: StructLike): Option[Metrics] =
    Option(statistics)
      .flatMap { text =>
        Try(Using.resource(factory.createParser(text)) { parser =>
          val reading = new Reading(parser)
          reading.all()
          reading
        }).toOption
      }
      .filter(_.rows >= 0)
      .map(metrics(_, partition))

  private def metrics(read: Reading, partition: StructLike): Metrics = {
    val rows = read.rows
    val boxed = JLong.valueOf(rows)
    val counts = new JHashMap[JInteger, JLong]
    val nulls = new JHashMap[JInteger, JLong]
    // Bounds that are not tight may hide that a column is all null by now.
    val lower = if (read.tight) read.lower else new JHashMap[JInteger, ByteBuffer]
    val upper = if (read.tight) read.upper else new JHashMap[JInteger, ByteBuffer]
    leaves.valuesIterator.foreach(leaf => counts.put(leaf.id, boxed))
    read.nulls.forEach { (id, count) =>
      val number = count.longValue
      if (number == rows || number == 0 || (read.tight && number > 0 && number < rows)) {
        nulls.put(id, count)
        ()
      }
    }
    spec.fields.asScala.zipWithIndex.foreach { case (field, position) =>
      leaves.get(field.sourceId).foreach { leaf =>
        val value = partition.get(position, classOf[Any])
        nulls.put(leaf.id, if (value == null) rows else 0L)
        partitionBounds(value).foreach { case (least, greatest) =>
          lower.put(leaf.id, leaf.encode(least))
          upper.put(leaf.id, leaf.encode(greatest))
        }
      }
    }
    new Metrics(rows, null, counts, nulls, null, lower, upper)
  }

  /** What one pass over the statistics of a file finds; of a name that is there twice, the last. */
  private final class Reading(parser: JsonParser) {

    var rows: Long = -1
    var tight = true
    val nulls = new JHashMap[JInteger, JLong]
    val lower = new JHashMap[JInteger, ByteBuffer]
    val upper = new JHashMap[JInteger, ByteBuffer]

    def all(): Unit =
      if (parser.nextToken() == JsonToken.START_OBJECT)
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          val field = parser.currentName
          val value = parser.nextToken()
          field match {
            case "numRecords" =>
              rows =
                if (value == JsonToken.VALUE_NUMBER_INT) parser.getNumberValue.longValue else -1
              parser.skipChildren()
            case "tightBounds" => tight = scalar(value).asBoolean(true)
            case "nullCount"   =>
              columns(value, nulls) { (_, count) =>
                if (count.isIntegralNumber) Some(count.longValue) else None
              }
            case "minValues" =>
              columns(value, lower) { (leaf, bound) =>
                lowerBound(bound, leaf.dataType).map(leaf.encode)
              }
            case "maxValues" =>
              columns(value, upper) { (leaf, bound) =>
                upperBound(bound, leaf.dataType).map(leaf.encode)
              }
            case _ => parser.skipChildren()
          }
        }

    private def columns[T](value: JsonToken, found: JHashMap[JInteger, T])(
        see: (Leaf, JsonNode) => Option[T]
    ): Unit = {
      found.clear()
      if (value == JsonToken.START_OBJECT) below(found, see) else parser.skipChildren()
    }

    // Leaves the parser at the end of the object it is in.
    private def below[T](found: JHashMap[JInteger, T], see: (Leaf, JsonNode) => Option[T]): Unit =
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        val leaf = byName.get(parser.currentName)
        val value = parser.nextToken()
        if (value == JsonToken.START_OBJECT) below(found, see)
        else if (leaf == null) parser.skipChildren()
        else
          see(leaf, scalar(value)) match {
            case Some(seen) => found.put(leaf.id, seen)
            case None       => found.remove(leaf.id)
          }
      }

    // An object or array is nothing.
    private def scalar(token: JsonToken): JsonNode = token match {
      case JsonToken.VALUE_STRING     => TextNode.valueOf(parser.getText)
      case JsonToken.VALUE_NUMBER_INT =>
        parser.getNumberType match {
          case JsonParser.NumberType.INT  => IntNode.valueOf(parser.getIntValue)
          case JsonParser.NumberType.LONG => LongNode.valueOf(parser.getLongValue)
          case _                          => BigIntegerNode.valueOf(parser.getBigIntegerValue)
        }
      case JsonToken.VALUE_NUMBER_FLOAT => DecimalNode.valueOf(parser.getDecimalValue)
      case JsonToken.VALUE_TRUE         => BooleanNode.TRUE
      case JsonToken.VALUE_FALSE        => BooleanNode.FALSE
      case _                            =>
        parser.skipChildren()
        MissingNode.getInstance
    }
  }
}

object IcebergMetrics {

  private val factory = new JsonFactory

  /** A column that has metrics. */
  private final class Leaf(fieldId: Int, val dataType: Type) {

    val id: JInteger = fieldId

    def encode(bound: Any): ByteBuffer = Conversions.toByteBuffer(dataType, bound)
  }

  /**
   * The columns below structs whose bounds are not values of the table: the answer to a `min` or
   * `max` must not be taken from them.
   */
  def looselyBounded(schema: Schema): Seq[String] = {
    def visit(fields: Iterable[NestedField], prefix: String): Seq[String] =
      fields.toSeq.flatMap { field =>
        val name = prefix + field.name
        field.`type`.typeId match {
          case TypeID.STRUCT => visit(field.`type`.asStructType.fields.asScala, s"$name.")
          case TypeID.TIMESTAMP | TypeID.FLOAT | TypeID.DOUBLE => Seq(name)
          case _                                               => Nil
        }
      }
    visit(schema.columns.asScala, "")
  }

  private def partitionBounds(value: Any): Option[(Any, Any)] = value match {
    case null           => None
    case number: Float  => floating(number).map(n => (below(n), above(n)))
    case number: Double => floating(number).map(n => (below(n), above(n)))
    case text: CharSequence if text.length >= stringPrefix => None
    case other                                             => Some((other, other))
  }

  /** A value that no value of the column is below. */
  private[iceberg] def lowerBound(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.FLOAT     => floatOf(value).map(below)
    case TypeID.DOUBLE    => doublesOf(value).map(numbers => below(numbers.min))
    case TypeID.TIMESTAMP => micros(value, leaf).map(time => minus(time, blur(value, time)))
    case _                => exact(value, leaf)
  }

  /** A value that no value of the column is above. */
  private[iceberg] def upperBound(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.FLOAT     => floatOf(value).map(above)
    case TypeID.DOUBLE    => doublesOf(value).map(numbers => above(numbers.max))
    case TypeID.TIMESTAMP =>
      // Statistics are cut to milliseconds.
      micros(value, leaf).map(time => plus(time, blur(value, time) + microsPerMilli))
    case TypeID.STRING => text(value).flatMap(upperString)
    case _             => exact(value, leaf)
  }

  private def exact(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.BOOLEAN => Option.when(value.isBoolean)(value.booleanValue)
    case TypeID.INTEGER => Option.when(value.canConvertToInt && whole(value))(value.intValue)
    case TypeID.LONG    => Option.when(value.canConvertToLong && whole(value))(value.longValue)
    case TypeID.DECIMAL =>
      val decimal = leaf.asInstanceOf[DecimalType]
      Option
        .when(value.isNumber)(value.decimalValue)
        .flatMap(number => Try(number.setScale(decimal.scale)).toOption)
        .filter(_.precision <= decimal.precision)
    case TypeID.STRING => text(value)
    case TypeID.DATE   =>
      text(value).flatMap(day => DateTimeUtils.stringToDate(UTF8String.fromString(day)))
    case _ => None
  }

  private def whole(value: JsonNode): Boolean = value.isIntegralNumber

  private def text(value: JsonNode): Option[String] = Option.when(value.isTextual)(value.textValue)

  // Delta's writers cut strings to this length. Spark's appends a greater character then, and may
  // go on for a while to find one; others may merely cut.
  private val stringPrefix = 32

  private def upperString(text: String): Option[String] =
    if (text.length < stringPrefix) Some(text)
    else {
      val cut = if (Character.isHighSurrogate(text.charAt(stringPrefix - 1))) 1 else 0
      val kept = text.codePointCount(0, stringPrefix - cut)
      // Only what is longer is cut, to a prefix that is then raised.
      Option(UnicodeUtil.truncateStringMax(text + "x", kept))
    }

  // NaN is no bound.
  private def floating(number: Float): Option[Float] = Option.unless(number.isNaN)(number)

  private def floating(number: Double): Option[Double] = Option.unless(number.isNaN)(number)

  private def floatOf(value: JsonNode): Option[Float] =
    numberText(value).flatMap(_.toFloatOption).flatMap(floating)

  // A file from before a column became a double tells floats in their own shortest form, which is
  // another number as a double.
  private def doublesOf(value: JsonNode): Option[Seq[Double]] =
    numberText(value)
      .flatMap(text => text.toDoubleOption.zip(text.toFloatOption))
      .map { case (double, float) => Seq(double, float.toDouble) }
      .filterNot(_.exists(_.isNaN))

  private def numberText(value: JsonNode): Option[String] =
    Option.when(value.isNumber || value.isTextual)(value.asText)

  // The two zeros are equal to a query, and not to Iceberg.
  private def below(number: Float): Float = if (number == 0) -0.0f else number

  private def below(number: Double): Double = if (number == 0) -0.0d else number

  private def above(number: Float): Float = number + 0.0f

  private def above(number: Double): Double = number + 0.0d

  private val microsPerMilli = 1000L

  private def micros(value: JsonNode, leaf: Type): Option[Long] =
    text(value).map(UTF8String.fromString).flatMap { time =>
      if (leaf.asInstanceOf[TimestampType].shouldAdjustToUTC) PartitionValues.instant(time)
      else DateTimeUtils.stringToTimestampWithoutTimeZone(time)
    }

  // The offset of a zone is written without its seconds, which zones had until then.
  private def blur(value: JsonNode, micros: Long): Long =
    if (micros < lastSeconds && !value.textValue.endsWith("Z")) microsPerMinute else 0

  private val microsPerMinute = 60L * 1000 * 1000

  private val lastSeconds =
    java.time.LocalDate.of(1972, 2, 1).atStartOfDay(ZoneOffset.UTC).toEpochSecond * 1000 * 1000

  private def plus(a: Long, b: Long): Long = Try(Math.addExact(a, b)).getOrElse(Long.MaxValue)

  private def minus(a: Long, b: Long): Long = Try(Math.subtractExact(a, b)).getOrElse(Long.MinValue)
}
