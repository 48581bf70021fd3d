package org.icebergwritercompat.upgrade

import org.icebergwritercompat.contract.{Contract, Fix, TableState}
import org.icebergwritercompat.remedy.Remedy

/**
 * What a user lets an upgrade do to a table.
 *
 * @param rewrites
 *   whether it may write data files anew
 * @param drop
 *   what it takes away first
 * @param contract
 *   the contract to switch on; `None` if the user named none
 */
final case class UpgradeRequest(
    rewrites: Boolean,
    drop: Set[Drop],
    contract: Option[Contract] = None
) {

  /** The call that asks for this. */
  def call(table: TableState): Remedy =
    Fix.callEnable(table, rewrites, Drop.all.filter(drop).map(_.name))
}

object UpgradeRequest {

  /** Asks for nothing but the commit. */
  val plain: UpgradeRequest = UpgradeRequest(rewrites = false, Set.empty)

  /** Asks for the commit, and for new files where they are needed. */
  val rewriting: UpgradeRequest = plain.copy(rewrites = true)

  /** The names of the ways that users ask for. */
  val modes: Seq[String] = Seq("auto", "metadata", "rewrite")

  /** Whether files may be written anew in the mode of this name; `auto` needs to be told so. */
  def rewrites(mode: String, rewrite: Boolean): Option[Boolean] = mode match {
    case "auto"     => Some(rewrite)
    case "metadata" => Some(false)
    case "rewrite"  => Some(true)
    case _          => None
  }
}
