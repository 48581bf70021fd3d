package org.icebergwritercompat.model

import org.apache.parquet.schema.{LogicalTypeAnnotation, PrimitiveType, Type}
import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.apache.parquet.schema.Type.Repetition
import org.apache.spark.sql.types._

import java.util.Locale

/**
 * The Parquet type of a data type.
 *
 * @param length
 *   the number of bytes of each value, if it is fixed
 */
final case class ParquetForm(
    physical: PrimitiveTypeName,
    length: Option[Int],
    annotation: Option[LogicalTypeAnnotation]
) {
  override def toString: String =
    physical.name.toLowerCase(Locale.ROOT) + length.fold("")(n => s"($n)") +
      annotation.fold("")(a => s" ($a)")
}

object ParquetForm {

  /** The form that Iceberg specifies for a primitive type. */
  def of(dataType: DataType): Option[ParquetForm] = Option(dataType).collect {
    case BooleanType          => form(BOOLEAN)
    case IntegerType          => form(INT32)
    case LongType             => form(INT64)
    case FloatType            => form(FLOAT)
    case DoubleType           => form(DOUBLE)
    case BinaryType           => form(BINARY)
    case _: StringType        => form(BINARY, stringType)
    case DateType             => form(INT32, dateType)
    case TimestampType        => form(INT64, timestampType(true, TimeUnit.MICROS))
    case TimestampNTZType     => form(INT64, timestampType(false, TimeUnit.MICROS))
    case decimal: DecimalType => decimalForm(decimal.precision, decimal.scale)
  }

  /**
   * Whether a file may store a column of this type in this form: its own form, or that of a type
   * which Iceberg can promote to it.
   */
  def isAllowed(dataType: DataType, stored: PrimitiveType): Boolean = {
    val found = of(stored)
    dataType match {
      case decimal: DecimalType =>
        found.annotation.exists {
          case a: DecimalLogicalTypeAnnotation =>
            a.getScale == decimal.scale && a.getPrecision > 0 &&
            a.getPrecision <= decimal.precision &&
            found == decimalForm(a.getPrecision, a.getScale)
          case _ => false
        }
      case IntegerType => integers(found)
      case LongType    => integers(found) || longs(found)
      case DoubleType  => found == form(FLOAT) || found == form(DOUBLE)
      case other       => of(other).contains(found)
    }
  }

  /** The form of a primitive field in a file. */
  def of(stored: PrimitiveType): ParquetForm =
    ParquetForm(
      stored.getPrimitiveTypeName,
      Option.when(stored.getPrimitiveTypeName == FIXED_LEN_BYTE_ARRAY)(stored.getTypeLength),
      Option(stored.getLogicalTypeAnnotation)
    )

  /** A description of a field of a file. */
  def describe(field: Type): String = {
    val repeated = if (field.isRepetition(Repetition.REPEATED)) "repeated " else ""
    val form =
      if (field.isPrimitive) of(field.asPrimitiveType).toString
      else "group" + Option(field.getLogicalTypeAnnotation).fold("")(a => s" ($a)")
    repeated + form
  }

  // Bytes and shorts are stored as int32; the annotation may have their width.
  private val integers: Set[ParquetForm] =
    Set(form(INT32)) ++ Seq(8, 16, 32).map(bits => form(INT32, intType(bits, true)))

  private val longs: Set[ParquetForm] = Set(form(INT64), form(INT64, intType(64, true)))

  private def decimalForm(precision: Int, scale: Int): ParquetForm = {
    val annotation = decimalType(scale, precision)
    if (precision <= Decimal.MAX_INT_DIGITS) form(INT32, annotation)
    else if (precision <= Decimal.MAX_LONG_DIGITS) form(INT64, annotation)
    else
      form(FIXED_LEN_BYTE_ARRAY, annotation)
        .copy(length = Some(Decimal.minBytesForPrecision(precision)))
  }

  private def form(physical: PrimitiveTypeName): ParquetForm = ParquetForm(physical, None, None)

  private def form(physical: PrimitiveTypeName, annotation: LogicalTypeAnnotation): ParquetForm =
    ParquetForm(physical, None, Some(annotation))
}
