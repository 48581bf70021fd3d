package org.icebergwritercompat.upgrade

/**
 * How far an upgrade may go.
 *
 * @param rewrites
 *   whether it may write data files anew
 */
sealed abstract class UpgradeMode(val rewrites: Boolean)

object UpgradeMode {

  /** Data files stay as they are, or the table is refused. */
  case object Metadata extends UpgradeMode(rewrites = false)

  /** Data files that cannot stay are written anew. */
  case object Rewrite extends UpgradeMode(rewrites = true)

  /** The names under which users ask for one. */
  val names: Seq[String] = Seq("auto", "metadata", "rewrite")

  /** The mode of this name; `auto` writes files anew only if that is asked for as well. */
  def named(name: String, rewrite: Boolean): Option[UpgradeMode] = name match {
    case "auto"     => Some(if (rewrite) Rewrite else Metadata)
    case "metadata" => Some(Metadata)
    case "rewrite"  => Some(Rewrite)
    case _          => None
  }
}
