package org.icebergwritercompat.remedy

import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.types.{StringType, StructField, StructType}

/**
 * A table as a statement was to create it, or an existing table with the columns that a statement
 * was to leave.
 *
 * @param name
 *   as a statement spells it
 * @param property
 *   the table property that switches the contract on
 */
final case class Declared(
    name: String,
    replacing: Boolean,
    schema: StructType,
    partitionColumns: Seq[String],
    property: String
) {

  /** The columns with the changes, as a statement lists them. */
  private[remedy] def columns(changes: Seq[Change]): String = {
    val fields = schema.fields
      .map(field => Change.of(changes, Seq(field.name), field)) ++ changes.collect {
      case Change.Added(name, dataType) => StructField(name, dataType)
    }
    fields
      .map { field =>
        val notNull = if (field.nullable) "" else " NOT NULL"
        val comment = field.getComment().fold("")(text => s" COMMENT ${Quoting.literal(text)}")
        s"${quoteIfNeeded(field.name)} ${field.dataType.sql}$notNull$comment"
      }
      .mkString(", ")
  }

  /** The partition columns with the changes. */
  private[remedy] def partitions(changes: Seq[Change]): Seq[String] =
    changes
      .collectFirst { case Change.Partitioning(names) => names }
      .getOrElse(partitionColumns)
      .map(name => Change.of(changes, Seq(name), StructField(name, StringType)).name)
}

/** How a statement was given that was refused. */
sealed trait Door

object Door {

  /**
   * As SQL, in these words.
   *
   * @param isClustered
   *   whether PARTITIONED BY stands for CLUSTER BY, as where Delta's parser has put it there
   */
  final case class Sql(text: String, isClustered: Boolean = false) extends Door

  /** By a writer of DataFrames. */
  case object Writer extends Door

  /** By the builder of `DeltaTable`. */
  case object Builder extends Door
}
