package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIdentifier
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.actions.{AddFile, Metadata}
import org.apache.spark.sql.delta.writercompat.guard.GuardedTransaction
import org.apache.spark.sql.delta.writercompat.read.{Copies, Footers, JobDescription}
import org.apache.spark.sql.delta.writercompat.upgrade.RewrittenFiles
import org.apache.spark.sql.functions.{broadcast, col}
import org.apache.spark.sql.types.{LongType, MetadataBuilder, StringType, StructField, StructType}
import org.apache.spark.sql.{Column, DataFrame, SparkSession}
import org.apache.spark.storage.StorageLevel
import org.apache.spark.util.SerializableConfiguration
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.model.SchemaNode

/**
 * What came of deleted rows.
 *
 * @param touched
 *   the files that had such rows, by their place in the list of the change
 * @param added
 *   files with the rows that they had besides
 * @param rows
 *   how many rows are deleted
 */
private[writercompat] final case class DeletedRows(
    touched: Set[Int],
    added: Seq[AddFile],
    rows: Long
)

/**
 * Takes deleted rows out of data files by writing the files anew, under the metadata of the
 * transaction. A file that has none of the rows is left alone.
 *
 * @param refused
 *   the refusal of a delete file that cannot be applied, with what is wrong with it
 */
private[writercompat] final class RowDeletion(
    spark: SparkSession,
    log: DeltaLog,
    name: String,
    transaction: GuardedTransaction,
    refused: (String, String) => Throwable
) {

  import FilesWithPositions.{nameOf, File, Row}
  import RowDeletion._

  /**
   * Writes the files.
   *
   * @param files
   *   the actions of the files that may have deleted rows, in the order of the change's list
   */
  def applied(deletes: RowDeletes, files: Seq[AddFile]): DeletedRows = {
    checkFooters(deletes)
    val timestamps = RewrittenFiles.timesIn(transaction.metadata)
    val session = RewrittenFiles.sessionFor(spark, files.map(_.size), timestamps)
    val lean = files.map { file =>
      RewrittenFiles.inUtc(spark, timestamps)(Copies.of(file, "stats" -> null))
    }
    session.withActive {
      JobDescription(session, s"Deleting rows of ${files.size} data file(s) of $name") {
        val found = (byPosition(session, deletes) ++ byValue(session, deletes, lean))
          .reduceOption(_ union _)
          .map(_.distinct())
        found.fold(DeletedRows(Set.empty, Nil, 0)) { gone =>
          gone.persist(StorageLevel.MEMORY_AND_DISK)
          try without(session, deletes, lean, gone)
          finally gone.unpersist()
        }
      }
    }
  }

  private def without(
      session: SparkSession,
      deletes: RowDeletes,
      files: Seq[AddFile],
      gone: DataFrame
  ): DeletedRows = {
    val counted = gone
      .groupBy(col(Number))
      .count()
      .collect()
      .map(row => row.getInt(0) -> row.getLong(1))
      .toMap
    val rest = counted
      .collect {
        case (file, count) if count < deletes.files(file).rows => file
      }
      .toSeq
      .sorted
    val added = if (rest.isEmpty) Nil else written(session, deletes, files, rest, gone)
    val expected = rest.map(file => deletes.files(file).rows - counted(file)).sum
    val kept = added.flatMap(_.numPhysicalRecords).sum
    if (kept != expected)
      throw new IllegalStateException(
        s"$kept rows were written of ${rest.size} data file(s) of $name, which have $expected rows " +
          "that are not deleted"
      )
    DeletedRows(counted.keySet, added, counted.values.sum)
  }

  private def written(
      session: SparkSession,
      deletes: RowDeletes,
      files: Seq[AddFile],
      rest: Seq[Int],
      gone: DataFrame
  ): Seq[AddFile] = {
    val rows = read(transaction.metadata, rest.map(files))
    val columns = transaction.metadata.schema.map(field => col(quoteIdentifier(field.name)))
    val kept = rows
      .join(broadcast(numbered(session, deletes, rest)), col(File) === col(Name))
      .join(
        gone.select(col(Number).as(GoneNumber), col(Row).as(GoneRow)),
        col(Number) === col(GoneNumber) && col(Row) === col(GoneRow),
        "left_anti"
      )
      .select(columns: _*)
    transaction
      .writeFiles(kept, None, isOptimize = false, Nil)
      .collect { case file: AddFile => file }
  }

  private def byPosition(session: SparkSession, deletes: RowDeletes): Option[DataFrame] =
    Option.when(deletes.positions.nonEmpty) {
      val applies = for {
        delete <- deletes.positions
        number <- delete.of.toSeq
        file = deletes.files(number)
      } yield (nameOf(log, delete.file.path), file.location, number, file.rows)
      val known = session.createDataFrame(applies).toDF(Name, Location, Number, Rows)
      read(positionColumns, deletes.positions.map(d => action(d.file)))
        .join(broadcast(known), col(File) === col(Name) && col(FilePath) === col(Location))
        .where(col(Position) >= 0 && col(Position) < col(Rows))
        .select(col(Number), col(Position).as(Row))
    }

  private def byValue(
      session: SparkSession,
      deletes: RowDeletes,
      files: Seq[AddFile]
  ): Seq[DataFrame] =
    deletes.equality.groupBy(_.columns).values.toSeq.map { of =>
      val fields = transaction.metadata.schema.filter { field =>
        SchemaNode.idOf(field).exists(id => of.head.columns(id.toInt))
      }
      val asked = of.map { delete =>
        (nameOf(log, delete.file.path), delete.sequenceNumber, delete.partition)
      }
      val deleted =
        read(described(fields.map(_.copy(nullable = true))), of.map(d => action(d.file)))
          .select(renamed(fields, Deleted) :+ col(File): _*)
          .join(
            broadcast(session.createDataFrame(asked).toDF(Name, DeletedNumber, DeletedPartition)),
            col(File) === col(Name)
          )
          .drop(File, Name)
      val touched = of.flatMap(_.of).distinct.sorted
      val same = fields.indices.map(i => col(s"$Live$i") <=> col(s"$Deleted$i"))
      read(transaction.metadata, touched.map(files))
        .select(renamed(fields, Live) ++ Seq(col(File), col(Row)): _*)
        .join(broadcast(numbered(session, deletes, touched)), col(File) === col(Name))
        .join(
          deleted,
          same.reduce(_ && _) && col(Partition) === col(DeletedPartition) &&
            col(Sequence) < col(DeletedNumber),
          "left_semi"
        )
        .select(col(Number), col(Row))
    }

  private def renamed(fields: Seq[StructField], prefix: String): Seq[Column] =
    fields.zipWithIndex.map { case (field, i) =>
      col(quoteIdentifier(field.name)).as(s"$prefix$i")
    }

  private def numbered(
      session: SparkSession,
      deletes: RowDeletes,
      files: Seq[Int]
  ): DataFrame = {
    val rows = files.map { number =>
      val file = deletes.files(number)
      (nameOf(log, file.path), number, file.sequenceNumber, file.partition)
    }
    session.createDataFrame(rows).toDF(Name, Number, Sequence, Partition)
  }

  private def read(columns: Metadata, files: Seq[AddFile]): DataFrame =
    FilesWithPositions.read(log, columns, transaction.protocol, files)

  // Delete files have the columns by their ids as data files have them, partitioned or not.
  private def described(fields: Seq[StructField]): Metadata = transaction.metadata
    .copy(schemaString = StructType(fields).json, partitionColumns = Nil)

  private def positionColumns: Metadata = described(
    Seq((FilePath, StringType, FilePathId), (Position, LongType, PositionId)).map {
      case (name, kind, id) =>
        val mapped = new MetadataBuilder()
          .putLong("delta.columnMapping.id", id)
          .putString("delta.columnMapping.physicalName", name)
          .build()
        StructField(name, kind, nullable = true, mapped)
    }
  )

  private def action(file: DeleteFileEntry): AddFile =
    Copies.addFile(file.path, Map.empty, file.size)

  private def checkFooters(deletes: RowDeletes): Unit = {
    val files = deletes.positions.map(_.file) ++ deletes.equality.map(_.file)
    val folder = log.dataPath.toString
    val wrong =
      if (files.sizeIs <= onTheDriver) {
        val configuration = log.newDeltaHadoopConf()
        files.flatMap(wrongFooter(folder, configuration, _))
      } else {
        val context = spark.sparkContext
        val shared = context.broadcast(new SerializableConfiguration(log.newDeltaHadoopConf()))
        context
          .parallelize(files, math.min(files.size, context.defaultParallelism))
          .mapPartitions(_.flatMap(wrongFooter(folder, shared.value.value, _)))
          .collect()
          .toSeq
      }
    wrong.headOption.foreach { case (file, found) => throw refused(file, found) }
  }
}

