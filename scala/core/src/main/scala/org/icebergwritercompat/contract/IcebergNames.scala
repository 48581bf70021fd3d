package org.icebergwritercompat.contract

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.model.{Role, SchemaNode}
import org.icebergwritercompat.remedy.Change

import java.util.Locale
import scala.annotation.tailrec
import scala.collection.mutable

/** The names under which Iceberg's library indexes the columns of a table. */
object IcebergNames {

  /**
   * The names of Iceberg's metadata columns. They are listed here because Iceberg's library, whose
   * `MetadataColumns` defines them, is not in every session; a test compares the two.
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

  /** Whether a column has a reserved name. */
  def isReserved(node: SchemaNode): Boolean =
    node.path.length == 1 && Reserved(lower(node.path.head))

  /** A name for the node that is not in use. */
  def nameFor(index: IndexByName, node: SchemaNode): String = {
    val name = node.path.last.dropWhile(_ == '_')
    (Iterator(name) ++ Iterator.from(2).map(i => s"${name}_$i")).find(index.isFree(node, _)).get
  }

  /** A name for the node under which Iceberg's index tells it from all others. */
  def distinctName(index: IndexByName, node: SchemaNode): String = {
    val name = node.path.last
    val plain = name.replace('.', '_')
    val candidates =
      Iterator(plain).filterNot(_ == name) ++ Iterator.from(2).map(i => s"${plain}_$i")
    candidates.find(index.isFree(node, _)).getOrElse(plain)
  }

  /**
   * Which of several nodes of one name is to be renamed: the one that is new, or else the one whose
   * dot is part of a name, or else the last.
   */
  def toRename(nodes: Seq[SchemaNode], isNew: SchemaNode => Boolean): SchemaNode = {
    val fields = nodes.filter(_.isField)
    fields
      .findLast(isNew)
      .orElse(fields.findLast(_.path.last.contains('.')))
      .orElse(fields.lastOption)
      .getOrElse(nodes.last)
  }

  /** The same schema under names that are not reserved, and that Iceberg's index tells apart. */
  def usable(schema: StructType): StructType = {
    // Each round renames one field; nobody has more of them to rename than this.
    @tailrec def renamed(schema: StructType, rounds: Int): StructType = {
      val nodes = SchemaNode.flatten(schema)
      val index = new IndexByName(nodes)
      val wrong = nodes
        .find(isReserved)
        .map(node => Change.Name(node.path, nameFor(index, node)))
        .orElse {
          index.indistinct.headOption
            .map(toRename(_, _ => false))
            .filter(_.isField)
            .map(node => Change.Name(node.path, distinctName(index, node)))
        }
      wrong match {
        case Some(change) if rounds > 0 =>
          val fields = schema.map(field => Change.of(Seq(change), Seq(field.name), field))
          renamed(StructType(fields), rounds - 1)
        case _ => schema
      }
    }
    renamed(schema, rounds = 100)
  }

  /** Whether two fields of one struct have names that differ in the case of letters alone. */
  def differInCaseAlone(nodes: Seq[SchemaNode]): Boolean =
    nodes
      .filter(_.isField)
      .groupBy(node => (node.path.init, lower(node.path.last)))
      .exists(_._2.sizeIs > 1)

  /**
   * The names under which Iceberg's `IndexByName` has the nodes of a schema: full ones, and short
   * ones without the element or value above a struct's fields. Where both are equal to the letter,
   * the full name wins; where they differ in the case of letters, the index in lower case throws.
   */
  final class IndexByName(nodes: Seq[SchemaNode]) {

    // The short path of each node below a list or map whose element or value is a struct, by its
    // path. For the element or value itself: the short path that its fields begin with.
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

    /** The nodes by name in lower case. */
    val byName: Map[String, Seq[SchemaNode]] =
      names.groupMap { case (name, _) => lower(name) }(_._2)

    /** The nodes that share a name in small letters; each list has two or more. */
    def indistinct: Seq[Seq[SchemaNode]] =
      byName.values
        .filter(_.sizeIs > 1)
        .toSeq
        .sortBy(_.head.path.mkString("."))
        // Two names that are equal below a list or map are so in full and in short.
        .distinctBy(_.map(_.path))

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
}
