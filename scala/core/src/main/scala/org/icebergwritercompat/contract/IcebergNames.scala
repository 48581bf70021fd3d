package org.icebergwritercompat.contract

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.model.{Role, SchemaNode}

import java.util.Locale
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

  /** New names for the columns with reserved names. */
  def namesForReserved(nodes: Seq[SchemaNode]): Map[String, String] = {
    val found = nodes.filter(isReserved)
    if (found.isEmpty) Map.empty
    else {
      val index = new IndexByName(nodes)
      found.map(node => node.path.head -> nameFor(index, node)).toMap
    }
  }

  /**
   * The names under which Iceberg's `IndexByName` has the nodes of a schema: full names, and short
   * names, which omit `element` and `value` above the fields of a struct. If a short name equals a
   * full one, the full name is used; if they differ only by case, Iceberg's index in lower case
   * throws.
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
