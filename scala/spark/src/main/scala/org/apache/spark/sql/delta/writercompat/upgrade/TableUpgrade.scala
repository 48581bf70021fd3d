package org.apache.spark.sql.delta.writercompat.upgrade

import com.google.common.cache.{Cache, CacheBuilder}
import io.delta.exceptions.ConcurrentWriteException
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{Dataset, Encoders, SparkSession}
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.clustering.ClusteringMetadataDomain
import org.apache.spark.sql.delta.writercompat.guard.GuardedTransaction
import org.apache.spark.sql.delta.writercompat.report.{SeenVersion, TableInspector}
import org.apache.spark.sql.functions.{broadcast, col}
import org.icebergwritercompat.contract.{Contract, Lifecycle, Profile, TableState, Violation}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.FileStatistics
import org.icebergwritercompat.remedy.{Alteration, Remedy}
import org.icebergwritercompat.report.{
  AuditFact,
  EnablingFact,
  FileKey,
  FileVerdict,
  Finding,
  PlanMode,
  ReportKind,
  Severity,
  TableReport,
  UpgradePlan,
  UpgradeResult,
  UpgradeWarning
}
import org.icebergwritercompat.upgrade.{Drop, FileReason, FileUpgrade, Renaming, UpgradeRequest}
import org.slf4j.LoggerFactory
import org.apache.spark.sql.delta.writercompat.datafiles.{
  AddFiles,
  DataActionConverter,
  FooterJudge,
  FooterQuestion,
  FooterScan,
  LiveFiles,
  ScannedFile
}
import org.apache.spark.sql.delta.writercompat.read.{
  Copies,
  DeltaTables,
  JobDescription,
  MalformedLog,
  Sessions,
  TableStates
}

import scala.annotation.tailrec
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * Switches the feature on for a table that exists, in one commit. The commit gives columns and live
 * files new physical names; data files that cannot stay are rewritten before it.
 *
 * @param request
 *   what the user allows
 */
final class TableUpgrade(spark: SparkSession, table: DeltaTableV2, request: UpgradeRequest) {

  private val log = LoggerFactory.getLogger(getClass)

  private val inspector = new TableInspector(spark)

  private val name = TableStates.nameOf(table)

  // The contract that a table follows already is none that could be chosen.
  private def forContract(state: TableState): TableState =
    if (state.isEnabled) state
    else state.copy(contract = request.contract.getOrElse(state.contract))

  /** What is to be done, and what stands in the way; nothing is written. */
  def plan(): TableReport = {
    val snapshot = table.update()
    if (isOn(snapshot)) {
      val report = inspector.check(name, None)
      val broken = TableUpgrade.broken(report)
      val fact = if (broken.isEmpty) UpgradePlan.nothing else UpgradePlan.mending(broken)
      report.copy(kind = ReportKind.Plan, plan = Some(fact))
    } else {
      val judged = judge(snapshot, None)
      val state = judged.target.from
      val seen = SeenVersion.of(table, snapshot)
      val files = LiveFiles.of(snapshot, state)
      val plan = planOf(judged)
      val report = inspector.report(ReportKind.Plan, state, seen, files, plan.findings)
      report.copy(
        facts = report.facts.copy(enabling = plan.enabling),
        audit = Some(
          AuditFact(snapshot.numOfFiles, snapshot.numOfFiles, snapshot.sizeInBytes, sampled = false)
        ),
        plan = Some(plan.fact)
      )
    }
  }

  /** What it takes to switch the feature on at a version, by the footers of all files. */
  def enabling(snapshot: Snapshot): FooterQuestion[Vector[FileVerdict], EnablingFact] = {
    val target = Target(snapshot)
    new FooterQuestion[Vector[FileVerdict], EnablingFact](
      target.judge,
      { found =>
        val verdicts = TableUpgrade.known(ExaminedVersion.at(snapshot, target.from))(
          TableUpgrade.sharingReasons(found)
        )
        planOf(CheckedFiles(snapshot, target, verdicts)).enabling
      }
    )
  }

