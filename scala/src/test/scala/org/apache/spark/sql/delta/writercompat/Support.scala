package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.delta.{OptimisticTransaction, TransactionExecutionObserver}

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}
import java.util.concurrent.{Executors, TimeUnit}
import scala.collection.mutable
import scala.util.Using

/** Runs code on a thread that nobody has used before. */
object OnThread {

  def apply[T](body: => T): T = {
    val threads = Executors.newSingleThreadExecutor()
    try threads.submit(() => body).get(2, TimeUnit.MINUTES)
    finally threads.shutdown()
  }
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
