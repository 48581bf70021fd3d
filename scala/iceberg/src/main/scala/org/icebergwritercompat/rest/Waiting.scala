package org.icebergwritercompat.rest

import java.util.concurrent.{Executors, Semaphore, ThreadFactory, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger
import scala.collection.mutable

/**
 * Works on requests: so many at a time, so many waiting, and those that change one table one after
 * the other, in their order, without a thread that waits for them.
 */
private[rest] final class Waiting(limits: RestLimits) {

  private val places = limits.workers + limits.waiting

  // Whoever has come in has one until the answer is sent.
  private val free = new Semaphore(places)

  private val number = new AtomicInteger

  private val threads: ThreadFactory = task => {
    val thread = new Thread(task, s"iceberg-rest-${number.incrementAndGet()}")
    thread.setDaemon(true)
    thread
  }

  private val pool = Executors.newFixedThreadPool(limits.workers, threads)

  private val lines = mutable.HashMap.empty[String, mutable.Queue[Runnable]]

  /** Takes a request in; false if there is no room. It must [[leave]]. */
  def enter(): Boolean = free.tryAcquire()

  /** The answer to a request is sent. */
  def leave(): Unit = free.release()

  /** Runs something soon. */
  def run(task: Runnable): Unit = pool.execute(task)

  /**
   * Runs something when all that came before it in the line is done; returns at once or after it.
   */
  def inLine(line: String)(task: Runnable): Unit = {
    val isFirst = lines.synchronized {
      lines.get(line) match {
        case Some(before) => before.enqueue(task); false
        case None         => lines.put(line, mutable.Queue.empty); true
      }
    }
    if (isFirst) work(line, task)
  }

  private def work(line: String, task: Runnable): Unit =
    try task.run()
    finally {
      val next = lines.synchronized {
        val following = lines(line).removeHeadOption()
        if (following.isEmpty) lines.remove(line)
        following
      }
      // Lines take turns.
      next.foreach(waiting => pool.execute(() => work(line, waiting)))
    }

  /** Waits until all answers are sent, and ends; false if that took too long. */
  def end(): Boolean = {
    val all = free.tryAcquire(places, limits.stopSeconds.toLong, TimeUnit.SECONDS)
    pool.shutdown()
    all
  }
}
