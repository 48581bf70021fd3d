package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.{Column, DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.delta.ClassicColumnConversions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import java.util.{Map => JMap}

/** What has to be done in one session and no other, whatever the thread. */
object Sessions {

  /**
   * Runs `body` while the session is the active one of this thread; then it is as before.
   *
   * Delta asks for the active session here and there, and a thread of a program has none, or
   * another one.
   */
  def active[T](spark: SparkSession)(body: => T): T = castToImpl(spark).withActive(body)

  /** Runs a statement to the letter: `${name}` in it is a part of a name, and no variable. */
  def verbatim(spark: SparkSession, statement: String): DataFrame =
    if (!statement.contains("${")) spark.sql(statement)
    else {
      // The user's own session is not to change, not even for a moment.
      val session = castToImpl(spark).cloneSession()
      session.conf.set(SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key, "false")
      session.sql(statement)
    }

  /** The rows of a version of a table, whose name is taken to the letter likewise. */
  def version(spark: SparkSession, table: String, version: Long): DataFrame = {
    val options = new CaseInsensitiveStringMap(JMap.of("versionAsOf", version.toString))
    Dataset.ofRows(
      castToImpl(spark),
      UnresolvedRelation(DeltaTables.nameParts(table), options)
    )
  }

  /** An expression in SQL, to the letter likewise. */
  def expression(text: String): Column = Column(CatalystSqlParser.parseExpression(text))
}
