package org.apache.spark.sql.delta.writercompat.publish

import org.apache.hadoop.fs.Path
import org.apache.iceberg.{DataFile, DataOperations, TableMetadata}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.actions.AddFile
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.apache.spark.sql.delta.writercompat.read.Copies
import org.icebergwritercompat.iceberg.publish.{ForeignAppends, ForeignCommit}
import org.icebergwritercompat.iceberg.translate.{IcebergSchemas, PartitionValues}

import scala.util.Try

/**
 * Appends the rows of Iceberg writers to a Delta table.
 *
 * Delta reads the writers' files by the ids of the columns, and writes the rows to files of its
 * own.
 */
private[writercompat] final class ForeignRows(
    log: DeltaLog,
    catalogTable: Option[CatalogTable],
    metadata: TableMetadata
) extends ForeignAppends {

  override def has(snapshotId: Long): Boolean =
    newest.transactions.contains(applicationId(snapshotId)) ||
      Option(metadata.snapshot(snapshotId)).exists { snapshot =>
        snapshot.operation == DataOperations.APPEND &&
        !snapshot.summary.containsKey("added-data-files")
      }

  // Delta makes no second commit with the same note.
  private def applicationId(snapshotId: Long): String =
    s"icebergWriterCompat.snapshot.${metadata.uuid}.$snapshotId"

  private def newest = log.update(catalogTableOpt = catalogTable)

  override def obstacle(commit: ForeignCommit): Option[String] = {
    val ours = IcebergSchemas.schema(newest.metadata.schema)
    val snapshot = metadata.snapshot(commit.snapshotId)
    val theirs = Option(snapshot.schemaId).fold(metadata.schema) { id =>
      metadata.schemasById.get(id)
    }
    Option
      .when(!ours.sameSchema(theirs))("its columns are not those of the Delta table")
      .orElse {
        commit.added.iterator
          .flatMap(partition(_).left.toOption)
          .nextOption()
          .map(field => s"the partition column $field has a value that Delta's log cannot have")
      }
  }

  override def unreadable(commit: ForeignCommit): Option[String] =
    Try(rows(commit).write.format("noop").mode("overwrite").save()).failed.toOption.map { e =>
      IcebergWriterCompatException.inOneLine(e)._1
    }

  private def rows(commit: ForeignCommit): DataFrame =
    log.createDataFrame(newest, commit.added.map(file), actionTypeOpt = Some("Foreign"))

  override def append(commit: ForeignCommit): Unit = if (commit.added.nonEmpty)
    // The caller publishes when the rows of all commits are there.
    PublishHook.quietly(write(commit))

  private def write(commit: ForeignCommit): Unit =
    rows(commit).write
      .format("delta")
      .mode("append")
      .option("txnAppId", applicationId(commit.snapshotId))
      .option("txnVersion", "1")
      .option("userMetadata", s"rows of the Iceberg snapshot ${commit.snapshotId}")
      .save(log.dataPath.toString)

  private def file(data: DataFile): AddFile =
    Copies.addFile(
      new Path(data.location).toUri.toString,
      partition(data).getOrElse(Map.empty),
      data.fileSizeInBytes
    )

  private def partition(data: DataFile): Either[String, Map[String, String]] =
    PartitionValues.text(metadata.specsById.get(data.specId), data.partition)
}
