package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.delta.{DeltaConfigs, DeltaTableUtils}
import org.apache.spark.sql.delta.commands.ConvertToDeltaCommand
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
 *   the name of a new table for a copy of the rows
 * @param hasFeature
 *   whether the table would have the feature
 * @param setting
 *   the property or session default that switches the feature on
 */
final case class Converted(
    folder: String,
    name: String,
    copyName: String,
    partitionColumns: Seq[String],
    hasFeature: Boolean,
    setting: String
) {

  /** The statement that copies the rows into a new table with the feature. */
  def copy: Remedy = Remedy.CopyInto(copyName, Nil, name, partitionColumns)
}

object Converted {

  private val sessionDefault = "spark.databricks.delta.properties.defaults." +
    WriterCompat.Enabled.stripPrefix("delta.")

  /** The files that the statement would convert; `None` if the folder is a Delta table already. */
  def of(spark: SparkSession, convert: ConvertToDeltaCommand): Option[Converted] = {
    val table = convert.tableIdentifier
    if (convert.isCatalogTable(spark.sessionState.analyzer, table)) ofTable(spark, table)
    else ofFolder(spark, convert)
  }

  private def ofTable(spark: SparkSession, identifier: TableIdentifier): Option[Converted] = {
    val table = spark.sessionState.catalog.getTableMetadata(identifier)
    val folder = new Path(table.location)
    val name = (table.identifier.database.toSeq :+ table.identifier.table).map(quoteIfNeeded)
    val copy = name.init :+ quoteIfNeeded(s"${table.identifier.table}_iceberg")
    Option.unless(DeltaTableUtils.isDeltaTable(spark, folder)) {
      Converted(
        folder.toString,
        name.mkString("."),
        copy.mkString("."),
        table.partitionColumnNames,
        isOn(spark, table.properties),
        if (table.properties.contains(WriterCompat.Enabled)) WriterCompat.Enabled
        else sessionDefault
      )
    }
  }

  private def ofFolder(spark: SparkSession, convert: ConvertToDeltaCommand): Option[Converted] = {
    val TableIdentifier(path, format, _) = convert.tableIdentifier
    Option.unless(DeltaTableUtils.isDeltaTable(spark, new Path(path))) {
      Converted(
        path,
        TableStates.pathName(path, format.getOrElse("parquet")),
        TableStates.pathName(s"${path.stripSuffix("/")}_iceberg"),
        convert.partitionSchema.toSeq.flatMap(_.fieldNames),
        isOn(spark, Map.empty),
        sessionDefault
      )
    }
  }

  private def isOn(spark: SparkSession, properties: Map[String, String]): Boolean =
    Contracts.isEnabled(DeltaConfigs.mergeGlobalConfigs(spark.sessionState.conf, properties))
}
