package org.icebergwritercompat.errors

import com.fasterxml.jackson.databind.json.JsonMapper
import org.apache.spark.{ErrorClassesJsonReader, SparkThrowable}
import org.icebergwritercompat.contract.{Fix, FooterRule, Profile, Rule, TableState, Violation}
import org.icebergwritercompat.remedy.{Remedy, RemedyJson}
import org.icebergwritercompat.rules.{ActionRules, FileRules, NameRules}

import java.util.{Map => JMap}
import scala.jdk.CollectionConverters._
import scala.util.matching.Regex

/**
 * A refusal: its condition, SQLSTATE and parameters are the same in Scala, Java, SQL and Python.
 *
 * The base class is one that PySpark hands on with its condition.
 *
 * @param remedy
 *   what mends it; its statements of SQL are the parameter `fix` of the text, one a line
 * @param also
 *   what else is wrong with the refused statement
 */
final class IcebergWriterCompatException(
    condition: String,
    parameters: Map[String, String],
    cause: Throwable,
    val remedy: Remedy,
    also: Seq[String]
) extends UnsupportedOperationException(
      IcebergWriterCompatException
        .body(condition, parameters, remedy, also)
        .concat(IcebergWriterCompatException.ending(remedy)),
      cause
    )
    with SparkThrowable {

  def this(condition: String, parameters: Map[String, String], cause: Throwable) =
    this(condition, parameters, cause, Remedy.Nothing, Nil)

  def this(condition: String, parameters: Map[String, String]) = this(condition, parameters, null)

  /** What is wrong, without what mends it. */
  def explanation: String = IcebergWriterCompatException.body(condition, parameters, remedy, also)

  /** What mends it in SQL, Python and at the command line, as JSON. */
  def remedyJson: String = RemedyJson.of(remedy)

  /** What is to be done with the statements of the remedy. */
  def remedyVerb: String = remedy.verb

  override def getCondition: String = condition

  override def getErrorClass: String = condition

  override def getSqlState: String = Conditions.sqlState(condition)

  override def getMessageParameters: JMap[String, String] =
    IcebergWriterCompatException.withFix(parameters, remedy).asJava
}

/** Makes the errors of this project. */
object IcebergWriterCompatException {

  /** The condition of every refused change to a table. */
  val Violation = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION"

  /** The condition of every session that could not be guarded. */
  val NotInstalled = "ICEBERG_WRITER_COMPAT_NOT_INSTALLED"

  /** The refusal of a change because of one violation. */
  def of(table: TableState, violation: Violation): IcebergWriterCompatException =
    of(table, violation, Nil, violation.remedy)

  /**
   * The refusal of a change because of its first violation.
   *
   * @param others
   *   what else is wrong with the statement
   * @param remedy
   *   what mends the first violation, and the others if that is possible
   */
  def of(
      table: TableState,
      violation: Violation,
      others: Seq[Violation],
      remedy: Remedy
  ): IcebergWriterCompatException = {
    val more = others.map(other => s"rule ${other.rule.id}: ${explanation(table, other)}").distinct
    new IcebergWriterCompatException(
      conditionOf(violation),
      parametersOf(table, violation),
      null,
      remedy,
      more
    )
  }

  /** What the refusal says of the violation itself, without the table, the rule and the remedy. */
  def explanation(table: TableState, violation: Violation): String =
    Conditions.explanation(conditionOf(violation), parametersOf(table, violation))

  private def withFix(parameters: Map[String, String], remedy: Remedy): Map[String, String] =
    if (remedy.isEmpty) parameters else parameters + ("fix" -> remedy.text)

  private[errors] def body(
      condition: String,
      parameters: Map[String, String],
      remedy: Remedy,
      also: Seq[String]
  ): String = {
    val rest =
      if (also.isEmpty) "" else s"\nThe same statement breaks more rules:${list(also)}"
    Conditions.body(condition, withFix(parameters, remedy), hasRemedy = !remedy.isEmpty) + rest +
      remedy.note.fold("")("\n" + _)
  }

  private[errors] def ending(remedy: Remedy): String =
    if (remedy.isEmpty) "" else s"\n${remedy.verb}: ${remedy.text}"

  private def conditionOf(violation: Violation): String =
    s"$Violation.${violation.condition.name}"

  private def parametersOf(table: TableState, violation: Violation): Map[String, String] =
    violation.parameters ++ Map(
      "table" -> table.name,
      "rule" -> violation.rule.id
    )

  /**
   * The refusal to switch the feature on, with everything that stands against it.
   *
   * @param remedy
   *   what mends all of it, where that keeps all rows
   */
  def notCompliant(
      table: TableState,
      findings: Seq[Violation],
      remedy: Remedy
  ): IcebergWriterCompatException =
    findings.find(isLostInCopy(table, _)) match {
      case Some(lost) if remedy == Fix.copyInto(table) => of(table, lost)
      case _                                           => allOf(table, findings, remedy)
    }

