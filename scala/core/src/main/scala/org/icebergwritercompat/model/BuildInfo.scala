package org.icebergwritercompat.model

import java.util.Properties
import scala.util.Using

/** The versions that this jar was built with. */
object BuildInfo {

  private val properties: Properties = {
    val loaded = new Properties
    Using.resource(getClass.getResourceAsStream("/iceberg-writer-compat.properties"))(loaded.load)
    loaded
  }

  /** The version of this project. */
  val version: String = properties.getProperty("version")

  /** The Spark line the jar is built for, such as `4.1`. */
  val spark: String = properties.getProperty("spark")

  /** The Delta release the jar is compiled against. */
  val delta: String = properties.getProperty("delta")

  /** The Delta releases this jar was tested with, the newest first. */
  val testedDeltas: Seq[String] = properties.getProperty("testedDeltas").split(',').toSeq

  /** The Iceberg release that tables are published with. */
  val iceberg: String = properties.getProperty("iceberg")

  /** The SQLite driver for a JDBC catalog that is a file. */
  val sqlite: String = properties.getProperty("sqlite")
}
