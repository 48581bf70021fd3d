package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.ConvertToDeltaCommand
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.rules.{Moment, TableState, WriterCompatRules}

import scala.jdk.CollectionConverters._

/**
 * Refuses statements that the transaction would see too late, or not at all: those that make
 * several commits before the one that breaks a rule, and writes that go past Delta's transactions.
 */
final class StatementChecks(spark: SparkSession) extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan.foreach {
    case AlterTableDropFeature(Guarded(table), feature, false) if leavesProtection(feature) =>
      // DROP FEATURE makes empty commits and checkpoints first, and adds this feature last.
      check(table, CheckpointProtectionTableFeature.name, stay = s"$feature TRUNCATE HISTORY")
    case SetTableProperties(Guarded(table), properties) =>
      checkProperties(table, properties)
    case write: V2WriteCommand =>
      write.table match {
        case relation: DataSourceV2Relation => refuseKernelWrite(relation.table)
        case _                              =>
      }
    case stream: WriteToStream          => refuseKernelWrite(stream.sink)
    case convert: ConvertToDeltaCommand => Converted.of(spark, convert).foreach(refuseConversion)
    case _                              =>
  }

  // Delta's connector on Kernel has transactions of its own; a test setting puts it in charge. Its
  // classes may be missing, so they are told by name.
  private def refuseKernelWrite(table: Table): Unit =
    if (
      table.getClass.getName.startsWith("io.delta.spark.internal.v2.") &&
      WriterCompat.isEnabled(table.properties.asScala.toMap)
    )
      throw IcebergWriterCompatException.unguarded(
        table.name,
        DeltaSQLConf.V2_ENABLE_MODE.key,
        s"SET ${DeltaSQLConf.V2_ENABLE_MODE.key}=AUTO"
      )

  // The transaction would be asked after Delta has made the log's folder, and has refused the
  // mapping mode that follows from the feature, without a word of the feature.
  private def refuseConversion(converted: Converted): Unit =
    if (converted.hasFeature)
      throw IcebergWriterCompatException.notConvertible(
        converted.folder,
        converted.setting,
        converted.copyStatement
      )

  // Delta refuses by itself to drop what the feature needs.
  private def leavesProtection(feature: String): Boolean =
    spark.conf.get(DeltaSQLConf.FAST_DROP_FEATURE_ENABLED) &&
      TableFeature.featureNameToFeature(feature).exists {
        case needed if WriterCompatTableFeature.requiredFeatures(needed) => false
        case removable: RemovableFeature => removable.requiresHistoryProtection
        case _                           => false
      }

  private def check(table: TableState, added: String, stay: String): Unit = {
    val writers = table.protocol.writerFeatures.map(_ + added)
    val after = table.copy(protocol = table.protocol.copy(writerFeatures = writers))
    val fix = s"ALTER TABLE ${table.name} DROP FEATURE $stay"
    DryRun.refuseFirst(after, WriterCompatRules.check(after).map(_.copy(fix = fix)))
  }

  // Row tracking is switched on by a protocol upgrade, commits that number the rows of all files,
  // and the property last.
  private def checkProperties(table: TableState, properties: Map[String, String]): Unit = {
    val normalized = properties.map { case (key, value) =>
      DeltaConfigs.normalizeConfigKey(Some(key)).getOrElse(key) -> value
    }
    if (normalized.contains(DeltaConfigs.ROW_TRACKING_ENABLED.key)) {
      val after = table.copy(properties = table.properties ++ normalized)
      DryRun.refuseFirst(after, WriterCompatRules.check(after))
    }
  }

  private object Guarded {
    def unapply(plan: LogicalPlan): Option[TableState] = plan match {
      case ResolvedTable(_, _, table: DeltaTableV2, _) if DeltaTables.isEnabled(table) =>
        val snapshot = table.update()
        Some(
          TableStates.of(
            TableStates.nameOf(table),
            Moment.Changing,
            snapshot.protocol,
            snapshot.metadata,
            TableStates.profile(spark)
          )
        )
      case _ => None
    }
  }
}
