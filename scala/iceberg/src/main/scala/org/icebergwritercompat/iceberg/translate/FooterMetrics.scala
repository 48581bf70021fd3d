package org.icebergwritercompat.iceberg.translate

import org.apache.iceberg.{Metrics, Schema}
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{DecimalType, NestedField}
import org.apache.iceberg.types.{Comparators, Conversions, Type}
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation
import org.apache.parquet.schema.{GroupType, Type => ParquetType}
import org.icebergwritercompat.contract.FileColumns
import org.icebergwritercompat.model.{ColumnChunk, Footer}

import java.lang.{Integer => JInteger, Long => JLong}
import java.math.{BigDecimal => JBigDecimal, BigInteger}
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Comparator, HashMap => JHashMap}
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * The metrics of a file, from its footer. Columns are found by their ids; one that the file does
 * not have is all null.
 *
 * A bound that is not surely one is left out. Nothing is told of what is below a list or map.
 */
object FooterMetrics {

  /** The metrics of a file that has this footer. */
  def of(footer: Footer, schema: Schema): Metrics = {
    val counts = new JHashMap[JInteger, JLong]
    val nulls = new JHashMap[JInteger, JLong]
    val lower = new JHashMap[JInteger, ByteBuffer]
    val upper = new JHashMap[JInteger, ByteBuffer]

    def leaf(field: NestedField, stored: Option[(ParquetType, Vector[String])]): Unit = {
      val id: JInteger = field.fieldId
      counts.put(id, footer.rowCount)
      stored match {
        case None                 => nulls.put(id, footer.rowCount)
        case Some((column, path)) =>
          val chunks = footer.chunks.getOrElse(path, Nil)
          if (chunks.forall(_.nullCount.isDefined)) nulls.put(id, chunks.flatMap(_.nullCount).sum)
          bounds(field.`type`, column, chunks, countsNaN(footer.createdBy)).foreach {
            case (least, greatest) =>
              lower.put(id, Conversions.toByteBuffer(field.`type`, least))
              upper.put(id, Conversions.toByteBuffer(field.`type`, greatest))
          }
      }
      ()
    }

    def visit(
        fields: Iterable[NestedField],
        group: Option[GroupType],
        path: Vector[String]
    ): Unit = {
      val byId = group.toSeq
        .flatMap(_.getFields.asScala)
        .flatMap(stored => FileColumns.idOf(stored).map(_ -> stored))
        .toMap
      fields.foreach { field =>
        val stored = byId.get(field.fieldId.toLong)
        if (field.`type`.isStructType)
          visit(
            field.`type`.asStructType.fields.asScala,
            stored.flatMap(FileColumns.structFields),
            path ++ stored.map(_.getName)
          )
        else if (field.`type`.isPrimitiveType)
          leaf(field, stored.filter(_.isPrimitive).map(column => (column, path :+ column.getName)))
      }
    }

    visit(schema.columns.asScala, Some(footer.schema), Vector.empty)
    new Metrics(footer.rowCount, null, counts, nulls, null, lower, upper)
  }

  private def bounds(
      of: Type,
      column: ParquetType,
      chunks: Seq[ColumnChunk],
      floats: Boolean
  ): Option[(Any, Any)] = {
    val isFloating = of.typeId == TypeID.FLOAT || of.typeId == TypeID.DOUBLE
    val (told, others) = chunks.partition(_.hasBounds)
    val known = others.forall(chunk => chunk.nullCount.contains(chunk.valueCount))
    if (told.isEmpty || !known || isFloating && !floats) None
    else {
      val values = told.map { chunk =>
        value(chunk.statistics.genericGetMin, of, column)
          .zip(value(chunk.statistics.genericGetMax, of, column))
      }
      val order: Ordering[Any] = Ordering.comparatorToOrdering(
        Comparators.forType[Any](of.asPrimitiveType).asInstanceOf[Comparator[Any]]
      )
      Option.when(values.forall(_.isDefined)) {
        val all = values.flatten
        (all.map(_._1).min(order), all.map(_._2).max(order))
      }
    }
  }

  // As Iceberg holds it in memory, in the column's type of today.
  private def value(stored: Any, of: Type, column: ParquetType): Option[Any] =
    (of.typeId, stored) match {
      case (TypeID.INTEGER | TypeID.DATE, number: JInteger) => Some(number.intValue)
      case (TypeID.LONG, number: JInteger)                  => Some(number.longValue)
      case (TypeID.LONG | TypeID.TIMESTAMP, number: JLong)  => Some(number.longValue)
      case (TypeID.FLOAT, number: java.lang.Float)    => finite(number.doubleValue).map(_.toFloat)
      case (TypeID.DOUBLE, number: Number)            => finite(number.doubleValue)
      case (TypeID.BOOLEAN, value: java.lang.Boolean) => Some(value.booleanValue)
      case (TypeID.DECIMAL, number)                   =>
        val decimal = of.asInstanceOf[DecimalType]
        scale(column).filter(_ == decimal.scale).flatMap { scale =>
          val unscaled = number match {
            case n: JInteger => Some(BigInteger.valueOf(n.longValue))
            case n: JLong    => Some(BigInteger.valueOf(n.longValue))
            case n: Binary   => Try(new BigInteger(n.getBytes)).toOption
            case _           => None
          }
          unscaled.map(new JBigDecimal(_, scale)).filter(_.precision <= decimal.precision)
        }
      case (TypeID.STRING, text: Binary) =>
        val bytes = text.getBytes
        val decoded = new String(bytes, UTF_8)
        Option.when(java.util.Arrays.equals(decoded.getBytes(UTF_8), bytes))(decoded)
      case _ => None
    }

  private def finite(number: Double): Option[Double] = Option.unless(number.isNaN)(number)

  private def scale(column: ParquetType): Option[Int] = column.getLogicalTypeAnnotation match {
    case decimal: DecimalLogicalTypeAnnotation => Some(decimal.getScale)
    case _                                     => None
  }

  /**
   * Whether the bounds of a writer count NaN, which then leaves none at all. Others leave it out: a
   * row that has it would not be found by what is above the bound.
   */
  private[translate] def countsNaN(createdBy: Option[String]): Boolean = createdBy.exists {
    case parquetJava(major, minor) =>
      major == "1" && minor.toIntOption.exists(number => number >= 10 && number <= 17)
    case _ => false
  }

  private val parquetJava = """(?s)parquet-mr version (\d+)\.(\d+)\..*""".r
}
