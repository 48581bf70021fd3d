package org.icebergwritercompat.iceberg

import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.BuildInfo

/** Guards calls that need Iceberg's library, which not every session has. */
object IcebergLibrary {

  private val packages = Seq("org/apache/iceberg/", "org/apache/hc/", "com/github/benmanes/")

  /** Fails if the library is missing. */
  def require(): Unit =
    try {
      probes.foreach(load)
      // Iceberg's connector for Spark contains it under a name of its own.
      try load(s"org.apache.iceberg.shaded.$caffeine")
      catch { case _: ClassNotFoundException => load(caffeine) }
    } catch {
      case e: ClassNotFoundException =>
        throw IcebergWriterCompatException.icebergMissing(BuildInfo.iceberg, e)
    }

  private def load(name: String): Unit = {
    Class.forName(name, false, getClass.getClassLoader)
    ()
  }

  // One class of each jar that publishing needs.
  private val probes = Seq(
    "org.apache.iceberg.Table",
    "org.apache.iceberg.BaseTable",
    "org.apache.iceberg.relocated.com.google.common.collect.ImmutableList"
  )

  private val caffeine = "com.github.benmanes.caffeine.cache.Caffeine"

  /** The result of the call, or an error that names the missing library. */
  def needed[T](answer: => T): T =
    try answer
    catch {
      case e: NoClassDefFoundError if packages.exists(String.valueOf(e.getMessage).contains) =>
        throw IcebergWriterCompatException.icebergMissing(BuildInfo.iceberg, e)
    }
}
