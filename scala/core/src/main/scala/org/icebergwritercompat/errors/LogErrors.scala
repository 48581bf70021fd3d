package org.icebergwritercompat.errors

import org.icebergwritercompat.errors.IcebergWriterCompatException.rootOf
import org.icebergwritercompat.remedy.Remedy

/** The answers where the log of a table cannot be read. */
private[errors] trait LogErrors {

  /**
   * The answer where a field of the log of a table is not what Delta reads.
   *
   * @param cause
   *   what Delta fails with; null where nothing has failed yet
   */
  def malformedLog(
      table: String,
      version: Long,
      file: String,
      field: MalformedField,
      cause: Throwable
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_MALFORMED_LOG",
      Map(
        "table" -> table,
        "version" -> version.toString,
        "file" -> file,
        "field" -> field.field,
        "found" -> field.found,
        "required" -> field.required,
        "effect" -> (
          if (cause == null && field.isPassedOver)
            "Delta ignores it silently, so the change is missing in the table until there is a " +
              "checkpoint of a later version."
          else "Delta's own statements fail too."
        )
      ),
      cause
    )

  /** The answer where the log of a table cannot be read. */
  def unreadable(table: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      ErrorText(
        "ICEBERG_WRITER_COMPAT_TABLE_UNREADABLE",
        Map("table" -> table, "cause" -> rootOf(cause)),
        Remedy.History(table)
      ),
      cause
    )
}
