package org.icebergwritercompat.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.icebergwritercompat.model.WriterCompat

import java.util.Locale

/**
 * Sets properties of a new table with the feature that Delta requires before a transaction sees the
 * properties, unless the statement sets them.
 *
 * Delta sets the mode `name` for a new table with IcebergCompat, which could then not be
 * distinguished from a mode that the user set; and it refuses UniForm without IcebergCompat with
 * its own error.
 */
class ColumnMappingByIdRule(spark: SparkSession) extends Rule[LogicalPlan] {

  // Delta also uses the options of a DataFrame writer as properties.
  override def apply(plan: LogicalPlan): LogicalPlan = TableSpecs.changed(plan) { (spec, options) =>
    val missing =
      if (isDelta(spec.provider)) missingFrom(options ++ spec.properties)
      else Map.empty[String, String]
    Option.when(missing.nonEmpty)(spec.properties ++ missing)
  }

  private def isDelta(provider: Option[String]): Boolean =
    provider.getOrElse(conf.defaultDataSourceName).equalsIgnoreCase("delta")

  private val compatVersions = Seq(
    WriterCompat.IcebergCompatV1Enabled,
    WriterCompat.IcebergCompatV2Enabled,
    WriterCompat.IcebergCompatV3Enabled
  )

  private def missingFrom(properties: Map[String, String]): Map[String, String] = {
    val byKey = properties.map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }
    def get(key: String): Option[String] = byKey.get(key.toLowerCase(Locale.ROOT))
    def default(key: String): Option[String] =
      spark.sessionState.conf.getAllConfs.get(WriterCompat.sessionDefaultKey(key))
    def isTrue(value: Option[String]): Boolean = value.exists(WriterCompat.isTrue)
    val hasUniForm = WriterCompat.isUniFormIceberg(
      get(WriterCompat.UniversalFormats).map(WriterCompat.UniversalFormats -> _).toMap
    )
    if (!isTrue(get(WriterCompat.Enabled).orElse(default(WriterCompat.Enabled)))) Map.empty
    else {
      val version = Option.when(hasUniForm && compatVersions.forall(get(_).isEmpty)) {
        WriterCompat.IcebergCompatV2Enabled -> "true"
      }
      val mode = Option.when(
        (version.isDefined || compatVersions.exists(key => isTrue(get(key)))) &&
          get(WriterCompat.ColumnMappingMode).isEmpty
      )(WriterCompat.ColumnMappingMode -> WriterCompat.IdMode)
      (version ++ mode).toMap
    }
  }
}
