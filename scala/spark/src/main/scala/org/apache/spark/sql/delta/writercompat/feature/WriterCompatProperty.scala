package org.apache.spark.sql.delta.writercompat.feature

import org.apache.spark.sql.delta.{DeltaConfig, DeltaConfigs}
import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

/** The properties that switch contracts on, as entries of Delta's property code. */
object WriterCompatProperty {

  private val entries = new ConcurrentHashMap[String, DeltaConfig[Boolean]]

  private def entryOf(contract: Contract): DeltaConfig[Boolean] = entries.computeIfAbsent(
    contract.property,
    property =>
      DeltaConfig[Boolean](
        key = property,
        defaultValue = "false",
        fromString = parse(property, _),
        validationFunction = _ => true,
        helpMessage = "needs to be true or false."
      )
  )

  private def parse(property: String, value: String): Boolean =
    value.trim.toLowerCase(Locale.ROOT).toBooleanOption.getOrElse {
      throw IcebergWriterCompatException.invalidValue(
        property,
        value,
        "true or false",
        Remedy.UseSetting(s"TBLPROPERTIES ('$property' = 'true')")
      )
    }

  private def shortKey(contract: Contract): String =
    contract.property.stripPrefix("delta.").toLowerCase(Locale.ROOT)

  /** Makes Delta accept the properties in statements, options and session defaults. */
  def register(): Unit = Contracts.all.foreach { contract =>
    DeltaConfigs.entries.put(shortKey(contract), entryOf(contract))
  }

  /** Whether Delta accepts the properties. */
  def isRegistered: Boolean = Contracts.all.forall { contract =>
    DeltaConfigs.entries.get(shortKey(contract)) eq entryOf(contract)
  }

  /** The session conf that gives new tables the property. */
  def sessionDefaultKey: String = entryOf(Contracts.default).defaultTablePropertyKey
}