  // A copy would have other rows, or none where they cannot be read; a column can be renamed
  // where it is.
  private def isLostInCopy(table: TableState, finding: Violation): Boolean = finding.rule match {
    case ActionRules.NoMarkersOfNull | NameRules.NoReservedNames => true
    case _: FooterRule => finding.remedy != Fix.copyInto(table)
    case _             => false
  }

  private def allOf(
      table: TableState,
      findings: Seq[Violation],
      remedy: Remedy
  ): IcebergWriterCompatException = {
    val way = remedy match {
      case _: Remedy.Enable =>
        "The table can get the feature where it is: data files that cannot stay are written anew."
      case _: Remedy.CopyInto => "The rows can be copied into a new table that has the feature."
      case _                  => "The following is to be mended first."
    }
    new IcebergWriterCompatException(
      s"$Violation.TABLE_NOT_COMPLIANT",
      Map(
        "table" -> table.name,
        "rule" -> findings.map(_.rule.id).distinct.mkString(", "),
        "count" -> findings.size.toString,
        "findings" -> list(findings.map(_.summary)),
        "way" -> way
      ),
      null,
      remedy,
      Nil
    )
  }

  /**
   * The refusal to switch the feature on, with everything that stands in the way.
   *
   * @param blockers
   *   the rule, what was found, and what mends it
   * @param remedy
   *   what mends all of them, where one call does
   */
  def upgradeBlocked(
      table: String,
      blockers: Seq[(String, String, Remedy)],
      remedy: Remedy
  ): IcebergWriterCompatException =
    withFindings(s"$Violation.UPGRADE_BLOCKED", table, blockers, remedy)

  private def withFindings(
      condition: String,
      table: String,
      findings: Seq[(String, String, Remedy)],
      remedy: Remedy
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      condition,
      Map(
        "table" -> table,
        "rule" -> findings.map(_._1).distinct.mkString(", "),
        "count" -> findings.size.toString,
        "findings" -> list(findings.map { case (rule, found, mending) =>
          s"$rule: $found" + mending.sql.map(statement => s" ${mending.verb}: $statement").mkString
        })
      ),
      null,
      remedy,
      Nil
    )

  /** The refusal to write data files anew unasked. */
  def rewriteNeeded(
      table: String,
      rules: Seq[String],
      reasons: Seq[String],
      files: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.REWRITE_NEEDED",
      Map(
        "table" -> table,
        "rule" -> rules.distinct.mkString(", "),
        "files" -> files,
        "reasons" -> list(reasons)
      ),
      null,
      remedy,
      Nil
    )

  /** The refusal where Delta lets a feature go only after some time. */
  def dropLater(
      table: TableState,
      rule: Rule,
      feature: String,
      remedy: Remedy,
      cause: Throwable
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.DROP_LATER",
      Map(
        "table" -> table.name,
        "rule" -> rule.id,
        "feature" -> feature,
        "period" -> Fix.truncationPeriod(table),
        "atOnce" -> Fix.profileThatDropsAtOnce(table).fold("") { profile =>
          s" Under the profile ${profile.name} it can go at once: SET ${Profile.Conf}=${profile.name}"
        }
      ),
      cause,
      remedy,
      Nil
    )

  /** The refusal of files that were written while the table did not have the feature. */
  def writtenBeforeEnabling(
      table: String,
      operation: String,
      remedy: Remedy,
      cause: Throwable
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.WRITTEN_BEFORE_ENABLING",
      Map(
        "table" -> table,
        "rule" -> FileRules.LiveFilesWereWrittenById.id,
        "operation" -> operation
      ),
      cause,
      remedy,
      Nil
    )

  private def list(items: Seq[String]): String = {
    val left = items.size - findingsListed
    (items.take(findingsListed).map(item => s"\n- $item") ++
      Option.when(left > 0)(s"\n- and $left more")).mkString
  }

