package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.hadoop.conf.Configuration
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{Dataset, Encoders, SparkSession}
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.functions.{col, xxhash64}
import org.apache.spark.util.SerializableConfiguration
import org.icebergwritercompat.contract.{FooterRule, TableState, Violation}
import org.icebergwritercompat.model.{
  Condition,
  DataFile,
  FileStatistics,
  Location,
  PhysicalNameTree,
  SchemaNode
}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.{Finding, Judgement, Place}
import org.icebergwritercompat.rules.FooterRules
import org.apache.spark.sql.delta.writercompat.read.{Described, Footers}

import scala.collection.mutable

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
 * @param rule
 *   the id of the rule
 * @param column
 *   what it is about; `None` for the files as a whole
 * @param files
 *   how many files have it, of `bytes` in total by the log
 * @param examples
 *   a few of these files, each with what is to say of it alone
 */
final case class FileFinding(
    rule: FooterRule,
    column: Option[FoundColumn],
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
      column.fold[Location](Location.Files(files, example)) { c =>
        Location.Column(c.path, c.id, c.physicalName)
      },
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
  def finding(judgement: Judgement): Finding =
    Finding(
      rule.id,
      rule.clauses.map(_.toString),
      judgement.severityOfFile(rule),
      column.fold(Place.Files)(c => Place.of(Location.Column(c.path, c.id, c.physicalName))),
      Some(files),
      examples,
      column.fold(s"In $files file(s): $found")(_ => found.capitalize),
      rule.statement,
      rule.why,
      remedy
    )
}

/** A column, nested field, element, key or value, as [[Location.Column]] has it. */
final case class FoundColumn(path: Seq[String], id: Option[Long], physicalName: Option[String])

/**
 * Reads the footers of a table's live data files as a Spark job, and writes nothing.
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
  ): DataFileAudit = run(spark, snapshot, snapshot.allFiles, snapshot.numOfFiles, table, files)

  /**
   * The same of these files alone.
   *
   * @param in
   *   a version of the table whose files they are, or are to be
   * @param live
   *   how many there are
   */
  private[writercompat] def run(
      spark: SparkSession,
      in: Snapshot,
      added: Dataset[AddFile],
      live: Long,
      table: TableState,
      files: Option[Long]
  ): DataFileAudit = {
    val (findings, totals) = Described(spark, s"Reading the footers of ${table.name}") {
      summaries(spark, in, added, live, table, files).collect().toSeq.partition(_.rule.nonEmpty)
    }
    val rules = table.contract.rules.footer
    val byId = rules.map(rule => rule.id -> (rule, rule.remedy(table))).toMap
    DataFileAudit(
      findings
        .map(summary => summary.finding(byId(summary.rule)))
        .sortBy(f =>
          (rules.indexOf(f.rule), -f.files, f.column.fold("")(_.path.mkString(".")), f.found)
        ),
      live,
      totals.map(_.files).sum,
      totals.map(_.bytes).sum
    )
  }

  // A task opens some dozens of files, so that many are at work and none works for long.
  private val filesPerTask = 32
  private val tasksPerCore = 16

  /** The number of tasks that open so many files. */
  private[writercompat] def tasks(spark: SparkSession, files: Long): Int =
    math
      .min(files / filesPerTask + 1, spark.sparkContext.defaultParallelism.toLong * tasksPerCore)
      .toInt

  private def summaries(
      spark: SparkSession,
      snapshot: Snapshot,
      added: Dataset[AddFile],
      live: Long,
      table: TableState,
      files: Option[Long]
  ): Dataset[FileSummary] = {
    val logged = added.select("path", "partitionValues", "size", "stats")
    val chosen = files.fold(logged) { count =>
      val order = Seq(xxhash64(col("path")), col("path"))
      logged.orderBy(order: _*).limit(math.min(count, Int.MaxValue).toInt)
    }
    val count = files.foldLeft(live)(math.min)
    val configuration = spark.sparkContext
      .broadcast(new SerializableConfiguration(snapshot.deltaLog.newDeltaHadoopConf()))
    // A copy, as the table may have put much aside that each task would get.
    val reader = new FooterTask(
      table.copy(previous = None),
      snapshot.deltaLog.dataPath.toString,
      configuration
    )
    chosen
      .repartition(tasks(spark, count))
      .as[LiveFile](Encoders.product[LiveFile])
      .mapPartitions(reader)(Encoders.product[FileSummary])
      .groupByKey((summary: FileSummary) => summary.key)(
        Encoders.tuple(Encoders.STRING, Encoders.STRING, Encoders.STRING)
      )
      .reduceGroups((a: FileSummary, b: FileSummary) => a.plus(b))
      .map((group: ((String, String, String), FileSummary)) => group._2)(
        Encoders.product[FileSummary]
      )
  }

}

