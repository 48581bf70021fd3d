package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.delta.util.PartitionUtils
import org.apache.spark.sql.types._
import org.icebergwritercompat.rules.ActionRules

/**
 * The values of partition columns as Delta reads them from its log, where a value is text that was
 * the name of a folder before.
 *
 * Some values do not come back as they were: an empty text and Hive's marker of null are null;
 * bytes that are no UTF-8 are replaced; of two instants with the same local time, when clocks are
 * set back, the first is meant; an instant before the year 1 loses the sign of its year.
 */
private[writercompat] object LoggedPartitions {

  /** What Delta reads once `value` is in the log, by way of a text in this time zone. */
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

  // What Delta puts into the log, unless it is told to leave out the zone, which is refused.
  private val instantText: java.lang.Long => String = { micros =>
    if (micros == null) null
    else
      PartitionUtils.literalToNormalizedString(
        Literal(micros.longValue, TimestampType),
        useUtcNormalizedTimestamp = true
      )
  }

  // A string of Java has no invalid bytes.
  private val readText: String => String = { written =>
    if (written == null || written.isEmpty || written == ActionRules.MarkerOfNull) null else written
  }
}
