package org.icebergwritercompat.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Gives a session the catalog of the procedures, unless it has another catalog of this name.
 *
 * Spark looks for a catalog in the settings of the session when a statement names one. The rule has
 * to run before Spark resolves names, and at each statement: RESET takes settings away.
 */
final class ProcedureCatalogRule(spark: SparkSession) extends Rule[LogicalPlan] {

  private val key = s"spark.sql.catalog.${Procedures.catalog}"

  private val catalogClass = classOf[WriterCompatProcedures].getName

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val settings = spark.sessionState.conf
    if (!settings.contains(key)) settings.setConfString(key, catalogClass)
    plan
  }
}
