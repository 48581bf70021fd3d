package org.apache.spark.sql.delta.writercompat.writeback

import org.scalatest.Outcome

import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{Executors, Future, TimeUnit}

/**
 * Iceberg clients and Delta write to one table at once. With `-Dseconds=60` they do so for a
 * minute: `build/sbt "spark41/testOnly *RacingClientsSuite -- -Dseconds=60"`.
 */
class RacingClientsSuite extends ClientSuite {

  private val (clients, deltas) = (4, 2)

  private var seconds = 0L

  private val atLeast = 3

  override def withFixture(test: NoArgTest): Outcome = {
    test.configMap.get("seconds").foreach(given => seconds = given.toString.toLong)
    super.withFixture(test)
  }

  test("four Iceberg clients and two writers by Delta at once: each row is there once") {
    val table = numbers()
    // Lost races are tried again by Iceberg's own client, as often as it needs.
    sql(
      s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('iceberg.commit.retry.num-retries' = '200', " +
        "'iceberg.commit.retry.min-wait-ms' = '5', 'iceberg.commit.retry.max-wait-ms' = '200', " +
        "'iceberg.commit.retry.total-timeout-ms' = '600000')"
    )
    val end = System.nanoTime + TimeUnit.SECONDS.toNanos(seconds)
    val written = Seq.fill(clients + deltas)(new AtomicInteger)
    val threads = Executors.newFixedThreadPool(clients + deltas)
    def start(writer: Int)(write: Long => Unit): Future[_] =
      threads.submit(new Runnable {
        override def run(): Unit =
          while (written(writer).get < atLeast || System.nanoTime < end) {
            write(writer * 1000000L + written(writer).get)
            written(writer).incrementAndGet()
          }
      })
    try {
      val running = (0 until clients).map { writer =>
        val there = newCatalog().loadTable(id(table))
        start(writer) { key => append(there, Seq(key, "client")); () }
      } ++ (clients until clients + deltas).map { writer =>
        start(writer)(key => sql(s"INSERT INTO ${table.name} VALUES ($key, 'delta')"))
      }
      running.foreach(_.get(15, TimeUnit.MINUTES))
    } finally threads.shutdownNow()
    val counts = written.map(_.get)
    info(
      s"${counts.take(clients).mkString(", ")} commits by clients, ${counts.drop(clients).mkString(", ")} by Delta"
    )
    val wanted = for {
      (n, writer) <- counts.zipWithIndex; i <- 0 until n
    } yield s"[${writer * 1000000L + i}]"
    assert(
      spark
        .sql(s"SELECT id FROM ${table.name}")
        .collect()
        .map(_.toString)
        .toSeq
        .sorted == wanted.sorted
    )
    assert(table.log.version == 1 + counts.sum)
    // One snapshot for each commit, and the clients' own among them.
    val published = snapshots(table)
    assert(published.map(_.summary.get("delta-version").toLong).distinct.size == published.size)
    assert(published.count(_.summary.containsKey("delta-by-client")) == counts.take(clients).sum)
    assertSame(table)
  }
}
