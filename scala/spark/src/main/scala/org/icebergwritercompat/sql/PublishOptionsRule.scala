package org.icebergwritercompat.sql

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.delta.writercompat.publish.PublishProperties

/**
 * Converts the writer options of publishing to table properties.
 *
 * Of the options of a write that creates a table, Delta uses only those that begin with `delta.` as
 * properties, and ignores all others.
 */
object PublishOptionsRule extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    TableSpecs.changed(plan, PublishProperties.isOne) { (spec, options) =>
      val asked = PublishProperties.among(options) -- spec.properties.keys
      val isDelta = spec.provider.getOrElse(conf.defaultDataSourceName).equalsIgnoreCase("delta")
      Option.when(isDelta && asked.nonEmpty)(spec.properties ++ asked)
    }
}
