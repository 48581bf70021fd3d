package org.icebergwritercompat.remedy

/** A language that remedies are shown in: that of the door through which a user came. */
sealed abstract class Rendering(val name: String) extends Serializable {

  /** The statements of a remedy, each to be run by itself. */
  def of(remedy: Remedy): Seq[String]
}

object Rendering {

  /** Statements of SQL. */
  case object Sql extends Rendering("sql") {
    override def of(remedy: Remedy): Seq[String] = remedy.sql
  }

  /** Calls in Python. */
  case object Python extends Rendering("python") {
    override def of(remedy: Remedy): Seq[String] = remedy.python
  }

  /** Commands of a shell. */
  case object Command extends Rendering("command") {
    override def of(remedy: Remedy): Seq[String] = remedy.command
  }

  /** All of them. */
  val all: Seq[Rendering] = Seq(Sql, Python, Command)

  /** How many characters of a statement a text shows. */
  val LongestShown = 4000

  /**
   * A statement as a text shows it: one for a table with thousands of columns is cut. The statement
   * itself is the parameter `fix` of the error, and part of the remedy in a report.
   */
  def shown(statement: String): String =
    if (statement.length <= LongestShown) statement
    else
      s"${statement.take(LongestShown)} ... (${statement.length - LongestShown} more characters: " +
        "the parameter `fix` of this error has the whole statement)"
}
