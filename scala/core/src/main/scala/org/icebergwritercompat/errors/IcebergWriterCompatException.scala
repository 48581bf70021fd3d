package org.icebergwritercompat.errors

import org.apache.spark.{ErrorClassesJsonReader, SparkThrowable}
import org.icebergwritercompat.report.MalformedField
import org.icebergwritercompat.rules._

import java.util.{Map => JMap}
import scala.jdk.CollectionConverters._

/**
 * A refusal: its condition, SQLSTATE and parameters are the same in Scala, Java, SQL and Python.
 *
 * The base class is one that PySpark hands on with its condition.
 */
final class IcebergWriterCompatException(
    condition: String,
    parameters: Map[String, String],
    cause: Throwable
) extends UnsupportedOperationException(
      Conditions.message(condition, IcebergWriterCompatException.toPaste(parameters)),
      cause
    )
    with SparkThrowable {

  def this(condition: String, parameters: Map[String, String]) = this(condition, parameters, null)

  override def getCondition: String = condition

  override def getErrorClass: String = condition

  override def getSqlState: String = Conditions.sqlState(condition)

  override def getMessageParameters: JMap[String, String] =
    IcebergWriterCompatException.toPaste(parameters).asJava
}

/** Makes the errors of this project. */
object IcebergWriterCompatException {

  /** The condition of every refused change to a table. */
  val Violation = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION"

  /** The condition of every session that could not be guarded. */
  val NotInstalled = "ICEBERG_WRITER_COMPAT_NOT_INSTALLED"

  /** The refusal of a change because of one violation. */
  def of(table: TableState, violation: Violation): IcebergWriterCompatException =
    new IcebergWriterCompatException(conditionOf(violation), parametersOf(table, violation))

  /** What the refusal says of the violation itself, without the table, the rule and the fix. */
  def explanation(table: TableState, violation: Violation): String =
    Conditions.explanation(conditionOf(violation), parametersOf(table, violation))

  private def toPaste(parameters: Map[String, String]): Map[String, String] =
    parameters.map { case (key, value) => key -> (if (key == "fix") Fix.toPaste(value) else value) }

  private def conditionOf(violation: Violation): String =
    s"$Violation.${violation.condition.name}"

  private def parametersOf(table: TableState, violation: Violation): Map[String, String] =
    violation.parameters ++ Map(
      "table" -> table.name,
      "rule" -> violation.rule.id,
      "fix" -> violation.fix
    )

  /** The refusal to switch the feature on, with everything that stands against it. */
  def notCompliant(table: TableState, findings: Seq[Violation]): IcebergWriterCompatException =
    findings.find(isLostInCopy(table, _)).fold(copyable(table, findings))(of(table, _))

  // A copy would have other rows, or none where they cannot be read; a column can be renamed
  // where it is.
  private def isLostInCopy(table: TableState, finding: Violation): Boolean = finding.rule match {
    case ActionRules.NoMarkersOfNull | NameRules.NoReservedNames => true
    case _: FooterRule => finding.fix != Fix.copyInto(table)
    case _             => false
  }

  private def copyable(
      table: TableState,
      findings: Seq[Violation]
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.TABLE_NOT_COMPLIANT",
      Map(
        "table" -> table.name,
        "rule" -> findings.map(_.rule.id).distinct.mkString(", "),
        "count" -> findings.size.toString,
        "findings" -> list(findings.map(_.summary)),
        "fix" -> Fix.copyInto(table)
      )
    )

  /**
   * The refusal to switch the feature on, with everything that stands in the way.
   *
   * @param blockers
   *   the rule, what was found, and the statement that mends it
   * @param fix
   *   what mends all of them, where one call does
   */
  def upgradeBlocked(
      table: String,
      blockers: Seq[(String, String, String)],
      fix: String
  ): IcebergWriterCompatException =
    listing("UPGRADE_BLOCKED", table, blockers, fix)

  private def listing(
      condition: String,
      table: String,
      found: Seq[(String, String, String)],
      fix: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.$condition",
      Map(
        "table" -> table,
        "rule" -> found.map(_._1).distinct.mkString(", "),
        "count" -> found.size.toString,
        "findings" -> list(found.map { case (rule, what, mend) => s"$rule: $what Run: $mend" }),
        "fix" -> fix
      )
    )

  /** The refusal to write data files anew unasked. */
  def rewriteNeeded(
      table: String,
      rules: Seq[String],
      reasons: Seq[String],
      files: String,
      fix: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.REWRITE_NEEDED",
      Map(
        "table" -> table,
        "rule" -> rules.distinct.mkString(", "),
        "files" -> files,
        "reasons" -> list(reasons),
        "fix" -> fix
      )
    )