  /** Does what [[plan]] says, or is refused for it. */
  def run(): UpgradeResult = {
    val snapshot = table.update()
    if (isOn(snapshot)) {
      val report = inspector.check(name, None)
      val broken = TableUpgrade.broken(report)
      if (broken.nonEmpty)
        throw IcebergWriterCompatException.enabledButBroken(
          name,
          inspector.stateOf(table, snapshot).contract,
          broken.map(finding => (finding.rule, finding.found, finding.remedy))
        )
      unchanged(snapshot).copy(
        warnings = report.findings
          .filter(_.severity == Severity.Warning)
          .map(UpgradeWarning.of)
      )
    } else {
      val judged = judge(snapshot, None)
      // Before anything is dropped, it must be known that the upgrade works after it.
      val plan = planOf(judged)
      refuse(plan, judged.target.from.contract)
      takeAway(plan.dropped)
      val ready = if (plan.dropped.isEmpty) judged else judge(table.update(), Some(judged))
      commit(ready, Nil, attempts)
    }
  }

  private def takeAway(violations: Seq[Violation]): Unit =
    violations.foreach { violation =>
      try TableUpgrade.run(spark, violation.remedy)
      catch {
        case early: DeltaTableFeatureException if TableUpgrade.isTooEarly(early) =>
          val state = forContract(inspector.stateOf(table, table.update()))
          throw IcebergWriterCompatException.dropLater(
            state,
            violation.rule,
            violation.location.toString,
            request.call(state),
            early
          )
      }
    }

  // How often it is tried again because others have committed since the table was read.
  private val attempts = 10

  @tailrec
  private def commit(judged: CheckedFiles, before: Seq[Written], left: Int): UpgradeResult = {
    refuse(planOf(judged), judged.target.from.contract)
    val usable = before.filter(_.sources.forall(judged.failingFiles))
    val transaction = begin(judged)
    val written = usable ++ rewritten(judged, transaction, usable)
    val committed =
      written
        .map(_.result.folder)
        .foldRight(() => tryCommit(judged, transaction, written)) { (folder, body) => () =>
          RewrittenFiles.orphaning(name, folder)(body())
        }()
    committed match {
      case Some(made)       => result(judged, made, written)
      case None if left > 0 =>
        val snapshot = table.update()
        if (isOn(snapshot)) unchanged(snapshot)
        else {
          val again = judge(snapshot, Some(judged))
          commit(again, if (again.target.sameAs(judged.target)) written else Nil, left - 1)
        }
      case None => throw IcebergWriterCompatException.tooBusy(name, attempts)
    }
  }

  private def begin(judged: CheckedFiles): GuardedTransaction = {
    val transaction =
      table.deltaLog.startTransaction(table.catalogTable, Some(judged.snapshot)) match {
        case guarded: GuardedTransaction => guarded
        case other => throw new IllegalStateException(s"${other.getClass} is not guarded")
      }
    transaction.upgradeTo(judged.target.metadata, judged.target.protocol, judged.entered)
    transaction
  }

  private def rewritten(
      judged: CheckedFiles,
      transaction: GuardedTransaction,
      done: Seq[Written]
  ): Option[Written] = {
    val known = done.flatMap(_.sources).toSet
    val sources = judged.failing.filterNot(verdict => known(verdict.file))
    Option.when(sources.nonEmpty) {
      val files = judged.live(sources)
      Written(
        sources.map(_.file),
        files.map(judged.target.rekeying(_).removeWithTimestamp(dataChange = false)),
        RewrittenFiles.write(spark, transaction, judged.snapshot, files)
      )
    }
  }

  /** A version that was committed, and what failed after the commit. */
  private case class Made(version: Long, warnings: Seq[UpgradeWarning])

