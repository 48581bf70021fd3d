package org.icebergwritercompat.bench

import org.apache.hadoop.conf.Configuration
import org.apache.iceberg.{BaseTable, DataFile, ManifestFiles, TableMetadata}
import org.apache.iceberg.hadoop.HadoopTables
import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations}
import org.apache.spark.sql.delta.actions.AddFile
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.testing.{CommitLine, MemoryTarget}
import org.icebergwritercompat.iceberg.target.PathTableOperations
import com.sun.management.OperatingSystemMXBean

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path, Paths}
import scala.io.Source
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Times publishing: one commit, for tables of two sizes, and the first publishing of a table. */
object PublishBenchmark {

  private val (small, control, large) = ("small", "control", "large")
  private val few = 100
  private val goal = Some(Goal.atMost("1.5", 1.5))

  def run(settings: Settings): Section = ScratchFolder.use { folder =>
    val many = if (settings.quick) 10000 else 100000
    val worker = new ChildJvm("org.icebergwritercompat.bench.PublishWorker", folder.toString)
    try {
      worker.answer()
      val tables = Seq(small -> few, control -> few, large -> many)
      tables.foreach { case (name, files) => worker.ask(s"table $name $files") }
      // The first calls of both are not measured: their code is not compiled yet.
      val firstTimes = if (settings.quick) 2 else 5
      val firsts = (0 until firstTimes)
        .map { i =>
          val order = if (i % 2 == 0) Seq("first", "own") else Seq("own", "first")
          order.map(what => what -> worker.ask(s"$what $large")).toMap
        }
        .drop(1)
      val heap = worker.ask("heap").map(_.round)
      val commits = Seq("append", "remove").map { what =>
        val order = tables.map(_._1)
        val taken = (0 until (if (settings.quick) 6 else 22)).map { i =>
          (if (i % 2 == 0) order else order.reverse)
            .map(name => name -> worker.ask(s"$what $name").head)
            .toMap
        }
        what -> taken.drop(taken.size / 7)
      }
      if (settings.verbose) Console.err.println(s"$firsts\n$commits")
      def samples(of: Seq[Map[String, Double]], name: String) = of.map(_(name)).toVector
      val rows = commits.flatMap { case (what, taken) =>
        Seq(large -> goal, control -> None).map { case (name, wanted) =>
          val files = if (name == control) "control: another table of 100" else s"$many files ÷ 100"
          Row.ratio(
            s"a commit that ${what}s one file, $files",
            samples(taken, name),
            samples(taken, small),
            wanted
          )
        }
      }
      Section(
        "Publishing as Iceberg",
        s"One guarded session; unpartitioned tables of ${PublishWorker.columns} columns with statistics of all of them. " +
          "A sample is one call of `publish` after one commit of one file; the tables take turns. The first publishing of " +
          s"$many files, from Delta's state in memory, is compared with one `FastAppend` of the same `DataFile`s, which " +
          s"were made before, by iceberg-core itself. CPU time is that of the whole JVM. Live heap before and after these: ${heap.mkString(" and ")} MB.",
        rows ++ Seq("" -> 0, ", CPU time" -> 1).map { case (what, at) =>
          val taken = firsts.map(_.view.mapValues(_(at)).toMap)
          Row.ratio(
            s"the first publishing of $many files ÷ an append of Iceberg's$what",
            samples(taken, "first"),
            samples(taken, "own"),
            Some(Goal.atMost("1.2", 1.2))
          )
        }
      )
    } finally worker.close()
  }
}

/** Measures publishing after many commits of one file each, and the size of the metadata folder. */
object GrowthBenchmark {

  private val base = 100

