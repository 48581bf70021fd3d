package org.icebergwritercompat.reports

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.writercompat.report.{TableHistory, TableInspector, WouldBreak}
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.TableReport
import org.icebergwritercompat.upgrade.UpgradeRequest
import org.apache.spark.sql.delta.writercompat.read.MalformedLog

/** Makes reports on tables, given by name or path; writes nothing. */
object Reports {

  /** The violations in the log of a table, at a version or at the newest. */
  def check(spark: SparkSession, table: String, version: Option[Long]): TableReport =
    answer(spark, table)(new TableInspector(spark).check(table, version))

  /** The same, and the violations in at most `files` of its data files. */
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
        (delta, snapshot) => new TableUpgrade(spark, delta, UpgradeRequest.plain).enabling(snapshot)
      )
    )

  /** The versions of a table that first broke each rule. */
  def history(spark: SparkSession, table: String): TableReport =
    answer(spark, table)(new TableHistory(spark).of(table))

  /** The violations that an ALTER, CREATE or REPLACE statement would cause. */
  def wouldBreak(spark: SparkSession, statement: String): TableReport =
    answer(spark, new WouldBreak(spark).tableIn(statement))(
      new WouldBreak(spark).statement(statement)
    )

  /** The violations that these columns of a table would cause. */
  def wouldBreak(spark: SparkSession, table: String, schema: StructType): TableReport =
    answer(spark, table)(new WouldBreak(spark).schema(table, schema))

  /** The plan to switch the feature on, with the footers of all data files. */
  def plan(
      spark: SparkSession,
      table: String,
      mode: String,
      rewrite: Boolean,
      drop: Seq[String],
      contract: Option[String]
  ): TableReport =
    answer(spark, table)(TableUpgrade.of(spark, table, mode, rewrite, drop, contract).plan())

  // Errors of Spark and Delta with a condition are clear; others may be caused by the log.
  private def answer(spark: SparkSession, table: => String)(report: => TableReport): TableReport =
    MalformedLog.explained(spark, table)(IcebergWriterCompatException.unreadable(table, _))(report)
}
