package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta._

/**
 * Replaces every transaction that Delta starts by a [[GuardedTransaction]], and otherwise delegates
 * to the observer that it wraps.
 */
final class GuardingObserver private (val wrapped: TransactionExecutionObserver)
    extends TransactionExecutionObserver {

  override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction =
    GuardedTransaction.guard(wrapped.startingTransaction(f))

  override def createChild(): TransactionExecutionObserver =
    GuardingObserver.around(wrapped.createChild())

  override def preparingCommit[T](f: => T): T = wrapped.preparingCommit(f)

  override def beginDoCommit(): Unit = wrapped.beginDoCommit()

  override def beginBackfill(): Unit = wrapped.beginBackfill()

  override def beginPostCommit(): Unit = wrapped.beginPostCommit()

  override def transactionCommitted(): Unit = wrapped.transactionCommitted()

  override def transactionAborted(): Unit = wrapped.transactionAborted()

  override def getNextObserver: Option[TransactionExecutionObserver] = wrapped.getNextObserver

  override def setNextObserver(next: TransactionExecutionObserver): Unit =
    wrapped.setNextObserver(next)

  override def advanceToNextThreadObserver(): Unit = wrapped.advanceToNextThreadObserver()
}

/** Creates guarding observers. */
object GuardingObserver {

  /** A guarding observer around `observer`; `observer` itself if it is one. */
  def around(observer: TransactionExecutionObserver): GuardingObserver = observer match {
    case guarding: GuardingObserver => guarding
    case other                      => new GuardingObserver(other)
  }

  /** The observer of every thread; one that other code sets is wrapped. */
  final class PerThread extends ThreadLocal[TransactionExecutionObserver] {

    override protected def initialValue(): TransactionExecutionObserver =
      around(NoOpTransactionExecutionObserver)

    override def set(observer: TransactionExecutionObserver): Unit = super.set(around(observer))
  }
}
