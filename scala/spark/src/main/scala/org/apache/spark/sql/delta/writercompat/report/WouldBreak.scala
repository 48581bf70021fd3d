package org.apache.spark.sql.delta.writercompat.report

import org.apache.hadoop.fs.Path
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{
  ResolvedIdentifier,
  UnresolvedIdentifier,
  UnresolvedTable
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.connector.catalog.CatalogV2Util
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.delta.writercompat.guard.{Enforcement, Intended}
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.contract.{ChangeKind, TableChange, TableState, Violation}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.{Door, Together}
import org.icebergwritercompat.report.{Finding, ReportKind, Severity, TableReport}
import org.apache.spark.sql.delta.writercompat.datafiles.LiveFiles
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, PhysicalNames}

import java.util.Locale
import scala.util.Try

/** The current state of a table. */
private final case class Existing(table: DeltaTableV2, snapshot: Snapshot, state: TableState)

/** Reports the rules that a statement or another schema would break; changes nothing. */
final class WouldBreak(spark: SparkSession) {

  private val inspector = new TableInspector(spark)

  /** The report on an ALTER, CREATE or REPLACE statement. */
  def statement(text: String): TableReport = {
    val plan = spark.sessionState.sqlParser.parsePlan(text)
    inPlace(plan).fold(carriedOut(text, plan)) { table =>
      unchanged(table, Nil).copy(statement = Some(text))
    }
  }

  private def carriedOut(text: String, statement: LogicalPlan): TableReport = {
    val report = statement match {
      case drop: AlterTableDropFeature =>
        withoutFeature(existing(drop.table), drop.featureName, refusedAtOnce(drop))
      case AlterTableAddConstraint(table, name, expression) =>
        val key = WriterCompat.ConstraintPrefix + name
        withProperties(existing(table), Map(key -> expression))
      // It changes the catalog, and makes no commit at which a dry run could end.
      case _: SetTableLocation => throw IcebergWriterCompatException.statementNotSupported(text)
      case plan @ (_: AlterTableCommand | _: SetTableProperties | _: UnsetTableProperties) =>
        // A table of another format would be changed, as a dry run ends at a commit of Delta.
        existing(plan)
        dryRun(plan)
      case create: CreateTable         => made(create, create.tableSpec)
      case replace: ReplaceTable       => made(replace, replace.tableSpec)
      case create: CreateTableAsSelect =>
        made(
          CreateTable(
            create.name,
            columnsOf(create.query),
            create.partitioning,
            create.tableSpec,
            create.ignoreIfExists
          ),
          create.tableSpec
        )
      case replace: ReplaceTableAsSelect =>
        made(
          ReplaceTable(
            replace.name,
            columnsOf(replace.query),
            replace.partitioning,
            replace.tableSpec,
            replace.orCreate
          ),
          replace.tableSpec
        )
      case _ => throw IcebergWriterCompatException.statementNotSupported(text)
    }
    val door = Some(Door.Sql(text))
    val remedies = report.findings.map(_.remedy)
    // One remedy fixes all violations that can be fixed in the statement.
    val findings = report.findings.map { finding =>
      if (finding.remedy.changes.isEmpty) finding
      else finding.copy(remedy = Together.of(finding.remedy +: remedies, door))
    }
    report.copy(statement = Some(text), findings = findings)
  }

  /** The table of a statement, or the statement if the table is unknown. */
  def tableIn(text: String): String =
    Try(nameIn(spark.sessionState.sqlParser.parsePlan(text))).toOption
      .filter(_.nonEmpty)
      .getOrElse(text)

  /** The report on the table with these columns, matched by name. */
  def schema(name: String, schema: StructType): TableReport = {
    val before = existing(DeltaTables.find(spark, name))
    val metadata = before.snapshot.metadata
    val asked = metadata.copy(schemaString = sameColumns(before.state, schema).json)
    val withIds =
      if (metadata.columnMappingMode == NoMapping) asked
      else
        PhysicalNames.followIds(
          DeltaColumnMapping.assignColumnIdAndPhysicalName(
            newMetadata = asked,
            oldMetadata = metadata,
            isChangingModeOnExistingTable = false,
            isOverwritingSchema = false
          ),
          settled = PhysicalNames.idsOf(metadata.schema)
        )
    val protocol = Protocol
      .upgradeProtocolFromMetadataForExistingTable(spark, withIds, before.snapshot.protocol)
      .getOrElse(before.snapshot.protocol)
    changed(before, protocol, withIds, ChangeKind.Ordinary)
  }

