package org.icebergwritercompat.contract

import org.icebergwritercompat.model.SchemaNode

/** What kind of operation changes a table, where that decides what it may do. */
sealed trait ChangeKind

object ChangeKind {

  /** Rows or schema of the table change. */
  case object Ordinary extends ChangeKind

  /** All rows leave, and the table starts anew. */
  case object Replacing extends ChangeKind

  /** An older version of the same table returns, rows and schema. */
  case object Restoring extends ChangeKind

  /** A feature leaves the protocol. */
  case object DroppingFeature extends ChangeKind
}

/** A step from one version of a table to the next. */
final case class TableChange(before: TableState, after: TableState, kind: ChangeKind) {

  /** The node that had this id before. */
  def old(id: Long): Option[SchemaNode] = before.nodesById.get(id)

  // Nearly every rule asks for these, so the ids are looked up once.
  private lazy val (keptNodes, addedNodes) = after.nodes.partitionMap { node =>
    node.id.flatMap(old).map(_ -> node).toLeft(node)
  }

  /** The nodes that were there before, each with what it was. */
  def kept: Iterator[(SchemaNode, SchemaNode)] = keptNodes.iterator

  /** The nodes with an id that no node had before. */
  def added: Iterator[SchemaNode] = addedNodes.iterator.filter(_.id.isDefined)
}
