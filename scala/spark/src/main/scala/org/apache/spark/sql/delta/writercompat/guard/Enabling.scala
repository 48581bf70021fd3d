package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.Metadata
import org.icebergwritercompat.contract.{TableState, Violation}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.rules.{FileRules, SchemaRules}
import org.apache.spark.sql.delta.writercompat.datafiles.{DataFileAudit, FileHistory, LiveFiles}
import org.apache.spark.sql.delta.writercompat.read.PhysicalNames

/** How the feature is switched on for a table that exists. */
sealed trait Enabling {

  /** The metadata to pass through Delta's own update. */
  def proposedToDelta: Metadata

  /** The metadata to commit, made from what Delta's update left. */
  def finish(updated: Metadata): Metadata

  /** What stands against it besides the rules on protocol and metadata, as far as the log tells. */
  def findings(table: TableState): Seq[Violation]

  /** What the footers of the data files have against it; every file is opened. */
  def inFooters(spark: SparkSession, table: TableState): Seq[Violation]
}

object Enabling {

  private def required(metadata: Metadata): Seq[(String, String)] =
    Contracts.of(metadata.configuration).toSeq.flatMap(_.requiredProperties)

  /** How `proposed`, which has the feature, follows on the transaction's snapshot. */
  def of(transaction: OptimisticTransaction, proposed: Metadata): Enabling =
    if (transaction.snapshot.numOfFiles == 0) new WithoutFiles(transaction.snapshot, proposed)
    else new WithFiles(transaction, proposed)

  /**
   * How the metadata of the transaction, which has the feature, follows on its snapshot as it is.
   */
  def asItIs(transaction: OptimisticTransaction): Enabling =
    new WithFiles(transaction, transaction.metadata)

  /**
   * No file depends on the layout of columns, so they are laid out anew, which Delta allows new
   * tables only.
   */
  private final class WithoutFiles(snapshot: Snapshot, proposed: Metadata) extends Enabling {

    private val laidOutHere = required(proposed).filter { case (key, required) =>
      val wanted = proposed.configuration.get(key)
      wanted == snapshot.metadata.configuration.get(key) || wanted.contains(required)
    }

    override def proposedToDelta: Metadata = {
      val before = snapshot.metadata.configuration
      val configuration = laidOutHere.foldLeft(proposed.configuration) { case (all, (key, _)) =>
        before.get(key).fold(all - key)(value => all + (key -> value))
      }
      NewTable.withoutPast(proposed).copy(configuration = configuration)
    }

    override def finish(updated: Metadata): Metadata = {
      val configured = updated.copy(configuration = updated.configuration ++ laidOutHere)
      if (configured.columnMappingMode == NoMapping) configured
      else {
        val withIds = DeltaColumnMapping.assignColumnIdAndPhysicalName(
          newMetadata = configured,
          oldMetadata = configured,
          isChangingModeOnExistingTable = false,
          isOverwritingSchema = false
        )
        PhysicalNames.followIds(withIds, settled = Set.empty)
      }
    }

    override def findings(table: TableState): Seq[Violation] = Nil

    override def inFooters(spark: SparkSession, table: TableState): Seq[Violation] = Nil
  }

  /**
   * The files bind the layout of columns: it must be right, and must have been when they were
   * written.
   */
  private final class WithFiles(transaction: OptimisticTransaction, proposed: Metadata)
      extends Enabling {

    override def proposedToDelta: Metadata = proposed

    override def finish(updated: Metadata): Metadata = updated

    override def findings(table: TableState): Seq[Violation] =
      FileRules.LiveFilesWereWrittenById.check(table, provenance) ++
        SchemaRules.TypesAreSupported.ofUnfilledFiles(table) ++
        LiveFiles.of(transaction.snapshot, table).violations.map(_.violation)

    override def inFooters(spark: SparkSession, table: TableState): Seq[Violation] =
      DataFileAudit.run(spark, transaction.snapshot, table).findings.map(_.violation)

    private def provenance: FileRules.Provenance =
      FileHistory.provenance(transaction.deltaLog, transaction.catalogTable, transaction.snapshot)
  }
}
