package org.icebergwritercompat.rules

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.contract.{
  ChangeRule,
  Clause,
  Fix,
  IcebergNames,
  Lifecycle,
  Rule,
  TableChange,
  TableRule,
  TableState,
  Violation
}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{Condition, SchemaNode, SupportedTypes}

/** Requirements on the logical names of columns. */
object NameRules {

  import IcebergNames._

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

  private def reserved(rule: Rule, table: TableState, node: SchemaNode): Violation =
    badName(
      rule,
      table,
      node,
      nameFor(new IndexByName(table.nodes), node),
      "Iceberg has a metadata column of this name"
    )

  object NamesAreDistinct
      extends TableRule(
        "N1",
        "The full names of fields (parts joined by dots) are distinct, ignoring case. So are " +
          "the short names, which omit `element` and `value` above the fields of a struct; a " +
          "short name may only be exactly equal to a full name.",
        "Iceberg's index of names has one column per name, and fails if two columns have the same.",
        Clause(IcebergCode, "IndexByName"),
        Clause(IcebergCode, "TypeUtil.indexByLowerCaseName"),
        Clause(DeltaProtocol, "Schema Serialization Format")
      ) {

    override def check(table: TableState): Seq[Violation] = {
      val index = new IndexByName(table.nodes)
      index.indistinct.map { nodes =>
        val node = toRename(nodes, Fix.isNew(table, _))
        val others = nodes.filterNot(_ eq node).map(_.sqlPath).mkString(", ")
        badName(
          this,
          table,
          node,
          distinctName(index, node),
          s"Iceberg's index of names cannot distinguish it from $others"
        )
      }
    }
  }

  object NoReservedNames
      extends TableRule(
        "N2",
        "No table is created with, and no table gets the feature with, a column named " +
          s"${Reserved.toSeq.sorted.map(n => s"`$n`").mkString(", ")}.",
        "Iceberg's connector for Spark cannot read a table with such a column.",
        Clause(IcebergSpec, "Reserved Field IDs")
      ) {

    // Tables may have had the column before it was reserved.
    override def isAdvice: Boolean = true

    override def check(table: TableState): Seq[Violation] = table.lifecycle match {
      case Lifecycle.Changing => Nil
      case _                  => table.columns.filter(isReserved).map(reserved(this, table, _))
    }

    /**
     * The columns with reserved names of a table that has the feature: a warning, not a refusal.
     */
    def ofExisting(table: TableState): Seq[Violation] = check(
      table.copy(lifecycle = Lifecycle.Enabling)
    )
  }

  object NoNewReservedNames
      extends ChangeRule(
        "N2+",
        "No column is added with, or renamed to, the name of an Iceberg metadata column.",
        "Iceberg's connector for Spark cannot read a table with such a column.",
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
        "Every struct has at least one field.",
        "Parquet cannot store a struct without fields, so Iceberg cannot write the table.",
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
      case struct: StructType => struct.isEmpty
      case _                  => false
    }
  }
}