  // Delta commits this as the next version, or writes nothing and fails.
  private def tryCommit(
      judged: CheckedFiles,
      transaction: GuardedTransaction,
      written: Seq[Written]
  ): Option[Made] = {
    val snapshot = judged.snapshot
    val target = judged.target
    val actions = target.clustering.iterator ++
      written.iterator.flatMap(_.removed) ++
      written.iterator.flatMap(_.result.added)
    val set = target.metadata.configuration.filterNot { case (key, value) =>
      snapshot.metadata.configuration.get(key).contains(value)
    }
    try
      JobDescription(spark, s"Switching ${judged.target.from.contract.feature} on for $name") {
        val (version, _) = transaction.commitLarge(
          spark,
          actions,
          Some(target.protocol).filter(_ != snapshot.protocol),
          DeltaOperations.SetTableProperties(set),
          Map.empty,
          Map(
            "numRemovedFiles" -> judged.failing.size.toString,
            "numAddedFiles" -> written.map(_.result.added.size).sum.toString,
            "numKeptFiles" -> judged.keptFiles.toString
          )
        )
        Some(Made(version, Nil))
      }
    catch {
      case NonFatal(e) if transaction.isInLog(snapshot.version + 1) =>
        Some(Made(snapshot.version + 1, Seq(TableUpgrade.after("what Delta does after it", e))))
      case lost: ConcurrentWriteException =>
        log.info("Somebody else has committed to {}: {}", name: Any, lost.getMessage: Any)
        None
    }
  }

  private def refuse(plan: UpgradePlan, contract: Contract): Unit = {
    if (plan.blockers.nonEmpty)
      throw IcebergWriterCompatException.upgradeBlocked(
        name,
        contract,
        plan.blockers.map(finding => (finding.rule, finding.found, finding.remedy)),
        plan.remedy
      )
    if (plan.mode == PlanMode.Rewrite && !request.rewrites) {
      val fact = plan.fact
      throw IcebergWriterCompatException.rewriteNeeded(
        name,
        contract,
        plan.findings.filter(_.severity == Severity.Warning).map(_.rule),
        fact.steps.filter(step => Set("widen", "rewrite")(step.name)).map(_.what) ++
          fact.groups.filter(_.verdict == "rewrite").map(g => s"${g.files} file(s): ${g.reason}"),
        if (fact.typesOnly) "types of columns must be changed"
        else
          s"${fact.filesToRewrite} of ${plan.files} data file(s), ${fact.bytesToRewrite} bytes, " +
            "must be rewritten",
        plan.rewriting
      )
    }
  }

  // The commit is made, so what fails from here on is a warning.
  private def result(judged: CheckedFiles, made: Made, written: Seq[Written]): UpgradeResult = {
    val found =
      try Right(if (written.isEmpty) Nil else RewrittenFiles.orphans(table.update()))
      catch { case NonFatal(e) => Left(TableUpgrade.after("the look for folders to clean up", e)) }
    UpgradeResult(
      name,
      judged.target.from.contract.feature,
      changed = true,
      made.version,
      if (written.isEmpty) PlanMode.Metadata else PlanMode.Rewrite,
      judged.failing.size.toLong,
      judged.failing.map(_.size).sum,
      judged.keptFiles,
      found.getOrElse(Nil),
      made.warnings ++ found.left.toOption
    )
  }

  private def unchanged(snapshot: Snapshot): UpgradeResult =
    UpgradeResult(
      name,
      inspector.stateOf(table, snapshot).contract.feature,
      changed = false,
      snapshot.version,
      PlanMode.NoChange,
      filesRewritten = 0,
      bytesRewritten = 0,
      snapshot.numOfFiles,
      orphans = Nil,
      warnings = Nil
    )

  // A table follows one contract.
  private def isOn(snapshot: Snapshot): Boolean = {
    val found = Contracts.of(snapshot.metadata.configuration)
    for (has <- found; asked <- request.contract if asked != has)
      throw IcebergWriterCompatException.wrongOption("contract", asked.feature, Seq(has.feature))
    found.isDefined
  }

  private def planOf(judged: CheckedFiles): UpgradePlan =
    new UpgradePlan(
      judged.target.from,
      judged.target.to,
      judged.target.violations,
      request,
      judged.verdicts,
      judged.snapshot.numOfFiles,
      judged.snapshot.sizeInBytes,
      entersAgain = !judged.target.renaming.isEmpty
    )

