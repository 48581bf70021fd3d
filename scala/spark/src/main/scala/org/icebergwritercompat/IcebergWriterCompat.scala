package org.icebergwritercompat

import org.apache.iceberg.SchemaParser
import org.apache.spark.sql.{Column, DataFrame, SparkSession}
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatProperty
import org.apache.spark.sql.delta.writercompat.install.WriterCompatHooks
import org.apache.spark.sql.delta.writercompat.prove.{GenericIcebergReader, ProofSource}
import org.apache.spark.sql.delta.writercompat.publish.{PublishHook, SparkPublishing}
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.apache.spark.sql.types.{DataType, StructType}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.{BuildInfo, WriterCompat}
import org.icebergwritercompat.remedy.Rendering
import org.icebergwritercompat.report.ReportJson
import org.icebergwritercompat.reports.Reports
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, MalformedLog, Sessions}
import org.icebergwritercompat.iceberg.IcebergLibrary
import org.icebergwritercompat.iceberg.metadata.RowLevelDeletes
import org.icebergwritercompat.iceberg.publish.PublishWay

import org.icebergwritercompat.sql.TableNames
import org.icebergwritercompat.rest.{RestServer, RestSettings}
import org.slf4j.LoggerFactory

import java.io.File
import java.time.Instant
import java.time.temporal.ChronoUnit
import java.util.{List => JList, Map => JMap}
import scala.jdk.CollectionConverters._

/**
 * The functions for programs; the Python package calls only these.
 *
 * Each call uses the session that is passed to it, and works on any thread.
 */
object IcebergWriterCompat {

  /** The version of this project. */
  def version: String = BuildInfo.version

  /** Whether the guard is installed in this JVM. */
  def isInstalled: Boolean = WriterCompatHooks.isInstalled

  /** Switches the feature on for new tables of the session. */
  def enableByDefault(spark: SparkSession): Unit =
    spark.conf.set(WriterCompatProperty.sessionDefaultKey, "true")

  /** Switches the session default off; new tables have the feature only with the property. */
  def disableByDefault(spark: SparkSession): Unit =
    spark.conf.unset(WriterCompatProperty.sessionDefaultKey)

  /** Whether new tables of the session have the feature. */
  def isEnabledByDefault(spark: SparkSession): Boolean =
    spark.conf.getOption(WriterCompatProperty.sessionDefaultKey).exists(WriterCompat.isTrue)

  /**
   * Switches the feature on for a table, given by name or path; returns false if it was on. Writes
   * no data file.
   */
  def enable(spark: SparkSession, table: String): Boolean =
    explained(spark, table) {
      TableUpgrade.of(spark, table, "auto", rewrite = false, Nil).run().changed
    }

  /**
   * Switches the feature on for a table, given by name or path; returns the result as JSON.
   *
   * @param mode
   *   `auto`, `metadata` or `rewrite`
   * @param rewrite
   *   whether `auto` may rewrite data files
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
      ReportJson.of(TableUpgrade.of(spark, table, mode, rewrite, drop.asScala.toSeq, chosen).run())
    }

  /** The plan to switch the feature on, as the JSON of a report; writes nothing. */
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

  /** Drops the feature from a table, given by name or path; returns false if it was off. */
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

  /** The report of `Reports.verify` as JSON; null means the newest version and all files. */
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

  /** The report of `Reports.wouldBreak` on a statement, as JSON. */
  def wouldBreak(spark: SparkSession, statement: String): String =
    active(spark)(ReportJson.of(Reports.wouldBreak(spark, statement)))

  /** The same for other columns; the schema is given as JSON. */
  def wouldBreakSchema(spark: SparkSession, table: String, schema: String): String =
    active(spark) {
      ReportJson.of(
        Reports.wouldBreak(spark, table, DataType.fromJson(schema).asInstanceOf[StructType])
      )
    }

  /** Publishes the newest version of a table; returns the result as JSON. */
  def publish(spark: SparkSession, table: String): String =
    explained(spark, table) {
      needed(ReportJson.of(SparkPublishing.of(spark, table).publish()))
    }

  /** Publishes, and removes snapshots that cannot be read; returns the result as JSON. */
  def publishMending(spark: SparkSession, table: String): String =
    needed(ReportJson.of(SparkPublishing.of(spark, table).publish(PublishWay.Mending)))

  /** Begins a new line of metadata, and publishes; returns the result as JSON. */
  def publishAnew(spark: SparkSession, table: String): String =
    needed(ReportJson.of(SparkPublishing.of(spark, table).publish(PublishWay.Anew)))

  /**
   * Appends the rows that an Iceberg writer committed, up to a snapshot, to the Delta table, and
   * publishes; returns the result as JSON.
   */
  def takeSnapshot(spark: SparkSession, table: String, snapshot: Long): String =
    needed(ReportJson.of(SparkPublishing.of(spark, table).take(snapshot)))

