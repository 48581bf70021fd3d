package org.icebergwritercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.writercompat.{
  DeltaTables,
  WriterCompatHooks,
  WriterCompatProperty
}

/** What a program can ask for; the Python package calls nothing else. */
object IcebergWriterCompat {

  /** The version of this project. */
  def version: String = BuildInfo.version

  /** Whether commits in this JVM are guarded. */
  def isInstalled: Boolean = WriterCompatHooks.isInstalled

  /** Gives new tables of the session the feature. */
  def enableByDefault(spark: SparkSession): Unit =
    spark.conf.set(WriterCompatProperty.sessionDefaultKey, "true")

  /** New tables of the session have the feature only if they ask for it. */
  def disableByDefault(spark: SparkSession): Unit =
    spark.conf.unset(WriterCompatProperty.sessionDefaultKey)

  /** Whether new tables of the session have the feature. */
  def isEnabledByDefault(spark: SparkSession): Boolean =
    spark.conf.getOption(WriterCompatProperty.sessionDefaultKey).exists(_.equalsIgnoreCase("true"))

  /** Switches the feature on for a table, given by name or path; false if it was on. */
  def enable(spark: SparkSession, table: String): Boolean =
    DeltaTables.enable(spark, DeltaTables.find(spark, table))

  /** Takes the feature out of a table, given by name or path; false if it was not there. */
  def disable(spark: SparkSession, table: String): Boolean =
    DeltaTables.disable(spark, DeltaTables.find(spark, table))

  /** Whether a table, given by name or path, has the feature on. */
  def isEnabled(spark: SparkSession, table: String): Boolean =
    DeltaTables.isEnabled(DeltaTables.find(spark, table))
}
