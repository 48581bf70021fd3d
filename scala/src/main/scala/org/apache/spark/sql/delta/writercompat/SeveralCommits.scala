package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.rules.{Moment, TableState, WriterCompatRules}

/** Refuses statements that make several commits before the one that breaks a rule. */
final class SeveralCommits(spark: SparkSession) extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan match {
    case AlterTableDropFeature(Guarded(table), feature, false) if leavesProtection(feature) =>
      // DROP FEATURE makes empty commits and checkpoints first, and adds this feature last.
      check(table, CheckpointProtectionTableFeature.name, stay = s"$feature TRUNCATE HISTORY")
    case SetTableProperties(Guarded(table), properties) =>
      checkProperties(table, properties)
    case _ =>
  }

  private def leavesProtection(feature: String): Boolean =
    spark.conf.get(DeltaSQLConf.FAST_DROP_FEATURE_ENABLED) &&
      TableFeature.featureNameToFeature(feature).exists {
        case removable: RemovableFeature => removable.requiresHistoryProtection
        case _ => false
      }

  private def check(table: TableState, added: String, stay: String): Unit = {
    val writers = table.protocol.writerFeatures.map(_ + added)
    val after = table.copy(protocol = table.protocol.copy(writerFeatures = writers))
    WriterCompatRules.check(after).nextOption().foreach { violation =>
      val fix = s"ALTER TABLE ${table.name} DROP FEATURE $stay"
      throw IcebergWriterCompatException.of(after, violation.copy(fix = fix))
    }
  }

  // Row tracking is switched on by a protocol upgrade, commits that number the rows of all files,
  // and the property last.
  private def checkProperties(table: TableState, properties: Map[String, String]): Unit = {
    val normalized = properties.map { case (key, value) =>
      DeltaConfigs.normalizeConfigKey(Some(key)).getOrElse(key) -> value
    }
    if (normalized.contains(DeltaConfigs.ROW_TRACKING_ENABLED.key)) {
      val after = table.copy(properties = table.properties ++ normalized)
      WriterCompatRules.check(after).nextOption().foreach { violation =>
        throw IcebergWriterCompatException.of(after, violation)
      }
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
            TableStates.profile(spark)))
      case _ => None
    }
  }
}