private[writercompat] object RowDeletion {

  // Names that no table has.
  private val prefix = "_iceberg_writer_compat_"
  private val Name = s"${prefix}name"
  private val Location = s"${prefix}location"
  private val Number = s"${prefix}number"
  private val Rows = s"${prefix}rows"
  private val Sequence = s"${prefix}sequence"
  private val Partition = s"${prefix}partition"
  private val GoneNumber = s"${prefix}gone_number"
  private val GoneRow = s"${prefix}gone_row"
  private val Live = s"${prefix}live_"
  private val Deleted = s"${prefix}deleted_"
  private val DeletedNumber = s"${prefix}deleted_sequence"
  private val DeletedPartition = s"${prefix}deleted_partition"

  // The columns of Iceberg's position deletes.
  private val FilePath = "file_path"
  private val FilePathId = 2147483546L
  private val Position = "pos"
  private val PositionId = 2147483545L

  // Below that a job of Spark takes longer than the files.
  private val onTheDriver = 8

  private def wrongFooter(
      folder: String,
      configuration: Configuration,
      file: DeleteFileEntry
  ): Option[(String, String)] =
    Footers
      .read(folder, file.path, configuration, Some(file.size))
      .fold(
        unreadable => Some(s"${unreadable.reason} (${unreadable.detail})"),
        footer =>
          Option.when(footer.rowCount != file.rows)(
            s"it has ${footer.rowCount} rows, and is said to have ${file.rows}"
          )
      )
      .map(file.path -> _)
}
