package org.icebergwritercompat.remedy

import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded

/** How values are written in SQL, in Python and in a shell. */
private[remedy] object Quoting {

  /** A text as a literal of SQL. */
  def literal(text: String): String =
    "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

  /** The name of a nested field in SQL. */
  def sqlPath(path: Seq[String]): String = path.map(quoteIfNeeded).mkString(".")

  /** What stands in the parentheses of TBLPROPERTIES. */
  def properties(all: Seq[(String, String)]): String =
    all.map { case (key, value) => s"${literal(key)} = ${literal(value)}" }.mkString(", ")

  /** The clause PARTITIONED BY, with a space before it; empty without columns. */
  def partitionedBy(columns: Seq[String]): String =
    if (columns.isEmpty) "" else columns.map(quoteIfNeeded).mkString(" PARTITIONED BY (", ", ", ")")

  /** A statement of SQL as a call in Python. */
  def inPython(statement: String): String = s"spark.sql(${pythonText(statement)})"

  /** A call of a procedure about a table. */
  def procedureCall(
      procedure: String,
      table: String,
      arguments: Seq[(String, String)]
  ): String =
    (("table" -> literal(table)) +: arguments)
      .map { case (name, value) => s"$name => $value" }
      .mkString(
        s"CALL ${Remedy.ProcedureCatalog}.${Remedy.ProcedureNamespace}.$procedure(",
        ", ",
        ")"
      )

  /** A call of the Python package about a table. */
  def call(function: String, table: String, arguments: Seq[String]): String =
    s"$function(spark, ${(pythonText(table) +: arguments).mkString(", ")})"

  /** A text as a literal of Python. */
  def pythonText(text: String): String = {
    val quotes = if (text.contains("\n")) "\"\"\"" else "\""
    quotes + text.replace("\\", "\\\\").replace("\"", "\\\"") + quotes
  }

  /** A command about a table. */
  def commandLine(verb: String, table: String, options: Seq[String]): String =
    (Seq("iceberg-writer-compat", verb, shellQuoted(table)) ++ options).mkString(" ")

  /** A word as a shell reads it, in quotes if it needs them. */
  def shellWord(word: String): String =
    if (word.matches("[A-Za-z0-9_./=:@%+,-]+")) word else shellQuoted(word)

  private def shellQuoted(word: String): String = "'" + word.replace("'", "'\\''") + "'"
}
