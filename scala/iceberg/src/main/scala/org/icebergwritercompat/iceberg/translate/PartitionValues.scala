package org.icebergwritercompat.iceberg.translate

import org.apache.iceberg.{PartitionSpec, StructLike}
import org.apache.iceberg.types.Type
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{DecimalType, TimestampType}
import org.apache.spark.sql.catalyst.util.SparkDateTimeUtils
import org.apache.spark.unsafe.types.UTF8String
import org.icebergwritercompat.model.{PartitionValue, WriterCompat}

import java.time.format.DateTimeFormatter
import java.time.LocalDate
import scala.jdk.CollectionConverters._
import scala.util.Try

/** The values of a file's partition columns, in the order of a spec; null for null. */
final class PartitionTuple(values: Array[Any]) extends StructLike {

  override def size: Int = values.length

  override def get[T](position: Int, javaClass: Class[T]): T = javaClass.cast(values(position))

  override def set[T](position: Int, value: T): Unit = values(position) = value
}

/** Partition values in the log: text by physical name. */
object PartitionValues {

  /** The tuple; on the left the physical name of a value that cannot be parsed exactly. */
  def tuple(spec: PartitionSpec, logged: Map[String, String]): Either[String, PartitionTuple] = {
    val types = spec.partitionType.fields.asScala.map(_.`type`)
    val values = spec.fields.asScala.zip(types).map { case (field, partitionType) =>
      val name = WriterCompat.physicalName(field.sourceId.toLong)
      // In Delta's log null is null or an empty text.
      val text = logged.get(name).filter(value => value != null && value.nonEmpty)
      (name, text, text.flatMap(parse(_, partitionType)))
    }
    values
      .collectFirst { case (name, Some(_), None) => name }
      .toLeft(new PartitionTuple(values.map(_._3.orNull[Any]).toArray))
  }

  /**
   * The values of the log for a tuple; on the left the name of a field that the log cannot store.
   */
  def text(spec: PartitionSpec, tuple: StructLike): Either[String, Map[String, String]] = {
    val types = spec.partitionType.fields.asScala.map(_.`type`)
    val values =
      spec.fields.asScala.zip(types).zipWithIndex.map { case ((field, partitionType), i) =>
        val value = Option(tuple.get(i, classOf[AnyRef]))
        val text = value.map(textOf(_, partitionType))
        (field, text, value.isEmpty || text.flatMap(parse(_, partitionType)).contains(value.get))
      }
    values
      // In Delta's log null is null or an empty text.
      .collectFirst { case (field, text, same) if !same || text.contains("") => field.name }
      .toLeft(values.map { case (field, text, _) =>
        WriterCompat.physicalName(field.sourceId.toLong) -> text.orNull
      }.toMap)
  }

  // As the protocol of Delta spells them: other readers of its log know no shorter form.
  private def textOf(value: AnyRef, partitionType: Type): String = partitionType.typeId match {
    case TypeID.DATE      => LocalDate.ofEpochDay(value.toString.toLong).toString
    case TypeID.TIMESTAMP =>
      val time =
        SparkDateTimeUtils.microsToLocalDateTime(value.asInstanceOf[java.lang.Long].longValue)
      val isInstant = partitionType.asInstanceOf[TimestampType].shouldAdjustToUTC
      time.format(if (isInstant) instantForm else localForm)
    case TypeID.DECIMAL => value.asInstanceOf[java.math.BigDecimal].toPlainString
    case _              => value.toString
  }

  private val instantForm = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'")

  private val localForm = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSS")

  /** A value in Iceberg's internal representation; `None` if the text is not exact. */
  def parse(text: String, partitionType: Type): Option[Any] = {
    val utf8 = UTF8String.fromString(text)
    partitionType.typeId match {
      case TypeID.BOOLEAN => text.toBooleanOption
      case TypeID.INTEGER => text.toIntOption
      case TypeID.LONG    => text.toLongOption
      // Iceberg distinguishes -0.0 from 0.0, which are equal in queries.
      case TypeID.FLOAT   => text.toFloatOption.map(_ + 0.0f)
      case TypeID.DOUBLE  => text.toDoubleOption.map(_ + 0.0d)
      case TypeID.DECIMAL =>
        val scale = partitionType.asInstanceOf[DecimalType].scale
        Try(new java.math.BigDecimal(text).setScale(scale)).toOption
      case TypeID.STRING    => Some(text)
      case TypeID.DATE      => SparkDateTimeUtils.stringToDate(utf8)
      case TypeID.TIMESTAMP =>
        if (partitionType.asInstanceOf[TimestampType].shouldAdjustToUTC)
          PartitionValue.instant(utf8)
        else SparkDateTimeUtils.stringToTimestampWithoutTimeZone(utf8, allowTimeZone = true)
      case _ => None
    }
  }
}
