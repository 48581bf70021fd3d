package org.apache.spark.sql.delta.writercompat.report

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions._
import org.icebergwritercompat.contract.{
  ChangeKind,
  ChangeRule,
  Fix,
  Rule,
  TableChange,
  TableRule,
  TableState,
  Violation
}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.{
  Finding,
  HistoryFact,
  Place,
  ReportKind,
  Severity,
  TableReport
}
import org.apache.spark.sql.delta.writercompat.datafiles.{DataActionConverter, LiveFiles}
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, TableStates}
import org.icebergwritercompat.iceberg.source.FileSystemsInReach

import java.time.Instant
import scala.collection.mutable

/** The commit of a version. */
private final case class When(version: Long, timestamp: Option[String], operation: Option[String])

/** Finds, for each rule, the version of a table that first broke it. */
final class TableHistory(spark: SparkSession) {

  private val inspector = new TableInspector(spark)

  /** The report on all versions that are still in the log. */
  def of(name: String): TableReport = {
    val table = DeltaTables.find(spark, name)
    val newest = table.update()
    val earliest = table.deltaLog.history.getEarliestRecreatableCommit
    val walk = new Walk(TableStates.nameOf(table))
    if (earliest > 0)
      walk.begin(table.deltaLog.getSnapshotAt(earliest, catalogTableOpt = table.catalogTable))
    table.deltaLog
      .getChanges(
        if (earliest > 0) earliest + 1 else 0,
        newest.version,
        catalogTableOpt = table.catalogTable,
        failOnDataLoss = true
      )
      .foreach { case (version, actions) => walk.commit(version, actions) }
    val state = inspector.stateOf(table, newest)
    val files = LiveFiles.of(newest, state)
    inspector
      .report(
        ReportKind.History,
        state,
        SeenVersion.of(table, newest),
        files,
        inspector.findings(state, files, Nil)
      )
      .copy(
        findings = walk.findings,
        history = Some(HistoryFact(earliest, newest.version))
      )
  }

  private final class Walk(name: String) {

    private type Key = (Rule, Place)

    private val found = mutable.LinkedHashMap.empty[(Key, Long), Finding]
    private val open = mutable.LinkedHashMap.empty[Key, Long]
    private val brokenFiles = mutable.HashMap.empty[Key, mutable.HashSet[String]]
    private var protocol = Protocol()
    private var metadata = Metadata()
    private var state: Option[TableState] = None

    // What a step has broken stays broken in the log; only a new table begins without it.
    def findings: Seq[Finding] = found.toSeq.map {
      case (((_: ChangeRule, _), _), finding) if finding.mendedVersion.isEmpty =>
        state.fold(finding)(now => finding.copy(remedy = Fix.copyInto(now)))
      case (_, finding) => finding
    }

    /** Reads the first version in the log as the state after all earlier ones. */
    def begin(snapshot: Snapshot): Unit = {
      val commit = When(
        snapshot.version,
        Some(Instant.ofEpochMilli(snapshot.timestamp).toString),
        operation = None
      )
      settle(commit, Some(snapshot.protocol), Some(snapshot.metadata), ChangeKind.Ordinary)
      state.foreach { table =>
        LiveFiles.of(snapshot, table).violations.foreach { broken =>
          val key = (broken.violation.rule, Place.Files)
          recordViolation(commit, table, key, broken.violation)
          found.updateWith((key, commit.version)) {
            _.map(_.copy(files = Some(broken.files), examples = broken.examples))
          }
        }
      }
    }

    def commit(version: Long, actions: Seq[Action]): Unit = {
      val info = actions.collectFirst { case info: CommitInfo => info }
      val when = When(
        version,
        info.map(i => Instant.ofEpochMilli(i.getTimestamp).toString),
        info.map(_.operation)
      )
      settle(
        when,
        actions.collectFirst { case p: Protocol => p },
        actions.collectFirst { case m: Metadata => m },
        info.fold[ChangeKind](ChangeKind.Ordinary)(kind)
      )
      state.foreach(table => checkActions(when, table, actions))
    }

