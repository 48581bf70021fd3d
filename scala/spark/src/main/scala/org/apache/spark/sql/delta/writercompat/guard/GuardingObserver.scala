package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta._

/**
 * Hands out a [[GuardedTransaction]] wherever Delta starts a transaction; all else is left to the
 * observer it wraps.
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

/** Makes observers guarding ones. */
object GuardingObserver {

  /** A guarding observer around `observer`, which may be one already. */
  def around(observer: TransactionExecutionObserver): GuardingObserver = observer match {
    case guarding: GuardingObserver => guarding
    case other                      => new GuardingObserver(other)
  }

  /** Every thread's observer; whoever sets another cannot take the guard away. */
  final class PerThread extends ThreadLocal[TransactionExecutionObserver] {

    override protected def initialValue(): TransactionExecutionObserver =
      around(NoOpTransactionExecutionObserver)

    override def set(observer: TransactionExecutionObserver): Unit = super.set(around(observer))
  }
}
