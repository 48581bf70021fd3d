package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.conf.Configuration
import org.apache.iceberg.Schema
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.datafiles.FooterScan
import org.apache.spark.sql.delta.writercompat.read.{Footers, JobDescription}
import org.apache.spark.util.SerializableConfiguration
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.iceberg.source.AddedFile
import org.icebergwritercompat.iceberg.translate.{DeltaStatistics, FooterMetrics}
import org.icebergwritercompat.model.{DataFile, FileStatistics}

/**
 * A file that is to be added, after its footer was read.
 *
 * @param statistics
 *   as the footer tells them
 * @param broken
 *   the rules that the footer breaks
 */
private[writercompat] final case class JudgedFile(
    file: AddedFile,
    statistics: String,
    broken: Seq[BrokenRule]
)

/** What the footer of a file breaks. */
private[writercompat] final case class BrokenRule(
    rule: String,
    found: String,
    detail: String,
    required: String
)

/** Reads the footers of files that are to be added, each once; many of them on the executors. */
private[writercompat] object AddedDataFiles {

  // Below that a job of Spark takes longer than the files.
  private val onTheDriver = 8

  /**
   * The files with what their footers tell.
   *
   * @param table
   *   what the table is to be
   * @param schema
   *   its columns
   * @param collected
   *   the ids of the columns of which there are statistics
   */
  def judged(
      spark: SparkSession,
      log: DeltaLog,
      table: TableState,
      schema: Schema,
      collected: Set[Int],
      files: Seq[AddedFile]
  ): Seq[JudgedFile] = {
    val judge = new AddedFileJudge(
      table.copy(previous = None, asItIs = None),
      schema,
      collected,
      log.dataPath.toString
    )
    if (files.sizeIs <= onTheDriver) {
      val configuration = log.newDeltaHadoopConf()
      files.map(judge(_, configuration))
    } else
      JobDescription(spark, s"Reading the footers of ${files.size} files for ${table.name}") {
        val context = spark.sparkContext
        val shared = context.broadcast(new SerializableConfiguration(log.newDeltaHadoopConf()))
        val tasks = FooterScan.tasks(spark, files.size.toLong)
        context
          .parallelize(files, tasks)
          .mapPartitions(_.map(judge(_, shared.value.value)))
          .collect()
          .toSeq
      }
  }
}

private final class AddedFileJudge(
    table: TableState,
    schema: Schema,
    collected: Set[Int],
    folder: String
) extends Serializable {

  def apply(file: AddedFile, configuration: Configuration): JudgedFile = {
    val footer = Footers.read(folder, file.path, configuration, Some(file.size))
    val claimed = FileStatistics
      .parse(file.statistics)
      .flatMap(_.rowCount)
    val read = DataFile(file.path, file.partitionValues, file.size, claimed, footer)
    val broken = table.contract.rules.check(table, read).toSeq.map { violation =>
      BrokenRule(
        violation.rule.id,
        violation.parameters.getOrElse("found", ""),
        violation.parameters.getOrElse("detail", ""),
        violation.rule.statement
      )
    }
    val statistics = footer.fold(
      _ => file.statistics,
      found => DeltaStatistics.of(FooterMetrics.of(found, schema), schema, collected)
    )
    JudgedFile(file, statistics, broken)
  }
}
