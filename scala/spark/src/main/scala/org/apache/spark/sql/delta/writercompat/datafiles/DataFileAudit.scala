package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.functions.{col, xxhash64}
import org.icebergwritercompat.contract.{FooterRule, TableState, Violation}
import org.icebergwritercompat.model.{Condition, DataFile, FileStatistics, Location}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.{Assessment, Finding, Place}
import org.icebergwritercompat.rules.FooterRules

/**
 * What the footers of a table's live data files tell.
 *
 * @param findings
 *   in the order of the rules, those about most files first
 * @param filesLive
 *   how many files the table has
 * @param filesRead
 *   how many of them were opened, or could not be
 * @param bytesRead
 *   how many bytes those have, by the log
 */
final case class DataFileAudit(
    findings: Seq[FileFinding],
    filesLive: Long,
    filesRead: Long,
    bytesRead: Long
)

/**
 * A violation that data files have in common.
 *
 * @param column
 *   what it is about; `None` for the files as a whole
 * @param files
 *   how many files have it, of `bytes` in total by the log
 * @param examples
 *   a few of these files, each with what is particular to it
 */
final case class FileFinding(
    rule: FooterRule,
    column: Option[Location.Column],
    found: String,
    remedy: Remedy,
    files: Long,
    bytes: Long,
    examples: Seq[String]
) {

  /** The same as what a commit is refused for. */
  def violation: Violation = {
    val example = examples.headOption.getOrElse("")
    Violation(
      rule,
      if (rule == FooterRules.FootersAreReadable) Condition.UnreadableDataFile
      else Condition.IncompatibleDataFile,
      column.getOrElse(Location.Files(files, example)),
      remedy,
      Map(
        "file" -> example.split(": ").head,
        "found" -> found,
        "detail" -> s"in $files file(s), such as $example",
        "required" -> rule.statement
      )
    )
  }

  /** The same as a report shows it. */
  def finding(judgement: Assessment): Finding =
    Finding.about(
      rule,
      judgement.severityOfFile(rule),
      column.fold(Place.Files)(Place.of),
      column.fold(s"In $files file(s): $found")(_ => found.capitalize),
      remedy,
      Some(files),
      examples
    )

  /** Equal for the findings of two files that are to be one finding. */
  private[datafiles] def key: FileFinding.Key = (rule.id, column.map(_.path), found)

  /** One finding on the files of both; the order does not decide which examples are kept. */
  private[datafiles] def plus(other: FileFinding): FileFinding =
    copy(
      files = files + other.files,
      bytes = bytes + other.bytes,
      examples = (examples ++ other.examples).sorted.take(Finding.MaxExamples)
    )
}

private[writercompat] object FileFinding {

  type Key = (String, Option[Seq[String]], String)

  /** A violation in one file. */
  def of(violation: Violation, rule: FooterRule, file: AddFile): FileFinding =
    FileFinding(
      rule,
      violation.location match {
        case column: Location.Column => Some(column)
        case _                       => None
      },
      violation.parameters("found"),
      violation.remedy,
      1,
      file.size,
      Seq(s"${file.path}: ${violation.parameters("detail")}")
    )
}

/**
 * Asks the rules on footers about the live data files of a table.
 *
 * The driver gets findings, each with a few examples; never the list of files.
 */
object DataFileAudit {

  /**
   * The findings and what they were found in, in one job.
   *
   * @param files
   *   read only so many files, evenly spread and always the same
   */
  def run(
      spark: SparkSession,
      snapshot: Snapshot,
      table: TableState,
      files: Option[Long] = None
  ): DataFileAudit =
    run(spark, snapshot, table, question(table, snapshot.numOfFiles), files)

  /** The answer to a question about all live files of a version, or about a sample of them. */
  private[writercompat] def run[R, A](
      spark: SparkSession,
      snapshot: Snapshot,
      table: TableState,
      question: FooterQuestion[R, A],
      files: Option[Long]
  ): A = {
    val live = snapshot.numOfFiles
    FooterScan.run(
      spark,
      table.name,
      snapshot.deltaLog,
      files.fold(snapshot.allFiles)(sample(snapshot.allFiles, _)),
      files.foldLeft(live)(math.min),
      question
    )
  }

  private def sample(files: Dataset[AddFile], count: Long): Dataset[AddFile] =
    files
      .orderBy(xxhash64(col("path")), col("path"))
      .limit(math.min(count, Int.MaxValue.toLong).toInt)

  /**
   * What the rules find in the footers of files.
   *
   * @param live
   *   how many files the table has
   */
  private[writercompat] def question(
      table: TableState,
      live: Long
  ): FooterQuestion[Audited, DataFileAudit] =
    // A copy without what `table` has computed and cached, which each task would be sent.
    new FooterQuestion(
      new AuditJudge(table.copy(previous = None)),
      found => DataFileAudit(sorted(table, found), live, found.files, found.bytes)
    )

  private def sorted(table: TableState, found: Audited): Seq[FileFinding] = {
    val rules = table.contract.rules.footer
    found.findings.values.toSeq.sortBy(f =>
      (rules.indexOf(f.rule), -f.files, f.column.fold("")(_.path.mkString(".")), f.found)
    )
  }
}

/** How many files were read, and what the rules found in them. */
private[writercompat] final case class Audited(
    files: Long,
    bytes: Long,
    findings: Map[FileFinding.Key, FileFinding]
)

/** Asks the rules on footers about each file. */
private final class AuditJudge(table: TableState) extends FooterJudge[Audited] {

  override def none: Audited = Audited(0, 0, Map.empty)

  override def judge(file: ScannedFile): Audited = {
    val logged = file.logged
    val rowCount = FileStatistics.rowCount(logged.stats)
    val data = DataFile(logged.path, logged.partitionValues, logged.size, rowCount, file.footer)
    val found = table.contract.rules.check(table, data).collect {
      case violation @ Violation(rule: FooterRule, _, _, _, _) =>
        FileFinding.of(violation, rule, logged)
    }
    // A file counts once for a finding, however often it has what is found.
    Audited(1, logged.size, found.toSeq.reverseIterator.map(f => f.key -> f).toMap)
  }

  override def plus(some: Audited, more: Audited): Audited =
    Audited(
      some.files + more.files,
      some.bytes + more.bytes,
      more.findings.foldLeft(some.findings) { case (all, (key, finding)) =>
        all.updated(key, all.get(key).fold(finding)(_.plus(finding)))
      }
    )
}
