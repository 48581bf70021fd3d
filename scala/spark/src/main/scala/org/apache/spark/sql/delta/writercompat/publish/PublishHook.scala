package org.apache.spark.sql.delta.writercompat.publish

import org.apache.spark.internal.Logging
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.CommittedTransaction
import org.apache.spark.sql.delta.hooks.PostCommitHook
import org.apache.spark.util.{ShutdownHookManager, ThreadUtils}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.PublishProblem
import org.apache.spark.sql.delta.writercompat.read.TableStates
import org.icebergwritercompat.iceberg.IcebergLibrary

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap
import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * Publishes a table as Iceberg after a commit, up to its newest version.
 *
 * The commit is in Delta's log already and stays there, so a failure is a warning in Spark's log.
 * The next commit publishes what is missing.
 */
object PublishHook extends PostCommitHook with Logging {

  /** The setting with which a commit does not wait until it is published. */
  val AsyncConf = "spark.icebergWriterCompat.publish.async"

  override val name: String = "Publish as Iceberg"

  private val quiet = new ThreadLocal[Boolean] { override def initialValue(): Boolean = false }

  /** Runs `commits` without publishing each of them; the caller publishes afterwards. */
  def quietly[T](commits: => T): T = {
    quiet.set(true)
    try commits
    finally quiet.remove()
  }

  override def run(spark: SparkSession, committed: CommittedTransaction): Unit = if (!quiet.get) {
    val (log, catalogTable) = (committed.deltaLog, committed.catalogTable)
    val path = log.dataPath.toString
    lazy val table = TableStates.nameOf(spark, catalogTable, log.dataPath)
    def publish(): Unit = {
      // One publisher a table in this process: a second would lose the race and try again.
      locks.computeIfAbsent(path, _ => new Object).synchronized {
        IcebergLibrary.needed(
          new SparkPublishing(spark, table, log, catalogTable, Some(committed)).publish()
        )
      }
      failures.remove(path)
      ()
    }
    unharmed(path, table) {
      if (isAsync(spark)) InBackground.run(spark, path)(unharmed(path, table)(publish()))
      else publish()
    }
  }

  /** Waits until the background has published all it has to; false if that takes over a minute. */
  def drain(): Boolean = InBackground.drain()

  private def isAsync(spark: SparkSession): Boolean =
    spark.conf.get(AsyncConf, "false").trim.toLowerCase(Locale.ROOT).toBooleanOption.getOrElse {
      throw IcebergWriterCompatException.invalidValue(
        AsyncConf,
        spark.conf.get(AsyncConf),
        "true or false",
        Remedy.SetSetting(Seq(AsyncConf -> "true"))
      )
    }

  private val locks = new ConcurrentHashMap[String, Object]

  /** Why the newest commit of this process to the table in a folder was not published. */
  def lastFailure(path: String): Option[PublishProblem] = Option(failures.get(path)).map(_.last)

  /** Whether the background has yet to publish the table in a folder. */
  def isWaiting(path: String): Boolean = InBackground.isBusy(path)

  /** The remedy if no better one is known: to publish by hand. */
  def command(table: String): Remedy = Remedy.Publish(table)

  /** The newest failure of a table, and the causes that were logged for it. */
  private final case class Failure(last: PublishProblem, told: Set[String])

  private val failures = new ConcurrentHashMap[String, Failure]

  // Each cause is logged once a table, not with each commit.
  private def unharmed(path: String, table: => String)(publish: => Unit): Unit = {
    def tell(cause: String, e: Throwable): Unit = {
      val (text, remedy) = IcebergWriterCompatException.inOneLine(e)
      val problem = PublishProblem(text, remedy.getOrElse(command(table)))
      val before = Option(failures.get(path)).fold(Set.empty[String])(_.told)
      failures.put(path, Failure(problem, before + cause))
      if (!before(cause)) {
        logWarning(
          s"Table $table is committed but not published as Iceberg: $text The next commit that " +
            s"can be published catches up. ${problem.remedy.verb}: ${problem.remedy.text}"
        )
        logDebug(s"Table $table could not be published as Iceberg", e)
      }
    }
    try publish
    catch {
      case e: IcebergWriterCompatException => tell(e.getCondition, e)
      case e: LinkageError                 => tell(e.getClass.getName, e)
      case NonFatal(e)                     => tell(e.getClass.getName, e)
    }
  }
}

/**
 * Runs work on tables in daemon threads. Of the work that waits for one table, only the newest is
 * kept, because it publishes what the older work would have published.
 */
private object InBackground {

  private val threads = ThreadUtils.newDaemonCachedThreadPool("iceberg-writer-compat", 8)

  private val waiting = mutable.Map.empty[String, () => Unit]

  private val busy = mutable.Set.empty[String]

  private val drainMillis = 60000L

  // Before Spark stops its context, without which Delta cannot read the log.
  ShutdownHookManager.addShutdownHook(
    ShutdownHookManager.SPARK_CONTEXT_SHUTDOWN_PRIORITY + 1
  ) { () => drain(); () }

  def run(spark: SparkSession, table: String)(work: => Unit): Unit = synchronized {
    waiting(table) = () => spark.withActive(work)
    if (busy.add(table)) threads.execute(() => go(table))
  }

  @tailrec private def go(table: String): Unit = next(table) match {
    case Some(work) => work(); go(table)
    case None       =>
  }

  private def next(table: String): Option[() => Unit] = synchronized {
    val work = waiting.remove(table)
    if (work.isEmpty) {
      busy -= table
      notifyAll()
    }
    work
  }

  def isBusy(table: String): Boolean = synchronized(busy(table))

  def drain(): Boolean = synchronized {
    val end = System.nanoTime + drainMillis * 1000000
    while (busy.nonEmpty && System.nanoTime < end) wait(1000)
    busy.isEmpty
  }
}
