package org.icebergwritercompat.bench

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.writercompat.{RecordingObserver, Upgrading}

import java.nio.file.{Files, Path, Paths}

/**
 * Prints what it takes to switch the feature on for a table of many files that stock Delta made,
 * beside a SHALLOW CLONE of the same table, and beside writing files anew.
 *
 * Arguments: the number of files, by default 100 000.
 */
object UpgradeBenchmark {

  def main(args: Array[String]): Unit = ScratchFolder.use { folder =>
    val files = args.headOption.getOrElse("100000")
    val child =
      new ChildJvm("org.icebergwritercompat.bench.UpgradeWorker", folder.toString, files)
    try {
      val answer = child.answer().map(_.toDouble)
      val (clone, look, commit) = (answer(0), answer(1), answer(2))
      val (heap, rewritten, rewrite) = (answer(3), answer(4), answer(5))
      println(f"SHALLOW CLONE of $files files: $clone%.0f ms")
      println(f"upgrade: footers read in $look%.0f ms, committed in $commit%.0f ms")
      println(f"commit ÷ clone: ${commit / clone}%.2f (goal ≤ 1.5)")
      println(f"upgrade with footers ÷ clone: ${(look + commit) / clone}%.2f")
      println(f"heap in use afterwards: $heap%.0f MiB of 2048")
      println(f"rewrite of $rewritten%.0f files: ${rewrite / rewritten}%.1f ms a file")
      println(f"upgrade without rewrite: ${(look + commit) / files.toDouble}%.2f ms a file")
    } finally child.close()
  }
}

/** The JVM that measures. */
object UpgradeWorker {

  def main(args: Array[String]): Unit = {
    val spark = Sessions.start(Sessions.Guarded, args(0))
    val worker = new UpgradeWorker(spark, Paths.get(args(0)))
    // The first of each kind compiles what the others use.
    worker.measured("warm", 200)
    val taken = worker.measured("many", args(1).toInt)
    val rewritten = 500
    val rewrite = worker.rewrite(rewritten)
    println(ChildJvm.Answer + (taken ++ Seq(rewritten.toDouble, rewrite)).mkString(" "))
    spark.stop()
  }
}

private final class UpgradeWorker(spark: SparkSession, folder: Path) {

  private val columns = (1 to 10).map(i => s"id + $i AS c$i").mkString(", ")

  private val byName = "'delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true'"

  /** Milliseconds of a clone, a look at the footers and the commit; MiB of heap after them. */
  def measured(name: String, files: Int): Seq[Double] = {
    val table = made(name, files, byName)
    spark.sql(s"SELECT count(*) FROM delta.`$table`").collect()
    val clone = timed(spark.sql(s"CREATE TABLE delta.`$table-clone` SHALLOW CLONE delta.`$table`"))
    var committing = 0L
    val observer = new RecordingObserver {
      override def preparingCommit[T](f: => T): T = {
        committing = System.nanoTime
        f
      }
    }
    val begin = System.nanoTime
    TransactionExecutionObserver.withObserver(observer) {
      val result = Upgrading.of(spark, table.toString, "metadata", rewrite = false, Nil).run()
      require(result.filesKept == files)
    }
    val end = System.nanoTime
    System.gc()
    val runtime = Runtime.getRuntime
    val heap = (runtime.totalMemory - runtime.freeMemory) / (1024.0 * 1024.0)
    Seq(clone, (committing - begin) / 1e6, (end - committing) / 1e6, heap)
  }

  /** Milliseconds to write all files of a table anew. */
  def rewrite(files: Int): Double = {
    val table = made("anew", files, "'delta.columnMapping.mode' = 'none'")
    timed(Upgrading.of(spark, table.toString, "rewrite", rewrite = true, Nil).run())
  }

  // One file under many names, and as many copies of it as a file system lets have names.
  private def made(name: String, files: Int, properties: String): Path = {
    val table = folder.resolve(name)
    spark.sql(
      s"CREATE TABLE delta.`$table` USING delta TBLPROPERTIES ($properties) AS SELECT $columns " +
        "FROM range(0, 10, 1, 1)"
    )
    val log = DeltaLog.forTable(spark, table.toString)
    val file = log.update().allFiles.collect().head
    val added = (2 to files).iterator.map { i =>
      val path = s"f$i.parquet"
      val copied = s"f${i - i % linksPerFile}.parquet"
      if (i % linksPerFile == 0) Files.copy(table.resolve(file.path), table.resolve(path))
      else
        Files.createLink(
          table.resolve(path),
          table.resolve(if (i < linksPerFile) file.path else copied)
        )
      file.copy(path = path): AddFile
    }
    log
      .startTransaction(catalogTableOpt = None)
      .commitLarge(spark, added, None, DeltaOperations.ManualUpdate, Map.empty, Map.empty)
    table
  }

  private val linksPerFile = 10000

  private def timed(body: => Any): Double = {
    val begin = System.nanoTime
    body
    (System.nanoTime - begin) / 1e6
  }
}
