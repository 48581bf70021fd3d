package org.apache.spark.sql.delta.writercompat.publish

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.hadoop.fs.Path
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.VacuumCommand
import org.apache.spark.sql.delta.util.DeltaFileOperations
import org.icebergwritercompat.errors.IcebergWriterCompatException.vacuumRefused
import org.icebergwritercompat.model.WriterCompat
import org.apache.spark.sql.delta.writercompat.read.TableStates
import org.icebergwritercompat.iceberg.IcebergLibrary
import org.icebergwritercompat.iceberg.metadata.MetadataFileNames
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata.DeltaVersionProperty
import org.icebergwritercompat.iceberg.target.StoreSchemes

import java.io.FileNotFoundException
import scala.util.control.NonFatal
import scala.util.{Try, Using}

/** Tells VACUUM which files of a table Iceberg readers need. */
private[writercompat] final class VacuumPreparation(spark: SparkSession, table: DeltaTableV2) {

  private val name = TableStates.nameOf(table)
  private val root = table.deltaLog.dataPath
  private val metadata = new Path(root, "metadata")
  private val fs = root.getFileSystem(table.deltaLog.newDeltaHadoopConf())

  /**
   * The files that VACUUM must not delete: those of Delta and those of the published metadata,
   * after the newest version is published.
   *
   * @param valid
   *   the files that Delta does not delete
   * @param deletedBefore
   *   files that were removed from the table before this time are deleted
   */
  def withNeeded(
      valid: VacuumCommand.ValidFilesResult,
      deletedBefore: Long,
      dryRun: Boolean
  ): VacuumCommand.ValidFilesResult =
    if (!isPublished) valid
    else {
      val data = refusing {
        SparkPublishing.of(spark, table).filesNeededSince(deletedBefore, dryRun)
      }
      val needed = (data.iterator.map(new Path(_)) ++ metadataFiles).flatMap(relative).toSeq
      import org.apache.spark.sql.delta.implicits._
      VacuumCommand.ValidFilesResult(
        valid.validFiles.union(
          spark.createDataset(needed.flatMap(withFolders).distinct).toDF("path")
        )
      )
    }

  // Whether the newest metadata is of this project or cannot be read. Iceberg's library, which a
  // session may lack, is not used.
  private def isPublished: Boolean = {
    val names = list(metadata).map(_.getName)
    val versions = names.collect { case file @ MetadataFileNames.OfPath(n) => BigInt(n) -> file }
    versions.maxByOption(_._1) match {
      case Some((_, newest)) =>
        Try(properties(new Path(metadata, newest))).fold(_ => true, _.has(DeltaVersionProperty))
      case None =>
        names.exists(MetadataFileNames.OfCatalog.matches) ||
        WriterCompat.isPublished(table.deltaLog.unsafeVolatileSnapshot.metadata.configuration)
    }
  }

  private def properties(file: Path): JsonNode =
    Using.resource(fs.open(file)) { in =>
      VacuumPreparation.mapper
        .readTree(MetadataFileNames.uncompressed(file.getName, in))
        .path("properties")
    }

  private def refusing[T](step: => T): T =
    try IcebergLibrary.needed(step)
    catch { case NonFatal(e) => throw vacuumRefused(name, metadata.toString, e) }

  private def metadataFiles: Iterator[Path] = {
    val found = fs.listFiles(metadata, true)
    Iterator.continually(found).takeWhile(_.hasNext).map(_.next().getPath)
  }

  private def list(folder: Path): Seq[Path] =
    try fs.listStatus(folder).toSeq.map(_.getPath)
    catch { case _: FileNotFoundException => Nil }

  private def relative(file: Path): Option[Path] =
    Try(DeltaFileOperations.tryRelativizePath(fs, root, StoreSchemes.as(root, file))).toOption
      .filterNot(_.isAbsolute)

  private def withFolders(file: Path): Seq[String] =
    Iterator
      .iterate(file)(_.getParent)
      .takeWhile(path => path != null && path.toString.nonEmpty)
      .map(path => SparkPath.fromPath(path).urlEncoded)
      .toSeq
}

private object VacuumPreparation {

  val mapper = new ObjectMapper
}
