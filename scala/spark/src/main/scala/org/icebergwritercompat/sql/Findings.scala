package org.icebergwritercompat.sql

import org.apache.spark.sql.types._
import org.icebergwritercompat.report.{Finding, TableReport}

import java.sql.Timestamp
import java.time.Instant

/** The result sets of reports: one row for each finding. */
private[sql] object Findings {

  /** A finding and its report. */
  type Row = (TableReport, Finding)

  /** The rows of a report. */
  def in(report: TableReport): Seq[Row] = report.findings.map(report -> _)

  /** The columns of `check`, `verify` and `would_break`. */
  val columns: ResultSet[Row] = ResultSet
    .rowsOf[Row]
    .and("table_name", StringType)(_._1.table)
    .and("table_version", LongType)(_._1.version)
    .and("rule", StringType)(_._2.rule)
    .and("severity", StringType)(_._2.severity.name)
    .and("clauses", ArrayType(StringType))(_._2.clauses)
    .and("place_kind", StringType)(_._2.place.kind)
    .and("place", StringType)(_._2.place.name)
    .and("column_id", LongType)(_._2.place.id)
    .and("physical_name", StringType)(_._2.place.physicalName)
    .and("value", StringType)(_._2.place.value)
    .and("files", LongType)(_._2.files)
    .and("examples", ArrayType(StringType))(_._2.examples)
    .and("found", StringType)(_._2.found)
    .and("required", StringType)(_._2.required)
    .and("why", StringType)(_._2.why)
    .and("fix", ArrayType(StringType))(_._2.remedy.sql)

  /** The columns of `history`. */
  val historyColumns: ResultSet[Row] = columns
    .and("first_version", LongType)(_._2.firstVersion)
    .and("first_timestamp", TimestampType)(
      _._2.firstTimestamp.map(text => Timestamp.from(Instant.parse(text)))
    )
    .and("operation", StringType)(_._2.operation)
    .and("mended_version", LongType)(_._2.mendedVersion)
}
