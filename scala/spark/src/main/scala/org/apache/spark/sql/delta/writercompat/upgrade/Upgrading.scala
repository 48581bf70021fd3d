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
import org.apache.spark.util.SerializableConfiguration
import org.icebergwritercompat.contract.{Contract, Moment, Profile, TableState, Violation}
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
  UpgradeResult
}
import org.icebergwritercompat.upgrade.{Drop, FileReason, FileUpgrade, Renaming, UpgradeRequest}
import org.slf4j.LoggerFactory
import org.apache.spark.sql.delta.writercompat.datafiles.{
  AddFiles,
  DataActions,
  DataFileAudit,
  LiveFiles
}
import org.apache.spark.sql.delta.writercompat.read.{
  Copies,
  DeltaTables,
  Described,
  Footers,
  MalformedLog,
  Sessions,
  TableStates
}

import scala.annotation.tailrec
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * Switches the feature on for a table that exists, in one commit: the log is laid out anew, and
 * data files that cannot stay are written anew before it.
 *
 * @param request
 *   what the user lets it do
 */
final class Upgrading(spark: SparkSession, table: DeltaTableV2, request: UpgradeRequest) {

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
      val broken = Upgrading.broken(report)
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

  /** What it takes at a version of the table, after a look at all its files. */
  def enabling(snapshot: Snapshot): EnablingFact = planOf(judge(snapshot, None)).enabling

  /** Does what [[plan]] tells, or refuses with it. */
  def run(): UpgradeResult = {
    val snapshot = table.update()
    if (isOn(snapshot)) {
      val report = inspector.check(name, None)
      val broken = Upgrading.broken(report)
      if (broken.nonEmpty)
        throw IcebergWriterCompatException.enabledButBroken(
          name,
          inspector.stateOf(table, snapshot).contract,
          broken.map(finding => (finding.rule, finding.found, finding.remedy))
        )
      unchanged(snapshot).copy(
        warnings = report.findings
          .filter(_.severity == Severity.Warning)
          .map(finding =>
            s"${finding.rule}: ${finding.found}" +
              finding.remedy.sql.map(statement => s" ${finding.remedy.verb}: $statement").mkString
          )
      )
    } else {
      val judged = judge(snapshot, None)
      // Nothing is taken away for an upgrade that cannot be.
      val plan = planOf(judged)
      refuse(plan, judged.target.from.contract)
      takeAway(plan.dropped)
      val ready = if (plan.dropped.isEmpty) judged else judge(table.update(), Some(judged))
      commit(ready, Nil, attempts)
    }
  }