  /** The schema with the ids of the table for fields with the same path, whatever their type. */
  private def sameColumns(before: TableState, schema: StructType): StructType = {
    def lower(path: Seq[String]) = path.map(_.toLowerCase(Locale.ROOT))
    val known = before.nodes.filter(_.isField).map(node => lower(node.path) -> node.metadata).toMap
    SchemaMergingUtils.transformColumns(DeltaColumnMapping.dropColumnMappingMetadata(schema)) {
      (path, field, _) =>
        known.get(lower(path :+ field.name)).fold(field)(m => field.copy(metadata = m))
    }
  }

  private def existing(table: DeltaTableV2): Existing = {
    val snapshot = table.update()
    Existing(table, snapshot, inspector.stateOf(table, snapshot))
  }

  private def existing(plan: LogicalPlan): Existing = existing(
    DeltaTables.find(spark, nameIn(plan))
  )

  private def nameIn(plan: LogicalPlan): String =
    plan
      .collectFirst {
        case table: UnresolvedTable           => table.multipartIdentifier
        case identifier: UnresolvedIdentifier => identifier.nameParts
      }
      .fold("")(_.map(quoteIfNeeded).mkString("."))

  private def columnsOf(query: LogicalPlan): Seq[ColumnDefinition] = {
    val schema = spark.sessionState.executePlan(query).analyzed.schema.asNullable
    DeltaColumnMapping
      .dropColumnMappingMetadata(schema)
      .map(ColumnDefinition.fromV1Column(_, spark.sessionState.sqlParser))
  }

  private def withProperties(before: Existing, added: Map[String, String]): TableReport = {
    val metadata = before.snapshot.metadata
    changed(
      before,
      before.snapshot.protocol,
      metadata.copy(configuration = metadata.configuration ++ added),
      ChangeKind.Ordinary
    )
  }

  // For some features Delta rewrites files before the commit that drops them.
  private def withoutFeature(
      before: Existing,
      feature: String,
      refused: Seq[Violation]
  ): TableReport = {
    val snapshot = before.snapshot
    val protocol = snapshot.protocol
    val left = protocol.copy(
      readerFeatures = protocol.readerFeatures.map(_ - feature),
      writerFeatures = protocol.writerFeatures.map(_ - feature)
    )
    val metadata =
      Contracts.named(feature).fold(snapshot.metadata) { contract =>
        snapshot.metadata
          .copy(configuration = snapshot.metadata.configuration - contract.property)
      }
    changed(before, left, metadata, ChangeKind.DroppingFeature, refused)
  }

  /** The violations for which the statement is refused before it runs. */
  private def refusedAtOnce(plan: LogicalPlan): Seq[Violation] =
    Enforcement(spark.sessionState.executePlan(plan).assertAnalyzed()).violations

  /** The findings if an existing table is changed to this state. */
  private def changed(
      before: Existing,
      protocol: Protocol,
      metadata: Metadata,
      kind: ChangeKind,
      refused: Seq[Violation] = Nil
  ): TableReport = {
    val state = stateAfter(before.state, protocol, metadata)
    val files = LiveFiles.of(before.snapshot, before.state).copy(violations = Nil)
    val stepFound =
      if (isEnabled(before.state) && isEnabled(state))
        state.contract.rules.check(TableChange(before.state, state, kind)).toSeq
      else Nil
    inspector.report(
      ReportKind.WouldBreak,
      state,
      SeenVersion.of(before.table, before.snapshot).copy(protocol = protocol, metadata = metadata),
      files,
      inspector.findings(state, files, refused ++ stepFound)
    )
  }

  private def stateAfter(before: TableState, protocol: Protocol, metadata: Metadata): TableState =
    inspector
      .stateOf(before.name, protocol, metadata)
      .copy(previous = Option.when(isEnabled(before))(before))

  private def isEnabled(state: TableState): Boolean = Contracts.isEnabled(state.properties)

  /** The report on a statement that makes a table. */
  private def made(plan: LogicalPlan, spec: TableSpecBase): TableReport = {
    requireDelta(plan, spec)
    dryRun(plan)
  }

  // Another table than one of Delta would be made, as a dry run ends at a commit of Delta.
  private def requireDelta(plan: LogicalPlan, spec: TableSpecBase): Unit = {
    val format = spec.provider.getOrElse(spark.sessionState.conf.defaultDataSourceName)
    val name = nameIn(plan)
    if (!format.equalsIgnoreCase("delta") || !isInCatalogOfDelta(name))
      throw IcebergWriterCompatException.notDelta(name)
  }

