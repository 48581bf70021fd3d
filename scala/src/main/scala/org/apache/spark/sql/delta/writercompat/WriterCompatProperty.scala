package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.delta.{DeltaConfig, DeltaConfigs}
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy

import java.util.Locale

/** The property `delta.enableIcebergWriterCompatV1`, as Delta's property code sees it. */
object WriterCompatProperty {

  private val entry = DeltaConfig[Boolean](
    key = WriterCompat.Enabled,
    defaultValue = "false",
    fromString = parse,
    validationFunction = _ => true,
    helpMessage = "needs to be true or false."
  )

  private def parse(value: String): Boolean =
    value.trim.toLowerCase(Locale.ROOT).toBooleanOption.getOrElse {
      throw IcebergWriterCompatException.invalidValue(
        WriterCompat.Enabled,
        value,
        "true or false",
        Remedy.UseSetting(s"TBLPROPERTIES ('${WriterCompat.Enabled}' = 'true')")
      )
    }

  private val shortKey = WriterCompat.Enabled.stripPrefix("delta.").toLowerCase(Locale.ROOT)

  /** Makes Delta accept the property in statements, options and session defaults. */
  def register(): Unit = { DeltaConfigs.entries.put(shortKey, entry); () }

  /** Whether Delta accepts the property. */
  def isRegistered: Boolean = DeltaConfigs.entries.get(shortKey) eq entry

  /** The session conf that gives new tables the property. */
  def sessionDefaultKey: String = entry.defaultTablePropertyKey
}