    private def settle(
        when: When,
        newProtocol: Option[Protocol],
        newMetadata: Option[Metadata],
        kind: ChangeKind
    ): Unit = if (newProtocol.isDefined || newMetadata.isDefined) {
      newProtocol.foreach(protocol = _)
      newMetadata.foreach(metadata = _)
      val before = state
      val after = inspector.stateOf(name, protocol, metadata)
      state = Some(after)
      val violations =
        after.violations.map(v => (v.rule, Place.of(v.location)) -> v).toSeq
      markFixed(when, except = violations.map(_._1).toSet)
      violations.foreach { case (key, violation) => recordViolation(when, after, key, violation) }
      before.filter(b => isOn(b) && isOn(after)).foreach { was =>
        after.contract.rules.check(TableChange(was, after, kind)).foreach { violation =>
          recordViolation(when, after, (violation.rule, Place.of(violation.location)), violation)
        }
      }
    }

    private def checkActions(when: When, table: TableState, actions: Seq[Action]): Unit = {
      val shown =
        new DataActionConverter(table, new FileSystemsInReach(spark.sessionState.newHadoopConf()))
      for {
        action <- actions
        asked <- shown.of(action)
        violation <- table.contract.rules.check(table, asked)
      } {
        val key = (
          violation.rule,
          violation.location match {
            case _: Location.File => Place.Files
            case other            => Place.of(other)
          }
        )
        recordViolation(when, table, key, violation)
        violation.location match {
          case Location.File(path) =>
            val paths = brokenFiles.getOrElseUpdate(key, mutable.HashSet.empty)
            paths += path
            open.get(key).foreach { first =>
              found.updateWith((key, first)) {
                _.map { finding =>
                  finding.copy(
                    files = Some(finding.files.getOrElse(0L) + 1),
                    examples = (finding.examples :+ path).take(Finding.MaxExamples)
                  )
                }
              }
            }
          case _ =>
        }
      }
      val removed = actions.collect { case remove: RemoveFile => remove.path }
      if (removed.nonEmpty) brokenFiles.foreach { case (key, paths) =>
        paths --= removed
        if (paths.isEmpty) close(when, key)
      }
    }

    private def recordViolation(
        when: When,
        table: TableState,
        key: Key,
        violation: Violation
    ): Unit = {
      val finding = inspector.judgement(table, LiveFiles.none.copy(files = 1)).finding(violation)
      if (finding.severity != Severity.Info && !open.contains(key)) {
        open(key) = when.version
        found((key, when.version)) = finding
          .copy(
            place = key._2,
            firstVersion = Some(when.version),
            firstTimestamp = when.timestamp,
            operation = when.operation
          )
      }
    }

    // A violation of a change remains; a violation of a state can be fixed by a later version.
    private def markFixed(when: When, except: Set[Key]): Unit =
      open.keys.toSeq
        .filter { case key @ (rule, _) => rule.isInstanceOf[TableRule] && !except(key) }
        .foreach(close(when, _))

    private def close(when: When, key: Key): Unit =
      open.remove(key).foreach { first =>
        found.updateWith((key, first)) {
          _.map(_.copy(mendedVersion = Some(when.version), remedy = Remedy.Nothing))
        }
      }

    private def isOn(table: TableState): Boolean = Contracts.isEnabled(table.properties)

    private def kind(info: CommitInfo): ChangeKind = info.operation match {
      case "RESTORE"                                  => ChangeKind.Restoring
      case "DROP FEATURE"                             => ChangeKind.DroppingFeature
      case operation if operation.contains("REPLACE") => ChangeKind.Replacing
      case "WRITE" if info.operationParameters.get("mode").exists(_.contains("Overwrite")) =>
        ChangeKind.Replacing
      case _ => ChangeKind.Ordinary
    }
  }
}
