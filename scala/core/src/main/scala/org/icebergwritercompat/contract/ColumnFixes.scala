package org.icebergwritercompat.contract

import org.apache.spark.sql.types._
import org.icebergwritercompat.model.{SchemaNode, SupportedTypes}
import org.icebergwritercompat.remedy.{Change, Remedy}
import org.icebergwritercompat.remedy.Remedy._

/** Which remedy mends a violation by a column. */
private[contract] trait ColumnFixes { self: Fix.type =>

  /** Takes the default of a column away. */
  def dropDefault(table: TableState, node: SchemaNode): Remedy = table.lifecycle match {
    case _: Lifecycle.Creating                    => create(table, Change.Plain(node.path))
    case Lifecycle.Changing if isNew(table, node) => add(table, node)
    case _ if table.previous.isDefined            => leave(table)
    case _                                        => DropDefault(table.name, node.path)
  }

  /** Lets a column hold nulls. */
  def dropNotNull(table: TableState, node: SchemaNode): Remedy =
    DropNotNull(table.name, node.path)

  /** Adds the node, or the column around it that is as new, in a way that breaks no rule. */
  def add(table: TableState, node: SchemaNode): Remedy =
    node.path.inits.toSeq.reverseIterator
      .flatMap(table.additions.get)
      .nextOption()
      .getOrElse(addition(table, fieldAround(table, node)))

  /** What adds each node that is new below one that is not, by its path. */
  private[icebergwritercompat] def additions(table: TableState): Map[Vector[String], Remedy] =
    table.nodes.iterator
      .filter { node =>
        node.isField && isNew(table, node) &&
        !table.nodesByPath.get(node.path.init).exists(isNew(table, _))
      }
      .map(node => node.path -> addition(table, node))
      .toMap

  private def addition(table: TableState, field: SchemaNode): Remedy = {
    val instead =
      table.typeChangesByColumn
        .getOrElse(field.path.head, Nil)
        .filter(_.path.startsWith(field.path)) ++
        Seq(Change.Plain(field.path), Change.Nullable(field.path))
    addColumn(table, field.path, field.dataType, instead)
  }

  private def addColumn(
      table: TableState,
      path: Seq[String],
      dataType: DataType,
      instead: Seq[Change] = Nil
  ): Remedy = {
    val wanted = SupportedTypes.nearest(dataType)
    // As the table is, not as the refused statement would have left it.
    val protocol = table.previous.fold(table.protocol)(_.protocol)
    val features = Seq(TimestampNtz).filter { feature =>
      hasNtz(wanted) && !protocol.listedFeatures(feature)
    }
    AddColumn(table.name, path, wanted, features, instead)
  }

  private def hasNtz(dataType: DataType): Boolean = dataType match {
    case s: StructType => s.exists(field => hasNtz(field.dataType))
    case a: ArrayType  => hasNtz(a.elementType)
    case m: MapType    => hasNtz(m.keyType) || hasNtz(m.valueType)
    case other         => other == TimestampNTZType
  }

  /** The feature of a timestamp without time zone. */
  private[icebergwritercompat] val TimestampNtz = "timestampNtz"

  /** Adds a column of the new type beside the node, which stays as it is. */
  def addBeside(table: TableState, node: SchemaNode): Remedy = {
    val field = fieldAround(table, node, outsideKeys = true)
    val path = Iterator
      .from(2)
      .map(i => field.path.init :+ s"${field.path.last}_$i")
      .find(!table.nodesByPath.contains(_))
      .getOrElse(field.path)
    addColumn(table, path, field.dataType)
  }

  // An element, key or value cannot be added by itself, and nothing can be added to a map key.
  private def fieldAround(
      table: TableState,
      node: SchemaNode,
      outsideKeys: Boolean = false
  ): SchemaNode =
    node.path.inits
      .flatMap(path => if (path == node.path) Some(node) else table.nodesByPath.get(path))
      .find(n => n.isField && !(outsideKeys && n.belowMapKey))
      .getOrElse(node)

  /** Whether the version before does not have the node; one without an id is known by its path. */
  private[icebergwritercompat] def isNew(table: TableState, node: SchemaNode): Boolean =
    table.previous.exists { before =>
      !node.id.fold(before.nodesByPath.contains(node.path))(before.nodesById.contains)
    }

  /** Gives the node another name. */
  def rename(table: TableState, node: SchemaNode, name: String): Remedy = {
    val renamed = Change.Name(node.path, name)
    table.lifecycle match {
      case _: Lifecycle.Creating => create(table, renamed)
      case Lifecycle.Enabling    => renameInPlace(table, node.path, name)
      case Lifecycle.Changing    =>
        val before =
          for (previous <- table.previous; id <- node.id; was <- previous.nodesById.get(id))
            yield was
        before.fold(addColumn(table, node.path.init :+ name, node.dataType, Seq(renamed))) { was =>
          renameInPlace(table, was.path, name)
        }
    }
  }

  private def renameInPlace(table: TableState, path: Seq[String], name: String): Remedy = {
    val now = table.previous.orElse(table.asItIs).getOrElse(table)
    RenameColumn(table.name, path, name, mapped = now.isMapped, now.differInCaseAlone)
  }

  /** What an upgrade takes away when it is asked to, by the names that users ask by. */
  val GeneratedColumns = "generated-columns"
  val IdentityColumns = "identity-columns"
  val Invariants = "invariants"

  /** Makes the column a plain one: creates or adds it so, or lets an upgrade take `what` away. */
  def withoutExpression(table: TableState, node: SchemaNode, what: String): Remedy =
    table.lifecycle match {
      case Lifecycle.Changing if isNew(table, node) => add(table, node)
      case Lifecycle.Enabling                       => callEnable(table, drop = Seq(what))
      case _: Lifecycle.Creating                    => create(table, Change.Plain(node.path))
      case _                                        => copyInto(table)
    }

  /** Gives the node a type that both formats have. */
  def useSupportedType(table: TableState, node: SchemaNode): Remedy = table.lifecycle match {
    case _: Lifecycle.Creating                                           => create(table)
    case Lifecycle.Enabling if SupportedTypes.widensToInt(node.dataType) =>
      callEnable(table, rewrite = true)
    // The values of the column would be lost with it.
    case Lifecycle.Enabling                                            => copyInto(table)
    case Lifecycle.Changing if isStanding(table)                       => copyInto(table)
    case Lifecycle.Changing if !isNew(table, fieldAround(table, node)) => addBeside(table, node)
    case Lifecycle.Changing                                            => add(table, node)
  }

  /** Lets Delta give the node a wider type, and keep the record of it. */
  def widen(table: TableState, node: SchemaNode, dataType: DataType): Remedy =
    WidenColumn(table.name, node.path, dataType)
}
