package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.{SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.delta.DeltaColumnMapping
import org.apache.spark.sql.delta.commands.{CloneTableCommand, CreateDeltaTableCommand}
import org.icebergwritercompat.contract.Fix
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.Remedy
import org.apache.spark.sql.delta.writercompat.read.TableStates

import java.util.Locale

/** The remedy of a refused clone: a table with copies of the rows. */
private[writercompat] final class ClonedRows(spark: SparkSession) {

  /** The target table of a clone, as written in statements. */
  def target(create: CreateDeltaTableCommand, clone: CloneTableCommand): String =
    TableStates.nameOf(
      spark,
      Some(create.table).filter(_.identifier.database.nonEmpty),
      clone.targetPath
    )

  /** The statement that creates the target of a clone with copies of the rows. */
  def of(create: CreateDeltaTableCommand, clone: CloneTableCommand): Remedy = {
    val source = clone.sourceTable
    val name = source.snapshot.fold(source.name) { _ =>
      TableStates.nameOf(spark, source.catalogTable, source.dataPath)
    }
    val version = for (_ <- source.timeTravelOpt; at <- source.snapshot) yield at.version
    val schema = DeltaColumnMapping.dropColumnMappingMetadata(source.metadata.schema)
    val (selected, partitions) = Fix.selection(schema, source.metadata.partitionColumns)
    // The copy must not take over the metadata of the source, which breaks the rule.
    val properties = clone.tablePropertyOverrides.filterNot { case (key, _) =>
      key.equalsIgnoreCase(WriterCompat.Enabled) || isDecidedByFeature(key)
    }
    Remedy.CopyInto(
      target(create, clone),
      selected,
      name + version.fold("")(number => s" VERSION AS OF $number"),
      partitions,
      (properties + (WriterCompat.Enabled -> "true")).toSeq.sorted,
      Option.when(
        create.table.tableType == CatalogTableType.EXTERNAL && create.table.identifier.database.nonEmpty
      )(
        clone.targetPath.toString
      ),
      if (create.mode == SaveMode.Overwrite) "CREATE OR REPLACE TABLE" else "CREATE TABLE"
    )
  }

  private def isDecidedByFeature(key: String): Boolean =
    key.equalsIgnoreCase(WriterCompat.ColumnMappingMode) ||
      key.toLowerCase(Locale.ROOT).startsWith("delta.feature.") ||
      key.toLowerCase(Locale.ROOT).startsWith("delta.enable")
}
