package org.icebergwritercompat.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.icebergwritercompat.WriterCompat

import java.util.Locale

/**
 * Sets the column mapping mode of new tables that have the feature and name no mode.
 *
 * Delta gives a new table with any IcebergCompat the mode `name` before any transaction sees its
 * properties, and then nobody can tell that from a wish of the user.
 */
class ColumnMappingByIdRule(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case create: CreateTable => withSpec(create, create.tableSpec)(s => create.copy(tableSpec = s))
    case create: CreateTableAsSelect =>
      withSpec(create, create.tableSpec)(s => create.copy(tableSpec = s))
    case replace: ReplaceTable =>
      withSpec(replace, replace.tableSpec)(s => replace.copy(tableSpec = s))
    case replace: ReplaceTableAsSelect =>
      withSpec(replace, replace.tableSpec)(s => replace.copy(tableSpec = s))
  }

  private def withSpec(plan: LogicalPlan, spec: TableSpecBase)(
      changed: TableSpecBase => LogicalPlan
  ): LogicalPlan =
    if (!isDelta(spec.provider) || !needsMode(spec.properties)) plan
    else {
      val properties =
        spec.properties + (WriterCompat.ColumnMappingMode -> WriterCompat.IdMode)
      spec match {
        case s: UnresolvedTableSpec => changed(s.copy(properties = properties))
        case s: TableSpec           => changed(s.copy(properties = properties))
        case _                      => plan
      }
    }

  private def isDelta(provider: Option[String]): Boolean =
    provider.getOrElse(conf.defaultDataSourceName).equalsIgnoreCase("delta")

  private val compatVersions = Seq(
    WriterCompat.IcebergCompatV1Enabled,
    WriterCompat.IcebergCompatV2Enabled,
    WriterCompat.IcebergCompatV3Enabled
  )

  private def needsMode(properties: Map[String, String]): Boolean = {
    val byKey = properties.map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }
    def get(key: String): Option[String] = byKey.get(key.toLowerCase(Locale.ROOT))
    def default(key: String): Option[String] =
      spark.sessionState.conf.getAllConfs
        .get("spark.databricks.delta.properties.defaults." + key.stripPrefix("delta."))
    val enabled = get(WriterCompat.Enabled).orElse(default(WriterCompat.Enabled))
    enabled.exists(_.trim.equalsIgnoreCase("true")) &&
    compatVersions.exists(get(_).exists(_.trim.equalsIgnoreCase("true"))) &&
    get(WriterCompat.ColumnMappingMode).isEmpty
  }
}
