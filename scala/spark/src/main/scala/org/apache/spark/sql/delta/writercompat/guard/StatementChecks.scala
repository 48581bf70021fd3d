package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{SaveMode, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{EliminateSubqueryAliases, ResolvedTable}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{
  AlterTableDropFeatureDeltaCommand,
  CloneTableCommand,
  CreateDeltaTableCommand,
  DeltaReorgTableCommand,
  DeltaReorgTableMode
}
import org.apache.spark.sql.delta.sources.{DeltaDataSource, DeltaSQLConf, DeltaSink}
import org.apache.spark.sql.delta.writercompat.publish.PublishProperties
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.icebergwritercompat.contract.{
  ChangeKind,
  Contract,
  Fix,
  Lifecycle,
  TableChange,
  TableState
}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.{Door, Remedy}
import org.icebergwritercompat.rules.ChangeRules
import org.apache.spark.sql.delta.writercompat.read.{
  DeltaTables,
  MalformedLog,
  RunningStatement,
  TableStates
}

import scala.jdk.CollectionConverters._

/**
 * Refuses statements that a guarded transaction would check too late or not at all: those that make
 * several commits before the one that breaks a rule, and writes without a Delta transaction.
 */
final class StatementChecks(spark: SparkSession) extends (LogicalPlan => Unit) {

  private val copies = new ClonedRows(spark)

  override def apply(plan: LogicalPlan): Unit = plan.foreach { part =>
    MalformedLog.explainedCommand(spark, ExplainedCommands.tablesOf(part, spark))(check(part))
  }

  private def check(part: LogicalPlan): Unit = part match {
    case AlterTableDropFeature(Guarded(table), feature, false) => checkDrop(table, feature)
    // The command that a program's call runs, without a statement.
    case AlterTableDropFeatureDeltaCommand(GuardedTable(table), feature, false) =>
      checkDrop(table, feature)
    case set @ SetTableProperties(Guarded(table), properties) =>
      checkProperties(table, properties, RunningStatement.doorOf(set))
    case write: V2WriteCommand =>
      write.table match {
        case relation: DataSourceV2Relation =>
          refuseKernelWrite(relation.table)
          refuseOptions(relation.table, write)
        case _ =>
      }
    case save: SaveIntoDataSourceCommand if save.dataSource.isInstanceOf[DeltaDataSource] =>
      val path = pathIn(save.options)
      PublishProperties.refuseOptions(
        TableStates.nameOf(path),
        save.options,
        isNew = !DeltaTableUtils.isDeltaTable(spark, new Path(path))
      )
    // The first child is the table that is changed.
    case change @ (_: DeleteFromTable | _: UpdateTable | _: MergeIntoTable | _: TruncateTable) =>
      tableOf(change.children.head).foreach(refuseKernelWrite)
    case stream: WriteToStream =>
      refuseKernelWrite(stream.sink)
      stream.sink match {
        case sink: DeltaSink =>
          val table = TableStates.nameOf(spark, sink.catalogTable, sink.path)
          PublishProperties.refuseOptions(
            table,
            sink.options.options,
            isNew = !DeltaTableUtils.isDeltaTable(spark, sink.path)
          )
        case _ =>
      }
    case reorg: DeltaReorgTableCommand   => checkReorg(reorg)
    case create: CreateDeltaTableCommand =>
      create.query.foreach {
        case clone: CloneTableCommand => checkClone(create, clone)
        case _                        =>
      }
    case _ =>
  }

  // Delta may rewrite all files before it switches UniForm on.
  private def checkReorg(reorg: DeltaReorgTableCommand): Unit = reorg.target match {
    case Guarded(table)
        if reorg.reorgTableSpec.reorgTableMode == DeltaReorgTableMode.UNIFORM_ICEBERG =>
      val after =
        table.copy(properties = table.properties + (WriterCompat.UniversalFormats -> "iceberg"))
      val change = TableChange(table, after, ChangeKind.Ordinary)
      Enforcement.refuseFirst(after, ChangeRules.UniFormStaysOff.check(change).iterator)
    case _ =>
  }

  // Delta creates the folders of the clone first, and then checks the mapping mode, which a clone
  // cannot change. So the mode of the source is checked here.
  private def checkClone(create: CreateDeltaTableCommand, clone: CloneTableCommand): Unit = {
    val source = clone.sourceTable.metadata
    val wanted = source.configuration ++
      DeltaConfigs.validateConfigurations(clone.tablePropertyOverrides) -
      WriterCompat.ColumnMappingMode ++
      source.configuration.view.filterKeys(_ == WriterCompat.ColumnMappingMode)
    val declared = NewTable.asStored(NewTable.normalized(source.copy(configuration = wanted)))
    val isThere = create.mode == SaveMode.Ignore && create.existingTableOpt.isDefined
    if (Contracts.isEnabled(wanted) && !isThere) {
      val target = TableStates.of(
        copies.target(create, clone),
        Lifecycle.Creating(replacing = false),
        clone.sourceTable.protocol,
        declared,
        TableStates.profile(spark)
      )
      Enforcement.refuseFirst(
        target,
        target.contract.rules.declaration.iterator
          .flatMap(_.check(target))
          .map(_.copy(remedy = copies.of(create, clone, target.contract)))
      )
    }
  }

  private def refuseOptions(table: Table, write: V2WriteCommand): Unit = table match {
    case delta: DeltaTableV2 =>
      val options = write match {
        case append: AppendData                             => append.writeOptions
        case overwrite: OverwriteByExpression               => overwrite.writeOptions
        case overwrite: OverwritePartitionsDynamic          => overwrite.writeOptions
        case dynamic: DeltaDynamicPartitionOverwriteCommand => dynamic.writeOptions
        case _                                              => Map.empty[String, String]
      }
      PublishProperties.refuseOptions(TableStates.nameOf(delta), options, isNew = false)
    case _ =>
  }

  private def pathIn(options: Map[String, String]): String =
    CaseInsensitiveMap(options).getOrElse("path", ".")

  // Delta's connector on Kernel, which a test setting enables, has its own transactions. Its
  // classes may be missing, so they are compared by name.
  private def refuseKernelWrite(table: Table): Unit =
    if (table.getClass.getName.startsWith("io.delta.spark.internal.v2."))
      Contracts.of(table.properties.asScala.toMap).foreach { contract =>
        throw IcebergWriterCompatException.unguarded(
          table.name,
          contract,
          DeltaSQLConf.V2_ENABLE_MODE.key,
          Remedy.SetSetting(Seq(DeltaSQLConf.V2_ENABLE_MODE.key -> "AUTO"))
        )
      }

  // DROP FEATURE first makes empty commits and checkpoints, and adds this feature last.
  private def checkDrop(table: TableState, feature: String): Unit =
    if (leavesProtection(table.contract, feature))
      check(table, CheckpointProtectionTableFeature.name, Fix.truncating(table, feature))

  // Delta itself refuses to drop a feature that another feature requires.
  private def leavesProtection(contract: Contract, feature: String): Boolean =
    spark.conf.get(DeltaSQLConf.FAST_DROP_FEATURE_ENABLED) &&
      TableFeature.featureNameToFeature(feature).exists {
        case needed if contract.requiredFeatures.contains(needed.name) => false
        case removable: RemovableFeature                               =>
          removable.requiresHistoryProtection
        case _ => false
      }

  private def check(table: TableState, added: String, remedy: Remedy): Unit = {
    val writers = table.protocol.writerFeatures.map(_ + added)
    val after = table.copy(protocol = table.protocol.copy(writerFeatures = writers))
    Enforcement.refuseFirst(after, after.violations.map(_.copy(remedy = remedy)))
  }

  // Delta switches row tracking on with a protocol upgrade, commits that number the rows of all
  // files, and the property last.
  private def checkProperties(
      table: TableState,
      properties: Map[String, String],
      door: Option[Door]
  ): Unit = {
    val normalized = properties.map { case (key, value) =>
      DeltaConfigs.normalizeConfigKey(Some(key)).getOrElse(key) -> value
    }
    if (normalized.contains(DeltaConfigs.ROW_TRACKING_ENABLED.key)) {
      val after = table.copy(properties = table.properties ++ normalized)
      Enforcement.refuseFirst(after, after.violations, door = door)
    }
  }

  private def tableOf(plan: LogicalPlan): Option[Table] = EliminateSubqueryAliases(plan) match {
    case relation: DataSourceV2Relation => Some(relation.table)
    case resolved: ResolvedTable        => Some(resolved.table)
    case _                              => None
  }

  private object Guarded {
    def unapply(plan: LogicalPlan): Option[TableState] = plan match {
      case ResolvedTable(_, _, table: DeltaTableV2, _) => GuardedTable.unapply(table)
      case _                                           => None
    }
  }

  private object GuardedTable {
    def unapply(table: DeltaTableV2): Option[TableState] =
      Option.when(DeltaTables.isEnabled(table)) {
        val snapshot = table.update()
        TableStates.of(
          TableStates.nameOf(table),
          Lifecycle.Changing,
          snapshot.protocol,
          snapshot.metadata,
          TableStates.profile(spark)
        )
      }
  }
}
