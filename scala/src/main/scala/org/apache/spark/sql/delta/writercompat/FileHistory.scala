package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.functions.broadcast
import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.rules.{Contracts, FileRules, TableState, Violation}
import org.icebergwritercompat.rules.FileRules.Provenance

import scala.collection.mutable
import scala.util.Try

/** What the log tells about how live files were written. */
object FileHistory {

  // These take files over that were written elsewhere, under rules this log does not tell.
  private val takingFilesOver = Set(DeltaOperations.OP_CLONE, "CONVERT")

  /**
   * The live files of which the log does not prove that they were written under IcebergCompatV2 in
   * id mode, which gives every column, element, key and value in a file its id.
   */
  def provenance(
      log: DeltaLog,
      catalogTable: Option[CatalogTable],
      snapshot: Snapshot
  ): Provenance = {
    val commits =
      log.getChanges(startVersion = 0, catalogTableOpt = catalogTable, failOnDataLoss = false)
    val proven = mutable.HashMap.empty[String, Boolean]
    val live = mutable.LinkedHashSet.empty[String]
    var writtenById = false
    var complete = true
    var expected = 0L
    commits.takeWhile(_._1 <= snapshot.version).foreach { case (version, actions) =>
      complete &&= version == expected
      expected = version + 1
      actions.foreach {
        case m: Metadata => writtenById = writesById(m)
        case _           =>
      }
      val takenOver = actions.exists {
        case info: CommitInfo => takingFilesOver(info.operation)
        case _                => false
      }
      actions.foreach {
        case add: AddFile =>
          // A file that returns, or whose statistics are refreshed, was written the first time.
          proven.getOrElseUpdate(add.path, writtenById && !takenOver && complete)
          live += add.path
        case remove: RemoveFile => live -= remove.path
        case _                  =>
      }
    }
    if (!complete || expected != snapshot.version + 1)
      Provenance(snapshot.numOfFiles, live.headOption)
    else {
      val unproven = live.toSeq.filterNot(proven)
      Provenance(unproven.size.toLong, unproven.headOption)
    }
  }

  /** What stands against the files that a CLONE or CONVERT takes over. */
  def takenOver(
      spark: SparkSession,
      table: TableState,
      op: DeltaOperations.Operation
  ): Iterator[Violation] = op match {
    case clone: DeltaOperations.Clone =>
      sourceWithFeature(spark, clone).fold(unproven(table, clone.source)) { case (name, source) =>
        DataFileAudit
          .run(spark, source, table.copy(name = name))
          .findings
          .iterator
          .map(_.violation)
      }
    case convert: DeltaOperations.Convert =>
      unproven(table, s"the ${convert.numFiles} of the folder")
    case _ => Iterator.empty
  }

  private def sourceWithFeature(
      spark: SparkSession,
      clone: DeltaOperations.Clone
  ): Option[(String, Snapshot)] =
    Try {
      val source = DeltaTables.find(spark, clone.source)
      val version =
        source.deltaLog.getSnapshotAt(clone.sourceVersion, catalogTableOpt = source.catalogTable)
      TableStates.nameOf(source) -> version
    }.toOption.filter { case (_, version) =>
      Contracts.isEnabled(version.metadata.configuration)
    }

  /** What the footers of the files say that the actions leave of a version. */
  def inFooters(
      spark: SparkSession,
      table: TableState,
      before: Snapshot,
      actions: Seq[Action]
  ): Seq[Violation] = {
    val added = actions.collect { case add: AddFile => add }
    val gone = actions.collect { case remove: RemoveFile => remove.path }
    val replaced = spark.createDataset(gone ++ added.map(_.path))(Encoders.STRING).toDF("path")
    val left = before.allFiles
      .join(broadcast(replaced), Seq("path"), "left_anti")
      .as[AddFile](Upgrading.addFiles)
      .union(spark.createDataset(added)(Upgrading.addFiles))
    DataFileAudit.run(spark, before, left, left.count(), table, None).findings.map(_.violation)
  }

  private def unproven(table: TableState, files: String): Iterator[Violation] =
    FileRules.LiveFilesWereWrittenById.check(table, Provenance(1, Some(files))).iterator

  private def writesById(metadata: Metadata): Boolean =
    metadata.columnMappingMode == IdMapping &&
      metadata.configuration
        .get(WriterCompat.IcebergCompatV2Enabled)
        .exists(_.trim.equalsIgnoreCase("true"))
}
