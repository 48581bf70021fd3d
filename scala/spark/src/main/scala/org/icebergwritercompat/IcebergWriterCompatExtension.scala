package org.icebergwritercompat

import org.apache.spark.SparkConf
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.delta.writercompat.guard.{ExplainedCommands, StatementChecks}
import org.apache.spark.sql.delta.writercompat.install.WriterCompatHooks
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.sql.{
  ColumnMappingByIdRule,
  PublishOptionsRule,
  ReportFunctions,
  WriterCompatProcedures
}

/**
 * The entry in `spark.sql.extensions`, before or after Delta's own.
 *
 * Installs the guard when the session is created, and fails the session if that is not possible.
 */
final class IcebergWriterCompatExtension extends (SparkSessionExtensions => Unit) {

  override def apply(extensions: SparkSessionExtensions): Unit = {
    try WriterCompatHooks.install()
    catch {
      // Spark would only log these errors, and start the session without the extension.
      case e @ (_: LinkageError | _: ClassCastException | _: ClassNotFoundException) =>
        throw IcebergWriterCompatException.notInstalled(
          "JOIN_POINT",
          Map("joinPoint" -> "installation", "cause" -> e.toString),
          e
        )
    }
    addSettings(WriterCompatHooks.settings)
    extensions.injectResolutionRule(new ColumnMappingByIdRule(_))
    extensions.injectResolutionRule(_ => PublishOptionsRule)
    extensions.injectCheckRule(new StatementChecks(_))
    extensions.injectPlannerStrategy(_ => ExplainedCommands)
    ReportFunctions.all.foreach(extensions.injectTableFunction)
  }

  /**
   * Adds to the settings that each session of the Spark context begins with, and comes back to
   * after RESET. Spark reads them when the first session is used, which is after its extensions.
   */
  private def addSettings(conf: SparkConf): Unit = {
    LocalDiskLogStore.install(conf)
    WriterCompatProcedures.install(conf)
    // Delta needs both for columns that are mapped by their ids. It sets them when a session begins,
    // and RESET would take them away.
    Seq("read", "write").foreach { kind =>
      conf.set(s"spark.sql.parquet.fieldId.$kind.enabled", "true")
    }
  }
}
