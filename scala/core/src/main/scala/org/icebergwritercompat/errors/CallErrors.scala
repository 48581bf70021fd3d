package org.icebergwritercompat.errors

import org.apache.spark.sql.catalyst.util.QuotingUtils.{quoteIdentifier, quoteIfNeeded}
import org.icebergwritercompat.errors.IcebergWriterCompatException.rootOf
import org.icebergwritercompat.remedy.Remedy

/** The answers to calls and statements that cannot be carried out. */
private[errors] trait CallErrors {

  /** The answer to a call that names something else than a Delta table. */
  def notDelta(table: String, remedy: Remedy = Remedy.Nothing): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      ErrorText(
        "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE",
        Map("table" -> table),
        remedy
      ),
      null
    )

  /** The answer to a statement that cannot be tried without running it. */
  def statementNotSupported(statement: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_STATEMENT_NOT_SUPPORTED",
      Map("statement" -> statement.linesIterator.nextOption().getOrElse(""))
    )

  /** The answer to a table function that is called in another way than it can be. */
  def wrongArguments(function: String, parameters: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_WRONG_ARGUMENTS",
      Map("function" -> function, "parameters" -> parameters)
    )

  /** The answer where a REST catalog cannot be started, with the reason as sub-condition. */
  def serverNotStarted(
      reason: String,
      parameters: Map[String, String],
      cause: Throwable = null
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"ICEBERG_WRITER_COMPAT_SERVER_NOT_STARTED.$reason",
      parameters,
      cause
    )

  /** The answer where others commit faster than the table can be looked at. */
  def tooBusy(table: String, attempts: Int): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_TABLE_TOO_BUSY",
      Map("table" -> table, "attempts" -> attempts.toString)
    )

  /** The answer to a call whose table is written as neither a name nor a path is. */
  def wrongTableName(name: String, cause: Throwable): IcebergWriterCompatException = {
    val spelling =
      if (name.isBlank) "a name such as db.orders, or a path such as ./orders"
      else s"${quoted(name)} for a name, or ./$name for a path"
    wrongName(name, "the name or path of a table", spelling, cause)
  }

  /** The answer to a call whose schema is not written as a name is. */
  def wrongSchemaName(name: String, cause: Throwable): IcebergWriterCompatException = {
    val spelling = if (name.isBlank) "a name such as sales" else quoted(name)
    wrongName(name, "the name of a schema", spelling, cause)
  }

  private def wrongName(name: String, kind: String, spelling: String, cause: Throwable) =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_WRONG_NAME",
      Map("name" -> name, "kind" -> kind, "spelling" -> spelling),
      cause
    )

  // What somebody meant who did not know of backquotes; dots separate parts.
  private def quoted(name: String): String =
    if (name.contains("`")) quoteIdentifier(name)
    else name.split('.').filter(_.nonEmpty).map(quoteIfNeeded).mkString(".")

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

  /** The answer where files were written anew and not committed, with what went wrong. */
  def orphaned(table: String, folder: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      ErrorText(
        s"$rewriteFailed.NOT_COMMITTED",
        Map("table" -> table, "folder" -> folder, "cause" -> rootOf(cause)),
        Remedy.Vacuum(table)
      ),
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
      ErrorText(
        s"$rewriteFailed.OTHER_ROWS",
        Map(
          "table" -> table,
          "folder" -> folder,
          "files" -> files.toString,
          "rows" -> rows.toString,
          "written" -> written.toString
        ),
        Remedy.Vacuum(table)
      ),
      null
    )

  private val rewriteFailed = "ICEBERG_WRITER_COMPAT_REWRITE_FAILED"
}