  /** Publishes, and discards the snapshots of an Iceberg writer up to this one. */
  def discardSnapshot(spark: SparkSession, table: String, snapshot: Long): String =
    needed(
      ReportJson.of(SparkPublishing.of(spark, table).publish(PublishWay.Settled(snapshot)))
    )

  /**
   * Publishes, and discards changes of an Iceberg writer to columns, partitions or properties.
   *
   * @param metadata
   *   the name of the metadata file with the change
   */
  def discardChanges(spark: SparkSession, table: String, metadata: String): String =
    needed(
      ReportJson.of(SparkPublishing.of(spark, table).publish(PublishWay.Discarding(metadata)))
    )

  /** The state of publishing of a table, as JSON. */
  def publishStatus(spark: SparkSession, table: String): String =
    explained(spark, table) {
      needed(ReportJson.of(SparkPublishing.of(spark, table).status()))
    }

  /**
   * Waits until the publishing in the background has finished; returns false after a minute. To be
   * called before a session is stopped.
   */
  def awaitPublishing(): Boolean = PublishHook.drain()

  /**
   * Starts an Iceberg REST catalog over the Delta tables of a session.
   *
   * @param token
   *   what clients have to send; null for none, and then only this machine is listened to
   * @param certificate
   *   the file with the certificates, in PEM; null for HTTP without TLS
   * @param key
   *   the file with the key of the certificate, in PEM
   * @param folders
   *   folders with Delta tables, by the name that each is offered as
   * @param rowLevelDeletes
   *   what becomes of the delete files of clients: `refuse` or `rewrite`
   * @param prints
   *   whether requests are printed to standard output; otherwise they are logged
   */
  def serve(
      spark: SparkSession,
      host: String,
      port: Int,
      token: String,
      certificate: String,
      key: String,
      folders: JMap[String, String],
      rowLevelDeletes: String,
      prints: Boolean
  ): RestServer = active(spark) {
    IcebergLibrary.needed {
      IcebergLibrary.require()
      val served = new ServedSession(spark, RowLevelDeletes.named(rowLevelDeletes))
      folders.asScala.foreach { case (table, folder) => served.offer(table, folder) }
      val log: String => Unit =
        if (prints) line => println(s"${Instant.now().truncatedTo(ChronoUnit.MILLIS)} $line")
        else requests.info(_)
      val tls = Option(certificate).map(file => (new File(file), new File(key)))
      RestServer.start(served, RestSettings(host, port, Option(token), tls, log))
    }
  }

  private val requests = LoggerFactory.getLogger("org.icebergwritercompat.rest.requests")

  /** The content of Iceberg metadata, as JSON; null means the metadata published last. */
  def published(spark: SparkSession, table: String, location: String): String =
    iceberg(spark)(ReportJson.of(new ProofSource(spark, table).published(Option(location))))

  /** The columns of a version of a table, as JSON. */
  def columns(spark: SparkSession, table: String, version: Long): String =
    active(spark)(ReportJson.ofColumns(new ProofSource(spark, table).columns(version)))

  /** The schema of published metadata in Iceberg's JSON. */
  def icebergSchema(spark: SparkSession, location: String, snapshot: java.lang.Long): String =
    iceberg(spark)(
      SchemaParser.toJson(new GenericIcebergReader(spark, location, optional(snapshot)).schema)
    )

  /** The rows that Iceberg's generic reader reads; the filter is in Iceberg's JSON. */
  def icebergRows(
      spark: SparkSession,
      location: String,
      snapshot: java.lang.Long,
      filter: String
  ): DataFrame =
    iceberg(spark)(
      new GenericIcebergReader(spark, location, optional(snapshot)).read(Option(filter))
    )

  /**
   * The rows of a statement, run without the substitution of variables; see [[Sessions.verbatim]].
   */
  def statement(spark: SparkSession, statement: String): DataFrame =
    Sessions.verbatim(spark, statement)

  /** The rows of a version of a table, see [[Sessions.version]]. */
  def version(spark: SparkSession, table: String, version: Long): DataFrame =
    Sessions.active(spark)(Sessions.version(spark, table, version))

  /** A SQL expression, without the substitution of variables. */
  def expression(text: String): Column = Sessions.expression(text)

  /** The Delta tables of a schema, by names as statements spell them. */
  def tablesInSchema(spark: SparkSession, schema: String): JList[String] =
    active(spark)(TableNames.inSchema(spark, schema).asJava)

  /** The Delta tables of all schemas of a catalog. */
  def tablesInCatalog(spark: SparkSession, catalog: String): JList[String] =
    active(spark)(TableNames.inCatalog(spark, catalog).asJava)

  // Errors of a malformed log name the field; other errors are not changed.
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
