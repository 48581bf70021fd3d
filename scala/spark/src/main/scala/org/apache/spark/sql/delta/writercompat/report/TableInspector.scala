package org.apache.spark.sql.delta.writercompat.report

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.skipping.clustering.ClusteringColumnInfo
import org.apache.spark.sql.delta.writercompat.publish.SparkPublishing
import org.icebergwritercompat.contract.{Fix, Lifecycle, TableState, Violation}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.report.{
  Assessment,
  AuditFact,
  ColumnFact,
  EnablingFact,
  Facts,
  Finding,
  ReportKind,
  Severity,
  TableReport
}
import org.icebergwritercompat.remedy.{Remedy, Together}
import org.icebergwritercompat.rules.{FileRules, NameRules}
import org.apache.spark.sql.delta.writercompat.datafiles.{
  DataFileAudit,
  FileHistory,
  FooterQuestion,
  LiveFiles
}
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, MalformedLog, TableStates}

import java.time.Instant

/**
 * A version of a table, or the version that a statement would make.
 *
 * @param clustering
 *   the columns that rows are clustered by
 */
final case class SeenVersion(
    location: Option[String],
    version: Option[Long],
    timestamp: Option[Long],
    protocol: Protocol,
    metadata: Metadata,
    clustering: Seq[String]
)

object SeenVersion {

  /** A version that is in the log. */
  def of(table: DeltaTableV2, snapshot: Snapshot): SeenVersion =
    SeenVersion(
      Some(table.deltaLog.dataPath.toString),
      Some(snapshot.version),
      Some(snapshot.timestamp),
      snapshot.protocol,
      snapshot.metadata,
      ClusteringColumnInfo.extractLogicalNames(snapshot)
    )
}

/** Makes reports on tables from their log; writes nothing. */
final class TableInspector(spark: SparkSession) {

  private val profile = TableStates.profile(spark)

  /** The report on a version of a table, by default the newest. */
  def check(name: String, version: Option[Long]): TableReport = {
    val table = DeltaTables.find(spark, name)
    val snapshot = snapshotOf(table, version)
    ofItsTime(checked(ReportKind.Check, table, snapshot, _ => Nil), version, table)
  }

  // What it offers would change the newest version.
  private def ofItsTime(
      report: TableReport,
      version: Option[Long],
      table: DeltaTableV2
  ): TableReport =
    version.fold(report) { asked =>
      val newest = table.update().version
      if (asked == newest) report
      else {
        val why = s"Version $asked is not the newest; look at that one, $newest, for what to do."
        report.copy(
          findings = report.findings.map(_.copy(remedy = Remedy.Nothing)),
          facts = report.facts.copy(enabling = report.facts.enabling.copy(reason = why))
        )
      }
    }

  /** The same, including the footers of at most `most` data files. */
  def verify[R](
      name: String,
      version: Option[Long],
      most: Option[Long],
      enabling: (DeltaTableV2, Snapshot) => FooterQuestion[R, EnablingFact]
  ): TableReport = {
    val table = DeltaTables.find(spark, name)
    val snapshot = snapshotOf(table, version)
    val state = stateOf(table, snapshot)
    val question = DataFileAudit.question(state, snapshot.numOfFiles)
    val sampled = most.exists(_ < snapshot.numOfFiles)
    // What it takes to switch the feature on depends on all files.
    val (audit, exact) =
      if (state.isEnabled || sampled)
        DataFileAudit.run(spark, snapshot, state, question, most) -> None
      else {
        val both = question.and(enabling(table, snapshot))
        val (audit, fact) = DataFileAudit.run(spark, snapshot, state, both, None)
        audit -> Some(fact)
      }
    val report =
      checked(ReportKind.Verify, table, snapshot, weight => audit.findings.map(_.finding(weight)))
    val published = if (version.isEmpty) SparkPublishing.problems(spark, table) else Nil
    val complete = report.copy(
      findings = report.findings ++ published.map(Finding.published),
      audit = Some(AuditFact(audit.filesLive, audit.filesRead, audit.bytesRead, sampled)),
      facts =
        if (sampled) report.facts
        else
          report.facts.copy(enabling = exact.getOrElse(report.facts.enabling.copy(exact = true)))
    )
    ofItsTime(complete, version, table)
  }

  private def checked(
      kind: ReportKind,
      table: DeltaTableV2,
      snapshot: Snapshot,
      audited: Assessment => Seq[Finding]
  ): TableReport = {
    val state = stateOf(table, snapshot)
    MalformedLog.refusePassedOver(state.name, snapshot)
    val files = LiveFiles.of(snapshot, state)
    val unproven = provenance(table, snapshot, state, files.files)
    report(
      kind,
      state,
      SeenVersion.of(table, snapshot),
      files,
      findings(state, files, unproven) ++ audited(judgement(state, files))
    )
  }

