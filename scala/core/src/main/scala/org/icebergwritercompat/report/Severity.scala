package org.icebergwritercompat.report

/** How much a finding weighs. */
sealed abstract class Severity(val name: String)

object Severity {

  /** The requirement is broken; somebody has to act. */
  case object Error extends Severity("error")

  /** The feature is off, and switching it on takes new data files. */
  case object Warning extends Severity("warning")

  /** Nothing to mend, or the feature is off, and switching it on mends this by itself. */
  case object Info extends Severity("info")
}
