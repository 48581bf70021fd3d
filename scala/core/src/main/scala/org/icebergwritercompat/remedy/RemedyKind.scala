package org.icebergwritercompat.remedy

/**
 * What a remedy does.
 *
 * @param name
 *   the value of `kind` in JSON
 */
sealed abstract class RemedyKind(val name: String)

object RemedyKind {

  /** Sets properties of the table, or takes them away. */
  case object Properties extends RemedyKind("properties")

  /** Takes the default from a column. */
  case object Default extends RemedyKind("default")

  /** Takes a CHECK constraint away. */
  case object Constraint extends RemedyKind("constraint")

  /** Lets a column hold nulls. */
  case object Nulls extends RemedyKind("nulls")

  /** Gives a column a wider type. */
  case object Type extends RemedyKind("type")

  /** Changes rows. */
  case object Rows extends RemedyKind("rows")

  /** Changes nothing, and shows which commit wrote what is wrong. */
  case object Look extends RemedyKind("look")

  /** Gives a column another name. */
  case object Rename extends RemedyKind("rename")

  /** Writes files with deleted rows anew. */
  case object Purge extends RemedyKind("purge")

  /** Takes a feature out of the protocol. */
  case object DropFeature extends RemedyKind("drop-feature")

  /** The same, which Delta may refuse until some time has passed. */
  case object DropFeatureLater extends RemedyKind("drop-feature-later")

  /** Copies the rows into a new table. */
  case object Copy extends RemedyKind("copy")

  /** Switches a contract on. */
  case object Enable extends RemedyKind("enable")

  /** Publishes the table, or shows how far it is published. */
  case object Metadata extends RemedyKind("metadata")

  /** Anything else. */
  case object Change extends RemedyKind("change")

  /** All of them. */
  val all: Seq[RemedyKind] = Seq(
    Properties,
    Default,
    Constraint,
    Nulls,
    Type,
    Rows,
    Look,
    Rename,
    Purge,
    DropFeature,
    DropFeatureLater,
    Copy,
    Enable,
    Metadata,
    Change
  )
}
