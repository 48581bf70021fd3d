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
 * The commit is made, so a failure is told in Spark's log only; the next commit catches up.
 */
object PublishHook extends PostCommitHook with Logging {

  /** The conf that lets commits return before they are published. */
  val AsyncConf = "spark.icebergWriterCompat.publish.async"

  override val name: String = "Publish as Iceberg"

  private val quiet = new ThreadLocal[Boolean] { override def initialValue(): Boolean = false }

  /** Makes commits that the caller publishes together. */
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
      // Who waits here has nothing to do any more if the other has seen the newest version.
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

  /** Waits until what is to be published in the background is; false if that takes too long. */
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

  /** Why the newest commit to the table of this folder in this process could not be published. */
  def lastFailure(path: String): Option[PublishProblem] = Option(failures.get(path)).map(_.last)

  /** Whether the table of this folder is still to be published in the background. */
  def isWaiting(path: String): Boolean = InBackground.isBusy(path)

  /** What to run where nothing else is known to help. */
  def command(table: String): Remedy = Remedy.Publish(table)

  /** The newest failure of a table, and the causes that its log has been told. */
  private final case class Failure(last: PublishProblem, told: Set[String])

  private val failures = new ConcurrentHashMap[String, Failure]

  // A table that cannot be published is not to fill the log.
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

/** Work on tables, on threads that keep nobody from ending; of each table only the newest waits. */
private object InBackground {

  private val threads = ThreadUtils.newDaemonCachedThreadPool("iceberg-writer-compat", 8)

  private val waiting = mutable.Map.empty[String, () => Unit]

  private val busy = mutable.Set.empty[String]

  private val drainMillis = 60000L

  // While there is a Spark context; one that is being stopped is of no use to Delta any more.
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
