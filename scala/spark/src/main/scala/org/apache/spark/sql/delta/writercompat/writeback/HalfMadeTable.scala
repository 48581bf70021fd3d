package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.delta.actions.{Action, CommitInfo}
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.iceberg.source.{ProposedCommit, RemovedFile, TableDefinition}
import org.icebergwritercompat.iceberg.translate.IcebergSchemas

import scala.util.{Try, Using}

/**
 * A Delta table without a name in the catalog, where a create of an Iceberg client may have died.
 *
 * Version 0 comes before the name, and the name before the first metadata, so a table without
 * metadata is one whose create was never answered. The next create takes it over, rows and all.
 */
private[writeback] final class HalfMadeTable(log: DeltaLog, found: Snapshot) {

  /**
   * What makes it the proposed table.
   *
   * @return
   *   `None` if it may be somebody's; an empty commit if it is the proposed table already
   */
  def completed(proposed: ProposedCommit): Option[Option[ProposedCommit]] =
    if (!isOfClient || !isAlike(proposed)) None
    else if (!isPublished) Some(Some(replacing(proposed)))
    // Somebody had it, and it has no rows to lose.
    else if (found.numOfFiles > 0) None
    else if (proposed.added.isEmpty) Some(None)
    else Some(Some(proposed.copy(definition = None, set = Map.empty, client = None)))

  private def isOfClient: Boolean =
    found.version == 0 && Contracts.isEnabled(found.metadata.configuration) && {
      val file = FileNames.unsafeDeltaFile(log.logPath, 0)
      Using.resource(log.store.readAsIterator(file, log.newDeltaHadoopConf())) { lines =>
        lines.map(Action.fromJson).exists {
          case info: CommitInfo => info.operation.startsWith("ICEBERG ")
          case _                => false
        }
      }
    }

  // Under the same ids, as the new create has them in its files.
  private def isAlike(proposed: ProposedCommit): Boolean = proposed.definition.exists { wanted =>
    wanted.partitionColumns == found.metadata.partitionColumns &&
    Try(IcebergSchemas.schema(wanted.schema).sameSchema(IcebergSchemas.schema(schema)))
      .getOrElse(false)
  }

  private def schema: StructType = found.metadata.schema

  private def isPublished: Boolean = {
    val folder = new Path(log.dataPath, "metadata")
    val fs = folder.getFileSystem(log.newDeltaHadoopConf())
    fs.exists(folder) && fs.listStatus(folder).exists(_.getPath.getName.contains(".metadata.json"))
  }

  private def replacing(proposed: ProposedCommit): ProposedCommit = {
    val ofClients = found.metadata.configuration.keySet.filter(_.startsWith(clientPrefix))
    proposed.copy(
      definition = proposed.definition.map(_.copy(schema = schema)),
      unset = ofClients -- proposed.set.keySet,
      removed = found.allFiles
        .collect()
        .toSeq
        .map(file => RemovedFile(file.path, dataChange = true))
    )
  }

  private def clientPrefix = TableDefinition.ClientPrefix
}