  /** What a version of the table is to become. */
  private case class Target(snapshot: Snapshot) {

    val from: TableState =
      forContract(inspector.stateOf(name, snapshot.protocol, snapshot.metadata))

    val metadata: Metadata = UpgradedMetadata.of(
      snapshot.metadata,
      from.contract,
      hasFiles = snapshot.numOfFiles > 0,
      request.drop.flatMap(_.fieldMetadata)
    )

    val protocol: Protocol =
      UpgradedMetadata.protocol(spark, snapshot.protocol, from.contract, metadata)

    val to: TableState =
      inspector
        .stateOf(name, protocol, metadata)
        .copy(lifecycle = Lifecycle.Enabling, asItIs = Some(from))

    val renaming: Renaming = Renaming.of(snapshot.metadata.schema, metadata.schema)

    val rekeying: Rekeying = new Rekeying(renaming)

    val clustering: Option[DomainMetadata] = snapshot.domainMetadata.collectFirst {
      case ClusteringMetadataDomain(ClusteringMetadataDomain(columns), false) =>
        ClusteringMetadataDomain(columns.map(path => renaming.path(path).getOrElse(path)))
          .toDomainMetadata[ClusteringMetadataDomain]
    }

    val violations: Seq[Violation] = {
      val shown = new DataActionConverter(to)
      to.violations.toSeq ++
        clustering.flatMap(shown.of).toSeq.flatMap(to.contract.rules.check(to, _))
    }

    /** Finds the files that cannot stay, and those whose row count the log lacks. */
    def judge: FooterJudge[Vector[FileVerdict]] =
      new VerdictJudge(from.copy(asItIs = None), to.copy(asItIs = None), rekeying)

    def sameAs(other: Target): Boolean =
      metadata == other.metadata && protocol == other.protocol

    /** Whether a file gets the same verdict for both. */
    def hasVerdictsOf(other: Target): Boolean =
      from.schema == other.from.schema && to.schema == other.to.schema &&
        from.mappingMode == other.from.mappingMode &&
        to.partitionColumns == other.to.partitionColumns && to.maxColumnId == other.to.maxColumnId
  }

  /** A version, and its live files that cannot stay or lack a row count. */
  private case class CheckedFiles(snapshot: Snapshot, target: Target, verdicts: Seq[FileVerdict]) {

    /** Files whose row count the log lacks, and files that cannot stay. */
    val (counted, failing) = verdicts.partition(_.stays)

    lazy val failingFiles: Set[FileKey] = failing.iterator.map(_.file).toSet

    def keptFiles: Long = snapshot.numOfFiles - failing.size

    /** The live files that these verdicts are about. */
    def live(verdicts: Seq[FileVerdict]): Seq[AddFile] =
      joined(verdicts, "left_semi").collect().toSeq

    /**
     * The files that stay, but whose log entries change: under new names, or with a row count. They
     * are streamed, so the driver never holds all of them.
     */
    def entered: Iterator[AddFile] =
      if (target.renaming.isEmpty && counted.isEmpty) Iterator.empty
      else {
        val files =
          if (target.renaming.isEmpty) joined(counted, "left_semi")
          else if (failing.isEmpty) snapshot.allFiles
          else joined(failing, "left_anti")
        val rowCounts = counted.flatMap(file => file.rowCount.map(file.file.path -> _)).toMap
        val entering = new Entering(target.rekeying, spark.sparkContext.broadcast(rowCounts))
        files.map(entering)(AddFiles.encoder).toLocalIterator().asScala
      }

    private def joined(verdicts: Seq[FileVerdict], how: String): Dataset[AddFile] = {
      val paths = spark.createDataset(verdicts.map(_.file.path))(Encoders.STRING).toDF("path")
      snapshot.allFiles.join(broadcast(paths), Seq("path"), how).as[AddFile](AddFiles.encoder)
    }
  }