  def run(settings: Settings): Section = ScratchFolder.use { folder =>
    val lengths = if (settings.quick) Seq(10, base, 1000) else Seq(10, base, 1000, 10000)
    val control = "control"
    val worker = new ChildJvm("org.icebergwritercompat.bench.PublishWorker", folder.toString)
    try {
      worker.answer()
      val tables = lengths.map(n => s"of$n" -> n) :+ (control -> base)
      tables.foreach { case (name, snapshots) => worker.ask(s"history $name $snapshots") }
      val sizes = tables.map { case (name, _) => name -> worker.ask(s"size $name") }.toMap
      val order = tables.map(_._1)
      val taken = (0 until (if (settings.quick) 8 else 24))
        .map { i =>
          (if (i % 2 == 0) order else order.reverse)
            .map(name => name -> worker.ask(s"append $name").head)
            .toMap
        }
        .drop(4)
      if (settings.verbose) Console.err.println(s"$sizes\n$taken")
      def samples(name: String) = taken.map(_(name)).toVector
      def megabytes(name: String) = sizes(name).head / 1e6
      def count(what: String, value: Double, unit: String, goal: Option[Goal]) =
        Row(what, None, None, Estimate(value, value, value), unit, goal)
      val times = lengths.filter(_ != base).map { n =>
        val goal = Map(1000 -> Goal.atMost("1.5", 1.5), 10000 -> Goal.atMost("2.5", 2.5)).get(n)
        Row.ratio(
          s"publishing a commit at $n snapshots ÷ $base",
          samples(s"of$n"),
          samples(s"of$base"),
          goal
        )
      }
      val bytes = lengths.map { n =>
        val goal = Map(1000 -> Goal.atMost("25 MB", 25)).get(n)
        val files = sizes(s"of$n")(1).toInt
        count(s"the folder after $n commits, $files files", megabytes(s"of$n"), " MB", goal)
      }
      val growth = lengths.sliding(2).collect { case Seq(few, many) =>
        count(
          s"the folder after $many commits ÷ after $few",
          megabytes(s"of$many") / megabytes(s"of$few"),
          "",
          Option.when(few >= 1000)(Goal.atMost("12", 12))
        )
      }
      Section(
        "Publishing commit after commit",
        s"One guarded session; unpartitioned tables of ${PublishWorker.columns} columns with statistics of all of them, " +
          "made by commits that append one file, each with a snapshot that is kept. A sample is one call of `publish` after " +
          "one more such commit; the tables take turns. The histories are made by the publisher; only their last " +
          "versions of the metadata are written. Sizes are exact, without the checksums of the local disk's blocks.",
        times ++ Seq(
          Row.ratio(
            s"control: another table of $base snapshots",
            samples(control),
            samples(s"of$base")
          )
        ) ++ bytes ++ growth
      )
    } finally worker.close()
  }
}

/** The child JVM that publishes and measures. */
object PublishWorker {

  val columns = 20

  def main(args: Array[String]): Unit = {
    val worker = new PublishWorker(Paths.get(args(0)))
    println(s"${ChildJvm.Answer}0")
    Source.stdin.getLines().foreach { line =>
      val answer = line.split(' ').toSeq match {
        case Seq("table", name, files)       => worker.table(name, files.toInt); Seq(0d)
        case Seq("append", name)             => Seq(worker.append(name))
        case Seq("remove", name)             => Seq(worker.remove(name))
        case Seq("first", name)              => worker.first(name)
        case Seq("own", name)                => worker.own(name)
        case Seq("heap")                     => worker.heap
        case Seq("history", name, snapshots) =>
          worker.history(name, snapshots.toInt)
          Seq(0d)
        case Seq("size", name) => worker.size(name)
        case other             => sys.error(other.mkString(" "))
      }
      println(ChildJvm.Answer + answer.mkString(" "))
    }
    worker.stop()
  }
}

private final class PublishWorker(folder: Path) {

  private val spark = Sessions.start(Sessions.Guarded, folder.toString)

  private var made = 0
  private var heapBefore = 0d
  private var heapAfter = 0d
  private var removed = Map.empty[String, Long]
  private var added = Map.empty[String, Long]

  def stop(): Unit = spark.stop()

  def heap: Seq[Double] = Seq(heapBefore, heapAfter)

  private def path(name: String): Path = folder.resolve(name)

  private def log(name: String): DeltaLog = DeltaLog.forTable(spark, path(name).toString)

  /** A table that is published. */
  def table(name: String, files: Int): Unit = {
    val definition = Iterator
      .tabulate(PublishWorker.columns)(i => s"column_$i ${if (i % 2 == 0) "BIGINT" else "STRING"}")
      .mkString(", ")
    spark.sql(
      s"CREATE TABLE delta.`${path(name)}` ($definition) USING delta TBLPROPERTIES " +
        s"('${WriterCompat.Enabled}' = 'true', 'delta.checkpointInterval' = '10000')"
    )
    commit(name, files)
    publish(name)
    ()
  }

