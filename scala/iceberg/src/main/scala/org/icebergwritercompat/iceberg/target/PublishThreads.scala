package org.icebergwritercompat.iceberg.target

import org.apache.iceberg.util.ThreadPools

import java.util.concurrent.ExecutorService

/** The threads that publishing works with. */
private[iceberg] object PublishThreads {

  /**
   * Not Iceberg's own pool: its threads may wait for publishing, because a client that commits asks
   * for the current metadata in them.
   */
  val pool: ExecutorService =
    ThreadPools.newFixedThreadPool("iceberg-writer-compat-publish", size)

  /** The number of threads. */
  lazy val size: Int = ThreadPools.WORKER_THREAD_POOL_SIZE
}
