package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.CloneSource
import org.apache.spark.sql.delta.files.TahoeFileIndex
import org.apache.spark.sql.delta.writercompat.read.{MalformedLog, TableStates}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.command.{
  ExecutedCommandExec,
  LeafRunnableCommand,
  RunnableCommand
}
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.execution.metric.SQLMetric

import scala.util.Try

/**
 * Plans Delta's commands so that a failure which a malformed log causes names the table, the
 * version and the field. Nothing is read before a command fails.
 */
object ExplainedCommands extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case command: RunnableCommand if command.getClass.getName.startsWith(deltasCommands) =>
      Seq(ExecutedCommandExec(ExplainedCommand(command)))
    case _ => Nil
  }

  private val deltasCommands = "org.apache.spark.sql.delta.commands."

  /** The tables that a command names, each with its name in statements. */
  private[guard] def tablesOf(
      command: LogicalPlan,
      spark: SparkSession
  ): Seq[(String, DeltaLog)] = {
    val parts = partsOf(command).toSeq
    val entries = parts.collect { case entry: CatalogTable => entry }
    parts.collect { case log: DeltaLog => log }.distinctBy(_.dataPath).map { log =>
      val entry =
        entries.find(found => Try(new Path(found.location) == log.dataPath).getOrElse(false))
      TableStates.nameOf(spark, entry, log.dataPath) -> log
    }
  }

  private def partsOf(part: Any): Iterator[Any] = part match {
    case log: DeltaLog            => Iterator.single(log)
    case entry: CatalogTable      => Iterator.single(entry)
    case table: DeltaTableV2      => Iterator(table.deltaLog) ++ table.catalogTable
    case source: CloneSource      => source.snapshot.iterator.map(_.deltaLog) ++ source.catalogTable
    case index: TahoeFileIndex    => Iterator.single(index.deltaLog)
    case files: HadoopFsRelation  => partsOf(files.location)
    case plan: LogicalPlan        => plan.productIterator.flatMap(partsOf)
    case several: IterableOnce[_] => several.iterator.flatMap(partsOf)
    case _                        => Iterator.empty
  }
}

/** A command of Delta. */
private final case class ExplainedCommand(command: RunnableCommand) extends LeafRunnableCommand {

  override def output: Seq[Attribute] = command.output

  override lazy val metrics: Map[String, SQLMetric] = command.metrics

  override def nodeName: String = command.nodeName

  override def innerChildren: Seq[QueryPlan[_]] = command.innerChildren

  override def run(spark: SparkSession): Seq[Row] =
    MalformedLog.explainedCommand(spark, ExplainedCommands.tablesOf(command, spark)) {
      command.run(spark)
    }
}
