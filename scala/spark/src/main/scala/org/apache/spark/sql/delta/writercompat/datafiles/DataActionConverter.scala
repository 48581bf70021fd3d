package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.clustering.ClusteringMetadataDomain
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.model.{DataAction, FileLocation, FileStatistics}

import scala.collection.mutable

/**
 * Makes of Delta's actions what the rules check. One instance is for one commit, in its order.
 *
 * @param isKnown
 *   whether there is a file system for the scheme and host of a path
 */
final class DataActionConverter(table: TableState, isKnown: String => Boolean = _ => true) {

  private val added = mutable.HashSet.empty[String]

  /** The values that the rules check on a file that a commit adds. */
  def of(add: AddFile): DataAction.Added = ofLive(add).copy(repeated = !added.add(add.path))

  /** The same for a live file; the log has one for each path. */
  def ofLive(add: AddFile): DataAction.Added =
    ofLive(add, FileStatistics.parse(add.stats, table.physicalNames))

  /** The same for a live file whose statistics have been read. */
  def ofLive(add: AddFile, statistics: Option[FileStatistics]): DataAction.Added = {
    val file = DataAction.Added(
      add.path,
      add.partitionValues,
      statistics,
      add.deletionVector != null,
      repeated = false,
      size = add.size
    )
    file.location match {
      case FileLocation.Absolute(root) => file.copy(isWithinReach = isKnown(root))
      case _                           => file
    }
  }

  /** The values that the rules check on an action; `None` for a kind that no rule is about. */
  def of(action: Action): Option[DataAction] = action match {
    case add: AddFile       => Some(of(add))
    case remove: RemoveFile => Some(DataAction.Removed(remove.path, remove.dataChange))
    case cdc: AddCDCFile    => Some(DataAction.ChangeData(cdc.path))
    case ClusteringMetadataDomain(clustering, removed) =>
      Option.when(!removed)(DataAction.Clustered(clustering.clusteringColumns))
    case _ => None
  }
}