  /** Judges the live files of a version; with an earlier result, only those that are new in it. */
  private def judge(snapshot: Snapshot, earlier: Option[CheckedFiles]): CheckedFiles = {
    val target = Target(snapshot)
    MalformedLog.refusePassedOver(name, snapshot)
    earlier.filter(_.target.hasVerdictsOf(target)) match {
      case None =>
        val found = TableUpgrade.known(ExaminedVersion.at(snapshot, target.from)) {
          verdicts(target, snapshot.allFiles, snapshot.numOfFiles)
        }
        CheckedFiles(snapshot, target, found)
      case Some(seen) =>
        val keys = Seq("path", "deletionVector")
        val now = snapshot.allFiles
        val was = seen.snapshot.allFiles.select(keys.map(col): _*)
        val same = keys.map(key => now(key) <=> was(key)).reduce(_ && _)
        val added = now.join(was, same, "left_anti").as[AddFile](AddFiles.encoder)
        val gone = was
          .join(now, same, "left_anti")
          .select("path")
          .as[String](Encoders.STRING)
          .collect()
          .toSet
        val still = seen.verdicts.filterNot(verdict => gone(verdict.file.path))
        CheckedFiles(snapshot, target, still ++ verdicts(target, added, math.max(added.count(), 1)))
    }
  }

  private def verdicts(target: Target, files: Dataset[AddFile], count: Long): Seq[FileVerdict] = {
    val question = new FooterQuestion[Vector[FileVerdict], Seq[FileVerdict]](
      target.judge,
      TableUpgrade.sharingReasons(_)
    )
    FooterScan.run(spark, name, table.deltaLog, files, count, question)
  }
}

object TableUpgrade {

  private def after(what: String, failure: Throwable): UpgradeWarning = {
    val (text, _) = IcebergWriterCompatException.inOneLine(failure)
    UpgradeWarning.afterCommit(what, text)
  }

  // A plan is mostly followed by the upgrade, sometimes after plans for many other tables.
  private val verdicts: Cache[ExaminedVersion, Seq[FileVerdict]] = CacheBuilder
    .newBuilder()
    .concurrencyLevel(1)
    .weigher((_: ExaminedVersion, found: Seq[FileVerdict]) => found.size + 1)
    .maximumWeight(100000)
    .build()

  // Thousands of files may have the same reasons, each in a list of its own.
  private def sharingReasons(verdicts: Seq[FileVerdict]): Seq[FileVerdict] = {
    val known = mutable.HashMap.empty[Seq[FileReason], Seq[FileReason]]
    verdicts.map(verdict =>
      verdict.copy(reasons = known.getOrElseUpdate(verdict.reasons, verdict.reasons))
    )
  }

  private def known(version: ExaminedVersion)(look: => Seq[FileVerdict]): Seq[FileVerdict] =
    Option(verdicts.getIfPresent(version)).getOrElse {
      val found = look
      verdicts.put(version, found)
      found
    }

  // Nothing but a change of the table itself is run without being asked for.
  private def run(spark: SparkSession, remedy: Remedy): Unit = remedy match {
    case alteration: Alteration => alteration.statements.foreach(Sessions.verbatim(spark, _))
    case other => throw new IllegalStateException(s"an upgrade cannot take away: ${other.text}")
  }

  /** The rules that a table with the feature breaks. */
  private def broken(report: TableReport): Seq[Finding] =
    report.findings.filter(_.severity == Severity.Error)

  private def isTooEarly(error: DeltaTableFeatureException): Boolean = Set(
    "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
    "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
    "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
  ).contains(error.getErrorClass)

