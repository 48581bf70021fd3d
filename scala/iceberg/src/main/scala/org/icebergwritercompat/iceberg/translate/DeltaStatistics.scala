package org.icebergwritercompat.iceberg.translate

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.iceberg.{Metrics, Schema}
import org.apache.iceberg.types.{Conversions, Type}
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{NestedField, TimestampType}
import org.apache.iceberg.util.UnicodeUtil
import org.apache.spark.sql.catalyst.util.SparkDateTimeUtils
import org.icebergwritercompat.model.WriterCompat

import java.nio.ByteBuffer
import java.time.format.DateTimeFormatter
import java.time.{LocalDate, LocalDateTime}
import java.util.{Map => JMap}
import scala.jdk.CollectionConverters._

/**
 * Delta's statistics of a file from its metrics, the inverse of [[IcebergMetrics]].
 *
 * A bound may be wider than that of the metrics, and never narrower; what Delta's readers could
 * take for something else is left out: bounds that are infinite or not between the years 1 and
 * 9999, and those of booleans and binary values, which Delta has none of.
 */
object DeltaStatistics {

  /**
   * The statistics as JSON, by physical names.
   *
   * @param isCollected
   *   whether the statistics have a column, by its id
   */
  def of(metrics: Metrics, schema: Schema, isCollected: Int => Boolean = _ => true): String = {
    def columns(leaf: NestedField => Option[String]): Option[String] =
      below(schema.columns.asScala)(field => if (isCollected(field.fieldId)) leaf(field) else None)
    def bound(bounds: JMap[Integer, ByteBuffer])(text: (Any, Type) => Option[String]) =
      columns { field =>
        Option(bounds)
          .flatMap(all => Option(all.get(field.fieldId)))
          .map(encoded => Conversions.fromByteBuffer[Any](field.`type`, encoded.duplicate))
          .flatMap(text(_, field.`type`))
      }
    val nulls = columns { field =>
      Option(metrics.nullValueCounts).flatMap(all => Option(all.get(field.fieldId))).map(_.toString)
    }
    val parts = Seq("numRecords" -> Some(metrics.recordCount.toString)) ++ Seq(
      "minValues" -> bound(metrics.lowerBounds)(least),
      "maxValues" -> bound(metrics.upperBounds)(greatest),
      "nullCount" -> nulls
    )
    parts.collect { case (name, Some(value)) => s""""$name":$value""" }.mkString("{", ",", "}")
  }

  // Nothing is told of what is below a list or map.
  private def below(
      fields: Iterable[NestedField]
  )(leaf: NestedField => Option[String]): Option[String] = {
    val parts = fields.flatMap { field =>
      val value =
        if (field.`type`.isStructType) below(field.`type`.asStructType.fields.asScala)(leaf)
        else if (field.`type`.isPrimitiveType) leaf(field)
        else None
      value.map(text => s""""${WriterCompat.physicalName(field.fieldId.toLong)}":$text""")
    }
    Option.when(parts.nonEmpty)(parts.mkString("{", ",", "}"))
  }

  private def least(value: Any, of: Type): Option[String] = of.typeId match {
    case TypeID.STRING =>
      Some(quoted(UnicodeUtil.truncateString(value.toString, stringPrefix).toString))
    case TypeID.TIMESTAMP => timestamp(Math.floorDiv(value.asInstanceOf[Long], microsPerMilli), of)
    case TypeID.FLOAT | TypeID.DOUBLE if isZero(value) => Some("-0.0")
    case _                                             => exact(value, of)
  }

  private def greatest(value: Any, of: Type): Option[String] = of.typeId match {
    case TypeID.STRING =>
      Option(UnicodeUtil.truncateStringMax(value.toString, stringPrefix)).map(t =>
        quoted(t.toString)
      )
    // The next whole millisecond, so that it is no smaller to a reader that does not add one.
    case TypeID.TIMESTAMP =>
      timestamp(-Math.floorDiv(-value.asInstanceOf[Long], microsPerMilli), of)
    case TypeID.FLOAT | TypeID.DOUBLE if isZero(value) => Some("0.0")
    case _                                             => exact(value, of)
  }

  private def exact(value: Any, of: Type): Option[String] = (of.typeId, value) match {
    case (TypeID.INTEGER | TypeID.LONG, number) => Some(number.toString)
    case (TypeID.FLOAT, number: Float)          =>
      Option.when(java.lang.Float.isFinite(number))(number.toString)
    case (TypeID.DOUBLE, number: Double) =>
      Option.when(java.lang.Double.isFinite(number))(number.toString)
    case (TypeID.DECIMAL, number: java.math.BigDecimal) => Some(number.toPlainString)
    case (TypeID.DATE, days: Int)                       =>
      val day = LocalDate.ofEpochDay(days.toLong)
      Option.when(isCommonYear(day.getYear))(s""""$day"""")
    case _ => None
  }

  private def timestamp(millis: Long, of: Type): Option[String] = {
    val time =
      if (Math.abs(millis) > Long.MaxValue / microsPerMilli) None
      else Some(SparkDateTimeUtils.microsToLocalDateTime(millis * microsPerMilli))
    val isInstant = of.asInstanceOf[TimestampType].shouldAdjustToUTC
    time
      .filter(t => isCommonYear(t.getYear))
      .map((t: LocalDateTime) => s""""${t.format(form)}${if (isInstant) "Z" else ""}"""")
  }

  private def isZero(value: Any): Boolean = value match {
    case number: Float  => number == 0
    case number: Double => number == 0
    case _              => false
  }

  private def isCommonYear(year: Int): Boolean = year >= 1 && year <= 9999

  private def quoted(text: String): String = mapper.writeValueAsString(text)

  private val form = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS")

  private val microsPerMilli = 1000L

  // As long as Delta's writers keep them.
  private val stringPrefix = 32

  private val mapper = new ObjectMapper
}
