package org.icebergwritercompat.iceberg.metadata

import org.apache.iceberg.TableProperties

/** What becomes of the delete files of clients. */
sealed abstract class RowLevelDeletes(val name: String)

object RowLevelDeletes {

  /** The property of a catalog, and the option of a server, that says it. */
  val Property = "row-level-deletes"

  /** A commit that has some is refused. */
  case object Refuse extends RowLevelDeletes("refuse")

  /** The data files are written anew without the deleted rows. */
  case object Rewrite extends RowLevelDeletes("rewrite")

  /** The one with a name; fails for any other name. */
  def named(name: String): RowLevelDeletes = Seq(Refuse, Rewrite).find(_.name == name).getOrElse {
    throw new IllegalArgumentException(
      s"$Property is ${Refuse.name} or ${Rewrite.name}, but not '$name'"
    )
  }

  /** The properties by which clients choose how they delete rows. */
  private[iceberg] val modes =
    Set(TableProperties.DELETE_MODE, TableProperties.UPDATE_MODE, TableProperties.MERGE_MODE)
}
