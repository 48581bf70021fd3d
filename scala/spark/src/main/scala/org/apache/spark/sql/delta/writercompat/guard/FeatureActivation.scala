package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.Metadata
import org.icebergwritercompat.contract.{TableState, Violation}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.rules.{FileRules, SchemaRules}
import org.icebergwritercompat.upgrade.FileUpgrade
import org.apache.spark.sql.delta.writercompat.datafiles.{DataFileAudit, FileHistory, LiveFiles}
import org.apache.spark.sql.delta.writercompat.read.PhysicalNames

/** How a transaction switches the feature on for an existing table. */
sealed trait FeatureActivation {

  /** The metadata to pass to Delta's own update. */
  def proposedToDelta: Metadata

  /** The metadata to commit, derived from the result of Delta's update. */
  def finish(updated: Metadata): Metadata

  /** The violations found in the log, besides those of protocol and metadata. */
  def findings(table: TableState): Seq[Violation]

  /** The violations found in the footers of the data files; opens every file. */
  def inFooters(spark: SparkSession, table: TableState): Seq[Violation]

  /**
   * What the footers of the data files tell of a table that is refused already; opens every file,
   * and once.
   *
   * @param before
   *   the table without the feature, by which its files are read
   * @param table
   *   the table with the feature
   */
  def besides(spark: SparkSession, before: TableState, table: TableState): FooterViolations
}

/**
 * Violations in the footers of data files.
 *
 * @param notMended
 *   those that writing the rows to new files does not mend
 * @param all
 *   those for which the table would be refused next
 */
final case class FooterViolations(notMended: Seq[Violation], all: Seq[Violation])

object FeatureActivation {

  private def required(metadata: Metadata): Seq[(String, String)] =
    Contracts.of(metadata.configuration).toSeq.flatMap(_.requiredProperties)

  /** How `proposed`, which has the feature, can follow the snapshot of the transaction. */
  def of(transaction: OptimisticTransaction, proposed: Metadata): FeatureActivation =
    if (transaction.snapshot.numOfFiles == 0) new WithoutFiles(transaction.snapshot, proposed)
    else new WithFiles(transaction, proposed)

  /**
   * How the metadata of the transaction, which has the feature, can follow its snapshot unchanged.
   */
  def asItIs(transaction: OptimisticTransaction): FeatureActivation =
    new WithFiles(transaction, transaction.metadata)

  /**
   * The table has no files, so names and ids are assigned again, which Delta allows only for new
   * tables.
   */
  private final class WithoutFiles(snapshot: Snapshot, proposed: Metadata)
      extends FeatureActivation {

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
      else PhysicalNames.assigned(configured)
    }

    override def findings(table: TableState): Seq[Violation] = Nil

    override def inFooters(spark: SparkSession, table: TableState): Seq[Violation] = Nil

    override def besides(
        spark: SparkSession,
        before: TableState,
        table: TableState
    ): FooterViolations = FooterViolations(Nil, Nil)
  }

  /**
   * The table has files: the names and ids of columns must comply now, and must have complied when
   * the files were written.
   */
  private final class WithFiles(transaction: OptimisticTransaction, proposed: Metadata)
      extends FeatureActivation {

    override def proposedToDelta: Metadata = proposed

    override def finish(updated: Metadata): Metadata = updated

    override def findings(table: TableState): Seq[Violation] =
      FileRules.LiveFilesWereWrittenById.check(table, provenance) ++
        SchemaRules.TypesAreSupported.ofUnfilledFiles(table) ++
        LiveFiles.of(transaction.snapshot, table).violations.map(_.violation)

    override def inFooters(spark: SparkSession, table: TableState): Seq[Violation] =
      DataFileAudit.run(spark, transaction.snapshot, table).findings.map(_.violation)

    override def besides(
        spark: SparkSession,
        before: TableState,
        table: TableState
    ): FooterViolations = {
      val snapshot = transaction.snapshot
      val questions = Seq(before, table).map(DataFileAudit.question(_, snapshot.numOfFiles))
      val (asItIs, withFeature) =
        DataFileAudit.run(spark, snapshot, table, questions.head.and(questions.last), None)
      FooterViolations(
        asItIs.findings
          .filterNot(found => FileUpgrade.rewriteResolves(before, found.rule))
          .map(found => found.violation.copy(remedy = found.rule.remedy(table))),
        withFeature.findings.map(_.violation)
      )
    }

    private def provenance: FileRules.Provenance =
      FileHistory.provenance(transaction.deltaLog, transaction.catalogTable, transaction.snapshot)
  }
}