  private def takeAway(violations: Seq[Violation]): Unit =
    violations.foreach { violation =>
      try Upgrading.run(spark, violation.remedy)
      catch {
        case early: DeltaTableFeatureException if Upgrading.isTooEarly(early) =>
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

  // How often others may commit between a look at the table and the commit.
  private val attempts = 10

  @tailrec
  private def commit(judged: Judged, before: Seq[Written], left: Int): UpgradeResult = {
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

  private def begin(judged: Judged): GuardedTransaction = {
    val transaction =
      table.deltaLog.startTransaction(table.catalogTable, Some(judged.snapshot)) match {
        case guarded: GuardedTransaction => guarded
        case other => throw new IllegalStateException(s"${other.getClass} is not guarded")
      }
    transaction.upgradeTo(judged.target.metadata, judged.target.protocol)
    transaction
  }

  private def rewritten(
      judged: Judged,
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

  /** A version that was made, and what failed afterwards. */
  private case class Made(version: Long, warnings: Seq[String])

  // Delta makes this commit the next version or none at all; then nothing has been written.
  private def tryCommit(
      judged: Judged,
      transaction: GuardedTransaction,
      written: Seq[Written]
  ): Option[Made] = {
    val snapshot = judged.snapshot
    val target = judged.target
    val actions = target.clustering.iterator ++
      written.iterator.flatMap(_.removed) ++
      written.iterator.flatMap(_.result.added) ++
      judged.entered
    val set = target.metadata.configuration.filterNot { case (key, value) =>
      snapshot.metadata.configuration.get(key).contains(value)
    }
    try
      Described(spark, s"Switching ${judged.target.from.contract.feature} on for $name") {
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
        Some(Made(snapshot.version + 1, Seq(Upgrading.after("what Delta does after it", e))))
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
        s"${fact.filesToRewrite} of ${plan.files} data file(s), ${fact.bytesToRewrite} bytes",
        plan.rewriting
      )
    }
  }

  // The commit stands, so nothing of this is an error any more.
  private def result(judged: Judged, made: Made, written: Seq[Written]): UpgradeResult = {
    val found =
      try Right(if (written.isEmpty) Nil else RewrittenFiles.orphans(table.update()))
      catch { case NonFatal(e) => Left(Upgrading.after("the look for folders to clean up", e)) }
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

  private def planOf(judged: Judged): UpgradePlan =
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

    // Without files, a change of types is nothing that an upgrade has to make unasked.
    val metadata: Metadata = UpgradedMetadata.of(
      snapshot.metadata,
      from.contract,
      widening = snapshot.numOfFiles > 0 || request.rewrites,
      request.drop.flatMap(_.fieldMetadata)
    )

    val protocol: Protocol =
      UpgradedMetadata.protocol(spark, snapshot.protocol, from.contract, metadata)

    val to: TableState =
      inspector
        .stateOf(name, protocol, metadata)
        .copy(moment = Moment.Enabling, asItIs = Some(from))

    val renaming: Renaming = Renaming.of(snapshot.metadata.schema, metadata.schema)

    val rekeying: Rekeying = new Rekeying(renaming)

    val clustering: Option[DomainMetadata] = snapshot.domainMetadata.collectFirst {
      case ClusteringMetadataDomain(ClusteringMetadataDomain(columns), false) =>
        ClusteringMetadataDomain(columns.map(path => renaming.path(path).getOrElse(path)))
          .toDomainMetadata[ClusteringMetadataDomain]
    }

    val violations: Seq[Violation] = {
      val shown = new DataActions(to)
      to.violations.toSeq ++
        clustering.flatMap(shown.of).toSeq.flatMap(to.contract.rules.check(to, _))
    }

    def sameAs(other: Target): Boolean =
      metadata == other.metadata && protocol == other.protocol

    /** Whether files are judged alike for both. */
    def judgesAs(other: Target): Boolean =
      from.schema == other.from.schema && to.schema == other.to.schema &&
        from.mappingMode == other.from.mappingMode &&
        to.partitionColumns == other.to.partitionColumns && to.maxColumnId == other.to.maxColumnId
  }

  /** Which live files of a version are not in the log as they should be. */
  private case class Judged(snapshot: Snapshot, target: Target, verdicts: Seq[FileVerdict]) {

    /** Those of which the log only lacks the row count, and those that cannot stay. */
    val (counted, failing) = verdicts.partition(_.stays)

    lazy val failingFiles: Set[FileKey] = failing.iterator.map(_.file).toSet

    def keptFiles: Long = snapshot.numOfFiles - failing.size

    /** The live files that these verdicts are about. */
    def live(verdicts: Seq[FileVerdict]): Seq[AddFile] =
      joined(verdicts, "left_semi").collect().toSeq

    /**
     * The other live files that the log is to have otherwise than it has them; never all of them at
     * once.
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

  /** Looks at the live files of a version; at those only that an earlier look has not seen. */
  private def judge(snapshot: Snapshot, earlier: Option[Judged]): Judged = {
    val target = Target(snapshot)
    MalformedLog.refusePassedOver(name, snapshot)
    earlier.filter(_.target.judgesAs(target)) match {
      case None =>
        val found = Upgrading.known(Looked.at(snapshot, target.from)) {
          verdicts(target, snapshot.allFiles, snapshot.numOfFiles)
        }
        Judged(snapshot, target, found)
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
        Judged(snapshot, target, still ++ verdicts(target, added, math.max(added.count(), 1)))
    }
  }

  private def verdicts(target: Target, files: Dataset[AddFile], count: Long): Seq[FileVerdict] =
    if (count == 0) Nil
    else
      Described(spark, s"Reading the footers of $name") {
        val configuration = spark.sparkContext
          .broadcast(new SerializableConfiguration(table.deltaLog.newDeltaHadoopConf()))
        val task = new VerdictTask(
          target.from,
          target.to,
          target.rekeying,
          table.deltaLog.dataPath.toString,
          configuration
        )
        val known = mutable.HashMap.empty[Seq[FileReason], Seq[FileReason]]
        files
          .repartition(DataFileAudit.tasks(spark, count))
          .mapPartitions(task)(Encoders.product[FileVerdict])
          .collect()
          .toSeq
          // Thousands of files may have the same reasons.
          .map(verdict =>
            verdict.copy(reasons = known.getOrElseUpdate(verdict.reasons, verdict.reasons))
          )
      }
}

object Upgrading {

  private def after(what: String, failure: Throwable): String = {
    val (text, _) = IcebergWriterCompatException.inOneLine(failure)
    s"The commit is made, but $what failed: $text"
  }

  // Whoever plans runs next, and many tables are all planned before the first is run.
  private val verdicts: Cache[Looked, Seq[FileVerdict]] = CacheBuilder
    .newBuilder()
    .concurrencyLevel(1)
    .weigher((_: Looked, found: Seq[FileVerdict]) => found.size + 1)
    .maximumWeight(100000)
    .build()

  private def known(version: Looked)(look: => Seq[FileVerdict]): Seq[FileVerdict] =
    Option(verdicts.getIfPresent(version)).getOrElse {
      val found = look
      verdicts.put(version, found)
      found
    }

  /** What a table with the feature breaks. */
  // Nothing but a change of the table itself is run unasked.
  private def run(spark: SparkSession, remedy: Remedy): Unit = remedy match {
    case alteration: Alteration => alteration.statements.foreach(Sessions.verbatim(spark, _))
    case other => throw new IllegalStateException(s"an upgrade cannot take away: ${other.text}")
  }

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
  ): Upgrading = {
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
    new Upgrading(
      spark,
      DeltaTables.find(spark, table),
      UpgradeRequest(rewrites, dropped.toSet, chosen)
    )
  }
}

/** A version of a table whose files were looked at; data files never change. */
private final case class Looked(
    folder: String,
    table: String,
    version: Long,
    timestamp: Long,
    profile: Profile,
    contract: String
)

private object Looked {

  def at(snapshot: Snapshot, table: TableState): Looked = Looked(
    snapshot.deltaLog.dataPath.toString,
    snapshot.metadata.id,
    snapshot.version,
    snapshot.timestamp,
    table.profile,
    table.contract.feature
  )
}

/** Files written anew, and those they take the place of. */
private final case class Written(
    sources: Seq[FileKey],
    removed: Seq[RemoveFile],
    result: RewrittenFiles
)

/** Enters a live file again under other physical names. */
private[writercompat] final class Rekeying(renaming: Renaming)
    extends (AddFile => AddFile)
    with Serializable {

  override def apply(file: AddFile): AddFile = Copies.of(
    file,
    "partitionValues" -> Option(file.partitionValues).map(renaming.partitionValues).orNull,
    "stats" -> renaming.statistics(file.stats),
    "dataChange" -> false
  )
}

/** Enters a file with the number of its rows, if the log does not tell. */
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

/** Reads the footers of some files on an executor, and tells of those that cannot stay. */
private final class VerdictTask(
    from: TableState,
    to: TableState,
    rekeying: Rekeying,
    folder: String,
    configuration: Broadcast[SerializableConfiguration]
) extends (Iterator[AddFile] => Iterator[FileVerdict])
    with Serializable {

  override def apply(files: Iterator[AddFile]): Iterator[FileVerdict] = {
    val upgrade = new FileUpgrade(from, to)
    val shown = new DataActions(to)
    files.flatMap { file =>
      val footer = Footers.read(folder, file.path, configuration.value.value)
      val entered = rekeying(file)
      val logged = shown.of(entered)
      val rowCount = footer.toOption.map(_.rowCount).filter { _ =>
        logged.statistics.forall(_.rowCount.isEmpty)
      }
      val added = rowCount.foldLeft(logged) { (added, rows) =>
        added.copy(statistics = shown.statistics(Entering.counted(entered, rows)))
      }
      val reasons = upgrade.reasons(added, file.size, footer)
      Option.when(reasons.nonEmpty || rowCount.nonEmpty) {
        val vector = Option(file.deletionVector).map(_.uniqueId)
        FileVerdict(FileKey(file.path, vector), file.size, reasons, rowCount)
      }
    }
  }
}
