package org.icebergwritercompat.bench

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.writercompat.RecordingObserver
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.icebergwritercompat.kernel.KernelTable
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{Compliance, TestTable}

import java.nio.file.{Files, Path, Paths}
import scala.concurrent.ExecutionContext.Implicits.global
import scala.concurrent.duration.Duration
import scala.concurrent.{Await, Future}
import scala.io.Source
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Times switching the feature on for tables of many files. */
object UpgradeBenchmark {

  // A task that writes a file takes milliseconds, so a few hundred of them are enough.
  private val few = 500

  def run(settings: Settings): Section = ScratchFolder.use { folder =>
    val many = if (settings.quick) 5000 else 100000
    val worker = new ChildJvm("org.icebergwritercompat.bench.UpgradeWorker", folder.toString)
    try {
      worker.answer()
      Seq("many" -> many, "few" -> few).foreach { case (name, files) =>
        worker.ask(s"make $name $files")
      }
      val questions =
        Seq("clone many", "upgrade many", "check many", "upgrade few", "rewrite few")
      val taken = (0 to (if (settings.quick) 2 else 4))
        .map { i =>
          val order = if (i % 2 == 0) questions else questions.reverse
          order.map(question => question -> worker.ask(question)).toMap
        }
        .drop(1)
      if (settings.verbose) Console.err.println(taken)
      def samples(question: String)(part: Seq[Double] => Double): Estimate.Samples =
        taken.map(answers => part(answers(question))).toVector
      worker.ask("upgrade many")
      prove(folder.resolve("many"), many)
      val heap = samples("upgrade many")(_(2)).max.round
      Section(
        "Switching the feature on",
        s"Tables with column mapping by name and IcebergCompatV2, in files of one row and ${UpgradeWorker.columns} columns, " +
          "most of them hard links to a few. A sample is one call of `enable_iceberg_writer_compat`, or of SHALLOW CLONE " +
          s"of the same table, which writes the same number of files to a log and opens none of them. After the upgrade " +
          s"of $many files at most $heap MB of the heap were live. Delta Kernel and an independent Parquet checker " +
          "then read all the files. The rewrite is that of the same table without column mapping.",
        Seq(
          Row.ratio(
            s"$many files, metadata only: the commit ÷ SHALLOW CLONE",
            samples("upgrade many")(_(1)),
            samples("clone many")(_.head),
            Some(Goal.atMost("1.5", 1.5))
          ),
          Row.ratio(
            s"$many files, metadata only: including the footers of all files ÷ SHALLOW CLONE",
            samples("upgrade many")(answer => answer(0) + answer(1)),
            samples("clone many")(_.head)
          ),
          Row.ratio(
            s"$many files: `check` with the load it begins with ÷ Delta's own load of the table",
            samples("check many")(_(1)),
            samples("check many")(_.head)
          ),
          Row.ratio(
            s"$few files: rewritten ÷ metadata only",
            samples("rewrite few")(_.head),
            samples("upgrade few")(answer => answer(0) + answer(1))
          )
        )
      )
    } finally worker.close()
  }

  // Opening all files one after the other takes minutes, so the two checks run in parallel.
  private def prove(folder: Path, files: Int): Unit = {
    val readByKernel = Future(new KernelTable(folder).count())
    val table = TestTable("many", folder)
    require(table.log.liveFiles.size == files)
    val problems = Compliance.problems(table)
    require(problems.isEmpty, problems.take(10).mkString("\n"))
    require(Await.result(readByKernel, Duration.Inf) == files)
  }
}

/** The child JVM that measures. */
object UpgradeWorker {

  val columns = 10

  def main(args: Array[String]): Unit = {
    val spark = Sessions.start(Sessions.Guarded, args(0))
    val worker = new UpgradeWorker(spark, Paths.get(args(0)))
    println(s"${ChildJvm.Answer}0")
    Source.stdin.getLines().foreach { line =>
      val answer = line.split(' ').toSeq match {
        case Seq("make", name, files) => worker.make(name, files.toInt); Seq(0d)
        case Seq("clone", name)       => Seq(worker.clone(name))
        case Seq("upgrade", name)     => worker.upgrade(name)
        case Seq("check", name)       => worker.check(name)
        case Seq("rewrite", name)     => Seq(worker.rewrite(name))
        case other                    => sys.error(other.mkString(" "))
      }
      println(ChildJvm.Answer + answer.mkString(" "))
    }
    spark.stop()
  }
}

