package org.icebergwritercompat.docs

import org.icebergwritercompat.contract.{ActionRule, ChangeRule, FooterRule, Rule, TableRule}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.rules.{FileRules, NameRules, PropertyRules, RuleSuites}

/** The page `docs/rules.md`, made from the rules and their examples. */
object RulesPage extends GeneratedPage("rules.md") {

  private val sources = "scala/core/src/main/scala/org/icebergwritercompat/rules"
  private val tests = "scala/core/src/test/scala/org/icebergwritercompat"

  override def text: String =
    (header +: toc +: sections).mkString("\n\n") + "\n"

  private def header: String =
    s"""# The rules
       |
       |<!-- no block is run: RuleExamplesSuite runs every example -->
       |
       |A Delta table with `${WriterCompat.Enabled}` keeps these ${V1.rules.all.size} rules.
       |A commit that would break a rule on the log is refused. Rules on the footers of data files (letter
       |E, and `D1f`) are checked by `verify` and when the feature is switched on. Each refusal and finding
       |names the rule by its id, and has a remedy: a statement that does what was intended, as far as the
       |rules allow it.
       |
       |A rule applies to a version of the table, to the change from one version to the next, to an action
       |of a commit, or to a data file. The letter of its id is the subject; a `+` marks the part of a rule
       |that applies to a change or an action, and an `f` the part that applies to the footer.
       |
       |Every example is executed by `RuleExamplesSuite`: statements in a session with the extension, lines
       |of the log and footers directly with the rules. Fields that a line of the log omits have the values
       |of a table that keeps all rules. JSON that the log stores as text is shown as JSON.
       |
       |This page is generated from the rules and their examples; run `${GeneratedPages.command}` after a change to them.
       |A test fails if the page is not up to date.""".stripMargin

  private def toc: String =
    ("## All rules" +: "" +: "| Rule | Requirement | Applies to |" +: "|---|---|---|" +:
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
      case _: SqlExample    => "The statement is refused with:"
      case _: LogExample    => "The commit is refused with:"
      case _: FooterExample => "The finding in the file:"
    }
    Seq(
      s"""### <a id="${anchor(rule)}"></a>${rule.id}""",
      rule.statement,
      rule.why,
      s"- Source: ${rule.clauses.map(c => s"${c.source.title}, ${c.section}").mkString("; ")}\n" +
        s"- Checked: ${moment(rule)}\n" +
        s"- Code: ${source(rule)}, tests: ${suite(rule)}",
      if (example.setUp.isEmpty) ""
      else "Set-up of both examples:\n\n" + block(example.setUpLanguage, example.setUp),
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
      if (fix.startsWith("DESCRIBE "))
        "No statement fixes it. The commit that wrote the file " +
          "is shown by"
      else "Remedy"
    s"$purpose:\n\n```$language\n$fix\n```"
  }

  private def block(language: String, lines: Seq[String]): String = {
    val end = if (language == "sql") ";" else ""
    lines.map(_ + end).mkString(s"```$language\n", "\n", "\n```")
  }

  private def moment(rule: Rule): String = rule match {
    case FileRules.LiveFilesWereWrittenById =>
      "when the feature is switched on for a table that has files, and when `CLONE` or " +
        "`CONVERT TO DELTA` takes files over."
    case NameRules.NoReservedNames | PropertyRules.UniFormOff =>
      "when a table is created or replaced, and when the feature is switched on."
    case _: TableRule  => "on every commit that leaves the table with the feature."
    case _: ChangeRule =>
      "on every commit to a table that has the feature, against the version that the commit " +
        "follows."
    case _: ActionRule =>
      "on every such action of a commit, and on each live file when the feature is switched on."
    case _: FooterRule =>
      "when the data files are verified, and when the feature is switched on for a table that " +
        "has files."
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
}
