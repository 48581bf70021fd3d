package org.icebergwritercompat.iceberg.translate

import com.fasterxml.jackson.databind.JsonNode
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{DecimalType, NestedField, TimestampType}
import org.apache.iceberg.types.{Conversions, Type}
import org.apache.iceberg.util.UnicodeUtil
import org.apache.iceberg.{Metrics, PartitionSpec, Schema, StructLike}
import org.apache.spark.sql.catalyst.util.SparkDateTimeUtils
import org.apache.spark.unsafe.types.UTF8String
import org.icebergwritercompat.model.{
  ColumnValues,
  FileStatistics,
  PartitionValue,
  PhysicalNameTree,
  StatisticsDecoder,
  StatisticsValues,
  WriterCompat
}

import java.lang.{Integer => JInteger, Long => JLong}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.ZoneOffset
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * Iceberg's metrics of files, from Delta's statistics and partition values.
 *
 * A bound may be wider than the values of a column, but never narrower, whichever writer wrote the
 * statistics; unknown values are omitted. Fields in lists and maps have no metrics.
 *
 * @param names
 *   the physical names of the table, with which those in the statistics are compared; `None` if
 *   that is not needed
 */
final class IcebergMetrics(
    schema: Schema,
    spec: PartitionSpec,
    names: Option[PhysicalNameTree] = None
) {

  import IcebergMetrics._

  // In the order of the schema, in which writers put the statistics.
  private val paths: Seq[(Seq[String], NestedField)] = {
    // The names in the statistics are physical names, which the feature derives from the ids.
    def visit(
        fields: Iterable[NestedField],
        above: Vector[String]
    ): Seq[(Seq[String], NestedField)] =
      fields.toSeq.flatMap { field =>
        val path = above :+ WriterCompat.physicalName(field.fieldId.toLong)
        if (field.`type`.isStructType) visit(field.`type`.asStructType.fields.asScala, path)
        else if (field.`type`.isPrimitiveType) Seq(path -> field)
        else Nil
      }
    visit(schema.columns.asScala, Vector.empty)
  }

  private val ids: Array[JInteger] = paths.map(_._2.fieldId).sorted.map(Int.box).toArray

  private val leaves: Array[Leaf] = {
    val positions = ids.iterator.zipWithIndex.toMap
    paths.map { case (_, field) =>
      new Leaf(field.fieldId, positions(field.fieldId), field.`type`)
    }.toArray
  }

  private val partitionLeaves: Array[Leaf] = {
    val byId = leaves.map(leaf => leaf.id -> leaf).toMap
    spec.fields.asScala.map(field => byId.getOrElse(field.sourceId, null)).toArray
  }

  private val decoder = StatisticsDecoder(names, paths.map(_._1))

  /** The metrics of a file; `None` if the statistics have no row count. */
  def of(statistics: String, partition: StructLike): Option[Metrics] =
    read(statistics).flatMap(_.metrics(partition))

  /** Decodes the statistics of a file; `None` if there are none, or they are not a JSON object. */
  def read(statistics: String): Option[FileMeasures] = {
    val values = new Values
    decoder.decode(statistics, values).map(new Measures(_, values))
  }

  private final class Measures(override val statistics: FileStatistics, values: Values)
      extends FileMeasures {

    override def metrics(partition: StructLike): Option[Metrics] =
      statistics.rowCount.map(IcebergMetrics.this.metrics(_, values, partition))
  }

  private def metrics(rows: Long, values: Values, partition: StructLike): Metrics = {
    val boxed = JLong.valueOf(rows)
    val nulls = values.nulls.entries
    // If bounds are not tight, all remaining values of the column may be null.
    if (!values.areTight) {
      values.lower.clear()
      values.upper.clear()
    }
    var i = 0
    while (i < leaves.length) {
      val count = nulls.at(i)
      if (count != null) {
        val number = count.longValue
        val isSure =
          number == rows || number == 0 || (values.areTight && number > 0 && number < rows)
        if (!isSure) nulls.set(i, null)
      }
      i += 1
    }
    val (lower, upper) = (values.lower.entries, values.upper.entries)
    var field = 0
    while (field < partitionLeaves.length) {
      val leaf = partitionLeaves(field)
      if (leaf != null) {
        val value = partition.get(field, classOf[Any])
        nulls.set(leaf.position, if (value == null) boxed else noNulls)
        partitionBounds(value).foreach { case (least, greatest) =>
          lower.set(leaf.position, leaf.encode(least))
          upper.set(leaf.position, leaf.encode(greatest))
        }
      }
      field += 1
    }
    new Metrics(rows, null, counts(boxed), nulls, null, lower, upper)
  }

  private def counts(rows: JLong): LeafMap[JLong] = {
    val counts = new LeafMap[JLong](ids)
    counts.fill(rows)
    counts
  }

  /** The values in the statistics of a file. */
  private final class Values extends StatisticsValues {

    var areTight = true
    val nulls = new NullCounts
    val lower = new LowerBounds
    val upper = new UpperBounds

    override def of(field: String): ColumnValues = field match {
      case "minValues" => lower
      case "maxValues" => upper
      case "nullCount" => nulls
    }

    override def takeTight(areTight: Boolean): Unit = this.areTight = areTight
  }

  /** The values of the columns that the statistics tell something of. */
  private abstract class Entries[V <: AnyRef] extends ColumnValues {

    val entries = new LeafMap[V](ids)

    /** Null for a value that tells nothing. */
    protected def read(value: JsonNode, leaf: Leaf): V

    final override def clear(): Unit = entries.clear()

    final override def take(column: Int, value: JsonNode): Unit =
      entries.set(leaves(column).position, read(value, leaves(column)))
  }

  private final class NullCounts extends Entries[JLong] {

    override protected def read(value: JsonNode, leaf: Leaf): JLong =
      if (whole(value) && value.canConvertToLong) value.longValue else null

    override def take(column: Int, number: Long): Unit =
      entries.set(leaves(column).position, number)
  }

  private abstract class Bounds extends Entries[ByteBuffer] {

    // A number is its own bound on either side.
    final override def take(column: Int, number: Long): Unit =
      if (leaves(column).isLong) entries.set(leaves(column).position, long(number))
      else super.take(column, number)

    // So is a text that is too short to have been cut.
    final override def take(column: Int, text: String): Unit = {
      val leaf = leaves(column)
      if (leaf.isString && text.length < stringPrefix) entries.set(leaf.position, leaf.encode(text))
      else super.take(column, text)
    }

    private def long(number: Long): ByteBuffer =
      ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, number)
  }

  private final class LowerBounds extends Bounds {
    override protected def read(value: JsonNode, leaf: Leaf): ByteBuffer =
      lowerBound(value, leaf.dataType).map(leaf.encode).orNull
  }

  private final class UpperBounds extends Bounds {
    override protected def read(value: JsonNode, leaf: Leaf): ByteBuffer =
      upperBound(value, leaf.dataType).map(leaf.encode).orNull
  }
}

