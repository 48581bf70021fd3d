package org.icebergwritercompat.report

import com.fasterxml.jackson.annotation.JsonProperty
import org.icebergwritercompat.model.SchemaNode
import org.icebergwritercompat.remedy.Remedy

/**
 * A report on one table; `docs/report.md` describes each part.
 *
 * @param table
 *   the table, as written in statements
 * @param location
 *   its folder; `None` where the table does not exist yet, as for the version
 * @param contract
 *   the feature of the contract by which the table is guarded; `None` if it is not guarded
 * @param statement
 *   the statement that would be run, for `would_break`
 */
final case class TableReport(
    kind: ReportKind,
    table: String,
    location: Option[String],
    version: Option[Long],
    timestamp: Option[String],
    profile: String,
    contract: Option[String],
    statement: Option[String],
    facts: Facts,
    columns: Seq[ColumnFact],
    findings: Seq[Finding],
    audit: Option[AuditFact] = None,
    history: Option[HistoryFact] = None,
    plan: Option[PlanFact] = None
) {

  /** The version of this format. */
  @JsonProperty def format: Int = 2

  /** Whether the table has the feature. */
  @JsonProperty def enabled: Boolean = contract.isDefined

  /** Whether the table has the feature, and breaks no rule of it. */
  @JsonProperty def compliant: Boolean =
    enabled && !findings.exists(f => f.severity == Severity.Error && f.mendedVersion.isEmpty)
}

/** The function that made a report. */
sealed abstract class ReportKind(val name: String)

object ReportKind {
  case object Check extends ReportKind("check")
  case object Verify extends ReportKind("verify")
  case object WouldBreak extends ReportKind("would_break")
  case object History extends ReportKind("history")
  case object Plan extends ReportKind("plan")
}

/** General facts about a table. */
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
 *   whether it is supported and in use
 * @param enabled
 *   whether its table property is `true`; `None` if it has no property
 * @param allowed
 *   whether the contract lets a table have it
 */
final case class FeatureFact(
    name: String,
    supported: Boolean,
    active: Boolean,
    enabled: Option[Boolean],
    allowed: Boolean
)

/**
 * How the feature can be switched on.
 *
 * @param exact
 *   whether the data files were examined, not only the log
 * @param typesOnly
 *   whether columns get other types, for which no data file has to be written
 */
final case class EnablingFact(
    verdict: Verdict,
    reason: String,
    filesToRewrite: Long,
    bytesToRewrite: Long,
    exact: Boolean,
    typesOnly: Boolean
)

object EnablingFact {

  /** One commit writes no data file, but gives these columns other types. */
  private[report] def ofTypes(columns: Seq[SchemaNode], exact: Boolean): EnablingFact = {
    val listed = columns.take(Finding.MaxExamples).map(typeChange)
    val more = Option.when(columns.sizeIs > listed.size)(s"${columns.size - listed.size} more")
    EnablingFact(
      Verdict.Rewrite,
      "One commit switches it on, if a rewrite is allowed, and no data file is written: " +
        (listed ++ more).mkString(", ") + ".",
      filesToRewrite = 0,
      bytesToRewrite = 0,
      exact,
      typesOnly = true
    )
  }

  /** What becomes of the type of a byte or short. */
  private[report] def typeChange(column: SchemaNode): String =
    s"${column.sqlPath} ${column.dataType.sql} becomes INT"
}

/** How the feature can be switched on. */
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

/** Which versions were examined. */
final case class HistoryFact(fromVersion: Long, toVersion: Long)

/**
 * The plan to switch the feature on.
 *
 * @param steps
 *   what is done, in this order; empty if the feature is on or there are blockers
 * @param groups
 *   the live files, grouped by what is done with them and why
 * @param typesOnly
 *   whether columns get other types, for which no data file has to be written
 * @param remedies
 *   the remedies of blockers, run by the first step or else by the user
 */
final case class PlanFact(
    mode: PlanMode,
    steps: Seq[StepFact],
    groups: Seq[FileGroupFact],
    filesToRewrite: Long,
    bytesToRewrite: Long,
    typesOnly: Boolean,
    remedies: Seq[Remedy]
)

/** What an upgrade does. */
sealed abstract class PlanMode(val name: String)

object PlanMode {

  /** The feature is on. */
  case object NoChange extends PlanMode("none")

  /** One commit; no data file is written. */
  case object Metadata extends PlanMode("metadata")

  /** Some data files are rewritten before the commit, or it changes types alone. */
  case object Rewrite extends PlanMode("rewrite")

  /** There are blockers. */
  case object Blocked extends PlanMode("blocked")
}

/** One step of a plan; `files` and `bytes` if it is about files. */
final case class StepFact(
    name: String,
    what: String,
    files: Option[Long] = None,
    bytes: Option[Long] = None
)

/**
 * Live files with the same verdict for the same reasons.
 *
 * @param verdict
 *   `keep`, `rewrite`, or `blocked` if a rewrite would not help
 * @param rules
 *   the rules that they would break without a rewrite
 * @param examples
 *   the paths of a few of them
 */
final case class FileGroupFact(
    verdict: String,
    reason: String,
    rules: Seq[String],
    files: Long,
    bytes: Long,
    examples: Seq[String]
)
