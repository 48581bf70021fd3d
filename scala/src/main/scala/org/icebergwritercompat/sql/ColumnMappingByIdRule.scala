package org.icebergwritercompat.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.icebergwritercompat.WriterCompat

import java.util.Locale

/**
 * Sets what Delta asks for before any transaction sees the properties of a new table that has the
 * feature, unless the statement says otherwise.
 *
 * Delta gives a new table with any IcebergCompat the mode `name`, and then nobody can tell that
 * from a wish of the user; and it refuses UniForm without an IcebergCompat in its own words.
 */
class ColumnMappingByIdRule(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case create: CreateTable =>
      withSpec(create, create.tableSpec, Map.empty)(s => create.copy(tableSpec = s))
    case create: CreateTableAsSelect =>
      withSpec(create, create.tableSpec, create.writeOptions)(s => create.copy(tableSpec = s))
    case replace: ReplaceTable =>
      withSpec(replace, replace.tableSpec, Map.empty)(s => replace.copy(tableSpec = s))
    case replace: ReplaceTableAsSelect =>
      withSpec(replace, replace.tableSpec, replace.writeOptions)(s => replace.copy(tableSpec = s))
  }

  // Delta takes what a DataFrame is written with for properties too.
  private def withSpec(plan: LogicalPlan, spec: TableSpecBase, options: Map[String, String])(
      changed: TableSpecBase => LogicalPlan
  ): LogicalPlan = {
    val missing =
      if (isDelta(spec.provider)) missingFrom(options ++ spec.properties)
      else Map.empty[String, String]
    if (missing.isEmpty) plan
    else
      spec match {
        case s: UnresolvedTableSpec => changed(s.copy(properties = s.properties ++ missing))
        case s: TableSpec           => changed(s.copy(properties = s.properties ++ missing))
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

  private def missingFrom(properties: Map[String, String]): Map[String, String] = {
    val byKey = properties.map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value }
    def get(key: String): Option[String] = byKey.get(key.toLowerCase(Locale.ROOT))
    def default(key: String): Option[String] =
      spark.sessionState.conf.getAllConfs
        .get("spark.databricks.delta.properties.defaults." + key.stripPrefix("delta."))
    def isTrue(value: Option[String]): Boolean = value.exists(_.trim.equalsIgnoreCase("true"))
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
