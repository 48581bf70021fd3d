package org.icebergwritercompat.docs

import org.icebergwritercompat.contract.{ActionRule, ChangeRule, FooterRule, Rule, TableRule}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.rules.{FileRules, NameRules, PropertyRules, RuleSuites}

import java.nio.file.{Files, Path}

/** The page `docs/rules.md`, made from the rules and their examples. */
object RulesPage {

  private val command = "make docs"
  private val sources = "scala/core/src/main/scala/org/icebergwritercompat/rules"
  private val tests = "scala/core/src/test/scala/org/icebergwritercompat"

  /** The text of the page. */
  def text: String =
    (header +: toc +: sections).mkString("\n\n") + "\n"

  private def header: String =
    s"""# The rules
       |
       |A Delta table with `${WriterCompat.Enabled}` keeps these ${V1.rules.all.size} rules.
       |A commit that would break one is refused, as far as the log tells; what only the footers of data
       |files tell is verified when asked for. Each refusal and finding names the rule by its id, and has
       |a statement that does what was wanted, as far as the rules allow it.
       |
       |A rule is about a version of the table, about the change from one version to the next, about an
       |action of a commit, or about a data file. The letter of its id tells the subject, a `+` marks the
       |part of a rule that is about a change or an action, and an `f` the part that is about the footer.
       |
       |Every example here is executed by `RuleExamplesSuite`: statements in a guarded session, lines of
       |the log and footers on the rules alone. What a line of the log leaves out is as in a table that
       |keeps all rules, and JSON that the log holds as text is shown as the JSON it is.
       |
       |This page is generated from the rules and their examples; run `$command` after a change to them.
       |A test fails while the page is stale.""".stripMargin

  private def toc: String =
    ("## All rules" +: "" +: "| Rule | What must hold | About a |" +: "|---|---|---|" +:
      ordered.map { rule =>
        s"| [${rule.id}](#${anchor(rule)}) | ${rule.statement} | ${kind(rule)} |"
      }).mkString("\n")

  private def kind(rule: Rule): String = rule match {
    case _: TableRule  => "version"
    case _: ChangeRule => "change"
    case _: ActionRule => "action"
    case _: FooterRule => "data file"
  }

  private def sections: Seq[String] = subjects.flatMap { case (letter, title) =>
    s"## $letter: $title" +: ordered.filter(_.id.head == letter).map(section)
  }

  private val subjects = Seq(
    'A' -> "the protocol",
    'B' -> "properties",
    'C' -> "columns and layout",
    'D' -> "actions on files",
    'E' -> "data files",
    'N' -> "names of columns"
  )

  /** All rules in the order of their ids, 2 before 10. */
  private lazy val ordered: Seq[Rule] = V1.rules.all.sortBy { rule =>
    val (number, suffix) = rule.id.tail.span(_.isDigit)
    (rule.id.head, number.toInt, suffix)
  }

  private def anchor(rule: Rule): String = "rule-" + rule.id.toLowerCase.replace("+", "-plus")

  private def section(rule: Rule): String = {
    val example = RuleExamples.of(rule)
    val (what, remedy) = example.says.split('\n').span(!_.startsWith("Run: "))
    val who = example match {
      case _: SqlExample    => "What the refusal of the statement says:"
      case _: LogExample    => "What the refusal of the commit says:"
      case _: FooterExample => "What is found in the file:"
    }
    Seq(
      s"""### <a id="${anchor(rule)}"></a>${rule.id}""",
      rule.statement,
      rule.why,
      s"- Source: ${rule.clauses.map(c => s"${c.source.title}, ${c.section}").mkString("; ")}\n" +
        s"- Checked: ${moment(rule)}\n" +
        s"- Code: ${source(rule)}, tests: ${suite(rule)}",
      if (example.setUp.isEmpty) ""
      else "Before both:\n\n" + block(example.setUpLanguage, example.setUp),
      "Passes:\n\n" + block(example.language, example.passes),
      s"Fails, with `${example.condition}`:\n\n" + block(example.language, example.fails),
      s"$who\n\n" +
        what.map(line => s"> $line").mkString("\n>\n") + "\n\n" +
        fixed(remedy.mkString("\n"))
    )
      .filter(_.nonEmpty)
      .mkString("\n\n")
  }

  private def fixed(line: String): String = {
    val fix = line.stripPrefix("Run: ")
    val language = if (fix.startsWith("enable_")) "python" else "sql"
    val purpose =
      if (fix.startsWith("DESCRIBE ")) "No statement mends it; who wrote the file shows"
      else "Mended by"
    s"$purpose:\n\n```$language\n$fix\n```"
  }

  private def block(language: String, lines: Seq[String]): String = {
    val end = if (language == "sql") ";" else ""
    lines.map(_ + end).mkString(s"```$language\n", "\n", "\n```")
  }

  private def moment(rule: Rule): String = rule match {
    case FileRules.LiveFilesWereWrittenById =>
      "when the feature is switched on for a table that has files, and when `CLONE` or `CONVERT TO " +
        "DELTA` takes files over."
    case NameRules.NoReservedNames | PropertyRules.UniFormOff =>
      "when a table is created or replaced, and when the feature is switched on."
    case _: TableRule  => "on every commit that leaves the table with the feature."
    case _: ChangeRule =>
      "on every commit to a table that has the feature, against the version that the commit follows."
    case _: ActionRule =>
      "on every such action of a commit, and on each live file when the feature is switched on."
    case _: FooterRule =>
      "when the data files are verified, and when the feature is switched on for a table that has files."
  }

  private def source(rule: Rule): String = {
    val file = rule.getClass.getName.split('.').last.takeWhile(_ != '$')
    s"[$file](../$sources/$file.scala)"
  }

  private def suite(rule: Rule): String = {
    val name = RuleSuites
      .of(rule)
      .getOrElse(throw new NoSuchElementException(s"${rule.id} has no tests"))
      .suiteName
    s"[$name](../$tests/rules/$name.scala)"
  }

  /** Where the page is: in the nearest folder above that has a build. */
  lazy val path: Path = Iterator
    .iterate(Path.of("").toAbsolutePath)(_.getParent)
    .takeWhile(_ != null)
    .find(folder => Files.exists(folder.resolve("build.sbt")))
    .getOrElse(throw new IllegalStateException("no build.sbt in any folder above"))
    .resolve("docs")
    .resolve("rules.md")

  /** Whether the page is there as it should be. */
  def isCurrent: Boolean = Files.exists(path) && Files.readString(path) == text

  /** Writes the page, or fails if it is not what it should be. */
  def main(arguments: Array[String]): Unit = arguments.toSeq match {
    case Seq("write") =>
      Files.createDirectories(path.getParent)
      Files.writeString(path, text)
      ()
    case Seq("check") =>
      if (!isCurrent) fail(1, s"$path is stale: run '$command'.")
    case _ => fail(2, "Usage: RulesPage write|check")
  }

  private def fail(code: Int, message: String): Unit = {
    System.err.println(message)
    sys.exit(code)
  }
}
