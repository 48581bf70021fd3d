package org.icebergwritercompat.rules

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.rules.Source._

import java.util.Locale
import scala.collection.mutable

/** Requirements on the logical names of columns. */
object NameRules {

  /**
   * Names that Iceberg's own metadata columns have: those of `MetadataColumns` in its library,
   * which is not there in every session. A test compares the two.
   */
  val Reserved: Set[String] = Set(
    "_deleted",
    "_file",
    "_last_updated_sequence_number",
    "_partition",
    "_pos",
    "_row_id",
    "_spec_id"
  )

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
      nameFor(new IndexByName(table.nodes), node),
      "Iceberg has a metadata column of this name"
    )

  private def nameFor(index: IndexByName, node: SchemaNode): String = {
    val name = node.path.last.dropWhile(_ == '_')
    (Iterator(name) ++ Iterator.from(2).map(i => s"${name}_$i")).find(index.isFree(node, _)).get
  }

  /** Names for the columns that have a reserved one. */
  private[rules] def namesForReserved(table: TableState): Map[String, String] = {
    val found = table.columns.filter(isReserved)
    if (found.isEmpty) Map.empty
    else {
      val index = new IndexByName(table.nodes)
      found.map(node => node.path.head -> nameFor(index, node)).toMap
    }
  }

  /**
   * The names under which Iceberg's `IndexByName` has the nodes of a schema: full ones, and short
   * ones without the element or value above a struct's fields. Where both are equal to the letter,
   * the full name wins; where they differ in the case of letters, the index in lower case throws.
   */
  private final class IndexByName(nodes: Seq[SchemaNode]) {

    // Short paths, by path, of the nodes below a list or a map whose element or value is a struct;
    // of this element or value itself, the short path of what is below.
    private val shortened = mutable.HashMap.empty[Vector[String], Vector[String]]

    private def shortPath(path: Vector[String]): Option[Vector[String]] =
      shortened.get(path.init).map(_ :+ path.last)

    private val shortNames: Seq[(String, SchemaNode)] = nodes.flatMap { node =>
      val here = shortPath(node.path)
      val below = if (isLeftOut(node)) Some(here.getOrElse(node.path).init) else here
      below.foreach(shortened(node.path) = _)
      here.map(_.mkString(".") -> node)
    }

    private val names: Seq[(String, SchemaNode)] = {
      val full = nodes.map(node => node.path.mkString(".") -> node)
      if (shortNames.isEmpty) full
      else {
        val isFull = full.iterator.map(_._1).toSet
        full ++ shortNames.filterNot { case (name, _) => isFull(name) }.distinctBy(_._1)
      }
    }

    /** The nodes by name in small letters. */
    val byName: Map[String, Seq[SchemaNode]] =
      names.groupMap { case (name, _) => lower(name) }(_._2)

    /** Whether a field beside `node` can have this name. */
    def isFree(node: SchemaNode, name: String): Boolean =
      (Iterator(node.path) ++ shortPath(node.path))
        .map(path => lower((path.init :+ name).mkString(".")))
        .forall(!byName.contains(_))

    private def isLeftOut(node: SchemaNode): Boolean = node.dataType match {
      case _: StructType => node.role == Role.Element || node.role == Role.Value
      case _             => false
    }
  }

  object NamesAreDistinct
      extends TableRule(
        "N1",
        "No two fields have the same full name, parts joined by dots and letters in any case; nor " +
          "does a short name, which leaves out `element` or `value` above the fields of a struct, " +
          "differ from another name in the case of letters alone.",
        "Iceberg's index of names holds one column by each name, and fails on two.",
        Clause(IcebergCode, "IndexByName"),
        Clause(IcebergCode, "TypeUtil.indexByLowerCaseName"),
        Clause(DeltaProtocol, "Schema Serialization Format")
      ) {

    override def check(table: TableState): Seq[Violation] = {
      val index = new IndexByName(table.nodes)
      index.byName.values
        .filter(_.sizeIs > 1)
        .toSeq
        .sortBy(_.head.path.mkString("."))
        // Two names that are equal below a list or map are so in full and in short.
        .distinctBy(_.map(_.path))
        .map { nodes =>
          val node = toRename(table, nodes)
          val others = nodes.filterNot(_ eq node).map(_.sqlPath).mkString(", ")
          badName(
            this,
            table,
            node,
            distinct(index, node),
            s"Iceberg's index of names cannot tell it from $others"
          )
        }
    }

    private def distinct(index: IndexByName, node: SchemaNode): String = {
      val name = node.path.last
      val plain = name.replace('.', '_')
      val candidates =
        Iterator(plain).filterNot(_ == name) ++ Iterator.from(2).map(i => s"${plain}_$i")
      candidates.find(index.isFree(node, _)).getOrElse(plain)
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
        "No table is created, and none gets the feature, with a column called " +
          s"${Reserved.toSeq.sorted.map(n => s"`$n`").mkString(", ")}.",
        "Iceberg's connector for Spark reads no table that has such a column.",
        Clause(IcebergSpec, "Reserved Field IDs")
      ) {

    // Tables may have had the column before it was reserved.
    override def isAdvice: Boolean = true

    override def check(table: TableState): Seq[Violation] = table.moment match {
      case Moment.Changing => Nil
      case _               => table.columns.filter(isReserved).map(reserved(this, table, _))
    }

    /** The columns of a table that has the feature with them; nothing of it is refused for them. */
    def ofExisting(table: TableState): Seq[Violation] = check(table.copy(moment = Moment.Enabling))
  }

  object NoNewReservedNames
      extends ChangeRule(
        "N2+",
        "No column is added under, or renamed to, a name of Iceberg's metadata columns.",
        "Iceberg's connector for Spark reads no table that has such a column.",
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
