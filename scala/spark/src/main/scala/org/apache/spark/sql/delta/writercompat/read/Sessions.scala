package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.{Column, DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.delta.ClassicColumnConversions._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import java.util.{Map => JMap}

/** Runs code in a given session, on any thread. */
object Sessions {

  /**
   * Runs `body` with this session as the active one of the thread, which is restored afterwards.
   *
   * Delta uses the active session in some places; a thread of a program may have none, or another
   * one.
   */
  def active[T](spark: SparkSession)(body: => T): T = castToImpl(spark).withActive(body)

  /** A session with the settings of another one, and with these where that one has none. */
  def withDefaults(spark: SparkSession, defaults: Map[String, String]): SparkSession = {
    val session = castToImpl(spark).cloneSession()
    defaults.foreach { case (key, value) =>
      if (spark.conf.getOption(key).isEmpty) session.conf.set(key, value)
    }
    session
  }

  /** Runs a statement without replacing variables: `${name}` in it is part of a name. */
  def verbatim(spark: SparkSession, statement: String): DataFrame =
    if (!statement.contains("${")) spark.sql(statement)
    else {
      // The user's own session must not change: other threads may use it.
      val session = castToImpl(spark).cloneSession()
      session.conf.set(SQLConf.VARIABLE_SUBSTITUTE_ENABLED.key, "false")
      session.sql(statement)
    }

  /** The rows of a version of a table; variables in its name are not replaced either. */
  def version(spark: SparkSession, table: String, version: Long): DataFrame = {
    val options = new CaseInsensitiveStringMap(JMap.of("versionAsOf", version.toString))
    Dataset.ofRows(
      castToImpl(spark),
      UnresolvedRelation(DeltaTables.nameParts(table), options)
    )
  }

  /** An expression in SQL; variables in it are not replaced either. */
  def expression(text: String): Column = Column(CatalystSqlParser.parseExpression(text))
}
