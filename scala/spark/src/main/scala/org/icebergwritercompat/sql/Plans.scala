package org.icebergwritercompat.sql

import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.{PlanMode, Severity, TableReport}

/** A row of a plan: a step, a group of data files, or what stands in the way. */
private[sql] final case class PlanRow(
    table: String,
    mode: PlanMode,
    step: String,
    what: String,
    files: Option[Long] = None,
    bytes: Option[Long] = None,
    rules: Seq[String] = Nil,
    remedy: Remedy = Remedy.Nothing
)

/** The plan of an upgrade as rows; there is at least one. */
private[sql] object Plans {

  def rows(report: TableReport): Seq[PlanRow] = report.plan.toSeq.flatMap { plan =>
    def row(step: String, what: String) = PlanRow(report.table, plan.mode, step, what)
    val steps =
      plan.steps.map(step => row(step.name, step.what).copy(files = step.files, bytes = step.bytes))
    val groups = plan.groups.map { group =>
      row(s"files: ${group.verdict}", group.reason)
        .copy(files = Some(group.files), bytes = Some(group.bytes), rules = group.rules)
    }
    val blockers = report.findings.filter(_.severity == Severity.Error).map { finding =>
      row("blocker", finding.found)
        .copy(files = finding.files, rules = Seq(finding.rule), remedy = finding.remedy)
    }
    val all = steps ++ groups ++ (if (plan.mode == PlanMode.Blocked) blockers else Nil)
    if (all.isEmpty) Seq(row("none", report.facts.enabling.reason)) else all
  }
}
