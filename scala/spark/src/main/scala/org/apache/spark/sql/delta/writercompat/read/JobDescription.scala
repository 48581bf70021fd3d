package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.SparkSession

/** Sets the description that Spark's UI shows for jobs. */
private[writercompat] object JobDescription {

  /** Runs `body`, whose jobs get this description. */
  def apply[T](spark: SparkSession, description: String)(body: => T): T = {
    val key = "spark.job.description"
    val context = spark.sparkContext
    val before = context.getLocalProperty(key)
    context.setLocalProperty(key, description)
    try body
    finally context.setLocalProperty(key, before)
  }
}
