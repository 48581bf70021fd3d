package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.clustering.ClusteringMetadataDomain
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.model.{DataAction, FileLocation, FileStatistics}

import scala.collection.mutable

/**
 * Shows the actions of one commit to the rules, one after the other.
 *
 * @param isKnown
 *   whether there is a file system for the scheme and host of a path
 */
final class DataActions(table: TableState, isKnown: String => Boolean = _ => true) {

  private val added = mutable.HashSet.empty[String]

  /** What the rules need to know of a file that a commit adds. */
  def of(add: AddFile): DataAction.Added = ofLive(add).copy(repeated = !added.add(add.path))

  /** What the rules need to know of a live file, of which the log has one by each path. */
  def ofLive(add: AddFile): DataAction.Added = {
    val file = DataAction.Added(
      add.path,
      add.partitionValues,
      statistics(add),
      add.deletionVector != null,
      repeated = false,
      size = add.size
    )
    file.location match {
      case FileLocation.Absolute(root) => file.copy(isWithinReach = isKnown(root))
      case _                           => file
    }
  }

  /** What the rules need to know of the statistics of a file. */
  def statistics(add: AddFile): Option[FileStatistics] =
    Option(add.stats).flatMap(FileStatistics.parse(_, table.physicalNames))

  /** What the rules need to know of `action`, if they ask about its kind. */
  def of(action: Action): Option[DataAction] = action match {
    case add: AddFile       => Some(of(add))
    case remove: RemoveFile => Some(DataAction.Removed(remove.path, remove.dataChange))
    case cdc: AddCDCFile    => Some(DataAction.ChangeData(cdc.path))
    case ClusteringMetadataDomain(clustering, removed) =>
      Option.when(!removed)(DataAction.Clustered(clustering.clusteringColumns))
    case _ => None
  }
}
