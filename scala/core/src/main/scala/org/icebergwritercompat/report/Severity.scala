package org.icebergwritercompat.report

/** The severity of a finding. */
sealed abstract class Severity(val name: String)

object Severity {

  /** A rule is broken, and a user has to act. */
  case object Error extends Severity("error")

  /** The feature is off, and switching it on rewrites data files; or readers may have problems. */
  case object Warning extends Severity("warning")

  /** For information; or the feature is off, and switching it on fixes this. */
  case object Info extends Severity("info")
}
