package org.icebergwritercompat

import org.apache.iceberg.SchemaParser
import org.apache.spark.sql.{Column, DataFrame, SparkSession}
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatProperty
import org.apache.spark.sql.delta.writercompat.install.WriterCompatHooks
import org.apache.spark.sql.delta.writercompat.prove.{IcebergRows, Proving}
import org.apache.spark.sql.delta.writercompat.publish.{PublishHook, PublishWay, Publishing}
import org.apache.spark.sql.delta.writercompat.upgrade.Upgrading
import org.apache.spark.sql.types.{DataType, StructType}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.BuildInfo
import org.icebergwritercompat.remedy.Rendering
import org.icebergwritercompat.report.ReportJson
import org.icebergwritercompat.reports.Reports
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, MalformedLog, Sessions}
import org.icebergwritercompat.iceberg.IcebergLibrary

import java.util.{List => JList}
import scala.jdk.CollectionConverters._

/**
 * What a program can ask for; the Python package calls nothing else.
 *
 * Each call works in the session that it names, on any thread.
 */
object IcebergWriterCompat {

  /** The version of this project. */
  def version: String = BuildInfo.version

  /** Whether commits in this JVM are guarded. */
  def isInstalled: Boolean = WriterCompatHooks.isInstalled

  /** Gives new tables of the session the feature. */
  def enableByDefault(spark: SparkSession): Unit =
    spark.conf.set(WriterCompatProperty.sessionDefaultKey, "true")

  /** New tables of the session have the feature only if they ask for it. */
  def disableByDefault(spark: SparkSession): Unit =
    spark.conf.unset(WriterCompatProperty.sessionDefaultKey)

  /** Whether new tables of the session have the feature. */
  def isEnabledByDefault(spark: SparkSession): Boolean =
    spark.conf.getOption(WriterCompatProperty.sessionDefaultKey).exists(_.equalsIgnoreCase("true"))

  /**
   * Switches the feature on for a table, given by name or path; false if it was on. No data file is
   * written anew.
   */
  def enable(spark: SparkSession, table: String): Boolean =
    explained(spark, table) {
      Upgrading.of(spark, table, "auto", rewrite = false, Nil).run().changed
    }

  /**
   * Switches the feature on for a table, given by name or path; what that did, as JSON.
   *
   * @param mode
   *   `auto`, `metadata` or `rewrite`
   * @param rewrite
   *   whether `auto` may write data files anew
   * @param drop
   *   what is to be taken away that stands in the way, by the names of `Drop`
   * @param contract
   *   the feature of the contract to switch on; null for the default one
   */
  def upgrade(
      spark: SparkSession,
      table: String,
      mode: String,
      rewrite: Boolean,
      drop: JList[String],
      contract: String
  ): String =
    explained(spark, table) {
      val chosen = Option(contract)
      ReportJson.of(Upgrading.of(spark, table, mode, rewrite, drop.asScala.toSeq, chosen).run())
    }

  /** What that would do, as the JSON of a report; nothing is written. */
  def upgradePlan(
      spark: SparkSession,
      table: String,
      mode: String,
      rewrite: Boolean,
      drop: JList[String],
      contract: String
  ): String =
    active(spark) {
      val chosen = Option(contract)
      ReportJson.of(Reports.plan(spark, table, mode, rewrite, drop.asScala.toSeq, chosen))
    }

  /** Takes the feature out of a table, given by name or path; false if it was not there. */
  def disable(spark: SparkSession, table: String): Boolean =
    explained(spark, table)(DeltaTables.disable(spark, DeltaTables.find(spark, table)))

  /** Whether a table, given by name or path, has the feature on. */
  def isEnabled(spark: SparkSession, table: String): Boolean =
    explained(spark, table)(DeltaTables.isEnabled(DeltaTables.find(spark, table)))

  /** The feature that a table, given by name or path, has on; null if it has none. */
  def contractOf(spark: SparkSession, table: String): String =
    explained(spark, table)(DeltaTables.contractOf(DeltaTables.find(spark, table)).orNull)

  /** The report of `Reports.check` as JSON; the newest version for null. */
  def check(spark: SparkSession, table: String, version: java.lang.Long): String =
    active(spark)(ReportJson.of(Reports.check(spark, table, optional(version))))

  /** The report of `Reports.verify` as JSON; the newest version and all files for null. */
  def verify(
      spark: SparkSession,
      table: String,
      version: java.lang.Long,
      files: java.lang.Long
  ): String =
    active(spark) {
      ReportJson.of(Reports.verify(spark, table, optional(version), optional(files)))
    }

  /** The report of `Reports.history` as JSON. */
  def history(spark: SparkSession, table: String): String =
    active(spark)(ReportJson.of(Reports.history(spark, table)))

  /** The report on what a statement would do, as JSON. */
  def wouldBreak(spark: SparkSession, statement: String): String =
    active(spark)(ReportJson.of(Reports.wouldBreak(spark, statement)))

  /** The report on what other columns would mean, as JSON; so is the schema. */
  def wouldBreakSchema(spark: SparkSession, table: String, schema: String): String =
    active(spark) {
      ReportJson.of(
        Reports.wouldBreak(spark, table, DataType.fromJson(schema).asInstanceOf[StructType])
      )
    }