  /**
   * A table with this number of snapshots, each of one added file. To save time, all but the last
   * are in one Delta commit, and their metadata is written once; the last ones are published one by
   * one, so that the folder contains the same kinds of files as after normal publishing.
   */
  def history(name: String, snapshots: Int): Unit = {
    table(name, 1)
    val ones = math.min(snapshots - 1, 12)
    val chained = snapshots - 1 - ones
    if (chained > 0) {
      commit(name, chained)
      val version = log(name).update().version
      val root = log(name).dataPath
      val real = new PathTableOperations(
        name,
        root,
        new Configuration
      )
      val memory = new MemoryTarget(real)
      val line = new CommitLine(root, memory, PublishWorker.columns)
      (1 to chained).foreach(i => line.append(version, f"$i%08d"))
      real.commit(real.current(), memory.current())
    }
    (1 to ones).foreach(_ => append(name))
  }

  /** The bytes and files in the folder of a table's metadata. */
  def size(name: String): Seq[Double] =
    Using.resource(Files.list(path(name).resolve("metadata"))) { files =>
      val sizes = files.iterator.asScala
        .filterNot(_.getFileName.toString.startsWith("."))
        .map(file => Files.size(file))
        .toVector
      Seq(sizes.sum.toDouble, sizes.size.toDouble)
    }

  /** The milliseconds of publishing a commit that adds a file. */
  def append(name: String): Double = {
    commit(name, 1)
    publish(name)
  }

  /** The milliseconds of publishing a commit that removes the oldest file. */
  def remove(name: String): Double = {
    val number = removed.getOrElse(name, 7L)
    removed += name -> (number + 1)
    val gone = addFile(name, number, "{}").remove
    log(name).startTransaction(None).commit(Seq(gone), DeltaOperations.ManualUpdate)
    publish(name)
  }

  /** The milliseconds and the CPU time of the first publishing of a table. */
  def first(name: String): Seq[Double] = {
    log(name).update().allFiles.count()
    heapBefore = liveHeap
    ScratchFolder.delete(path(name).resolve("metadata"))
    System.gc()
    val taken = withCpu(publish(name))
    heapAfter = liveHeap
    taken
  }

  /**
   * The milliseconds and the CPU time in which Iceberg's library appends the same files to an
   * Iceberg table.
   */
  def own(name: String): Seq[Double] = {
    val tables = new HadoopTables(new Configuration)
    val published = tables.load(path(name).toString).asInstanceOf[BaseTable].operations
    val files = dataFiles(published.current, published.io)
    made += 1
    val target = tables.create(
      published.current.schema,
      published.current.spec,
      folder.resolve(s"own-$made").toString
    )
    System.gc()
    withCpu(millis {
      val append = target.newFastAppend()
      files.foreach(append.appendFile)
      append.commit()
    })
  }

  private val system = ManagementFactory.getPlatformMXBean(classOf[OperatingSystemMXBean])

  private def withCpu(millis: => Double): Seq[Double] = {
    val begin = system.getProcessCpuTime
    val taken = millis
    Seq(taken, (system.getProcessCpuTime - begin) / 1e6)
  }

  private def dataFiles(
      table: TableMetadata,
      io: org.apache.iceberg.io.FileIO
  ): Vector[DataFile] =
    table.currentSnapshot.dataManifests(io).asScala.toVector.flatMap { manifest =>
      Using.resource(ManifestFiles.read(manifest, io, table.specsById)) { reader =>
        Using.resource(reader.iterator())(_.asScala.map(_.copy()).toVector)
      }
    }

  private def liveHeap: Double = {
    System.gc()
    val runtime = Runtime.getRuntime
    (runtime.totalMemory - runtime.freeMemory) / 1e6
  }

  private def publish(name: String): Double =
    millis(IcebergWriterCompat.publish(spark, path(name).toString))

  private def fileName(table: String, number: Long): String =
    f"part-00000-$number%08d-4c1f-4f8e-9d55-$table-c000.snappy.parquet"

  private def addFile(table: String, number: Long, statistics: String): AddFile = AddFile(
    path = fileName(table, number),
    partitionValues = Map.empty,
    size = 1048576,
    modificationTime = 1700000000000L,
    dataChange = true,
    stats = statistics
  )

  private val random = new scala.util.Random(42)

  private def commit(name: String, files: Int): Unit = {
    val log = this.log(name)
    val from = added.getOrElse(name, 0L)
    added += name -> (from + files)
    val actions = Vector.tabulate(files)(i =>
      addFile(name, from + i, CommitLine.statistics(PublishWorker.columns, random))
    )
    log.startTransaction(None).commit(actions, DeltaOperations.Write(SaveMode.Append, Some(Nil)))
    ()
  }

  private def millis(block: => Any): Double = {
    val begin = System.nanoTime
    block
    (System.nanoTime - begin) / 1e6
  }
}
