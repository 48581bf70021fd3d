package org.icebergwritercompat.report

import org.icebergwritercompat.contract.{Fix, FooterRule, Rule, TableState, Violation}
import org.icebergwritercompat.model.{SchemaNode, SupportedTypes, WriterCompat}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.{ActionRules, FooterRules, SchemaRules}
import org.icebergwritercompat.upgrade.{Drop, FileReason, FileUpgrade, UpgradeRequest}

/** A live file, by its path in the log and its deletion vector. */
final case class FileKey(path: String, deletionVector: Option[String])

/**
 * A live file that cannot be kept, or for which the log lacks information.
 *
 * @param reasons
 *   why it cannot be kept; empty if it can
 * @param rowCount
 *   the number of its rows, if the log does not have it
 */
final case class FileVerdict(
    file: FileKey,
    size: Long,
    reasons: Seq[FileReason],
    rowCount: Option[Long] = None
) {

  /** Whether the file can be kept. */
  def stays: Boolean = reasons.isEmpty
}

/**
 * The plan of an upgrade.
 *
 * @param from
 *   the table before the upgrade
 * @param to
 *   the table after the upgrade
 * @param violations
 *   the violations of the table after the upgrade
 * @param request
 *   the options of the user
 * @param verdicts
 *   the live files that cannot be kept, or for which the log lacks information
 * @param files
 *   the number of all live files; `bytes` is their size
 * @param entersAgain
 *   whether files that are kept have to be added to the log again with new physical names
 */
