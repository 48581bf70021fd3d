package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.apache.spark.sql.delta.util.TransactionHelper
import org.icebergwritercompat.rules.{Moment, ProtocolState, TableState}

import org.apache.hadoop.fs.Path
import scala.util.Try

/** Shows Delta's actions to the rules. */
object TableStates {

  /** The state that `protocol` and `metadata` describe. */
  def of(name: String, moment: Moment, protocol: Protocol, metadata: Metadata): TableState =
    TableState(
      name,
      moment,
      ProtocolState(
        protocol.minReaderVersion,
        protocol.minWriterVersion,
        protocol.readerFeatures,
        protocol.writerFeatures),
      metadata.configuration,
      metadata.schema,
      metadata.partitionColumns)

  /** How a statement refers to the table of a transaction. */
  def nameOf(spark: SparkSession, transaction: TransactionHelper): String =
    transaction.catalogTable
      .map(table => sql(table.identifier))
      .orElse(managedTable(spark, transaction.dataPath).map(sql))
      .getOrElse(s"delta.`${transaction.dataPath}`")

  private def sql(table: TableIdentifier): String =
    (table.database.toSeq :+ table.table).map(quoteIfNeeded).mkString(".")

  // While a table is being created, Delta knows its folder only. A managed table's folder is the
  // one that the session catalog gives to its name.
  private def managedTable(spark: SparkSession, folder: Path): Option[TableIdentifier] = {
    val catalog = spark.sessionState.catalog
    val parent = Option(folder.getParent).map(_.getName).getOrElse("")
    val databases = Seq(parent.stripSuffix(".db"), catalog.getCurrentDatabase).distinct
    databases.iterator
      .map(database => TableIdentifier(folder.getName, Some(database)))
      .find { table =>
        Try(new Path(catalog.defaultTablePath(table))).toOption
          .exists(_.toUri.getPath == folder.toUri.getPath)
      }
  }
}
