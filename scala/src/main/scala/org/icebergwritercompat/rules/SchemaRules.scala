package org.icebergwritercompat.rules

import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.rules.Source._

/** Requirements on the schema, at every depth. */
object SchemaRules {

  /** The highest column id Iceberg leaves to tables; those above are its own. */
  val MaxIcebergColumnId: Long = 2147483447L

  private def missing(rule: TableRule, table: TableState, node: SchemaNode, key: String) =
    Violation(
      rule,
      Condition.MissingColumnMappingMetadata,
      node.location,
      Fix.enable(table),
      Map("column" -> node.sqlPath, "key" -> key))

  object FieldsHaveIdAndPhysicalName
      extends TableRule(
        "C1",
        s"Every field has `${WriterCompat.ColumnId}` and `${WriterCompat.PhysicalName}`.",
        Clause(DeltaProtocol, "Column Mapping")) {

    override def check(table: TableState): Seq[Violation] =
      for {
        node <- table.nodes if node.isField
        keys = Option.when(node.id.isEmpty)(WriterCompat.ColumnId) ++
          Option.when(node.physicalName.isEmpty)(WriterCompat.PhysicalName)
        if keys.nonEmpty
      } yield missing(this, table, node, keys.mkString(" and "))
  }

  object PhysicalNameIsColId
      extends TableRule(
        "C2",
        "The physical name of every field is exactly `col-` and its id.",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")) {

    override def check(table: TableState): Seq[Violation] =
      for {
        node <- table.nodes if node.isField
        id <- node.id
        name <- node.physicalName
        expected = WriterCompat.physicalName(id) if name != expected
      } yield violation(
        Condition.FieldIdDoesNotMatchPhysicalName,
        node.location,
        Fix.enable(table),
        "column" -> node.sqlPath,
        "id" -> id.toString,
        "physicalName" -> name,
        "required" -> expected)
  }

  object IdsAreUnique
      extends TableRule(
        "C3",
        "Ids of fields, elements, keys and values are unique over the whole schema, from 1 to " +
          s"$MaxIcebergColumnId.",
        Clause(DeltaProtocol, "Column Mapping"),
        Clause(IcebergSpec, "Reserved Field IDs")) {

    override def check(table: TableState): Seq[Violation] = {
      val withId = table.nodes.flatMap(node => node.id.map(_ -> node))
      val duplicates = withId
        .groupMap(_._1)(_._2)
        .toSeq
        .filter(_._2.sizeIs > 1)
        .sortBy(_._1)
        .map { case (shared, nodes) =>
          violation(
            Condition.DuplicateColumnId,
            nodes.last.location,
            Fix.enable(table),
            "id" -> shared.toString,
            "columns" -> nodes.map(_.sqlPath).mkString(", "))
        }
      val outOfRange = withId.collect {
        case (found, node) if found < 1 || found > MaxIcebergColumnId =>
          violation(
            Condition.ColumnIdOutOfRange,
            node.location,
            Fix.enable(table),
            "column" -> node.sqlPath,
            "id" -> found.toString,
            "highest" -> MaxIcebergColumnId.toString)
      }
      duplicates ++ outOfRange
    }
  }

  object CollectionsHaveNestedIds
      extends TableRule(
        "C5",
        "Every list has an id for its element, every map for its key and its value, under " +
          s"`${WriterCompat.NestedIds}` of the nearest field above.",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")) {

    override def check(table: TableState): Seq[Violation] =
      table.nodes.collect {
        case node if !node.isField && node.id.isEmpty =>
          missing(this, table, node, WriterCompat.NestedIds)
      }
  }

  object TypesAreSupported
      extends TableRule(
        "C7",
        "Every type is one of integer, long, float, double, decimal, string, binary, boolean, " +
          "timestamp, timestamp_ntz, date, array, map and struct.",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")) {

    override def check(table: TableState): Seq[Violation] =
      table.nodes.collect {
        case node if !SupportedTypes.contains(node.dataType) =>
          violation(
            Condition.UnsupportedDataType,
            node.location,
            Fix.useSupportedType(table, node),
            "column" -> node.sqlPath,
            "type" -> node.dataType.sql,
            "nearest" -> SupportedTypes.nearest(node.dataType).sql)
      }
  }
}