  /** Publishes the newest version of a table as Iceberg; what that did, as JSON. */
  def publish(spark: SparkSession, table: String): String =
    explained(spark, table) {
      needed(ReportJson.of(Publishing.of(spark, table).publish()))
    }

  /** Publishes, and forgets snapshots that cannot be read; what that did, as JSON. */
  def publishMending(spark: SparkSession, table: String): String =
    needed(ReportJson.of(Publishing.of(spark, table).publish(PublishWay.Mending)))

  /** Begins a new line of metadata, whatever there is, and publishes; what that did, as JSON. */
  def publishAnew(spark: SparkSession, table: String): String =
    needed(ReportJson.of(Publishing.of(spark, table).publish(PublishWay.Anew)))

  /**
   * Appends to a table what an Iceberg writer has committed past it up to a snapshot, and publishes
   * that; what that did, as JSON.
   */
  def takeSnapshot(spark: SparkSession, table: String, snapshot: Long): String =
    needed(ReportJson.of(Publishing.of(spark, table).take(snapshot)))

  /** Publishes without what an Iceberg writer has committed up to a snapshot. */
  def discardSnapshot(spark: SparkSession, table: String, snapshot: Long): String =
    needed(
      ReportJson.of(Publishing.of(spark, table).publish(PublishWay.Settled(snapshot)))
    )

  /**
   * Publishes without what an Iceberg writer has changed of columns, partitions or properties.
   *
   * @param metadata
   *   the name of the metadata file that has the change
   */
  def discardChanges(spark: SparkSession, table: String, metadata: String): String =
    needed(
      ReportJson.of(Publishing.of(spark, table).publish(PublishWay.Discarding(metadata)))
    )

  /** How far a table is published as Iceberg, as JSON. */
  def publishStatus(spark: SparkSession, table: String): String =
    explained(spark, table) {
      needed(ReportJson.of(Publishing.of(spark, table).status()))
    }

  /**
   * Waits until what commits have left to be published in the background is; false if that takes
   * more than a minute. To be called before a session is stopped.
   */
  def awaitPublishing(): Boolean = PublishHook.drain()

  /** What Iceberg metadata has of a table, as JSON; the metadata published last for null. */
  def published(spark: SparkSession, table: String, location: String): String =
    iceberg(spark)(ReportJson.of(new Proving(spark, table).published(Option(location))))

  /** The columns that a version of a table has, as JSON. */
  def columns(spark: SparkSession, table: String, version: Long): String =
    active(spark)(ReportJson.ofColumns(new Proving(spark, table).columns(version)))

  /** The schema of published metadata as Iceberg's library has it, as Iceberg's JSON. */
  def icebergSchema(spark: SparkSession, location: String, snapshot: java.lang.Long): String =
    iceberg(spark)(SchemaParser.toJson(new IcebergRows(spark, location, optional(snapshot)).schema))

  /** The rows that Iceberg's generic reader reads; a filter is in Iceberg's JSON. */
  def icebergRows(
      spark: SparkSession,
      location: String,
      snapshot: java.lang.Long,
      filter: String
  ): DataFrame =
    iceberg(spark)(new IcebergRows(spark, location, optional(snapshot)).read(Option(filter)))

  /** The rows of a statement that is run to the letter, see [[Sessions.verbatim]]. */
  def statement(spark: SparkSession, statement: String): DataFrame =
    Sessions.verbatim(spark, statement)

  /** The rows of a version of a table, see [[Sessions.version]]. */
  def version(spark: SparkSession, table: String, version: Long): DataFrame =
    Sessions.active(spark)(Sessions.version(spark, table, version))

  /** An expression in SQL, to the letter. */
  def expression(text: String): Column = Sessions.expression(text)

  /** The parts of a name, to the letter. */
  def nameParts(name: String): JList[String] = DeltaTables.nameParts(name).asJava

  /** One rule as JSON, its id in letters of any case. */
  def explain(rule: String): String =
    ReportJson.of(
      Contracts.default.rules.all.find(_.id.equalsIgnoreCase(rule)).getOrElse {
        throw IcebergWriterCompatException.noSuchRule(rule, Contracts.default.rules.all.map(_.id))
      }
    )

  /** All rules as a JSON array. */
  def rules: String = ReportJson.of(Contracts.default.rules.all)

  // What is wrong with the log is told by the field; all else as it comes.
  private def explained[T](spark: SparkSession, table: String)(answer: => T): T =
    inPython(Sessions.active(spark)(MalformedLog.explained(spark, table)(identity)(answer)))

  private def iceberg[T](spark: SparkSession)(answer: => T): T =
    active(spark)(IcebergLibrary.needed(answer))

  private def needed[T](answer: => T): T = inPython(IcebergLibrary.needed(answer))

  private def active[T](spark: SparkSession)(answer: => T): T =
    inPython(Sessions.active(spark)(answer))

  // A refusal tells what mends it in the language of the caller.
  private def inPython[T](answer: => T): T =
    try answer
    catch { case refusal: IcebergWriterCompatException => throw refusal.in(Rendering.Python) }

  private def optional(number: java.lang.Long): Option[Long] = Option(number).map(_.longValue)
}
