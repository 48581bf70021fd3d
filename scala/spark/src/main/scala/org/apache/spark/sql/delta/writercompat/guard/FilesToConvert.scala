package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaTableUtils}
import org.apache.spark.sql.delta.commands.ConvertToDeltaCommand
import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.Remedy
import org.apache.spark.sql.delta.writercompat.read.TableStates

/**
 * The files that CONVERT TO DELTA would convert to a table.
 *
 * @param folder
 *   their folder
 * @param name
 *   the name under which a statement can read them
 * @param copyName
 *   how a statement creates a table beside them
 * @param contract
 *   the contract that the table would follow
 * @param setting
 *   the property or session default that switches the feature on
 */
final case class FilesToConvert(
    folder: String,
    name: String,
    copyName: String,
    partitionColumns: Seq[String],
    contract: Option[Contract],
    setting: String
) {

  /** Copies the rows into a new table with the feature. */
  def copyInto(contract: Contract): Remedy =
    Remedy.CopyInto(copyName, Nil, name, partitionColumns, Seq(contract.property -> "true"))
}

object FilesToConvert {

  private def sessionDefault(contract: Option[Contract]): String =
    WriterCompat.sessionDefaultKey(contract.getOrElse(Contracts.default).property)

  /** The files that the statement would convert; `None` if the folder is a Delta table already. */
  def of(spark: SparkSession, convert: ConvertToDeltaCommand): Option[FilesToConvert] = {
    val table = convert.tableIdentifier
    if (convert.isCatalogTable(spark.sessionState.analyzer, table)) ofTable(spark, table)
    else ofFolder(spark, convert)
  }

  private def ofTable(spark: SparkSession, identifier: TableIdentifier): Option[FilesToConvert] = {
    val table = spark.sessionState.catalog.getTableMetadata(identifier)
    val folder = new Path(table.location)
    val name = (table.identifier.database.toSeq :+ table.identifier.table).map(quoteIfNeeded)
    val copy = name.init :+ quoteIfNeeded(s"${table.identifier.table}_iceberg")
    Option.unless(DeltaTableUtils.isDeltaTable(spark, folder)) {
      val contract = contractOf(spark, table.properties)
      FilesToConvert(
        folder.toString,
        name.mkString("."),
        copy.mkString("."),
        table.partitionColumnNames,
        contract,
        contract
          .map(_.property)
          .filter(table.properties.contains)
          .getOrElse(sessionDefault(contract))
      )
    }
  }

  private def ofFolder(
      spark: SparkSession,
      convert: ConvertToDeltaCommand
  ): Option[FilesToConvert] = {
    val TableIdentifier(path, format, _) = convert.tableIdentifier
    Option.unless(DeltaTableUtils.isDeltaTable(spark, new Path(path))) {
      val contract = contractOf(spark, Map.empty)
      FilesToConvert(
        path,
        TableStates.pathName(path, format.getOrElse("parquet")),
        TableStates.pathName(s"${path.stripSuffix("/")}_iceberg"),
        convert.partitionSchema.toSeq.flatMap(_.fieldNames),
        contract,
        sessionDefault(contract)
      )
    }
  }

  private def contractOf(spark: SparkSession, properties: Map[String, String]): Option[Contract] =
    Contracts.of(DeltaConfigs.mergeGlobalConfigs(spark.sessionState.conf, properties))
}
