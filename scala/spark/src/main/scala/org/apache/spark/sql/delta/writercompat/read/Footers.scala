package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.security.AccessControlException
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.crypto.ParquetCryptoRuntimeException
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.metadata.FileMetaData.EncryptionType
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.TaskContext
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.icebergwritercompat.model.{ColumnChunk, Footer, Unreadable}

import java.io.FileNotFoundException
import java.nio.file.AccessDeniedException
import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

/** Reads the footers of Parquet files. */
private[writercompat] object Footers {

  /** The footer of a file, by the path that the log has; why it cannot be read, otherwise. */
  def read(folder: String, path: String, configuration: Configuration): Either[Unreadable, Footer] =
    try {
      val file = DeltaFileOperations.absolutePath(folder, path)
      val input = HadoopInputFile.fromPath(file, configuration)
      val options = HadoopReadOptions.builder(configuration, file).build()
      val footer = Using.resource(ParquetFileReader.open(input, options))(_.getFooter)
      // Whoever has the keys can read it here, but Iceberg has no place for them.
      if (footer.getFileMetaData.getEncryptionType == EncryptionType.UNENCRYPTED)
        Right(of(footer, input.getLength))
      else Left(Unreadable("it is encrypted", "the keys are at hand here"))
    } catch {
      // A task that is being killed is not to blame the file.
      case NonFatal(error) if !Option(TaskContext.get()).exists(_.isInterrupted()) =>
        Left(unreadable(error))
    }

  private def of(footer: ParquetMetadata, size: Long): Footer = {
    val groups = footer.getBlocks.asScala.toSeq
    Footer(
      footer.getFileMetaData.getSchema,
      groups.map(_.getRowCount).sum,
      size,
      groups
        .flatMap(_.getColumns.asScala)
        .groupMap(chunk => chunk.getPath.toArray.toSeq)(chunkOf),
      footer.getFileMetaData.getKeyValueMetaData.asScala.toMap,
      Option(footer.getFileMetaData.getCreatedBy)
    )
  }

  private def chunkOf(chunk: ColumnChunkMetaData): ColumnChunk =
    new ColumnChunk(
      chunk.getStatistics,
      chunk.getValueCount,
      Option(chunk.getSizeStatistics)
        .filter(_.isValid)
        .map(_.getDefinitionLevelHistogram.asScala.toSeq.map(_.longValue))
        .getOrElse(Nil)
    )

  private def unreadable(error: Throwable): Unreadable = {
    val causes = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(10).toSeq
    val texts = causes.flatMap(cause => Option(cause.getMessage))
    def says(text: String): Boolean = texts.exists(_.contains(text))
    val reason = causes.collectFirst {
      case _: ParquetCryptoRuntimeException                      => "it is encrypted"
      case _: AccessControlException | _: AccessDeniedException  => denied
      case _: FileNotFoundException if says("Permission denied") => denied
      case _: FileNotFoundException                              => "it is not there"
    }
    Unreadable(
      reason.getOrElse {
        if (says("is not a Parquet file")) "it is not a whole Parquet file"
        else "its footer is damaged or cannot be fetched"
      },
      // The message of a damaged footer may hold anything.
      texts.headOption
        .map(_.replaceAll("[\\s\\p{Cntrl}]+", " ").trim.take(longest))
        .filter(_.nonEmpty)
        .getOrElse(error.getClass.getSimpleName)
    )
  }

  private val denied = "the permission to read it is denied"

  private val longest = 300
}