final class UpgradePlan(
    from: TableState,
    to: TableState,
    violations: Seq[Violation],
    request: UpgradeRequest,
    verdicts: Seq[FileVerdict],
    val files: Long,
    bytes: Long,
    entersAgain: Boolean
) {

  private val upgrade = new FileUpgrade(from, to)

  private val (counted, failing) = verdicts.partition(_.stays)

  private val (asked, inTheWay) = violations.partition(dropOf(_).exists(request.drop))

  /** The violations that the upgrade drops, in this order. */
  val dropped: Seq[Violation] =
    Drop.all.flatMap(one => asked.filter(dropOf(_).contains(one))).distinctBy(_.remedy)

  // Delta does not allow IcebergCompatV3 to be switched off, and it requires row tracking.
  private def dropOf(violation: Violation): Option[Drop] =
    Drop.of(violation).filterNot(_ == Drop.RowTracking && isHeldByCompatV3)

  private def isHeldByCompatV3: Boolean =
    from.property(WriterCompat.IcebergCompatV3Enabled).exists(WriterCompat.isTrue)

  private val (rewritable, hopeless) = failing.partition(_.reasons.forall(upgrade.isMendable))

  private val widened: Seq[SchemaNode] =
    from.nodes
      .zip(to.nodes)
      .collect { case (was, is) if was.dataType != is.dataType => was }
      .filter { node =>
        SupportedTypes.widensToInt(node.dataType)
      }

  /** Whether columns get other types, for which no data file has to be written. */
  private val typesOnly: Boolean = rewritable.isEmpty && widened.nonEmpty

  /** The blockers, each with its remedy. */
  lazy val blockers: Seq[Finding] =
    inTheWay.map { violation =>
      val finding = Finding.of(to, violation, Severity.Error)
      if (Drop.of(violation) == dropOf(violation) && !isThisCall(violation.remedy)) finding
      else finding.copy(remedy = Fix.copyInto(to))
    } ++ findingsOf(hopeless.map(keptByRewrite), Severity.Error)

  // The call that is blocked would be blocked again.
  private def isThisCall(remedy: Remedy): Boolean = remedy match {
    case call: Remedy.Enable => call.drop.isEmpty
    case _                   => false
  }

  // What else is wrong with these files is written anew once that is away.
  private def keptByRewrite(verdict: FileVerdict): FileVerdict =
    verdict.copy(reasons = verdict.reasons.filterNot(upgrade.isMendable))

  /** The mode. */
  def mode: PlanMode =
    if (blockers.nonEmpty) PlanMode.Blocked
    else if (failing.nonEmpty || widened.nonEmpty) PlanMode.Rewrite
    else PlanMode.Metadata

  /** All findings. */
  def findings: Seq[Finding] =
    blockers ++ dropped.map { violation =>
      Finding.of(to, violation, Severity.Info)
    } ++ findingsOf(rewritable, Severity.Warning) ++ typesAlone

  // Columns that no file has, so that only their types change.
  private def typesAlone: Seq[Finding] = {
    val inFiles = rewritable.iterator
      .flatMap(_.reasons)
      .filter(_.rule == SchemaRules.TypesAreSupported.id)
      .map(_.column)
      .toSet[Seq[String]]
    widened
      .filterNot(node => inFiles(node.path))
      .map { node =>
        Finding.about(
          SchemaRules.TypesAreSupported,
          Severity.Warning,
          Place.of(node.location),
          EnablingFact.typeChange(node),
          rewriting
        )
      }
  }

  /** The plan as a report shows it. */
  def fact: PlanFact =
    PlanFact(
      mode,
      if (mode == PlanMode.Blocked) Nil else steps,
      groups,
      rewritable.size.toLong,
      rewritable.map(_.size).sum,
      typesOnly,
      (if (mode == PlanMode.Blocked) blockers.map(_.remedy) else dropped.map(_.remedy)).distinct
    )

  /** How the feature can be switched on, as `check` reports it. */
  def enabling: EnablingFact =
    if (mode == PlanMode.Rewrite && typesOnly)
      EnablingFact.ofTypes(widened, exact = true)
    else enablingByFiles

  private def enablingByFiles: EnablingFact = {
    def rules(findings: Seq[Finding]) = findings.map(_.rule).distinct.mkString(", ")
    val (verdict, reason) = mode match {
      case PlanMode.Blocked =>
        Verdict.Blocked -> s"Fix the findings of ${rules(blockers)} first; each has a remedy."
      case PlanMode.Rewrite =>
        Verdict.Rewrite ->
          ("Some files have to be rewritten, because of " +
            s"${rules(findings.filter(_.severity == Severity.Warning))}.")
      case _ =>
        Verdict.MetadataOnly -> "One commit switches it on; no data file is written."
    }
    val size = rewritable.map(_.size).sum
    EnablingFact(verdict, reason, rewritable.size.toLong, size, exact = true, typesOnly)
  }

  /** The remedy of the blockers: one call that drops all of them, if possible. */
  def remedy: Remedy = {
    val drops = inTheWay.map(dropOf)
    // Types alone cost nothing, while files are rewritten by a call that was told how many.
    val rewrites = request.rewrites || typesOnly
    if (hopeless.isEmpty && drops.forall(_.isDefined))
      UpgradeRequest(rewrites, request.drop ++ drops.flatten, request.contract).call(to)
    else blockers.head.remedy
  }

  /** The call that rewrites the files that cannot be kept. */
  def rewriting: Remedy = request.copy(rewrites = true).call(to)

  // The columns that become ordinary ones.
  private def plainColumns: Seq[String] =
    for {
      (was, is) <- from.nodes.zip(to.nodes)
      drop <- Drop.all if request.drop(drop)
      if drop.fieldMetadata.exists(key => was.metadata.contains(key) && !is.metadata.contains(key))
    } yield s"${drop.name}: column ${was.sqlPath} becomes an ordinary column and keeps its values"

  private def waiting: Option[StepFact] = {
    val waits = dropped.map(_.remedy).collect {
      case Remedy.DropFeature(_, feature, Some(period), _) => feature -> period
    }
    waits.headOption.map { case (_, period) =>
      StepFact(
        "wait",
        s"Delta drops the ${waits.map { case (name, _) => s"feature $name" }.mkString(" and the ")} " +
          s"only if no version of the last $period has used it; until then the call ends with " +
          "DROP_LATER and has to be repeated"
      )
    }
  }

  private def steps: Seq[StepFact] =
    (dropped.flatMap(_.remedy.sql) ++ plainColumns).map(StepFact("drop", _)) ++
      waiting ++
      widened.map(node => StepFact("widen", EnablingFact.typeChange(node))) ++
      Option.when(rewritable.nonEmpty) {
        StepFact(
          "rewrite",
          "the rows of files that cannot be kept are written to new files",
          Some(rewritable.size.toLong),
          Some(rewritable.map(_.size).sum)
        )
      } ++
      Seq(StepFact("protocol", protocol), StepFact("properties", properties)) ++
      Seq(StepFact("columns", columns)) ++
      Option.when(counted.nonEmpty) {
        StepFact(
          "count",
          "files without a row count in the log get it from their footers",
          Some(counted.size.toLong)
        )
      } ++
      Option.when(entersAgain && keptFiles > 0) {
        StepFact(
          "enter",
          "the other files are added to the log again with the new physical names; they are " +
            "not changed",
          Some(keptFiles),
          Some(bytes - failing.map(_.size).sum)
        )
      } :+
      StepFact("commit", "all changes of the log are made in one commit")

  private def protocol: String = {
    val (before, after) = (from.protocol.listedFeatures, to.protocol.listedFeatures)
    val versions = s"reader ${to.protocol.minReaderVersion}, writer ${to.protocol.minWriterVersion}"
    versions + listed("; adds ", (after -- before).toSeq) +
      listed("; removes ", (before -- after).toSeq)
  }

  private def properties: String = {
    val set = to.properties.collect {
      case (key, value) if !from.properties.get(key).contains(value) => s"$key = $value"
    }
    val gone = from.properties.keySet -- to.properties.keySet
    listed("sets ", set.toSeq) + listed("; unsets ", gone.toSeq)
  }

  private def columns: String = {
    val fields = from.nodes.zip(to.nodes).filter(_._1.isField)
    val renamed = fields.count { case (was, is) => was.physicalName != is.physicalName }
    val added = to.nodes.flatMap(_.id).toSet -- from.nodes.flatMap(_.id)
    s"$renamed field(s) get the physical name col-<id>; ${added.size} id(s) are assigned" +
      Option.when(added.nonEmpty)(s", from ${added.min} to ${added.max}").mkString
  }

  private def listed(label: String, words: Seq[String]): String =
    if (words.isEmpty) "" else words.sorted.mkString(label, ", ", "")

  private def keptFiles: Long = files - failing.size

  private def groups: Seq[FileGroupFact] = {
    val kept = Option.when(keptFiles > 0) {
      FileGroupFact(
        "keep",
        "These files are kept.",
        Nil,
        keptFiles,
        bytes - failing.map(_.size).sum,
        Nil
      )
    }
    val order = failing.groupBy(_.reasons.map(_.rule).toSet).toSeq.map { case (rules, verdicts) =>
      val found = verdicts.iterator.flatMap(_.reasons).map(_.found).distinct.take(shown).toSeq
      FileGroupFact(
        if (verdicts.head.reasons.forall(upgrade.isMendable)) "rewrite" else "blocked",
        found.mkString("; ").capitalize,
        inOrder(rules),
        verdicts.size.toLong,
        verdicts.map(_.size).sum,
        verdicts.map(_.file.path).sorted.take(Finding.MaxExamples)
      )
    }
    kept.toSeq ++ order.sortBy(group => (-group.files, group.rules.mkString))
  }

  private val shown = 5

  private def inOrder(rules: Set[String]): Seq[String] =
    to.contract.rules.all.map(_.id).filter(rules)

  private def findingsOf(verdicts: Seq[FileVerdict], severity: Severity): Seq[Finding] = {
    val all = for (verdict <- verdicts; reason <- verdict.reasons) yield reason -> verdict
    all
      .groupBy { case (reason, _) => (reason.rule, reason.column) }
      .toSeq
      .map { case ((id, path), broken) =>
        val rule = to.contract.rules(id)
        val found = broken.head._1.found
        val node = to.nodesByPath.get(path.toVector)
        val files = broken.map(_._2.file).distinct.size.toLong
        Finding.about(
          rule,
          severity,
          node.fold(Place.Files)(n => Place.of(n.location)),
          node.fold(s"In $files file(s): $found")(_ => found.capitalize),
          remedyOf(rule, node, severity),
          Some(files),
          broken.map(_._2.file.path).distinct.sorted.take(Finding.MaxExamples)
        )
      }
      .sortBy(finding =>
        (
          inOrder(verdicts.flatMap(_.reasons.map(_.rule)).toSet).indexOf(finding.rule),
          finding.place.name
        )
      )
  }

  private def remedyOf(rule: Rule, node: Option[SchemaNode], severity: Severity): Remedy =
    (rule, severity) match {
      case (_, Severity.Warning)                       => rewriting
      case (FooterRules.RequiredColumnsHaveNoNulls, _) =>
        node.fold(Fix.lookIntoHistory(from))(Fix.dropNotNull(from, _))
      case (ActionRules.NoMarkersOfNull, _) =>
        node.fold(Fix.lookIntoHistory(from))(ActionRules.NoMarkersOfNull.remedy(from, _))
      case (broken: FooterRule, _)              => broken.remedy(from)
      case (ActionRules.PathsAreWithinReach, _) => Fix.copyInto(from)
      case _                                    => Fix.lookIntoHistory(from)
    }
}

object UpgradePlan {

  /** The plan for a table that has the feature. */
  val nothing: PlanFact = PlanFact(PlanMode.NoChange, Nil, Nil, 0, 0, typesOnly = false, Nil)

  /** The plan for a table that has the feature and breaks its rules. */
  def mending(broken: Seq[Finding]): PlanFact =
    PlanFact(PlanMode.Blocked, Nil, Nil, 0, 0, typesOnly = false, broken.map(_.remedy).distinct)
}
