package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.delta.commands.{CloneTableCommand, CreateDeltaTableCommand}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.command.CreateTableLikeCommand
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand
import org.icebergwritercompat.remedy.Door

/** The statement or the call that this thread runs, as its user made it. */
object RunningStatement {

  /** How it came; `None` if nothing of the kind runs. */
  def door: Option[Door] = plans.flatMap(doorOf).headOption

  /** How a plan came that is not running yet. */
  def doorOf(plan: LogicalPlan): Option[Door] =
    textOf(plan)
      .map(Door.Sql(_, isClustered(plan)))
      .orElse(plan match {
        case _: CreateTable | _: ReplaceTable => Some(Door.Builder)
        case _: CreateTableAsSelect | _: ReplaceTableAsSelect | _: SaveIntoDataSourceCommand |
            _: V2WriteCommand =>
          Some(Door.Writer)
        case _ => None
      })

  // Delta's parser lets Spark's parse CLUSTER BY as PARTITIONED BY, and takes that text for the user's.
  private def isClustered(plan: LogicalPlan): Boolean = plan match {
    case create: V2CreateTablePlan => create.partitioning.exists(_.name.contains("cluster_by"))
    case _                         => false
  }

  // The analyzer may leave the text with some of the parts alone. What is below the query of a
  // DataFrame has a text of its own.
  private def textOf(plan: LogicalPlan): Option[String] = {
    val parts: Seq[TreeNode[_]] = plan match {
      case create: V2CreateTablePlan       => Seq(create, create.name) ++ create.expressions
      case alter: AlterTableCommand        => Seq(alter, alter.table) ++ alter.expressions
      case like: CreateTableLikeCommand    => Seq(like)
      case create: CreateDeltaTableCommand => Seq(create)
      case _                               => Nil
    }
    parts.flatMap(_.origin.sqlText).headOption
  }

  /** The clone that it makes, if it makes one. */
  def cloning: Option[(CreateDeltaTableCommand, CloneTableCommand)] = plans.collectFirst {
    case create: CreateDeltaTableCommand =>
      create.query.collect { case clone: CloneTableCommand => create -> clone }
  }.flatten

  /** The name of the table that it creates, if that is no path. */
  def created: Option[Identifier] = plans
    .collectFirst {
      case create: V2CreateTablePlan =>
        create.name match {
          case ResolvedIdentifier(_, identifier) => Some(identifier)
          case _                                 => None
        }
      case create: CreateDeltaTableCommand =>
        val TableIdentifier(table, database, _) = create.table.identifier
        Some(Identifier.of(database.toArray, table))
    }
    .flatten
    .filterNot { identifier =>
      identifier.namespace.lastOption.forall(_.equalsIgnoreCase("delta"))
    }

  /** Whether it creates a table of this name. */
  def creates(table: TableIdentifier): Boolean = plans.exists {
    case create: V2CreateTablePlan =>
      create.name match {
        case ResolvedIdentifier(_, identifier) =>
          identifier.name.equalsIgnoreCase(table.table) &&
          identifier.namespace.lastOption.forall(name =>
            table.database.exists(name.equalsIgnoreCase)
          )
        case _ => false
      }
    case create: CreateDeltaTableCommand => isSame(create.table.identifier, table)
    case create: CreateTableLikeCommand  => isSame(create.targetTable, table)
    case _                               => false
  }

  private def isSame(one: TableIdentifier, other: TableIdentifier): Boolean =
    one.table.equalsIgnoreCase(other.table) &&
      one.database.forall(name => other.database.exists(name.equalsIgnoreCase))

  // The innermost execution first: what a user's code runs may be a part of another one.
  private def plans: Seq[LogicalPlan] =
    for {
      context <- SparkContext.getActive.toSeq
      key <- Seq(SQLExecution.EXECUTION_ID_KEY, SQLExecution.EXECUTION_ROOT_ID_KEY)
      id <- Option(context.getLocalProperty(key)).flatMap(_.toLongOption)
      execution <- Option(SQLExecution.getQueryExecution(id))
    } yield execution.logical
}