  /** The findings on a version and its files, in addition to those given. */
  def findings(state: TableState, files: LiveFiles, known: Seq[Violation]): Seq[Finding] = {
    val weight = judgement(state, files)
    val found = (state.violations ++ known ++ kept(state))
      .map(weight.finding)
      .toSeq ++ files.violations.map(_.finding(weight))
    mendedTogether(state, found) ++ files.elsewhere.map(_.finding)
  }

  // Of a guarded table, one fault cannot be mended while another one stays.
  private def mendedTogether(state: TableState, found: Seq[Finding]): Seq[Finding] = {
    val isError = (finding: Finding) => finding.severity == Severity.Error
    if (!state.isEnabled || state.previous.isDefined || !found.exists(isError)) found
    else {
      val remedy =
        Together.standing(found.filter(isError).map(_.remedy), Fix.copyInto(state))
      found.map(finding => if (isError(finding)) finding.copy(remedy = remedy) else finding)
    }
  }

  // The feature was switched on although the table has these names.
  private def kept(state: TableState): Seq[Violation] =
    if (state.lifecycle == Lifecycle.Changing) NameRules.NoReservedNames.ofExisting(state) else Nil

  /** The requested version of the table. */
  def snapshotOf(table: DeltaTableV2, version: Option[Long]): Snapshot = {
    val newest = table.update()
    version.filter(_ != newest.version).fold(newest) { wanted =>
      if (wanted < 0 || wanted > newest.version)
        throw VersionNotFoundException(
          wanted,
          table.deltaLog.history.getEarliestRecreatableCommit,
          newest.version
        )
      table.deltaLog.getSnapshotAt(wanted, catalogTableOpt = table.catalogTable)
    }
  }

  /** The state of that version. */
  def stateOf(table: DeltaTableV2, snapshot: Snapshot): TableState =
    stateOf(TableStates.nameOf(table), snapshot.protocol, snapshot.metadata)

  /** The state that an existing table has with this protocol and metadata. */
  def stateOf(name: String, protocol: Protocol, metadata: Metadata): TableState = {
    val enabled = Contracts.isEnabled(metadata.configuration)
    TableStates.of(
      name,
      if (enabled) Lifecycle.Changing else Lifecycle.Enabling,
      protocol,
      metadata,
      profile
    )
  }

  /** The report on one version, which may not exist yet. */
  def report(
      kind: ReportKind,
      state: TableState,
      seen: SeenVersion,
      files: LiveFiles,
      findings: Seq[Finding]
  ): TableReport =
    TableReport(
      kind,
      state.name,
      seen.location,
      seen.version,
      seen.timestamp.map(Instant.ofEpochMilli(_).toString),
      profile.name,
      Contracts.of(state.properties).map(_.feature),
      statement = None,
      Facts(
        seen.protocol.minReaderVersion,
        seen.protocol.minWriterVersion,
        FeatureFacts.of(spark, seen.protocol, seen.metadata, state, profile),
        seen.metadata.columnMappingMode.name,
        state.maxColumnId,
        state.partitionColumns,
        seen.clustering,
        files.files,
        files.bytes,
        files.rows,
        files.deletionVectors,
        judgement(state, files).enabling(findings, files.files, files.bytes)
      ),
      TableInspector.columns(state),
      findings
    )

  /** The severities of violations of this state. */
  def judgement(state: TableState, files: LiveFiles): Assessment =
    new Assessment(state, hasFiles = files.files > 0)

  // Files can comply without a rewrite only if the names and ids of columns comply; the history
  // shows whether they always did.
  private def provenance(
      table: DeltaTableV2,
      snapshot: Snapshot,
      state: TableState,
      files: Long
  ): Seq[Violation] =
    if (Contracts.isEnabled(state.properties) || files == 0) Nil
    else
      FileRules.LiveFilesWereWrittenById.check(
        state,
        FileHistory.provenance(table.deltaLog, table.catalogTable, snapshot)
      )
}

object TableInspector {

  /** The nodes of the schema, as a report shows them. */
  def columns(state: TableState): Seq[ColumnFact] = {
    val partitions = state.partitionNodes.map(_.path).toSet
    state.nodes.map { node =>
      ColumnFact(
        node.sqlPath,
        node.path,
        node.role.name,
        node.dataType.sql,
        node.nullable,
        node.id,
        node.physicalName,
        partitions(node.path)
      )
    }
  }
}
