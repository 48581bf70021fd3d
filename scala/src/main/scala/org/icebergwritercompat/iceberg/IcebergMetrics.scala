package org.icebergwritercompat.iceberg

import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.json.JsonMapper
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
import scala.util.Try

/**
 * The metrics of files, from Delta's statistics and partition values.
 *
 * A bound may be wider than the values of a column, and never narrower, whoever wrote the
 * statistics; what cannot be told is left out. Nothing is told of what is below a list or map.
 */
final class IcebergMetrics(schema: Schema, spec: PartitionSpec) {

  import IcebergMetrics._

  private val leaves: Map[Int, Type] = {
    val found = mutable.HashMap.empty[Int, Type]
    def visit(fields: Iterable[NestedField]): Unit = fields.foreach { field =>
      if (field.`type`.isStructType) visit(field.`type`.asStructType.fields.asScala)
      else if (field.`type`.isPrimitiveType) found(field.fieldId) = field.`type`
    }
    visit(schema.columns.asScala)
    found.toMap
  }

  /** The metrics of a file; `None` where the statistics do not tell how many rows it has. */
  def of(statistics: String, partition: StructLike): Option[Metrics] =
    Option(statistics)
      .flatMap(text => Try(mapper.readTree(text)).toOption)
      .flatMap(stats => rowCount(stats).map(rows => of(stats, rows, partition)))

  private def of(stats: JsonNode, rows: Long, partition: StructLike): Metrics = {
    val counts = new JHashMap[JInteger, JLong]
    val nulls = new JHashMap[JInteger, JLong]
    val lower = new JHashMap[JInteger, ByteBuffer]
    val upper = new JHashMap[JInteger, ByteBuffer]
    val tight = stats.path("tightBounds").asBoolean(true)
    leaves.keysIterator.foreach(id => counts.put(id, rows))
    visit(stats.path("nullCount")) { (id, _, value) =>
      if (value.isIntegralNumber) {
        val count = value.longValue
        if (count == rows || count == 0 || (tight && count > 0 && count < rows)) {
          nulls.put(id, count)
          ()
        }
      }
    }
    // Bounds that are not tight may hide that a column is all null by now.
    if (tight) {
      visit(stats.path("minValues")) { (id, leaf, value) =>
        lowerBound(value, leaf).foreach(bound => lower.put(id, encode(leaf, bound)))
      }
      visit(stats.path("maxValues")) { (id, leaf, value) =>
        upperBound(value, leaf).foreach(bound => upper.put(id, encode(leaf, bound)))
      }
    }
    spec.fields.asScala.zipWithIndex.foreach { case (field, position) =>
      val id = field.sourceId
      leaves.get(id).foreach { leaf =>
        val value = partition.get(position, classOf[Any])
        nulls.put(id, if (value == null) rows else 0L)
        partitionBounds(value).foreach { case (least, greatest) =>
          lower.put(id, encode(leaf, least))
          upper.put(id, encode(leaf, greatest))
        }
      }
    }
    new Metrics(rows, null, counts, nulls, null, lower, upper)
  }

  // The keys are physical names, which the feature makes of the ids.
  private def visit(values: JsonNode)(see: (Int, Type, JsonNode) => Unit): Unit =
    values.properties.asScala.foreach { entry =>
      if (entry.getValue.isObject) visit(entry.getValue)(see)
      else
        for {
          id <- entry.getKey.stripPrefix(namePrefix).toIntOption
          if entry.getKey.startsWith(namePrefix)
          leaf <- leaves.get(id)
        } see(id, leaf, entry.getValue)
    }
}

object IcebergMetrics {

  private val namePrefix = "col-"

  private val mapper: ObjectMapper =
    JsonMapper.builder().enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS).build()

  private def rowCount(stats: JsonNode): Option[Long] =
    Option(stats.get("numRecords"))
      .filter(count => count.isIntegralNumber && count.longValue >= 0)
      .map(_.longValue)

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

  private def encode(leaf: Type, bound: Any): ByteBuffer = Conversions.toByteBuffer(leaf, bound)

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
