package org.icebergwritercompat.rules

import org.icebergwritercompat.rules.Source._

import java.util.Locale

/** Requirements on the logical names of columns. */
object NameRules {

  /** Names that Iceberg's own metadata columns have. */
  val Reserved: Set[String] = Set("_file", "_pos", "_deleted", "_spec_id", "_partition")

  private def lower(name: String): String = name.toLowerCase(Locale.ROOT)

  private def badName(
      rule: Rule,
      table: TableState,
      node: SchemaNode,
      newName: String,
      reason: String
  ): Violation =
    Violation(
      rule,
      Condition.IncompatibleColumnName,
      node.location,
      Fix.rename(table, node, newName),
      Map("column" -> node.sqlPath, "reason" -> reason)
    )

  private def isReserved(node: SchemaNode): Boolean =
    node.path.length == 1 && Reserved(lower(node.path.head))

  private def reserved(rule: Rule, table: TableState, node: SchemaNode): Violation =
    badName(
      rule,
      table,
      node,
      node.path.last.dropWhile(_ == '_'),
      "Iceberg has a metadata column of this name"
    )

  object NamesAreDistinct
      extends TableRule(
        "N1",
        "No two fields have the same full name, parts joined by dots and letters in any case.",
        Clause(IcebergCode, "IndexByName"),
        Clause(DeltaProtocol, "Schema Serialization Format")
      ) {

    override def check(table: TableState): Seq[Violation] =
      table.nodes
        .groupBy(node => lower(node.path.mkString(".")))
        .values
        .filter(_.sizeIs > 1)
        .toSeq
        .sortBy(_.head.path.mkString("."))
        .map { nodes =>
          val node = toRename(table, nodes)
          val others = nodes.filterNot(_ eq node).map(_.sqlPath).mkString(", ")
          badName(
            this,
            table,
            node,
            distinct(table, node),
            s"Iceberg's index of names cannot tell it from $others"
          )
        }

    private def distinct(table: TableState, node: SchemaNode): String = {
      val name = node.path.last
      val plain = name.replace('.', '_')
      val candidates =
        Iterator(plain).filterNot(_ == name) ++ Iterator.from(2).map(i => s"${plain}_$i")
      candidates
        .find(c => !table.fullNames(lower((node.path.init :+ c).mkString("."))))
        .getOrElse(plain)
    }

    // The one that is new, or else the one whose dot is part of a name, or else the last.
    private def toRename(table: TableState, nodes: Seq[SchemaNode]): SchemaNode = {
      val fields = nodes.filter(_.isField)
      fields
        .findLast(Fix.isNew(table, _))
        .orElse(fields.findLast(_.path.last.contains('.')))
        .orElse(fields.lastOption)
        .getOrElse(nodes.last)
    }
  }

  object NoReservedNames
      extends TableRule(
        "N2",
        s"No new table has a column called ${Reserved.toSeq.sorted.map(n => s"`$n`").mkString(", ")}.",
        Clause(IcebergSpec, "Reserved Field IDs")
      ) {

    override def check(table: TableState): Seq[Violation] = table.moment match {
      case _: Moment.Creating => table.nodes.filter(isReserved).map(reserved(this, table, _))
      case _                  => Nil
    }
  }

  object NoNewReservedNames
      extends ChangeRule(
        "N2+",
        "No column is added under, or renamed to, a name of Iceberg's metadata columns.",
        Clause(IcebergSpec, "Reserved Field IDs")
      ) {

    override def check(change: TableChange): Seq[Violation] =
      change.after.nodes
        .filter { node =>
          isReserved(node) && !node.id.flatMap(change.old).exists(isReserved)
        }
        .map(reserved(this, change.after, _))
  }

  object NoEmptyStructs
      extends TableRule(
        "N3",
        "Every struct has a field.",
        Clause(IcebergCode, "TypeToMessageType")
      ) {

    override def check(table: TableState): Seq[Violation] =
      table.nodes.collect {
        case node if isEmptyStruct(node) =>
          violation(
            Condition.UnsupportedDataType,
            node.location,
            Fix.useSupportedType(table, node),
            "column" -> node.sqlPath,
            "type" -> node.dataType.sql,
            "nearest" -> SupportedTypes.nearest(node.dataType).sql
          )
      }

    private def isEmptyStruct(node: SchemaNode): Boolean = node.dataType match {
      case struct: org.apache.spark.sql.types.StructType => struct.isEmpty
      case _                                             => false
    }
  }
}
