package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.util.QuotingUtils.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.util.TransactionHelper
import org.icebergwritercompat.contract.{
  Contract,
  FileFormat,
  Lifecycle,
  Profile,
  ProtocolState,
  TableState
}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy

import scala.util.Try

/** Makes states of tables, which the rules check, from Delta's actions; and names of tables. */
object TableStates {

  /** The state that `protocol` and `metadata` describe. */
  def of(
      name: String,
      lifecycle: Lifecycle,
      protocol: Protocol,
      metadata: Metadata,
      profile: Profile,
      previous: Option[TableState] = None
  ): TableState =
    TableState(
      name,
      lifecycle,
      ProtocolState(
        protocol.minReaderVersion,
        protocol.minWriterVersion,
        protocol.readerFeatures,
        protocol.writerFeatures
      ),
      metadata.configuration,
      metadata.schema,
      metadata.partitionColumns.map(Option(_).getOrElse("<null>")),
      contractOf(metadata, previous),
      FileFormat(metadata.format.provider, metadata.format.options),
      profile,
      previous
    )

  // A table that leaves its contract is still checked by it.
  private def contractOf(metadata: Metadata, previous: Option[TableState]): Contract =
    Contracts
      .of(metadata.configuration)
      .orElse(previous.map(_.contract))
      .getOrElse(Contracts.default)

  /** The profile that the session has chosen. */
  def profile(spark: SparkSession): Profile = {
    val name = spark.conf.get(Profile.Conf, Profile.Rfc.name)
    Profile.named(name).getOrElse {
      throw IcebergWriterCompatException.invalidValue(
        Profile.Conf,
        name,
        Profile.all.map(_.name).mkString(" or "),
        Remedy.SetSetting(Seq(Profile.Conf -> Profile.Rfc.name))
      )
    }
  }

  /** How a statement refers to the table of a transaction. */
  def nameOf(spark: SparkSession, transaction: TransactionHelper): String =
    nameOf(spark, transaction.catalogTable, transaction.deltaLog.dataPath)

  /** The same for a table by its identifier. */
  def nameOf(identifier: Identifier): String =
    (identifier.namespace.toSeq :+ identifier.name).map(quoteIfNeeded).mkString(".")

  /** How a statement refers to the table in a folder. */
  def nameOf(folder: String): String = pathName(new Path(folder))

  /** The same for a table by its catalog entry, if Delta has it, and by its folder. */
  def nameOf(spark: SparkSession, catalogTable: Option[CatalogTable], folder: Path): String =
    catalogTable
      .map(_.identifier)
      .orElse(managedTable(spark, folder).filter(isKnown(spark, _)))
      .map(sql)
      .getOrElse(pathName(folder))

  // A folder in the warehouse may hold a table that is in no catalog.
  private def isKnown(spark: SparkSession, table: TableIdentifier): Boolean =
    RunningStatement.creates(table) || Try(spark.sessionState.catalog.tableExists(table))
      .getOrElse(false)

  /** The identifier of that table in the session catalog. */
  def identifierOf(
      spark: SparkSession,
      catalogTable: Option[CatalogTable],
      folder: Path
  ): Option[TableIdentifier] =
    catalogTable.map(_.identifier).orElse(managedTable(spark, folder))

  /** How a statement refers to a table. */
  def nameOf(table: DeltaTableV2): String =
    table.catalogTable.map(t => sql(t.identifier)).getOrElse(pathName(table.deltaLog.dataPath))

  /** How a statement refers to a table in a folder. */
  def pathName(folder: String, format: String = "delta"): String =
    s"$format.${quoteIdentifier(folder)}"

  private def pathName(folder: Path): String = pathName(folder.toString)

  private def sql(table: TableIdentifier): String =
    (table.database.toSeq :+ table.table).map(quoteIfNeeded).mkString(".")

  // While a table is being created, Delta knows its folder only. For a managed table, that is the
  // folder that the session catalog gives to its name.
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
