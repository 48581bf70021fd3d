package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.icebergwritercompat.contract.{TableState, Violation}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.rules.FileRules
import org.icebergwritercompat.rules.FileRules.Provenance
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, TableStates}

import scala.collection.mutable
import scala.util.Try

/** What the log says about how live files were written. */
object FileHistory {

  // These commands add files of another table, whose settings are not in this log.
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
          // RESTORE, and whoever refreshes statistics, adds a file that was written before.
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

  /** The violations in the files that a CLONE or CONVERT adds to its table. */
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

  /** The version that a RESTORE goes back to, found as the command finds it. */
  def restored(
      spark: SparkSession,
      log: DeltaLog,
      catalogTable: Option[CatalogTable],
      op: DeltaOperations.Operation
  ): Snapshot = {
    val version = op match {
      case DeltaOperations.Restore(Some(version), _)   => version
      case DeltaOperations.Restore(_, Some(timestamp)) =>
        val time = DeltaTimeTravelSpec(Some(Literal(timestamp)), None, None)
          .getTimestamp(spark.sessionState.conf)
        log.history.getActiveCommitAtTime(time, catalogTable, canReturnLastCommit = true).version
      case other => throw new IllegalStateException(s"${other.name} restores nothing")
    }
    log.getSnapshotAt(version, catalogTableOpt = catalogTable)
  }

  private def unproven(table: TableState, files: String): Iterator[Violation] =
    FileRules.LiveFilesWereWrittenById.check(table, Provenance(1, Some(files))).iterator

  private def writesById(metadata: Metadata): Boolean =
    metadata.columnMappingMode == IdMapping &&
      metadata.configuration.get(WriterCompat.IcebergCompatV2Enabled).exists(WriterCompat.isTrue)
}
