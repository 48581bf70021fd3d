package org.icebergwritercompat

import org.apache.spark.SparkEnv
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.delta.writercompat.guard.{ExplainedCommands, StatementChecks}
import org.apache.spark.sql.delta.writercompat.install.WriterCompatHooks
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.sql.{
  ColumnMappingByIdRule,
  ProcedureCatalogRule,
  PublishOptionsRule,
  ReportFunctions
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
    LocalDiskLogStore.install(SparkEnv.get.conf)
    val isHive = SparkEnv.get.conf.get("spark.sql.catalogImplementation", "") == "hive"
    ProcedureCatalogRule.inject(extensions, isHive)
    extensions.injectResolutionRule(new ColumnMappingByIdRule(_))
    extensions.injectResolutionRule(_ => PublishOptionsRule)
    extensions.injectCheckRule(new StatementChecks(_))
    extensions.injectPlannerStrategy(_ => ExplainedCommands)
    ReportFunctions.all.foreach(extensions.injectTableFunction)
  }
}
