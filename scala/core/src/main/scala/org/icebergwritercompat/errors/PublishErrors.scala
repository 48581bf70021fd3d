package org.icebergwritercompat.errors

import org.icebergwritercompat.contract.{Contract, TableState, Violation}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException.{explanation, inOneLine, rootOf}
import org.icebergwritercompat.remedy.Remedy

/** The refusals to publish a table as Iceberg. */
private[errors] trait PublishErrors {

  /** The refusal to publish a table, with the reason as sub-condition. */
  def notPublishable(
      reason: String,
      parameters: Map[String, String]
  ): IcebergWriterCompatException =
    notPublishable(reason, parameters, Contracts.default)

  /** The same, where what mends it may switch a contract on. */
  def notPublishable(
      reason: String,
      parameters: Map[String, String],
      contract: Contract
  ): IcebergWriterCompatException =
    notPublishable(reason, parameters, PublishRemedies.of(reason, parameters, contract))

  /** The same, where the reason alone does not tell what mends it. */
  def notPublishable(
      reason: String,
      parameters: Map[String, String],
      remedy: Remedy
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      ErrorText(
        s"ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.$reason",
        parameters,
        remedy
      ),
      null
    )

  /** The refusal where the metadata of a table cannot be written. */
  def notWritable(table: String, folder: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      ErrorText(
        "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.NOT_WRITABLE",
        Map("table" -> table, "folder" -> folder, "cause" -> rootOf(cause)),
        Remedy.Publish(table)
      ),
      cause
    )

  /** The refusal to publish a version that breaks rules. */
  def brokenVersion(
      table: TableState,
      version: Long,
      broken: Seq[Violation]
  ): IcebergWriterCompatException =
    notPublishable(
      "BREAKS_RULES",
      Map(
        "table" -> table.name,
        "version" -> version.toString,
        "rule" -> broken.map(_.rule.id).distinct.mkString(", "),
        "count" -> broken.size.toString,
        "findings" -> ErrorText.list(broken.map(v => s"${v.rule.id}: ${explanation(table, v)}"))
      ),
      broken.head.remedy
    )

  /** The answer to a question about what is published where nothing is. */
  def notPublished(table: String): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      ErrorText(
        "ICEBERG_WRITER_COMPAT_NOT_PUBLISHED",
        Map("table" -> table),
        Remedy.Publish(table)
      ),
      null
    )

  /** The answer to a call that needs Iceberg's library where that is missing. */
  def icebergMissing(version: String, cause: Throwable): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_ICEBERG_MISSING",
      Map("version" -> version),
      cause
    )

  /** The answer to a call that needs the driver of a database where that is missing. */
  def driverMissing(
      uri: String,
      driver: String,
      coordinate: String
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_DRIVER_MISSING",
      Map("uri" -> uri, "driver" -> driver, "coordinate" -> coordinate)
    )

  /** The answer where a catalog needs a class that the session does not have. */
  def catalogClassMissing(
      catalog: String,
      missing: String,
      coordinates: Seq[String]
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_CATALOG_CLASS_MISSING",
      Map("catalog" -> catalog, "class" -> missing, "coordinates" -> coordinates.mkString(","))
    )

  /** The answer where an Iceberg catalog cannot be used. */
  def catalogUnavailable(
      catalog: String,
      settings: String,
      cause: Throwable
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      "ICEBERG_WRITER_COMPAT_CATALOG_UNAVAILABLE",
      Map("catalog" -> catalog, "settings" -> s"$settings*", "cause" -> rootOf(cause)),
      cause
    )

  /** The refusal of a VACUUM of a published table whose readers would miss files. */
  def vacuumRefused(
      table: String,
      metadata: String,
      cause: Throwable
  ): IcebergWriterCompatException = {
    val (text, remedy) = inOneLine(cause)
    new IcebergWriterCompatException(
      ErrorText(
        "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED",
        Map(
          "table" -> table,
          "metadata" -> metadata,
          "cause" -> text
        ),
        remedy.getOrElse(Remedy.Publish(table))
      ),
      cause
    )
  }

  /** The refusal of what an Iceberg client wants to commit, with the reason as sub-condition. */
  def commitRefused(
      reason: String,
      table: String,
      parameters: Map[String, String],
      cause: Throwable = null
  ): IcebergWriterCompatException =
    new IcebergWriterCompatException(
      s"ICEBERG_WRITER_COMPAT_COMMIT_REFUSED.$reason",
      parameters + ("table" -> table),
      cause
    )
}
