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
 * The base class is one that PySpark passes on with its condition.
 *
 * @param remedy
 *   the remedy; its SQL statements are the parameter `fix` of the text, one per line
 * @param also
 *   the other violations of the refused statement
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

  /** The text without the remedy. */
  def explanation: String = IcebergWriterCompatException.body(condition, parameters, remedy, also)

  /** The remedy in SQL, in Python and as commands, as JSON. */
  def remedyJson: String = RemedyJson.of(remedy)

  /** What to do with the statements of the remedy: `Run` or `Use`. */
  def remedyVerb: String = remedy.verb

  override def getCondition: String = condition

  override def getErrorClass: String = condition

  override def getSqlState: String = Conditions.sqlState(condition)

  override def getMessageParameters: JMap[String, String] =
    IcebergWriterCompatException.withFix(parameters, remedy).asJava
}

/** Creates the errors of this project. */
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
   *   the other violations of the statement
   * @param remedy
   *   the remedy of the first violation, and of the others if possible
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

  /** The text of the violation without the table, the rule and the remedy. */
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
      if (also.isEmpty) "" else s"\nThe statement also breaks these rules:${list(also)}"
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
   * The refusal to switch the feature on, with all findings.
   *
   * @param remedy
   *   the remedy of all findings, if it keeps all rows
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

  // A copy would have other rows, or could not read them; a column can be renamed in place.
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
        "The feature can be switched on for the table in place; data files that cannot be kept " +
          "are rewritten."
      case _: Remedy.CopyInto => "The rows can be copied into a new table that has the feature."
      case _                  => "Fix the following first."
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
   * The refusal to switch the feature on because of blockers.
   *
   * @param blockers
   *   the rule, what was found, and the remedy
   * @param remedy
   *   the remedy of all of them, if there is a single one
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

  /** The refusal to rewrite data files without a request. */
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

  /** The refusal where Delta drops a feature only after some time. */
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
          s" With the profile ${profile.name} it can be dropped now: SET " +
            s"${Profile.Conf}=${profile.name}"
        }
      ),
      cause,
      remedy,
      Nil
    )

  /** The refusal of files that were written before the table had the feature. */
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

  /** The error if other writers commit faster than the table can be examined. */
  def tooBusy(table: String, attempts: Int): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_TABLE_TOO_BUSY",
      Map("table" -> table, "attempts" -> attempts.toString)
    )

  /** The error for an option with an unknown value. */
  def wrongOption(
      option: String,
      value: String,
      allowed: Seq[String]
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_WRONG_OPTION",
      Map("option" -> option, "value" -> value, "allowed" -> allowed.mkString(", "))
    )

  /** The refusal of an invalid value of a property or setting. */
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

  /** The refusal of a write for which the rules would not be checked. */
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

  /** The refusal to convert files without column ids to a table with the feature. */
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

  /** The error for a name or path that is not a Delta table. */
  def notDelta(table: String, remedy: Remedy = Remedy.Nothing): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE",
      Map("table" -> table),
      null,
      remedy,
      Nil
    )

  /** The error for a statement that cannot be checked without running it. */
  def statementNotSupported(statement: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_STATEMENT_NOT_SUPPORTED",
      Map("statement" -> statement.linesIterator.nextOption().getOrElse(""))
    )

  /** The error for an unknown rule id. */
  def noSuchRule(rule: String, rules: Seq[String]): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_NO_SUCH_RULE",
      Map("rule" -> rule, "rules" -> rules.mkString(", "))
    )

  /** The error for wrong arguments of a table function. */
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

  /** The same, with a remedy that the reason alone does not determine. */
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

  /** The error for a table that has the feature and breaks its rules. */
  def enabledButBroken(
      table: String,
      broken: Seq[(String, String, Remedy)]
  ): IcebergWriterCompatException =
    withFindings(s"$Violation.ENABLED_BUT_BROKEN", table, broken, broken.head._3)

  /** The error for a table that is not published. */
  def notPublished(table: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_NOT_PUBLISHED",
      Map("table" -> table),
      null,
      Remedy.Publish(table),
      Nil
    )

  /** The error if Iceberg's library is missing. */
  def icebergMissing(version: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_ICEBERG_MISSING",
      Map("version" -> version),
      cause
    )

  /** The error if the driver of a database is missing. */
  def driverMissing(
      uri: String,
      driver: String,
      coordinate: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_DRIVER_MISSING",
      Map("uri" -> uri, "driver" -> driver, "coordinate" -> coordinate)
    )

  /** The error if an Iceberg catalog cannot be used. */
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

  /** The refusal of a VACUUM of a published table whose readers would lose files. */
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

  /** The text of an error in one line, and its remedy, if it has one. */
  def inOneLine(error: Throwable): (String, Option[Remedy]) = error match {
    case own: IcebergWriterCompatException =>
      val known = Option.unless(own.remedy.isEmpty)(own.remedy)
      (own.explanation.linesIterator.mkString(" "), known)
    case other => (rootOf(other), None)
  }

  /** The error if files were rewritten but not committed. */
  def orphaned(table: String, folder: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$rewriteFailed.NOT_COMMITTED",
      Map("table" -> table, "folder" -> folder, "cause" -> rootOf(cause)),
      cause,
      Remedy.Vacuum(table),
      Nil
    )

  /** The refusal to commit rewritten files with another number of rows than the original files. */
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
   * The error for a malformed field of the log.
   *
   * @param cause
   *   the error of Delta; null if Delta ignores the field silently
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
            "Delta ignores it silently, so the change is missing in the table until there is a " +
              "checkpoint of a later version."
          else "Delta's own statements fail too."
        )
      ),
      cause
    )

  /** The error if the log of a table cannot be read. */
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

  // A table with thousands of columns can have thousands of violations.
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

  /** The text without its last line, if that contains the remedy, which may be missing. */
  def body(condition: String, parameters: Map[String, String], hasRemedy: Boolean): String = {
    val text = s"[$condition] ${reader.getErrorMessage(condition, parameters)}"
    if (hasRemedy)
      endings.foldLeft(text)((all, end) => all.stripSuffix(s"$end${parameters("fix")}"))
    else text
  }

  private val endings = Seq("\nRun: ", "\nUse: ")

  /** The text of a violation without the table, the rule and the remedy. */
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
