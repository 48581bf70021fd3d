package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.SparkSession

/** Runs Spark jobs under a text that says what they are for. */
private[writercompat] object Described {

  /** Runs `body` with this description of its jobs. */
  def apply[T](spark: SparkSession, description: String)(body: => T): T = {
    val key = "spark.job.description"
    val context = spark.sparkContext
    val before = context.getLocalProperty(key)
    context.setLocalProperty(key, description)
    try body
    finally context.setLocalProperty(key, before)
  }
}
