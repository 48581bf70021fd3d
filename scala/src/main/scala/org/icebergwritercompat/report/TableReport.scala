package org.icebergwritercompat.report

import com.fasterxml.jackson.annotation.JsonProperty

/**
 * What was asked about one table, and the answer; `docs/report.md` describes each part.
 *
 * @param table
 *   how a statement refers to the table
 * @param location
 *   its folder; `None` where the table does not exist yet, as for the version
 * @param statement
 *   what would be run
 */
final case class TableReport(
    kind: ReportKind,
    table: String,
    location: Option[String],
    version: Option[Long],
    timestamp: Option[String],
    profile: String,
    enabled: Boolean,
    statement: Option[String],
    facts: Facts,
    columns: Seq[ColumnFact],
    findings: Seq[Finding],
    audit: Option[AuditFact] = None,
    history: Option[HistoryFact] = None
) {

  /** The version of this format. */
  @JsonProperty def format: Int = 1

  /** Whether the table has the feature, and breaks no rule of it. */
  @JsonProperty def compliant: Boolean =
    enabled && !findings.exists(f => f.severity == Severity.Error && f.mendedVersion.isEmpty)
}

/** What a report was made by. */
sealed abstract class ReportKind(val name: String)

object ReportKind {
  case object Check extends ReportKind("check")
  case object Verify extends ReportKind("verify")
  case object WouldBreak extends ReportKind("would_break")
  case object History extends ReportKind("history")
}

/** What a person wants to know of a table before anything else. */
final case class Facts(
    readerVersion: Int,
    writerVersion: Int,
    features: Seq[FeatureFact],
    columnMappingMode: String,
    maxColumnId: Long,
    partitionColumns: Seq[String],
    clusteringColumns: Seq[String],
    files: Long,
    bytes: Long,
    rows: Option[Long],
    deletionVectors: Long,
    enabling: EnablingFact
)

/**
 * A table feature.
 *
 * @param supported
 *   whether the protocol lists or implies it
 * @param active
 *   whether it is supported and the metadata makes use of it
 * @param enabled
 *   whether the table property that switches it on is on; `None` where it has none
 * @param allowed
 *   whether a table with `icebergWriterCompatV1` may have it
 */
final case class FeatureFact(
    name: String,
    supported: Boolean,
    active: Boolean,
    enabled: Option[Boolean],
    allowed: Boolean
)

/**
 * What it takes to switch the feature on.
 *
 * @param exact
 *   whether the data files were looked at, and not only the log
 */
final case class EnablingFact(
    verdict: Verdict,
    reason: String,
    filesToRewrite: Long,
    bytesToRewrite: Long,
    exact: Boolean
)

/** What it takes to switch the feature on, in a word. */
sealed abstract class Verdict(val name: String)

object Verdict {
  case object Enabled extends Verdict("enabled")
  case object MetadataOnly extends Verdict("metadata-only")
  case object Rewrite extends Verdict("rewrite")
  case object Blocked extends Verdict("blocked")
}

/** A node of the schema: a column, a nested field, or an element, key or value. */
final case class ColumnFact(
    name: String,
    path: Seq[String],
    role: String,
    `type`: String,
    nullable: Boolean,
    id: Option[Long],
    physicalName: Option[String],
    partition: Boolean
)

/** Which data files were opened. */
final case class AuditFact(filesLive: Long, filesRead: Long, bytes: Long, sampled: Boolean)

/** Which versions were looked at. */
final case class HistoryFact(fromVersion: Long, toVersion: Long)
