package org.icebergwritercompat.model

import org.apache.parquet.column.statistics._
import org.apache.spark.sql.catalyst.util.SparkDateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import java.math.BigInteger
import java.nio.charset.StandardCharsets.UTF_8
import java.time.ZoneId
import java.util
import scala.util.Try

/**
 * The value of a partition column in the log, for a whole file; `None` is null.
 *
 * If a comparison is undecidable, the value counts as equal.
 */
final case class PartitionValue(value: Option[String], dataType: DataType) {

  /** Whether all rows of a column chunk can have this value. */
  def agrees(chunk: ColumnChunk): Boolean = value match {
    case None       => !chunk.hasBounds && chunk.nullCount.forall(_ == chunk.valueCount)
    case Some(text) =>
      chunk.nullCount.forall(_ == 0) && (!chunk.hasBounds || agrees(text, chunk.statistics))
  }

  private def agrees(text: String, statistics: Statistics[_]): Boolean = statistics match {
    case s: IntStatistics  => whole(text).forall(v => s.getMin == v && s.getMax == v)
    case s: LongStatistics => whole(text).forall(v => s.getMin == v && s.getMax == v)
    // 0.0 equals -0.0. NaN cannot be compared, because it is not in bounds.
    case s: FloatStatistics if dataType == DoubleType =>
      // Written before the column was widened: Delta reads a double from the text.
      s.getMin.isNaN || text.toDoubleOption.forall(v => s.getMin == v && s.getMax == v)
    case s: FloatStatistics =>
      s.getMin.isNaN || text.toFloatOption.forall(v => s.getMin == v && s.getMax == v)
    case s: DoubleStatistics =>
      s.getMin.isNaN || text.toDoubleOption.forall(v => s.getMin == v && s.getMax == v)
    case s: BooleanStatistics => text.toBooleanOption.forall(v => s.getMin == v && s.getMax == v)
    case s: BinaryStatistics  =>
      dataType match {
        case decimal: DecimalType =>
          unscaled(text, decimal).forall { v =>
            Seq(s.getMinBytes, s.getMaxBytes).forall(bytes => new BigInteger(bytes) == v)
          }
        // The log does not have bytes that are not UTF-8.
        case BinaryType if text.contains(replacement) => true
        case _ => isWithin(text.getBytes(UTF_8), s.getMinBytes, s.getMaxBytes)
      }
    case _ => true
  }

  /** The value of a Parquet integer statistic. */
  private def whole(text: String): Option[Long] = {
    val utf8 = UTF8String.fromString(text)
    dataType match {
      case DateType         => SparkDateTimeUtils.stringToDate(utf8).map(_.toLong)
      case TimestampNTZType =>
        SparkDateTimeUtils.stringToTimestampWithoutTimeZone(utf8, allowTimeZone = true)
      case TimestampType        => PartitionValue.instant(utf8)
      case decimal: DecimalType =>
        unscaled(text, decimal).filter(_.bitLength < java.lang.Long.SIZE).map(_.longValue)
      case _ => text.toLongOption
    }
  }

  private def unscaled(text: String, decimal: DecimalType): Option[BigInteger] =
    Try(new java.math.BigDecimal(text).setScale(decimal.scale).unscaledValue).toOption

  // A writer may truncate long bounds: the lower one to a prefix, the upper one to a prefix that it
  // increments. A truncated bound is shorter than the value.
  private def isWithin(value: Array[Byte], min: Array[Byte], max: Array[Byte]): Boolean = {
    val isMin = util.Arrays.equals(min, value.take(min.length))
    val isMax = util.Arrays.equals(max, value) ||
      (max.length < value.length && util.Arrays.compareUnsigned(max, value) > 0)
    isMin && isMax
  }

  private def replacement: String = "\uFFFD"
}

object PartitionValue {

  /**
   * The microseconds since 1970 of a timestamp in the log; `None` if the text names no time zone,
   * because the zone of the session that wrote it is not known.
   */
  def instant(text: UTF8String): Option[Long] = {
    // Spark's parser does not tell whether the text names a zone. If it does, the result does not
    // depend on the zone that is assumed.
    val assumed = assumedZones.map(SparkDateTimeUtils.stringToTimestamp(text, _))
    assumed.head.filter(_ => assumed.distinct.sizeIs == 1)
  }

  private val assumedZones: Seq[ZoneId] = Seq("UTC", "+01:00").map(ZoneId.of)
}
