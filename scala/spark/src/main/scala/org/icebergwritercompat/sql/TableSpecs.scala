package org.icebergwritercompat.sql

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical._

/** The table specifications in plans that create or replace a table. */
private[sql] object TableSpecs {

  /**
   * The plan with other properties of its table, if `properties` returns some.
   *
   * @param leaving
   *   the options to remove, because Delta does not accept properties with their names
   * @param properties
   *   computes them from the specification of the table and all options of the plan
   */
  def changed(plan: LogicalPlan, leaving: String => Boolean = _ => false)(
      properties: (TableSpecBase, Map[String, String]) => Option[Map[String, String]]
  ): LogicalPlan = {
    def change(plan: LogicalPlan, spec: TableSpecBase, writeOptions: Map[String, String])(
        withSpec: TableSpecBase => LogicalPlan
    ): LogicalPlan =
      properties(spec, options(spec) ++ writeOptions).fold(plan) { set =>
        spec match {
          case s: UnresolvedTableSpec =>
            val kept = OptionList(s.optionExpression.options.filterNot(o => leaving(o._1)))
            withSpec(s.copy(properties = set, optionExpression = kept))
          case s: TableSpec =>
            withSpec(s.copy(properties = set, options = s.options.filterNot(o => leaving(o._1))))
          case _ => plan
        }
      }
    plan.resolveOperators {
      case create: CreateTable =>
        change(create, create.tableSpec, Map.empty)(s => create.copy(tableSpec = s))
      case create: CreateTableAsSelect =>
        change(create, create.tableSpec, create.writeOptions)(s => create.copy(tableSpec = s))
      case replace: ReplaceTable =>
        change(replace, replace.tableSpec, Map.empty)(s => replace.copy(tableSpec = s))
      case replace: ReplaceTableAsSelect =>
        change(replace, replace.tableSpec, replace.writeOptions)(s => replace.copy(tableSpec = s))
    }
  }

  private def options(spec: TableSpecBase): Map[String, String] = spec match {
    case s: TableSpec           => s.options
    case s: UnresolvedTableSpec =>
      s.optionExpression.options.collect { case (key, Literal(value, _)) =>
        key -> String.valueOf(value)
      }.toMap
    case _ => Map.empty
  }
}
