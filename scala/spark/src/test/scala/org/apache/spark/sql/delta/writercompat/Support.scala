package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.{OptimisticTransaction, TransactionExecutionObserver}
import org.icebergwritercompat.remedy.Remedy

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}
import java.util.concurrent.{CountDownLatch, Executors, TimeUnit}
import scala.collection.mutable
import scala.util.Using

/** Runs code on a new thread. */
object OnThread {

  def apply[T](body: => T): T = meanwhile(body)(())

  /** Runs `body` there while `here` runs here, and waits for it. */
  def meanwhile[T](body: => T)(here: => Unit): T = {
    val threads = Executors.newSingleThreadExecutor()
    try {
      val running = threads.submit(() => body)
      here
      running.get(2, TimeUnit.MINUTES)
    } finally threads.shutdown()
  }
}

/** Runs what a refusal offers. */
object Offered {

  def run(spark: SparkSession, remedy: Remedy): Unit =
    remedy.sql.foreach(spark.sql(_).collect())
}

/** Sends an object to bytes and back, as Spark does on the way to an executor. */
object Serialized {

  def apply[T <: AnyRef](value: T): T = {
    val bytes = new ByteArrayOutputStream
    Using.resource(new ObjectOutputStream(bytes))(_.writeObject(value))
    Using.resource(new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray))) { in =>
      in.readObject().asInstanceOf[T]
    }
  }
}

/** An observer as a test of Delta's sets it, which knows nothing of the guard. */
class RecordingObserver extends TransactionExecutionObserver {

  val seen: mutable.Buffer[String] = mutable.Buffer.empty

  private def see(event: String): Unit = seen.synchronized { seen += event; () }

  override def createChild(): TransactionExecutionObserver = { see("child"); this }

  override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = {
    see("start")
    f
  }

  override def preparingCommit[T](f: => T): T = { see("prepare"); f }

  override def beginDoCommit(): Unit = see("commit")

  override def beginBackfill(): Unit = see("backfill")

  override def beginPostCommit(): Unit = see("post")

  override def transactionCommitted(): Unit = see("committed")

  override def transactionAborted(): Unit = see("aborted")
}

/** Holds commits back until they may go on: all has been read and written by then. */
final class PausingObserver extends RecordingObserver {

  private val (reached, released) = (new CountDownLatch(1), new CountDownLatch(1))

  override def preparingCommit[T](f: => T): T = {
    reached.countDown()
    require(released.await(2, TimeUnit.MINUTES), "nobody let the commit go on")
    super.preparingCommit(f)
  }

  /** Waits for the first commit; false if there is none. */
  def awaitCommit(): Boolean = reached.await(1, TimeUnit.MINUTES)

  /** Lets all commits go on. */
  def release(): Unit = released.countDown()
}