  /** The refusal where Delta lets a feature go only after some time. */
  def dropLater(
      table: TableState,
      rule: Rule,
      feature: String,
      fix: String,
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
        },
        "fix" -> fix
      ),
      cause
    )

  /** The refusal of files that were written while the table did not have the feature. */
  def writtenBeforeEnabling(
      table: String,
      operation: String,
      fix: String,
      cause: Throwable
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.WRITTEN_BEFORE_ENABLING",
      Map(
        "table" -> table,
        "rule" -> FileRules.LiveFilesWereWrittenById.id,
        "operation" -> operation,
        "fix" -> fix
      ),
      cause
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
      fix: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.INVALID_PROPERTY_VALUE",
      Map("property" -> property, "value" -> value, "allowed" -> allowed, "fix" -> fix)
    )

  /** The refusal of a write that the rules would not see. */
  def unguarded(table: String, setting: String, fix: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.UNGUARDED_WRITE",
      Map("table" -> table, "setting" -> setting, "fix" -> fix)
    )

  /** The refusal to encrypt data files. */
  def encrypting(
      table: String,
      rule: Rule,
      setting: String,
      fix: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.ENCRYPTED_DATA_FILES",
      Map("table" -> table, "rule" -> rule.id, "setting" -> setting, "fix" -> fix)
    )

  /** The refusal to make a table with the feature of files that have no column ids. */
  def notConvertible(
      folder: String,
      setting: String,
      fix: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$Violation.FILES_WITHOUT_COLUMN_IDS",
      Map(
        "folder" -> folder,
        "rule" -> FileRules.LiveFilesWereWrittenById.id,
        "setting" -> setting,
        "fix" -> fix
      )
    )

  /** The answer to a call that names something else than a Delta table. */
  def notDelta(table: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE",
      Map("table" -> table, "fix" -> s"DESCRIBE EXTENDED $table")
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
    new IcebergWriterCompatException(s"ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.$reason", parameters)

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
        "findings" -> list(broken.map(v => s"${v.rule.id}: ${explanation(table, v)}")),
        "fix" -> broken.head.fix
      )
    )

  /** The answer where the feature is on for a table that breaks its rules. */
  def enabledButBroken(
      table: String,
      broken: Seq[(String, String, String)]
  ): IcebergWriterCompatException =
    listing("ENABLED_BUT_BROKEN", table, broken, broken.head._3)

  /** The answer to a question about what is published where nothing is. */
  def notPublished(table: String): IcebergWriterCompatException =
    new IcebergWriterCompatException("ICEBERG_WRITER_COMPAT_NOT_PUBLISHED", Map("table" -> table))

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
    val (text, fix) = inOneLine(cause)
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED",
      Map(
        "table" -> table,
        "metadata" -> metadata,
        "cause" -> text,
        "fix" -> fix.getOrElse(s"Run: iceberg-writer-compat publish '$table'")
      ),
      cause
    )
  }

  /** An error without its stack, and the line of it that says what to run or to use, if any. */
  def inOneLine(error: Throwable): (String, Option[String]) = error match {
    case own: IcebergWriterCompatException =>
      val (fixes, lines) = own.getMessage.linesIterator.toSeq.partition(isFix)
      (lines.mkString(" "), fixes.lastOption)
    case other => (rootOf(other), None)
  }

  private def isFix(line: String): Boolean = Seq("Run: ", "Use: ").exists(line.startsWith)

  /** The answer where files were written anew and not committed, with what went wrong. */
  def orphaned(table: String, folder: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"$rewriteFailed.NOT_COMMITTED",
      Map("table" -> table, "folder" -> folder, "cause" -> rootOf(cause)),
      cause
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
      )
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
      cause
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

  def message(condition: String, parameters: Map[String, String]): String =
    s"[$condition] ${reader.getErrorMessage(condition, parameters)}"

  /** The part of a violation's text between its rule and its fix. */
  def explanation(condition: String, parameters: Map[String, String]): String = {
    val text = message(condition, parameters)
    val start = text.indexOf(s"rule ${parameters("rule")}: ")
    val said = text.substring(start + s"rule ${parameters("rule")}: ".length)
    said.substring(0, said.lastIndexOf("\nRun: ")).capitalize
  }

  def sqlState(condition: String): String = reader.getSqlState(condition)
}
