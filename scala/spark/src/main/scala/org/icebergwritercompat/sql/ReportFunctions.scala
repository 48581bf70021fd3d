package org.icebergwritercompat.sql

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, FunctionIdentifier, InternalRow}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{LocalScan, Scan, ScanBuilder}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.{Finding, TableReport}
import org.icebergwritercompat.reports.Reports

import java.sql.Timestamp
import java.time.Instant
import java.util.{Set => JSet}

/** The table functions for reports; they also work through Spark Connect. */
object ReportFunctions {

  /** The argument of `SparkSessionExtensions.injectTableFunction`. */
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  private val findingColumns: Seq[(StructField, (TableReport, Finding) => Any)] = Seq(
    column("table_name", StringType)((report, _) => report.table),
    column("table_version", LongType)((report, _) => report.version.orNull),
    column("rule", StringType)((_, finding) => finding.rule),
    column("severity", StringType)((_, finding) => finding.severity.name),
    column("clauses", ArrayType(StringType))((_, finding) => finding.clauses),
    column("place_kind", StringType)((_, finding) => finding.place.kind),
    column("place", StringType)((_, finding) => finding.place.name),
    column("column_id", LongType)((_, finding) => finding.place.id.orNull),
    column("physical_name", StringType)((_, finding) => finding.place.physicalName.orNull),
    column("value", StringType)((_, finding) => finding.place.value.orNull),
    column("files", LongType)((_, finding) => finding.files.orNull),
    column("examples", ArrayType(StringType))((_, finding) => finding.examples),
    column("found", StringType)((_, finding) => finding.found),
    column("required", StringType)((_, finding) => finding.required),
    column("why", StringType)((_, finding) => finding.why),
    column("fix", ArrayType(StringType))((_, finding) => finding.remedy.sql)
  )

  private val historyColumns: Seq[(StructField, (TableReport, Finding) => Any)] =
    findingColumns ++ Seq(
      column("first_version", LongType)((_, finding) => finding.firstVersion.orNull),
      column("first_timestamp", TimestampType) { (_, finding) =>
        finding.firstTimestamp.map(text => Timestamp.from(Instant.parse(text))).orNull
      },
      column("operation", StringType)((_, finding) => finding.operation.orNull),
      column("mended_version", LongType)((_, finding) => finding.mendedVersion.orNull)
    )

  /** All functions. */
  val all: Seq[Description] = Seq(
    function("check", "table [, version]", "the rules that its log breaks", findingColumns) {
      (spark, table, version) => Reports.check(spark, table, version)
    },
    function(
      "verify",
      "table [, files]",
      "the rules that its log and data files break",
      findingColumns
    ) { (spark, table, files) =>
      Reports.verify(spark, table, None, files)
    },
    function("history", "table", "the versions that first broke each rule", historyColumns) {
      (spark, table, _) => Reports.history(spark, table)
    }
  )

  private def column(name: String, dataType: DataType)(value: (TableReport, Finding) => Any) =
    StructField(name, dataType) -> value

  private def function(
      name: String,
      parameters: String,
      answer: String,
      columns: Seq[(StructField, (TableReport, Finding) => Any)]
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

  // Evaluated once, when the query is planned, not when it is analysed.
  private def relation(
      function: String,
      columns: Seq[(StructField, (TableReport, Finding) => Any)],
      report: => TableReport
  ): LogicalPlan = {
    lazy val asked = report
    val shape = StructType(columns.map(_._1))
    val convert = CatalystTypeConverters.createToCatalystConverter(shape)
    val table = new FindingsTable(
      function,
      shape,
      () =>
        asked.findings.map { finding =>
          convert(Row.fromSeq(columns.map { case (_, value) => value(asked, finding) }))
            .asInstanceOf[InternalRow]
        }.toArray
    )
    DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty)
  }

  private final class FindingsTable(
      function: String,
      shape: StructType,
      findings: () => Array[InternalRow]
  ) extends Table
      with SupportsRead {

    override def name: String = function

    @deprecated("Spark still calls it.", "")
    override def schema: StructType = shape

    override def capabilities: JSet[TableCapability] = JSet.of(TableCapability.BATCH_READ)

    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
      new LocalScan {
        override def readSchema: StructType = shape
        override def rows: Array[InternalRow] = findings()
        override def description: String = function
      }: Scan
  }
}
