package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.SparkEnv
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{Dataset, SparkSession}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.writercompat.read.{Footers, JobDescription}
import org.apache.spark.util.SerializableConfiguration
import org.icebergwritercompat.model.{Footer, Unreadable}

import java.nio.ByteBuffer

/** A data file as the log and its own footer describe it. */
final case class ScannedFile(
    logged: AddFile,
    footer: Either[Unreadable, Footer]
)

/**
 * Makes a result of each file that a scan opens, on the executors. Results are added up there, and
 * those of all tasks on the driver; so a result must stay small, or be about few files.
 */
trait FooterJudge[R] extends Serializable {

  /** The result of no file. */
  def none: R

  /** The result of one file. */
  def judge(file: ScannedFile): R

  /** The result of the files of both. */
  def plus(some: R, more: R): R
}

/**
 * What somebody wants to know of the footers of some files.
 *
 * @param answer
 *   what the driver makes of the judge's result
 */
final class FooterQuestion[R, A](
    val judge: FooterJudge[R],
    val answer: R => A
) {

  /** Both questions, answered by one scan. */
  def and[S, B](other: FooterQuestion[S, B]): FooterQuestion[(R, S), (A, B)] =
    new FooterQuestion[(R, S), (A, B)](
      new BothJudges(judge, other.judge),
      { case (mine, others) => answer(mine) -> other.answer(others) }
    )
}

private final class BothJudges[R, S](first: FooterJudge[R], second: FooterJudge[S])
    extends FooterJudge[(R, S)] {

  override def none: (R, S) = (first.none, second.none)

  override def judge(file: ScannedFile): (R, S) = (first.judge(file), second.judge(file))

  override def plus(some: (R, S), more: (R, S)): (R, S) =
    (first.plus(some._1, more._1), second.plus(some._2, more._2))
}

/**
 * Opens data files of a table, each once whatever is asked of it, as one Spark job; it writes
 * nothing.
 */
private[writercompat] object FooterScan {

  /**
   * The answer to a question about these files.
   *
   * @param table
   *   the name of the table, for the description of the job
   * @param count
   *   how many files there are
   */
  def run[R, A](
      spark: SparkSession,
      table: String,
      log: DeltaLog,
      files: Dataset[AddFile],
      count: Long,
      question: FooterQuestion[R, A]
  ): A = {
    val judge = question.judge
    val results =
      if (count == 0) Nil
      else
        JobDescription(spark, s"Reading the footers of $table") {
          val task = new FooterTask(
            judge,
            log.dataPath.toString,
            spark.sparkContext.broadcast(new SerializableConfiguration(log.newDeltaHadoopConf()))
          )
          spark.sparkContext
            .runJob(files.repartition(tasks(spark, count)).rdd, task)
            .toSeq
            .map(bytes => serializer.deserialize[Any](ByteBuffer.wrap(bytes)).asInstanceOf[R])
        }
    question.answer(results.foldLeft(judge.none)(judge.plus))
  }

  // Java's serialization, whatever the session has set for its data: results hold objects that are
  // compared by identity.
  private[datafiles] def serializer = SparkEnv.get.closureSerializer.newInstance()

  // A task opens some dozens of files, so that many tasks run at once and none runs for long.
  private val filesPerTask = 32
  private val tasksPerCore = 16

  private[writercompat] def tasks(spark: SparkSession, files: Long): Int =
    math
      .min(files / filesPerTask + 1, spark.sparkContext.defaultParallelism.toLong * tasksPerCore)
      .toInt
}

/** Opens the files of one task, and gives the judge's result on them as bytes. */
private final class FooterTask[R](
    judge: FooterJudge[R],
    folder: String,
    configuration: Broadcast[SerializableConfiguration]
) extends (Iterator[AddFile] => Array[Byte])
    with Serializable {

  override def apply(files: Iterator[AddFile]): Array[Byte] = {
    val hadoop = configuration.value.value
    val result = files.foldLeft(judge.none) { (result, file) =>
      val footer = Footers.read(folder, file.path, hadoop, Some(file.size))
      judge.plus(result, judge.judge(ScannedFile(file, footer)))
    }
    val buffer = FooterScan.serializer.serialize[Any](result)
    val bytes = new Array[Byte](buffer.remaining)
    buffer.get(bytes)
    bytes
  }
}
