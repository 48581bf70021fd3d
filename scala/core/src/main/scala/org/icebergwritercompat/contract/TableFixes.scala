package org.icebergwritercompat.contract

import org.apache.spark.sql.types._
import org.icebergwritercompat.model.{SchemaNode, SupportedTypes}
import org.icebergwritercompat.remedy.{Change, Declared, Remedy}
import org.icebergwritercompat.remedy.Remedy._

/** Which remedy creates a table otherwise, or copies its rows into a new one. */
private[contract] trait TableFixes { self: Fix.type =>

  /** Creates the table partitioned by these columns, or copies its rows into one that is. */
  def partitionBy(table: TableState, columns: Seq[String]): Remedy = table.lifecycle match {
    case _: Lifecycle.Creating => create(table, Change.Partitioning(columns))
    case _                     => copyInto(table.copy(partitionColumns = columns))
  }

  /** Replaces the table with the partition columns it had, which come back if they are gone. */
  def keepPartitioning(before: TableState, after: TableState): Remedy = {
    val gone = before.partitionNodes
      .filter(node => after.column(node.path.head).isEmpty)
      .map(node => Change.Added(node.path.head, node.dataType))
    create(
      after.copy(lifecycle = Lifecycle.Creating(replacing = true)),
      gone :+ Change.Partitioning(before.partitionColumns): _*
    )
  }

  /** Copies the rows of `before` into a new table with the names and partitions of `after`. */
  def repartition(before: TableState, after: TableState): Remedy = {
    val (was, is) = (for {
      was <- before.columns
      is <- was.id.flatMap(after.nodesById.get) if is.path.length == 1
    } yield (
      StructField(was.path.head, was.dataType),
      StructField(is.path.head, was.dataType)
    )).unzip
    val same = was.map(_.name) == is.map(_.name)
    copyOf(after, if (same) Nil else Remedy.selected(StructType(was), StructType(is)))
  }

  /** Copies the rows into a new table that has the feature. */
  def copyInto(table: TableState): Remedy = table.copied

  /** The same, made anew at each call. */
  private[icebergwritercompat] def copy(table: TableState): Remedy = {
    val (selected, partitions) = selection(table.schema, table.partitionColumns)
    copyOf(table.copy(partitionColumns = partitions), selected)
  }

  /**
   * What a copy of rows selects, so that it has supported types and no reserved names, and what it
   * is then partitioned by; all columns where nothing is selected.
   */
  def selection(
      schema: StructType,
      partitionColumns: Seq[String]
  ): (Seq[String], Seq[String]) = {
    val named = IcebergNames.usable(schema)
    val wanted = StructType(named.map(f => f.copy(dataType = SupportedTypes.nearest(f.dataType))))
    def shape(of: StructType) = of.map(f => f.name -> f.dataType)
    val partitions = partitionColumns.map { column =>
      val at = schema.fieldNames.indexOf(column)
      if (at < 0) column else named(at).name
    }
    val isSame = shape(schema) == shape(wanted) && !schema.exists(handsOn)
    (if (isSame) Nil else Remedy.selected(schema, wanted, handsOn), partitions)
  }

  // A query hands the metadata of a column on, unless it is cast.
  private def handsOn(field: StructField): Boolean =
    SchemaNode
      .flatten(StructType(Seq(field)))
      .exists(node => handedOn.exists(node.metadata.contains))

  // Of what breaks a rule; Delta leaves out the rest, such as expressions of generated columns.
  private val handedOn = Seq("delta.invariants", "CURRENT_DEFAULT")

  private def copyOf(table: TableState, selected: Seq[String]): Remedy =
    CopyInto(
      nameOfCopy(table.name),
      selected,
      table.name,
      partitionsOf(table),
      Seq(table.contract.property -> "true"),
      exactCase = table.differInCaseAlone
    )

  /** The name of a copy beside a table. */
  def nameOfCopy(name: String): String =
    if (name.endsWith("`")) name.dropRight(1) + "_iceberg`" else name + "_iceberg"

  private def partitionsOf(table: TableState): Seq[String] =
    table.partitionColumns.filter(_ != null)

  /** Creates the table, or replaces it, as it would be without what breaks a rule. */
  private[contract] def create(table: TableState, changes: Change*): Remedy = {
    val declared = Declared(
      table.name,
      table.lifecycle == Lifecycle.Creating(replacing = true),
      table.schema,
      partitionsOf(table),
      table.contract.property
    )
    Create(declared, types(table) ++ changes)
  }

  // A thousand violations may need the same list.
  private[contract] def types(table: TableState): Seq[Change.Type] = table.typeChanges

  /** What to change so that all types are supported. */
  private[icebergwritercompat] def typeChanges(table: TableState): Seq[Change.Type] =
    table.nodes
      .map(node => node -> SupportedTypes.nearest(node.dataType))
      .collect {
        case (node, wanted) if isReplaced(node.dataType, wanted) => Change.Type(node.path, wanted)
      }

  private def isReplaced(found: DataType, wanted: DataType): Boolean = (found, wanted) match {
    case (_: StructType, _: StructType) | (_: ArrayType, _: ArrayType) | (_: MapType, _: MapType) =>
      false
    case _ => found != wanted
  }
}
