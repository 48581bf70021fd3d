package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.{SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{
  CloneSource,
  CloneTableCommand,
  ConvertToDeltaCommand,
  CreateDeltaTableCommand,
  DeltaReorgTableCommand,
  DeltaReorgTableMode
}
import org.apache.spark.sql.delta.sources.DeltaSQLConf
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.rules._

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
    case stream: WriteToStream           => refuseKernelWrite(stream.sink)
    case convert: ConvertToDeltaCommand  => Converted.of(spark, convert).foreach(refuseConversion)
    case reorg: DeltaReorgTableCommand   => checkReorg(reorg)
    case create: CreateDeltaTableCommand =>
      create.query.foreach {
        case clone: CloneTableCommand => checkClone(create, clone)
        case _                        =>
      }
    case _ =>
  }

  // Delta may write all files anew before it switches UniForm on.
  private def checkReorg(reorg: DeltaReorgTableCommand): Unit = reorg.target match {
    case Guarded(table)
        if reorg.reorgTableSpec.reorgTableMode == DeltaReorgTableMode.UNIFORM_ICEBERG =>
      val after =
        table.copy(properties = table.properties + (WriterCompat.UniversalFormats -> "iceberg"))
      val change = TableChange(table, after, ChangeKind.Ordinary)
      DryRun.refuseFirst(after, ChangeRules.UniFormStaysOff.check(change).iterator)
    case _ =>
  }

  // Delta makes the folders of the clone first, and has its own say on the mapping mode next, which
  // no clone can change: it is judged as the source has it.
  private def checkClone(create: CreateDeltaTableCommand, clone: CloneTableCommand): Unit = {
    val source = clone.sourceTable.metadata
    val wanted = source.configuration ++
      DeltaConfigs.validateConfigurations(clone.tablePropertyOverrides) -
      WriterCompat.ColumnMappingMode ++
      source.configuration.view.filterKeys(_ == WriterCompat.ColumnMappingMode)
    val declared = NewTable.asStored(NewTable.normalized(source.copy(configuration = wanted)))
    val isThere = create.mode == SaveMode.Ignore && create.existingTableOpt.isDefined
    if (WriterCompat.isEnabled(wanted) && !isThere) {
      def state(name: String) = TableStates.of(
        name,
        Moment.Creating(replacing = false),
        clone.sourceTable.protocol,
        declared,
        TableStates.profile(spark)
      )
      val target = state(TableStates.nameOf(spark, Some(create.table), clone.targetPath))
      DryRun.refuseFirst(
        target,
        WriterCompatRules.declarationRules.iterator
          .flatMap(_.check(target))
          .map(_.copy(fix = copyOf(clone.sourceTable, state)))
      )
    }
  }

  private def copyOf(source: CloneSource, state: String => TableState): String =
    source.snapshot match {
      case None          => Fix.copyInto(state(source.name))
      case Some(version) =>
        val copy =
          Fix.copyInto(state(TableStates.nameOf(spark, source.catalogTable, source.dataPath)))
        source.timeTravelOpt.fold(copy)(_ => s"$copy VERSION AS OF ${version.version}")
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