  /** The answer where others commit faster than the table can be looked at. */
  def tooBusy(table: String, attempts: Int): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_TABLE_TOO_BUSY",
      Map("table" -> table, "attempts" -> attempts.toString)
    )

  /** The answer to a call with an option that is not there. */
  def wrongOption(
      option: String,
      value: String,
      allowed: Seq[String]
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_WRONG_OPTION",
      Map("option" -> option, "value" -> value, "allowed" -> allowed.mkString(", "))
    )

  /** The refusal of a property or setting that has none of the values it may have. */
  def invalidValue(
      property: String,
      value: String,
      allowed: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.INVALID_PROPERTY_VALUE",
      Map("property" -> property, "value" -> value, "allowed" -> allowed),
      null,
      remedy,
      Nil
    )

  /** The refusal of a write that the rules would not see. */
  def unguarded(table: String, setting: String, remedy: Remedy): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.UNGUARDED_WRITE",
      Map("table" -> table, "setting" -> setting),
      null,
      remedy,
      Nil
    )

  /** The refusal to encrypt data files. */
  def encrypting(
      table: String,
      rule: Rule,
      setting: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.ENCRYPTED_DATA_FILES",
      Map("table" -> table, "rule" -> rule.id, "setting" -> setting),
      null,
      remedy,
      Nil
    )

  /** The refusal to make a table with the feature of files that have no column ids. */
  def notConvertible(
      folder: String,
      setting: String,
      remedy: Remedy
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.FILES_WITHOUT_COLUMN_IDS",
      Map(
        "folder" -> folder,
        "rule" -> FileRules.LiveFilesWereWrittenById.id,
        "setting" -> setting
      ),
      null,
      remedy,
      Nil
    )

  /** The answer to a call that names something else than a Delta table. */
  def notDelta(table: String, remedy: Remedy = Remedy.Nothing): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE",
      Map("table" -> table),
      null,
      remedy,
      Nil
    )

  /** The answer to a statement that cannot be tried without running it. */
  def statementNotSupported(statement: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_STATEMENT_NOT_SUPPORTED",
      Map("statement" -> statement.linesIterator.nextOption().getOrElse(""))
    )

  /** The answer to a question about a rule that is not there. */
  def noSuchRule(rule: String, rules: Seq[String]): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_NO_SUCH_RULE",
      Map("rule" -> rule, "rules" -> rules.mkString(", "))
    )

  /** The answer to a table function that is called in another way than it can be. */
  def wrongArguments(function: String, parameters: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_WRONG_ARGUMENTS",
      Map("function" -> function, "parameters" -> parameters)
    )

  /** The refusal to publish a table, with the reason as sub-condition. */
  def notPublishable(
      reason: String,
      parameters: Map[String, String]
  ): IcebergWriterCompatException =
    notPublishable(reason, parameters, PublishRemedies.of(reason, parameters))

  /** The same, where the reason alone does not tell what mends it. */
  def notPublishable(
      reason: String,
      parameters: Map[String, String],
      remedy: Remedy
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.$reason",
      parameters,
      null,
      remedy,
      Nil
    )

  /** The refusal of what an Iceberg client wants to commit, with the reason as sub-condition. */
  def commitRefused(
      reason: String,
      table: String,
      parameters: Map[String, String],
      cause: Throwable = null
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"ICEBERG_WRITER_COMPAT_COMMIT_REFUSED.$reason",
      parameters + ("table" -> table),
      cause
    )

  /** The refusal to publish a version that breaks rules. */
  def brokenVersion(
      table: TableState,
      version: Long,
      broken: Seq[Violation]
  ): IcebergWriterCompatException =
    notPublishable(
      "BREAKS_RULES",
      Map(
        "table" -> table.name,
        "version" -> version.toString,
        "rule" -> broken.map(_.rule.id).distinct.mkString(", "),
        "count" -> broken.size.toString,
        "findings" -> list(broken.map(v => s"${v.rule.id}: ${explanation(table, v)}"))
      ),
      broken.head.remedy
    )

  /** The answer where the feature is on for a table that breaks its rules. */
  def enabledButBroken(
      table: String,
      broken: Seq[(String, String, Remedy)]
  ): IcebergWriterCompatException =
    withFindings(s"$Violation.ENABLED_BUT_BROKEN", table, broken, broken.head._3)

  /** The answer to a question about what is published where nothing is. */
  def notPublished(table: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_NOT_PUBLISHED",
      Map("table" -> table),
      null,
      Remedy.Publish(table),
      Nil
    )

  /** The answer to a call that needs Iceberg's library where that is missing. */
  def icebergMissing(version: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_ICEBERG_MISSING",
      Map("version" -> version),
      cause
    )

  /** The answer to a call that needs the driver of a database where that is missing. */
  def driverMissing(
      uri: String,
      driver: String,
      coordinate: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_DRIVER_MISSING",
      Map("uri" -> uri, "driver" -> driver, "coordinate" -> coordinate)
    )

  /** The answer where an Iceberg catalog cannot be used. */
  def catalogUnavailable(
      catalog: String,
      settings: String,
      cause: Throwable
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_CATALOG_UNAVAILABLE",
      Map("catalog" -> catalog, "settings" -> s"$settings*", "cause" -> rootOf(cause)),
      cause
    )

  /** The refusal of a VACUUM of a published table whose readers would miss files. */
  def vacuumRefused(
      table: String,
      metadata: String,
      cause: Throwable
  ): IcebergWriterCompatException = {
    val (text, remedy) = inOneLine(cause)
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED",
      Map(
        "table" -> table,
        "metadata" -> metadata,
        "cause" -> text
      ),
      cause,
      remedy.getOrElse(Remedy.Publish(table)),
      Nil
    )
  }

  /** An error without its stack, and what mends it, if that is known. */
  def inOneLine(error: Throwable): (String, Option[Remedy]) = error match {
    case own: IcebergWriterCompatException =>
      val known = Option.unless(own.remedy.isEmpty)(own.remedy)
      (own.explanation.linesIterator.mkString(" "), known)
    case other => (rootOf(other), None)
  }

  /** The answer where files were written anew and not committed, with what went wrong. */
  def orphaned(table: String, folder: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$rewriteFailed.NOT_COMMITTED",
      Map("table" -> table, "folder" -> folder, "cause" -> rootOf(cause)),
      cause,
      Remedy.Vacuum(table),
      Nil
    )

  /** The refusal to commit files that do not have the rows of those they were written from. */
  def otherRows(
      table: String,
      files: Long,
      rows: Long,
      written: Long,
      folder: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$rewriteFailed.OTHER_ROWS",
      Map(
        "table" -> table,
        "folder" -> folder,
        "files" -> files.toString,
        "rows" -> rows.toString,
        "written" -> written.toString
      ),
      null,
      Remedy.Vacuum(table),
      Nil
    )

  private val rewriteFailed = "ICEBERG_WRITER_COMPAT_REWRITE_FAILED"

  /**
   * The answer where a field of the log of a table is not what Delta reads.
   *
   * @param cause
   *   what Delta fails with; null where it passes over the field
   */
  def malformedLog(
      table: String,
      version: Long,
      file: String,
      field: MalformedField,
      cause: Throwable
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_MALFORMED_LOG",
      Map(
        "table" -> table,
        "version" -> version.toString,
        "file" -> file,
        "field" -> field.field,
        "found" -> field.found,
        "required" -> field.required,
        "effect" -> (
          if (cause == null)
            "Delta passes over it without a word, so that what was to be committed is not in the " +
              "table, until there is a checkpoint of a later version."
          else "Delta's own statements fail as well."
        )
      ),
      cause
    )

  /** The answer where the log of a table cannot be read. */
  def unreadable(table: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_TABLE_UNREADABLE",
      Map("table" -> table, "cause" -> rootOf(cause)),
      cause,
      Remedy.History(table),
      Nil
    )

  private def rootOf(e: Throwable): String = {
    val root = Iterator.iterate(e)(_.getCause).takeWhile(_ != null).take(20).toSeq.last
    Seq(e, root).distinct
      .map { cause =>
        val text = Option(cause.getMessage).flatMap(_.linesIterator.nextOption()).getOrElse("")
        s"${cause.getClass.getSimpleName}: $text"
      }
      .mkString(", because of ")
  }

  // A table with thousands of columns breaks a rule thousands of times.
  private val findingsListed = 50

  /** The refusal of a session, with the reason as sub-condition. */
  def notInstalled(
      reason: String,
      parameters: Map[String, String],
      cause: Throwable = null
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(s"$NotInstalled.$reason", parameters, cause)
}