/** What the log says of a live file. */
private[writercompat] final case class LiveFile(
    path: String,
    partitionValues: Map[String, String],
    size: Long,
    stats: String
)

/** A violation in some of the files; one without a rule stands for all that were read. */
private[writercompat] final case class FileSummary(
    rule: String,
    column: Option[FoundColumn],
    found: String,
    files: Long,
    bytes: Long,
    examples: Seq[String]
) {

  /** Equal for what is to be one finding. */
  def key: (String, String, String) =
    (rule, column.fold("")(c => SchemaNode.sqlPath(c.path)), found)

  /** Both together; which examples stay does not depend on the order. */
  def plus(other: FileSummary): FileSummary =
    copy(
      files = files + other.files,
      bytes = bytes + other.bytes,
      examples = (examples ++ other.examples).sorted.take(Finding.MaxExamples)
    )

  /** The violation of this rule, with what mends it. */
  def finding(broken: (FooterRule, Remedy)): FileFinding =
    FileFinding(broken._1, column, found, broken._2, files, bytes, examples)
}

private[writercompat] object FileSummary {

  /** The one that counts a file that was read. */
  def total(file: LiveFile): FileSummary = FileSummary("", None, "", 1, file.size, Nil)

  /** A violation in one file. */
  def of(violation: Violation, file: LiveFile): FileSummary = {
    val column = violation.location match {
      case Location.Column(path, id, name) => Some(FoundColumn(path, id, name))
      case _                               => None
    }
    FileSummary(
      violation.rule.id,
      column,
      violation.parameters("found"),
      1,
      file.size,
      Seq(s"${file.path}: ${violation.parameters("detail")}")
    )
  }
}

/** Reads the footers of some files on an executor, and sums up what the rules find in them. */
private final class FooterTask(
    table: TableState,
    folder: String,
    configuration: Broadcast[SerializableConfiguration]
) extends (Iterator[LiveFile] => Iterator[FileSummary])
    with Serializable {

  override def apply(files: Iterator[LiveFile]): Iterator[FileSummary] = {
    val summaries = mutable.LinkedHashMap.empty[(String, String, String), FileSummary]
    val hadoop: Configuration = configuration.value.value
    files.foreach { file =>
      val found =
        table.contract.rules.check(table, dataFile(file, hadoop)).map(FileSummary.of(_, file))
      (Iterator(FileSummary.total(file)) ++ found).toSeq.distinctBy(_.key).foreach { summary =>
        summaries.updateWith(summary.key)(
          _.fold(Option(summary))(known => Some(known.plus(summary)))
        )
      }
    }
    summaries.valuesIterator
  }

  private def dataFile(file: LiveFile, hadoop: Configuration): DataFile =
    DataFile(
      file.path,
      file.partitionValues,
      file.size,
      Option(file.stats).flatMap(FileStatistics.parse(_, noNames)).flatMap(_.rowCount),
      Footers.read(folder, file.path, hadoop)
    )

  private def noNames: PhysicalNameTree = PhysicalNameTree(Map.empty)
}
