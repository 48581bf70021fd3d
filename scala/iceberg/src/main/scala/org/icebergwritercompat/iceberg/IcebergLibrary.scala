package org.icebergwritercompat.iceberg

import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.BuildInfo

/** What needs Iceberg's own library, which only sessions that publish have a need of. */
object IcebergLibrary {

  private val packages = Seq("org/apache/iceberg/", "org/apache/hc/", "com/github/benmanes/")

  /** Refuses where it is missing. */
  def require(): Unit =
    try
      probes.foreach(name => Class.forName(name, false, getClass.getClassLoader))
    catch {
      case e: ClassNotFoundException =>
        throw IcebergWriterCompatException.icebergMissing(BuildInfo.iceberg, e)
    }

  // One class of each jar that every publishing needs.
  private val probes = Seq(
    "org.apache.iceberg.Table",
    "org.apache.iceberg.BaseTable",
    "org.apache.iceberg.relocated.com.google.common.collect.ImmutableList",
    "com.github.benmanes.caffeine.cache.Caffeine"
  )

  /** The answer, or an error that says what is missing. */
  def needed[T](answer: => T): T =
    try answer
    catch {
      case e: NoClassDefFoundError if packages.exists(String.valueOf(e.getMessage).contains) =>
        throw IcebergWriterCompatException.icebergMissing(BuildInfo.iceberg, e)
    }
}
