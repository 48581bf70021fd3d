package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapreduce.JobContext
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory
import org.apache.parquet.hadoop.ParquetOutputFormat
import org.apache.spark.SparkContext
import org.apache.spark.internal.io.FileCommitProtocol.TaskCommitMessage
import org.apache.spark.sql.delta.files.DelayedCommitProtocol
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.FooterRules

import scala.jdk.CollectionConverters._

/**
 * Makes the writer use the form of data files that the rules on footers require, regardless of the
 * settings of the session, the Hadoop configuration, the table and the options of the writer.
 *
 * Delta calls the set-up of the job when its configuration contains all of these settings, and
 * before the first task gets it. Other statements of the session are not affected.
 *
 * @param folder
 *   the folder of the files, below the folder of the table
 */
private[writercompat] final class PinnedFiles(
    @transient private val table: TableState,
    path: String,
    prefixLength: Int,
    folder: Option[String]
) extends DelayedCommitProtocol("delta", path, Some(prefixLength), folder) {

  @transient private var replaced: Seq[(String, String)] = Nil

  override def setupJob(job: JobContext): Unit = {
    super.setupJob(job)
    PinnedFiles.refuseEncryption(table, job.getConfiguration)
    PinnedFiles.pin(job.getConfiguration)
    // Tasks get these through the local properties of the thread that starts them.
    val context = SparkContext.getOrCreate()
    replaced = PinnedFiles.ofTasks.keys.toSeq.map(key => key -> context.getLocalProperty(key))
    PinnedFiles.ofTasks.foreach { case (key, value) => context.setLocalProperty(key, value) }
  }

  override def commitJob(job: JobContext, commits: Seq[TaskCommitMessage]): Unit = {
    release()
    super.commitJob(job, commits)
  }

  override def abortJob(job: JobContext): Unit = {
    release()
    super.abortJob(job)
  }

  private def release(): Unit = {
    val context = SparkContext.getOrCreate()
    replaced.foreach { case (key, value) => context.setLocalProperty(key, value) }
    replaced = Nil
  }
}

private[writercompat] object PinnedFiles {

  // Not all versions of Parquet have a constant for it.
  private val statistics = "parquet.column.statistics.enabled"

  /** The settings that Spark's and Parquet's writers read from the configuration of the job. */
  val ofJob: Map[String, String] = Map(
    SQLConf.PARQUET_WRITE_LEGACY_FORMAT.key -> "false",
    SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE.key ->
      SQLConf.ParquetOutputTimestampType.TIMESTAMP_MICROS.toString,
    SQLConf.PARQUET_FIELD_ID_WRITE_ENABLED.key -> "true",
    // Version 2 encodes booleans in a form that Iceberg's connector for Spark cannot read.
    ParquetOutputFormat.WRITER_VERSION -> "v1",
    // Without them the footer has no bounds and null counts.
    statistics -> "true"
  )

  /** The settings that Spark's writer reads from the conf of the task. */
  val ofTasks: Map[String, String] = Map(
    SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key -> LegacyBehaviorPolicy.CORRECTED.toString,
    SQLConf.PARQUET_INT96_REBASE_MODE_IN_WRITE.key -> LegacyBehaviorPolicy.CORRECTED.toString
  )

  private def pin(configuration: Configuration): Unit = {
    ofJob.foreach { case (key, value) => configuration.set(key, value) }
    // The same setting for a single column.
    configuration.asScala
      .map(_.getKey)
      .filter(_.startsWith(statistics + "#"))
      .toSeq
      .foreach(configuration.unset)
  }

  private val factory = "parquet.crypto.factory.class"

  private val keys = Seq("footer.key", "column.keys", "uniform.key").map("parquet.encryption." + _)

  // Iceberg's metadata cannot store the keys, and writing unencrypted files would be unsafe.
  private def refuseEncryption(table: TableState, configuration: Configuration): Unit = {
    val byKeys = classOf[PropertiesDrivenCryptoFactory].getName
    val setting = Option(configuration.getTrimmed(factory)).filter(_.nonEmpty).flatMap {
      case `byKeys` =>
        val set = keys.filter(key => Option(configuration.getTrimmed(key)).exists(_.nonEmpty))
        Option.when(set.nonEmpty)(set.mkString(", ") -> set.map(_ -> ""))
      case _ => Some(factory -> Seq(factory -> byKeys))
    }
    setting.foreach { case (found, settings) =>
      throw IcebergWriterCompatException.encrypting(
        table.name,
        FooterRules.FootersAreReadable,
        found,
        Remedy.SetSetting(settings)
      )
    }
  }
}
