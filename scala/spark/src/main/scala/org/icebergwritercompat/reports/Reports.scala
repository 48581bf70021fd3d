package org.icebergwritercompat.reports

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.writercompat.report.{TableHistory, TableInspector, WouldBreak}
import org.apache.spark.sql.delta.writercompat.upgrade.Upgrading
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.TableReport
import org.icebergwritercompat.upgrade.UpgradeRequest
import org.apache.spark.sql.delta.writercompat.read.MalformedLog

/** Reports on tables, given by name or path; none of them writes anything. */
object Reports {

  /** What the log of a table breaks, at a version or at the newest. */
  def check(spark: SparkSession, table: String, version: Option[Long]): TableReport =
    answer(spark, table)(new TableInspector(spark).check(table, version))

  /** The same, and what its data files break; at most `files` of them are opened. */
  def verify(
      spark: SparkSession,
      table: String,
      version: Option[Long],
      files: Option[Long]
  ): TableReport =
    answer(spark, table)(
      new TableInspector(spark).verify(
        table,
        version,
        files,
        (delta, snapshot) => new Upgrading(spark, delta, UpgradeRequest.plain).enabling(snapshot)
      )
    )

  /** Which version of a table broke which rule first. */
  def history(spark: SparkSession, table: String): TableReport =
    answer(spark, table)(new TableHistory(spark).of(table))

  /** What an ALTER, CREATE or REPLACE statement would do. */
  def wouldBreak(spark: SparkSession, statement: String): TableReport =
    answer(spark, new WouldBreak(spark).tableIn(statement))(
      new WouldBreak(spark).statement(statement)
    )

  /** What it would mean if the columns of a table were these. */
  def wouldBreak(spark: SparkSession, table: String, schema: StructType): TableReport =
    answer(spark, table)(new WouldBreak(spark).schema(table, schema))

  /** What it takes to switch the feature on, once its data files have been looked at. */
  def plan(
      spark: SparkSession,
      table: String,
      mode: String,
      rewrite: Boolean,
      drop: Seq[String],
      contract: Option[String]
  ): TableReport =
    answer(spark, table)(Upgrading.of(spark, table, mode, rewrite, drop, contract).plan())

  // What Spark and Delta object to is clear already; the others are of the log.
  private def answer(spark: SparkSession, table: => String)(report: => TableReport): TableReport =
    MalformedLog.explained(spark, table)(IcebergWriterCompatException.unreadable(table, _))(report)
}
