package org.icebergwritercompat.sql

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.writercompat.read.Sessions

import java.util.concurrent.{Executors, Future}
import scala.util.Try

/** One of many tables, and what became of it. */
private[sql] final case class OneOfMany[A](table: String, outcome: Try[A]) {

  /** What went wrong. */
  def failure: Option[Throwable] = outcome.failed.toOption

  /** The condition of what went wrong, if it has one. */
  def condition: Option[String] = failure.collect { case e: SparkThrowable => e.getCondition }
}

/** Does the same with many tables. */
private[sql] object ManyTables {

  /** How many tables are worked on at a time by default; `_parallel.py` has the same number. */
  val AtATime = 4

  /** The outcomes in the order of the tables; a table that fails does not stop the others. */
  def each[A](spark: SparkSession, tables: Seq[String], atATime: Int)(
      one: String => A
  ): Seq[OneOfMany[A]] = {
    // New threads, so that they inherit the local properties of this one, such as its job group.
    val threads = Executors.newFixedThreadPool(atATime)
    try {
      val running: Seq[Future[OneOfMany[A]]] = tables.map { table =>
        threads.submit(() => OneOfMany(table, Try(Sessions.active(spark)(one(table)))))
      }
      running.map(_.get)
    } finally {
      threads.shutdownNow()
      ()
    }
  }
}
