package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.delta.util.PartitionUtils
import org.apache.spark.sql.types._
import org.icebergwritercompat.rules.ActionRules

/**
 * The values of partition columns as Delta reads them from its log, where a value is text in the
 * form of a folder name.
 *
 * Some values change on the way: an empty text and `__HIVE_DEFAULT_PARTITION__` become null; bytes
 * that are not UTF-8 are replaced; of two instants with the same local time, when clocks are set
 * back, the second becomes the first; an instant before the year 1 loses the sign of its year.
 */
private[writercompat] object LoggedPartitions {

  /** The value that Delta reads if `value` is written to the log as text in this time zone. */
  def asRead(value: Expression, zone: String): Expression = {
    def cast(value: Expression, to: DataType) = Cast(value, to, Some(zone), ansiEnabled = false)
    value.dataType match {
      case StringType                  => text(value)
      case BinaryType                  => cast(text(cast(value, StringType)), BinaryType)
      case DateType | TimestampNTZType => cast(cast(value, StringType), value.dataType)
      case TimestampType               =>
        val local = cast(cast(value, StringType), TimestampType)
        cast(ScalaUDF(instantText, StringType, Seq(UnixMicros(local))), TimestampType)
      case _ => value
    }
  }

  private def text(value: Expression): Expression = ScalaUDF(readText, StringType, Seq(value))

  // The text that Delta writes into the log. With `write.utcTimestampPartitionValues` = false it
  // writes another one, which rule D4 refuses.
  private val instantText: java.lang.Long => String = { micros =>
    if (micros == null) null
    else
      PartitionUtils.literalToNormalizedString(
        Literal(micros.longValue, TimestampType),
        useUtcNormalizedTimestamp = true
      )
  }

  // The conversion to a Java string replaces invalid bytes.
  private val readText: String => String = { written =>
    if (written == null || written.isEmpty || written == ActionRules.MarkerOfNull) null else written
  }
}
