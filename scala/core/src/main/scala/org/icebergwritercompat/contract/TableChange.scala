package org.icebergwritercompat.contract

import org.icebergwritercompat.model.SchemaNode

/** The kind of operation that changes a table, on which some rules depend. */
sealed trait ChangeKind

object ChangeKind {

  /** An ordinary change of rows or schema. */
  case object Ordinary extends ChangeKind

  /** All rows are replaced, as by CREATE OR REPLACE. */
  case object Replacing extends ChangeKind

  /** The rows and schema of an older version are restored. */
  case object Restoring extends ChangeKind

  /** A feature is dropped from the protocol. */
  case object DroppingFeature extends ChangeKind
}

/** A change from one version of a table to the next. */
final case class TableChange(before: TableState, after: TableState, kind: ChangeKind) {

  /** The node that had this id in the previous version. */
  def old(id: Long): Option[SchemaNode] = before.nodesById.get(id)

  // Most rules use these, so they are computed once.
  private lazy val (keptNodes, addedNodes) = after.nodes.partitionMap { node =>
    node.id.flatMap(old).map(_ -> node).toLeft(node)
  }

  /** The nodes that existed before, as pairs of the old and the new node. */
  def kept: Iterator[(SchemaNode, SchemaNode)] = keptNodes.iterator

  /** The nodes whose id is new. */
  def added: Iterator[SchemaNode] = addedNodes.iterator.filter(_.id.isDefined)
}
