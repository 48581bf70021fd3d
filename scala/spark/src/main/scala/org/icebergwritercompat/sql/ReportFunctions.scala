package org.icebergwritercompat.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, FunctionIdentifier}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{LocalScan, Scan, ScanBuilder}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.TableReport
import org.icebergwritercompat.reports.Reports

import java.util.{Set => JSet}

/** The table functions for reports; they also work through Spark Connect. */
object ReportFunctions {

  /** The argument of `SparkSessionExtensions.injectTableFunction`. */
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  /** All functions. */
  val all: Seq[Description] = Seq(
    function("check", "table [, version]", "the rules that its log breaks", Findings.columns) {
      (spark, table, version) => Reports.check(spark, table, version)
    },
    function(
      "verify",
      "table [, files]",
      "the rules that its log and data files break",
      Findings.columns
    ) { (spark, table, files) =>
      Reports.verify(spark, table, None, files)
    },
    function(
      "history",
      "table",
      "the versions that first broke each rule",
      Findings.historyColumns
    ) { (spark, table, _) =>
      Reports.history(spark, table)
    }
  )

  private def function(
      name: String,
      parameters: String,
      answer: String,
      columns: ResultSet[Findings.Row]
  )(report: (SparkSession, String, Option[Long]) => TableReport): Description = {
    val fullName = s"iceberg_writer_compat_$name"
    val most = parameters.count(_ == ',') + 1
    val usage = s"_FUNC_($parameters) - Returns, for a Delta table, $answer, one row per finding."
    val builder = (arguments: Seq[Expression]) => {
      val values = arguments.map(valueOf(fullName, parameters, _))
      if (values.isEmpty || values.sizeIs > most) throw wrongArguments(fullName, parameters)
      val table = values.head match {
        case text: String => text
        case _            => throw wrongArguments(fullName, parameters)
      }
      val number = values.lift(1).map {
        case n @ (_: Byte | _: Short | _: Int | _: Long) => n.asInstanceOf[Number].longValue
        case _ => throw wrongArguments(fullName, parameters)
      }
      relation(fullName, columns, report(SparkSession.active, table, number))
    }
    (
      FunctionIdentifier(fullName),
      new ExpressionInfo(getClass.getName, "", fullName, usage, "", "", "", "", "", "", ""),
      builder
    )
  }

  private def valueOf(name: String, parameters: String, argument: Expression): Any =
    if (argument.foldable) CatalystTypeConverters.convertToScala(argument.eval(), argument.dataType)
    else throw wrongArguments(name, parameters)

  private def wrongArguments(name: String, parameters: String) =
    IcebergWriterCompatException.wrongArguments(name, parameters)

  // The report is made when the query is planned, not when it is analysed.
  private def relation(
      function: String,
      columns: ResultSet[Findings.Row],
      report: => TableReport
  ): LogicalPlan = {
    val table = new FindingsTable(columns.scan(function)(Findings.in(report)))
    DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty)
  }

  private final class FindingsTable(findings: LocalScan) extends Table with SupportsRead {

    override def name: String = findings.description

    @deprecated("Spark still calls it.", "")
    override def schema: StructType = findings.readSchema

    override def capabilities: JSet[TableCapability] = JSet.of(TableCapability.BATCH_READ)

    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
      () => findings: Scan
  }
}