/** The texts of the conditions. */
private[errors] object Conditions {

  private val resource = "/error/iceberg-writer-compat-conditions.json"

  private val reader = new ErrorClassesJsonReader(Seq(getClass.getResource(resource)))

  /** A text without its last line, where that is there for the remedy, which may be missing. */
  def body(condition: String, parameters: Map[String, String], hasRemedy: Boolean): String = {
    val text = s"[$condition] ${reader.getErrorMessage(condition, parameters)}"
    if (hasRemedy)
      endings.foldLeft(text)((all, end) => all.stripSuffix(s"$end${parameters("fix")}"))
    else text
  }

  private val endings = Seq("\nRun: ", "\nUse: ")

  /** What the text of a violation says besides the table, the rule and the remedy. */
  def explanation(condition: String, parameters: Map[String, String]): String = {
    val template = texts
      .path(IcebergWriterCompatException.Violation)
      .path("subClass")
      .path(condition.stripPrefix(s"${IcebergWriterCompatException.Violation}."))
      .path("message")
      .elements
      .asScala
      .map(_.asText)
      .mkString("\n")
    val said = endings
      .foldLeft(template)((all, end) => all.stripSuffix(s"$end<fix>"))
      .stripPrefix("Table <table>, rule <rule>: ")
    """<([a-zA-Z]+)>""".r
      .replaceAllIn(said, found => Regex.quoteReplacement(parameters(found.group(1))))
      .capitalize
  }

  private val texts =
    new JsonMapper().readTree(getClass.getResourceAsStream(resource))

  def sqlState(condition: String): String = reader.getSqlState(condition)
}
