package org.apache.spark.sql.delta.writercompat.read

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.crypto.ParquetCryptoRuntimeException
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.hadoop.metadata.FileMetaData.EncryptionType
import org.apache.spark.TaskContext
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.icebergwritercompat.errors.Causes
import org.icebergwritercompat.model.{ColumnChunk, Footer, Unreadable}

import java.io.FileNotFoundException
import java.nio.file.AccessDeniedException
import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

/** Reads the footers of Parquet files. */
private[writercompat] object Footers {

  /**
   * The footer of a file, or why it cannot be read.
   *
   * @param path
   *   as the log has it
   * @param size
   *   the bytes that the log says the file has. With it the file is opened once and its end is read
   *   once; the file system is not asked for the length unless that fails
   */
  def read(
      folder: String,
      path: String,
      configuration: Configuration,
      size: Option[Long] = None
  ): Either[Unreadable, Footer] =
    try {
      val file = DeltaFileOperations.absolutePath(folder, path)
      val (footer, length) = size
        .filter(_ >= 0)
        .flatMap(atLength(file, _, configuration))
        .getOrElse(byStatus(file, configuration))
      // Iceberg's metadata has no place for the keys that this session has.
      if (footer.getFileMetaData.getEncryptionType == EncryptionType.UNENCRYPTED)
        Right(of(footer, length))
      else Left(Unreadable("it is encrypted", "the keys are at hand here"))
    } catch {
      // A task that is being killed says nothing about the file.
      case NonFatal(error) if !Option(TaskContext.get()).exists(_.isInterrupted()) =>
        Left(unreadable(error))
    }

  private type Read = (ParquetMetadata, Long)

  // None if the file may have another length: then the file system is asked.
  private def atLength(file: Path, length: Long, configuration: Configuration): Option[Read] =
    Using.resource(FileTail.open(file, length, configuration)) { tail =>
      try {
        val footer = footerIn(tail, file, configuration)
        Option.when(!tail.isLonger)(footer -> length)
      } catch {
        case encrypted: ParquetCryptoRuntimeException => throw encrypted
        case NonFatal(_)                              => None
      }
    }

  private def byStatus(file: Path, configuration: Configuration): Read = {
    val length = file.getFileSystem(configuration).getFileStatus(file).getLen
    Using.resource(FileTail.open(file, length, configuration)) { tail =>
      footerIn(tail, file, configuration) -> length
    }
  }

  private def footerIn(tail: FileTail, file: Path, configuration: Configuration) = {
    val options = HadoopReadOptions.builder(configuration, file).build()
    Using.resource(ParquetFileReader.open(tail, options))(_.getFooter)
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
    val causes = Causes.of(error)
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
      // The message about a damaged footer may contain any bytes of it.
      texts.headOption
        .map(_.replaceAll("[\\s\\p{Cntrl}]+", " ").trim.take(longest))
        .filter(_.nonEmpty)
        .getOrElse(error.getClass.getSimpleName)
    )
  }

  private val denied = "the permission to read it is denied"

  private val longest = 300
}