  /** The Delta table that is there already, where a CREATE would make no commit to stop at. */
  private def inPlace(plan: LogicalPlan): Option[Existing] = plan match {
    case create: CreateTable         => inPlace(create, create.tableSpec, create.ignoreIfExists)
    case create: CreateTableAsSelect =>
      inPlace(create, create.tableSpec, create.ignoreIfExists)
    case _ => None
  }

  private def inPlace(
      plan: LogicalPlan,
      spec: TableSpecBase,
      ignoreIfExists: Boolean
  ): Option[Existing] = {
    requireDelta(plan, spec)
    val catalog = spark.sessionState.catalog
    val parts = DeltaTables.nameParts(nameIn(plan))
    val table = catalog.qualifyIdentifier(
      TableIdentifier(parts.last, parts.dropRight(1).lastOption)
    )
    if (Try(catalog.tableExists(table)).getOrElse(false))
      Option.when(ignoreIfExists)(existing(plan))
    else {
      def ofSchema = Try(new Path(catalog.getDatabaseMetadata(table.database.get).locationUri))
      val folders = spec.location match {
        case Some(folder) =>
          new Path(DeltaTables.absolute(spark, folder)) +:
            ofSchema.map(new Path(_, folder)).toOption.toSeq
        case None => Try(new Path(catalog.defaultTablePath(table))).toOption.toSeq
      }
      folders
        .find(DeltaTableUtils.isDeltaTable(spark, _))
        .map(folder => existing(DeltaTables.find(spark, folder.toString)))
    }
  }

  private def isInCatalogOfDelta(name: String): Boolean = {
    val identifier = UnresolvedIdentifier(DeltaTables.nameParts(name))
    spark.sessionState.executePlan(identifier).analyzed match {
      case ResolvedIdentifier(catalog, _) =>
        CatalogV2Util.isSessionCatalog(catalog) ||
        Iterator
          .iterate[Class[_]](catalog.getClass)(_.getSuperclass)
          .takeWhile(_ != null)
          .exists(_.getName.startsWith("org.apache.spark.sql.delta.catalog."))
      case _ => false
    }
  }

  private def dryRun(plan: LogicalPlan): TableReport = {
    val outcome = Enforcement(spark.sessionState.executePlan(plan).assertCommandExecuted())
    (outcome.intended, outcome.failure) match {
      case (Some(intended), _)                           => reached(intended, outcome.violations)
      case (None, Some(e)) if outcome.violations.isEmpty => failed(plan, e)
      case _ => unchanged(existing(plan), outcome.violations)
    }
  }

  /** The statement would make a commit. */
  private def reached(intended: Intended, violations: Seq[Violation]): TableReport = {
    val snapshot = intended.snapshot
    val isNew = snapshot.version < 0
    val before =
      Option.unless(isNew)(inspector.stateOf(intended.table, snapshot.protocol, snapshot.metadata))
    val state = before.fold(
      inspector.stateOf(intended.table, intended.protocol, intended.metadata)
    )(stateAfter(_, intended.protocol, intended.metadata))
    val files =
      if (isNew || intended.replacing) LiveFiles.none
      else LiveFiles.of(snapshot, before.getOrElse(state)).copy(violations = Nil)
    val judged = before.exists(isEnabled) || isEnabled(state)
    val findings =
      if (judged) violations.map(Finding.of(state, _, Severity.Error))
      else inspector.findings(state, files, Nil)
    inspector.report(
      ReportKind.WouldBreak,
      state,
      SeenVersion(
        Some(snapshot.deltaLog.dataPath.toString),
        Option.unless(isNew)(snapshot.version),
        Option.unless(isNew)(snapshot.timestamp),
        intended.protocol,
        intended.metadata,
        Nil
      ),
      files,
      findings
    )
  }

  /** The statement would make no commit, so the table would not change. */
  private def unchanged(table: Existing, violations: Seq[Violation]): TableReport = {
    val files = LiveFiles.of(table.snapshot, table.state)
    val refusals = violations.map(Finding.of(table.state, _, Severity.Error))
    inspector.report(
      ReportKind.WouldBreak,
      table.state,
      SeenVersion.of(table.table, table.snapshot),
      files,
      refusals ++ inspector.findings(table.state, files, Nil)
    )
  }

  // Only errors of Delta about an existing table are findings.
  private def failed(plan: LogicalPlan, failure: Throwable): TableReport = failure match {
    case e: SparkThrowable if Option(e.getCondition).exists(_.startsWith("DELTA_")) =>
      val table = Try(existing(plan)).getOrElse(throw failure)
      val report = unchanged(table, Nil)
      report.copy(findings = Finding.refusedByDelta(failure.getMessage) +: report.findings)
    case e => throw e
  }
}
