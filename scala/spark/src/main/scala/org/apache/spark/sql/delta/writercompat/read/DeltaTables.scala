package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedTable}
import org.apache.spark.sql.catalyst.parser.{CatalystSqlParser, ParseException}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.QuotingUtils.{quoteIdentifier, quoteIfNeeded}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.AlterTableDropFeatureDeltaCommand
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatTableFeature
import org.icebergwritercompat.contract.Fix
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy

import scala.jdk.CollectionConverters._

/** Delta tables by name or by path, and the statement that takes the feature out of one. */
object DeltaTables {

  /** The Delta table that a user calls `table`: a name, `delta.` and a quoted path, or a path. */
  def find(spark: SparkSession, table: String): DeltaTableV2 = {
    val parts =
      if (isPath(table)) Seq("delta", absolute(spark, table))
      else
        try nameParts(table)
        catch {
          // In a procedure its message would be about the call.
          case e: ParseException => throw IcebergWriterCompatException.wrongTableName(table, e)
        }
    // Delta fails at an empty path without a condition.
    if (parts.lastOption.exists(_.isEmpty)) throw notFound(parts)
    val plan = UnresolvedTable(parts, "Iceberg Writer Compat")
    resolved(spark, plan) match {
      case ResolvedTable(_, _, delta: DeltaTableV2, _) => delta
      case _                                           =>
        val name = parts.map(quoteIfNeeded).mkString(".")
        val copy = Remedy.CopyInto(
          Fix.nameOfCopy(name),
          Nil,
          name,
          Nil,
          Seq(Contracts.default.property -> "true")
        )
        throw IcebergWriterCompatException.notDelta(table, copy)
    }
  }

  /** The parts of a name. The session's parser would replace `${x}` in it by a variable. */
  def nameParts(name: String): Seq[String] = CatalystSqlParser.parseMultipartIdentifier(name)

  private def notFound(parts: Seq[String]): AnalysisException = {
    val name = parts.map(quoteIdentifier).mkString(".")
    new AnalysisException("TABLE_OR_VIEW_NOT_FOUND", Map("relationName" -> name))
  }

  private def resolved(spark: SparkSession, plan: LogicalPlan): LogicalPlan =
    try spark.sessionState.executePlan(plan).analyzed
    catch {
      // The original message also contains the plan.
      case e: AnalysisException if e.getCondition == "TABLE_OR_VIEW_NOT_FOUND" =>
        throw new AnalysisException(e.getCondition, e.getMessageParameters.asScala.toMap)
    }

  // Relative paths are resolved as Spark does for a DataFrame reader.
  private[writercompat] def absolute(spark: SparkSession, folder: String): String = {
    val path = new Path(folder)
    if (path.isAbsolute) folder
    else path.getFileSystem(spark.sessionState.newHadoopConf()).makeQualified(path).toString
  }

  /** Whether the table has the feature on. */
  def isEnabled(table: DeltaTableV2): Boolean =
    Contracts.isEnabled(table.update().metadata.configuration)

  /** The feature that the table has on. */
  def contractOf(table: DeltaTableV2): Option[String] =
    Contracts.of(table.update().metadata.configuration).map(_.feature)

  /** Takes the feature out of the table, as DROP FEATURE does; false if it is not there. */
  def disable(spark: SparkSession, table: DeltaTableV2): Boolean = {
    val protocol = table.update().protocol
    val feature = WriterCompatTableFeature.all.find(protocol.isFeatureSupported)
    feature.foreach(found => AlterTableDropFeatureDeltaCommand(table, found.name).run(spark))
    feature.isDefined
  }

  // A name has no slash outside of backquotes, and is not that of the current folder or its parent.
  private[writercompat] def isPath(table: String): Boolean =
    table == "." || table == ".." || table.replaceAll("`[^`]*`", "").contains("/")
}