  /** The upgrade of a table, given by name or path, as a user asks for it. */
  def of(
      spark: SparkSession,
      table: String,
      mode: String,
      rewrite: Boolean,
      drop: Seq[String],
      contract: Option[String] = None
  ): TableUpgrade = {
    val rewrites = UpgradeRequest.rewrites(mode, rewrite).getOrElse {
      throw IcebergWriterCompatException.wrongOption("mode", mode, UpgradeRequest.modes)
    }
    val dropped = drop.map { name =>
      Drop.all.find(_.name == name).getOrElse {
        throw IcebergWriterCompatException.wrongOption("drop", name, Drop.all.map(_.name))
      }
    }
    val chosen = contract.map { name =>
      Contracts.named(name).getOrElse {
        throw IcebergWriterCompatException
          .wrongOption("contract", name, Contracts.all.map(_.feature))
      }
    }
    new TableUpgrade(
      spark,
      DeltaTables.find(spark, table),
      UpgradeRequest(rewrites, dropped.toSet, chosen)
    )
  }
}

/** The key of a result: a version of a table, whose data files never change. */
private final case class ExaminedVersion(
    folder: String,
    table: String,
    version: Long,
    timestamp: Long,
    profile: Profile,
    contract: String
)

private object ExaminedVersion {

  def at(snapshot: Snapshot, table: TableState): ExaminedVersion = ExaminedVersion(
    snapshot.deltaLog.dataPath.toString,
    snapshot.metadata.id,
    snapshot.version,
    snapshot.timestamp,
    table.profile,
    table.contract.feature
  )
}

/** Rewritten files, and the files that they replace. */
private final case class Written(
    sources: Seq[FileKey],
    removed: Seq[RemoveFile],
    result: RewrittenFiles
)

/** Gives the log entry of a live file other physical names. */
private[writercompat] final class Rekeying(renaming: Renaming)
    extends (AddFile => AddFile)
    with Serializable {

  override def apply(file: AddFile): AddFile =
    Copies.of(values(file), "stats" -> renaming.statistics(file.stats), "dataChange" -> false)

  /** The file with its partition values under the new names. */
  def values(file: AddFile): AddFile =
    if (renaming.isEmpty) file
    else
      Copies.of(
        file,
        "partitionValues" -> Option(file.partitionValues).map(renaming.partitionValues).orNull
      )

  /** What the rules ask of its statistics under the new names, without making their text. */
  def statistics(file: AddFile, renamed: TableState): Option[FileStatistics] =
    renaming.parsed(file.stats, renamed.physicalNames)
}

/** Gives the log entry of a live file other physical names, and the row count that it lacks. */
private final class Entering(rekeying: Rekeying, rowCounts: Broadcast[Map[String, Long]])
    extends (AddFile => AddFile)
    with Serializable {

  override def apply(file: AddFile): AddFile =
    rowCounts.value
      .get(file.path)
      .foldLeft(rekeying(file))(Entering.counted)
}

private object Entering {

  def counted(file: AddFile, rows: Long): AddFile =
    Copies.of(file, "stats" -> FileStatistics.withRowCount(file.stats, rows))
}

/** Tells which files cannot stay, or need a row count in the log. */
private final class VerdictJudge(from: TableState, to: TableState, rekeying: Rekeying)
    extends FooterJudge[Vector[FileVerdict]] {

  @transient private lazy val upgrade = new FileUpgrade(from, to)
  @transient private lazy val shown = new DataActionConverter(to)

  override def none: Vector[FileVerdict] = Vector.empty

  override def plus(some: Vector[FileVerdict], more: Vector[FileVerdict]): Vector[FileVerdict] =
    some ++ more

  override def judge(scanned: ScannedFile): Vector[FileVerdict] = {
    val file = scanned.logged
    val inLog = rekeying.statistics(file, to)
    val missing =
      if (inLog.exists(_.rowCount.isDefined)) None else scanned.footer.toOption.map(_.rowCount)
    val statistics = missing.fold(inLog)(FileStatistics.parsedWithRowCount(file.stats, inLog, _))
    val reasons =
      upgrade.reasons(shown.ofLive(rekeying.values(file), statistics), file.size, scanned.footer)
    if (reasons.isEmpty && missing.isEmpty) none
    else {
      val vector = Option(file.deletionVector).map(_.uniqueId)
      Vector(FileVerdict(FileKey(file.path, vector), file.size, reasons, missing))
    }
  }
}
