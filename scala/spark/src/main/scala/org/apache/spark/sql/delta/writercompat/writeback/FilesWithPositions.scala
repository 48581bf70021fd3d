package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIdentifier
import org.apache.spark.sql.delta.actions.{AddFile, Metadata, Protocol}
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.apache.spark.sql.delta.{DeletionVectorsTableFeature, DeltaLog, DummySnapshot}
import org.apache.spark.sql.functions.col

/** Reads files by the ids of columns, each row with its place. */
private[writercompat] object FilesWithPositions {

  /** The column with the file, as `nameOf` gives it. */
  val File = "_iceberg_writer_compat_file"

  /** The column with the number of the row in its file. */
  val Row = "_iceberg_writer_compat_row"

  /**
   * The rows of files.
   *
   * @param metadata
   *   what the columns are
   */
  def read(
      log: DeltaLog,
      metadata: Metadata,
      protocol: Protocol,
      files: Seq[AddFile]
  ): DataFrame = {
    // Delta tells the numbers of rows only for tables that may have deletion vectors.
    val numbered = protocol.merge(Protocol.forTableFeature(DeletionVectorsTableFeature))
    val described = new Described(log, metadata, numbered)
    val rows = log.createDataFrame(described, files, actionTypeOpt = Some("Delete"))
    val place = rows.metadataColumn("_metadata")
    val columns = rows.columns.toSeq.map(name => col(quoteIdentifier(name)))
    rows.select(
      columns :+ place.getField("file_path").as(File) :+ place.getField("row_index").as(Row): _*
    )
  }

  /** The file of a path as the rows have it. */
  def nameOf(log: DeltaLog, path: String): String = SparkPath
    .fromPath(DeltaFileOperations.absolutePath(log.dataPath.toString, path))
    .urlEncoded

  // The constructors with more parameters differ between versions of Delta.
  private final class Described(
      log: DeltaLog,
      override val metadata: Metadata,
      override val protocol: Protocol
  ) extends DummySnapshot(log.logPath, log)
}
