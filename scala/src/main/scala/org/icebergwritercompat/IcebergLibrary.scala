package org.icebergwritercompat

import org.icebergwritercompat.errors.IcebergWriterCompatException

/** What needs Iceberg's own library, which only sessions that publish have a need of. */
object IcebergLibrary {

  private val packages = Seq("org/apache/iceberg/", "org/apache/hc/", "com/github/benmanes/")

  /** The answer, or an error that says what is missing. */
  def needed[T](answer: => T): T =
    try answer
    catch {
      case e: NoClassDefFoundError if packages.exists(String.valueOf(e.getMessage).contains) =>
        throw IcebergWriterCompatException.icebergMissing(BuildInfo.iceberg, e)
    }
}
