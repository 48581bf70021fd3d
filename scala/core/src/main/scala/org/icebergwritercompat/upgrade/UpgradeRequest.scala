package org.icebergwritercompat.upgrade

import org.icebergwritercompat.contract.{Fix, TableState}
import org.icebergwritercompat.remedy.Remedy

/**
 * The options of an upgrade.
 *
 * @param rewrites
 *   whether data files may be rewritten
 * @param drop
 *   the blockers that are removed first
 */
final case class UpgradeRequest(rewrites: Boolean, drop: Set[Drop]) {

  /** The call with these options. */
  def call(table: TableState): Remedy =
    Fix.callEnable(table, rewrites, Drop.all.filter(drop).map(_.name))
}

object UpgradeRequest {

  /** Only the commit. */
  val plain: UpgradeRequest = UpgradeRequest(rewrites = false, Set.empty)

  /** The commit, and the rewrite of files that cannot be kept. */
  val rewriting: UpgradeRequest = plain.copy(rewrites = true)

  /** The values of the option `mode`. */
  val modes: Seq[String] = Seq("auto", "metadata", "rewrite")

  /** Whether files may be rewritten in this mode; `auto` requires the option `rewrite`. */
  def rewrites(mode: String, rewrite: Boolean): Option[Boolean] = mode match {
    case "auto"     => Some(rewrite)
    case "metadata" => Some(false)
    case "rewrite"  => Some(true)
    case _          => None
  }
}