/** What the statistics of a file tell. */
trait FileMeasures {

  /** What the rules use of them. */
  def statistics: FileStatistics

  /** The metrics of the file in a partition; `None` if its number of rows is not told. */
  def metrics(partition: StructLike): Option[Metrics]
}

object IcebergMetrics {

  private val noNulls: JLong = 0L

  /** A column that has metrics. */
  private final class Leaf(fieldId: Int, val position: Int, val dataType: Type) {

    val id: JInteger = fieldId

    val isLong: Boolean = dataType.typeId == TypeID.LONG

    val isString: Boolean = dataType.typeId == TypeID.STRING

    def encode(bound: Any): ByteBuffer = bound match {
      case text: String if isString => encode(text)
      case other                    => Conversions.toByteBuffer(dataType, other)
    }

    // As Iceberg does, but without a buffer of characters. Java would replace surrogates that are
    // not in pairs.
    private def encode(text: String): ByteBuffer = {
      var i = 0
      while (i < text.length && !Character.isSurrogate(text.charAt(i))) i += 1
      if (i == text.length) ByteBuffer.wrap(text.getBytes(UTF_8))
      else Conversions.toByteBuffer(dataType, text)
    }
  }

  /**
   * The columns in structs whose bounds may not be values of the table, so that the result of `min`
   * or `max` must not be taken from the bounds.
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

  /** A lower bound of the column. */
  private[iceberg] def lowerBound(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.FLOAT     => floatOf(value).map(below)
    case TypeID.DOUBLE    => doublesOf(value).map(numbers => below(numbers.min))
    case TypeID.TIMESTAMP => micros(value, leaf).map(time => minus(time, blur(value, time)))
    case _                => exact(value, leaf)
  }

