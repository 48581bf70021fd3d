package org.apache.spark.sql.delta.writercompat.publish

import org.apache.hadoop.fs.Path
import org.apache.iceberg.TableMetadata
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{CommittedTransaction, DeltaLog}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, TableStates}
import org.icebergwritercompat.iceberg.IcebergLibrary
import org.icebergwritercompat.iceberg.publish.{
  AfterCommits,
  ForeignImport,
  PublishInspection,
  PublishWay,
  Publishing
}
import org.icebergwritercompat.iceberg.source.TableAtVersion
import org.icebergwritercompat.iceberg.target.{CatalogSettings, PublishTarget, PublishTargets}
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.report.{PublishProblem, PublishResult, PublishStatus}

import scala.util.Try

/**
 * Publishes a Delta table of a session, where the settings of the session and the properties of the
 * table say.
 *
 * @param name
 *   how a statement names the table
 * @param committed
 *   a transaction of this process that has just committed to the table, if there is one
 */
final class SparkPublishing(
    spark: SparkSession,
    name: String,
    log: DeltaLog,
    catalogTable: Option[CatalogTable],
    committed: Option[CommittedTransaction] = None
) {

  private val source = new SparkDeltaSource(spark, name, log, catalogTable, committed)

  private val publishing = new Publishing(source, place)

  private val path = log.dataPath.toString

  private val inspection = new PublishInspection(
    source,
    publishing,
    new AfterCommits {
      override def isWaiting: Boolean = PublishHook.isWaiting(path)
      override def lastFailure: Option[PublishProblem] = PublishHook.lastFailure(path)
    }
  )

  /** See [[Publishing.publish]]. */
  def publish(way: PublishWay = PublishWay.Quick): PublishResult = publishing.publish(way)

  /** See [[Publishing.published]]. */
  def published(): (PublishResult, TableMetadata) = publishing.published(PublishWay.Quick)

  /** See [[ForeignImport.upTo]]. */
  def take(snapshotId: Long): PublishResult =
    new ForeignImport(source, publishing, new ForeignRows(log, catalogTable, _)).upTo(snapshotId)

  /** See [[Publishing.filesNeededSince]]. */
  def filesNeededSince(deletedBefore: Long, dryRun: Boolean): Seq[String] =
    publishing.filesNeededSince(deletedBefore, dryRun)

  /** See [[Publishing.metadataLocation]]. */
  def metadataLocation(): Option[String] = publishing.metadataLocation()

  /** See [[PublishInspection.status]]. */
  def status(): PublishStatus = inspection.status()

  /** See [[PublishInspection.problems]]. */
  def problems(): Seq[PublishProblem] = inspection.problems()

  private def place(newest: TableAtVersion): PublishTarget = {
    val conf = source.configuration
    val catalog = CatalogSettings.of(spark.conf.getAll, spark.sessionState.conf.warehousePath)
    PublishTargets.of(
      name,
      log.dataPath,
      conf,
      catalog,
      newest.properties
        .get(WriterCompat.PublishTable)
        .map(name => if (WriterCompat.isNoName(name)) Nil else DeltaTables.nameParts(name))
        .orElse(ownName(catalog.filter(_.isMetastore(conf)))),
      newest.properties.get(WriterCompat.PublishScheme)
    )
  }

  /**
   * The name of the Delta table.
   *
   * @param metastore
   *   the catalog, if the Delta table and the Iceberg table would have this name in the same list
   */
  private def ownName(metastore: Option[CatalogSettings]): Option[Seq[String]] =
    TableStates.identifierOf(spark, catalogTable, log.dataPath).map { table =>
      val session = spark.sessionState.catalog
      val parts = Seq(table.database.getOrElse(session.getCurrentDatabase), table.table)
      // CREATE TABLE commits before Spark adds the table to the metastore.
      for (catalog <- metastore if !session.tableExists(table))
        throw PublishTargets.nameInUse(name, catalog, parts.mkString("."))
      parts
    }
}

/** Publishes tables of a session. */
object SparkPublishing {

  /** The publishing of a table by name or path. */
  def of(spark: SparkSession, tableName: String): SparkPublishing =
    of(spark, DeltaTables.find(spark, tableName))

  private[publish] def of(spark: SparkSession, table: DeltaTableV2): SparkPublishing =
    new SparkPublishing(spark, TableStates.nameOf(table), table.deltaLog, table.catalogTable)

  /** Refuses a folder where a table that is made there could not be published. */
  def checkFolder(spark: SparkSession, name: String, folder: Path): Unit =
    // A catalog decides between publishers itself.
    if (CatalogSettings.of(spark.conf.getAll, spark.sessionState.conf.warehousePath).isEmpty)
      PublishTargets
        .of(name, folder, spark.sessionState.newHadoopConf(), None, None)
        .checkExclusive()

  /** What keeps readers from what is published of a table; empty if that cannot be found out. */
  def problems(spark: SparkSession, table: DeltaTableV2): Seq[PublishProblem] =
    Try(IcebergLibrary.needed(of(spark, table).problems())).getOrElse(Nil)
}