private final class UpgradeWorker(spark: SparkSession, folder: Path) {

  private val byName = "'delta.columnMapping.mode' = 'name', 'delta.enableIcebergCompatV2' = 'true'"

  /** Makes a table with column mapping, and one without. */
  def make(name: String, files: Int): Unit = {
    made(name, files, byName)
    if (files < linksPerFile) made(unmapped(name), files, "'delta.columnMapping.mode' = 'none'")
  }

  /** The milliseconds of a SHALLOW CLONE. */
  def clone(name: String): Double = {
    val table = asMade(name)
    val target = folder.resolve("clone")
    if (Files.exists(target)) ScratchFolder.delete(target)
    timed(spark.sql(s"CREATE TABLE delta.`$target` SHALLOW CLONE delta.`$table`"))
  }

  /** Milliseconds of reading the footers and of the commit, and live MB of heap after them. */
  def upgrade(name: String): Seq[Double] = {
    val table = asMade(name)
    var committing = 0L
    val observer = new RecordingObserver {
      override def preparingCommit[T](f: => T): T = {
        committing = System.nanoTime
        f
      }
    }
    val begin = System.nanoTime
    TransactionExecutionObserver.withObserver(observer) {
      val result = TableUpgrade.of(spark, table.toString, "metadata", rewrite = false, Nil).run()
      require(result.changed && result.filesRewritten == 0)
    }
    val end = System.nanoTime
    System.gc()
    val runtime = Runtime.getRuntime
    Seq(
      (committing - begin) / 1e6,
      (end - committing) / 1e6,
      (runtime.totalMemory - runtime.freeMemory) / 1e6
    )
  }

  /** Milliseconds until Delta has all files of a table in memory, and of a `check`. */
  def check(name: String): Seq[Double] = {
    val table = asMade(name)
    def load() = {
      DeltaLog.clearCache()
      DeltaLog.forTable(spark, table.toString).update().allFiles.count()
    }
    load()
    Seq(
      timed(load()),
      timed {
        DeltaLog.clearCache()
        Reports.check(spark, table.toString, None)
      }
    )
  }

  /** Milliseconds to rewrite all files of the table without column mapping. */
  def rewrite(name: String): Double = {
    val table = asMade(unmapped(name))
    timed {
      val result = TableUpgrade.of(spark, table.toString, "rewrite", rewrite = true, Nil).run()
      require(result.changed && result.filesKept == 0)
    }
  }

  private def unmapped(name: String): String = s"$name-unmapped"

  // Hard links to a few copies of one file: a file system limits the links to one file.
  private def made(name: String, files: Int, properties: String): Unit = {
    val table = folder.resolve(name)
    val columns = (1 to UpgradeWorker.columns).map(i => s"id + $i AS c$i").mkString(", ")
    spark.sql(
      s"CREATE TABLE delta.`$table` USING delta TBLPROPERTIES ($properties) AS SELECT $columns " +
        "FROM range(0, 1, 1, 1)"
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
    copy(logOf(name), keptOf(name))
  }

  private val linksPerFile = 10000

  private def logOf(name: String): Path = folder.resolve(name).resolve("_delta_log")

  private def keptOf(name: String): Path = folder.resolve(s"$name-log")

  // The table before the upgrade, with its state in memory. An upgrade does not change its files.
  private def asMade(name: String): Path = {
    ScratchFolder.delete(logOf(name))
    copy(keptOf(name), logOf(name))
    DeltaLog.clearCache()
    spark.sql(s"SELECT count(*) FROM delta.`${folder.resolve(name)}`").collect()
    folder.resolve(name)
  }

  private def copy(from: Path, to: Path): Unit =
    Using.resource(Files.walk(from)) { paths =>
      paths.iterator.asScala.foreach { path =>
        Files.copy(path, to.resolve(from.relativize(path).toString))
      }
    }

  private def timed(body: => Any): Double = {
    val begin = System.nanoTime
    body
    (System.nanoTime - begin) / 1e6
  }
}