  /** An upper bound of the column. */
  private[iceberg] def upperBound(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.FLOAT     => floatOf(value).map(above)
    case TypeID.DOUBLE    => doublesOf(value).map(numbers => above(numbers.max))
    case TypeID.TIMESTAMP =>
      // Statistics are truncated to milliseconds.
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
      text(value).flatMap(day => SparkDateTimeUtils.stringToDate(UTF8String.fromString(day)))
    case _ => None
  }

  private def whole(value: JsonNode): Boolean = value.isIntegralNumber

  private def text(value: JsonNode): Option[String] = Option.when(value.isTextual)(value.textValue)

  // Delta's writers truncate strings to this length. Spark's then appends a greater character, and
  // may use a longer prefix to find one; others may only truncate.
  private val stringPrefix = 32

  private def upperString(text: String): Option[String] =
    if (text.length < stringPrefix) Some(text)
    else {
      val cut = if (Character.isHighSurrogate(text.charAt(stringPrefix - 1))) 1 else 0
      val kept = text.codePointCount(0, stringPrefix - cut)
      // Only longer values are truncated, to a prefix that is then incremented.
      Option(UnicodeUtil.truncateStringMax(text + "x", kept))
    }

  // NaN is not a bound.
  private def floating(number: Float): Option[Float] = Option.unless(number.isNaN)(number)

  private def floating(number: Double): Option[Double] = Option.unless(number.isNaN)(number)

  private def floatOf(value: JsonNode): Option[Float] =
    numberText(value).flatMap(_.toFloatOption).flatMap(floating)

  // A file from before a column became a double has floats in their own shortest form, which is
  // another number as a double.
  private def doublesOf(value: JsonNode): Option[Seq[Double]] =
    numberText(value)
      .flatMap(text => text.toDoubleOption.zip(text.toFloatOption))
      .map { case (double, float) => Seq(double, float.toDouble) }
      .filterNot(_.exists(_.isNaN))

  private def numberText(value: JsonNode): Option[String] =
    Option.when(value.isNumber || value.isTextual)(value.asText)

  // The two zeros are equal in queries, but not in Iceberg.
  private def below(number: Float): Float = if (number == 0) -0.0f else number

  private def below(number: Double): Double = if (number == 0) -0.0d else number

  private def above(number: Float): Float = number + 0.0f

  private def above(number: Double): Double = number + 0.0d

  private val microsPerMilli = 1000L

  private def micros(value: JsonNode, leaf: Type): Option[Long] =
    text(value).map(UTF8String.fromString).flatMap { time =>
      if (leaf.asInstanceOf[TimestampType].shouldAdjustToUTC) PartitionValue.instant(time)
      else SparkDateTimeUtils.stringToTimestampWithoutTimeZone(time, allowTimeZone = true)
    }

  // Older offsets of time zones have seconds, which the text omits.
  private def blur(value: JsonNode, micros: Long): Long =
    if (micros < lastSeconds && !value.textValue.endsWith("Z")) microsPerMinute else 0

  private val microsPerMinute = 60L * 1000 * 1000

  private val lastSeconds =
    java.time.LocalDate.of(1972, 2, 1).atStartOfDay(ZoneOffset.UTC).toEpochSecond * 1000 * 1000

  private def plus(a: Long, b: Long): Long = Try(Math.addExact(a, b)).getOrElse(Long.MaxValue)

  private def minus(a: Long, b: Long): Long = Try(Math.subtractExact(a, b)).getOrElse(Long.MinValue)
}
