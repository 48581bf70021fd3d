package org.icebergwritercompat.bench

import com.sun.management.OperatingSystemMXBean
import org.apache.iceberg.catalog.{Catalog, Namespace, TableIdentifier}
import org.apache.iceberg.data.GenericRecord
import org.apache.iceberg.data.parquet.GenericParquetWriter
import org.apache.iceberg.jdbc.JdbcCatalog
import org.apache.iceberg.parquet.Parquet
import org.apache.iceberg.types.Types
import org.apache.iceberg.{
  BaseTable,
  DataFile,
  DataFiles,
  FileFormat,
  ManifestFiles,
  PartitionSpec,
  Schema,
  Table
}
import org.apache.parquet.schema.MessageType
import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations}
import org.apache.spark.sql.delta.actions.AddFile
import org.icebergwritercompat.DeltaIcebergCatalog
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.testing.{CommitLine, QuickLocalFs}

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path, Paths}
import java.util.UUID
import scala.collection.mutable
import scala.io.Source
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Times commits of Iceberg clients through Delta, against Iceberg's own and against Delta's. */
object WriteBackBenchmark {

  private val kinds = Seq("client", "own", "delta")

  def run(settings: Settings): Section = ScratchFolder.use { folder =>
    val sizes = Seq(10, 1000, 100000)
    val many = if (settings.quick) Seq(1000) else Seq(1000, 50000)
    val appends = appended(settings, folder, sizes)
    val large = many.map(files => files -> committed(settings, folder, files))
    if (settings.verbose) Console.err.println(s"$appends\n$large")
    def samples(kind: String, files: Int, at: Int) =
      appends.map(_(kind -> files)(at)).toVector
    val ratios = for {
      files <- sizes
      (at, what) <- Seq(0 -> "", 1 -> ", CPU time")
      (baseline, title, limit) <- Seq(
        ("own", "Iceberg's own JDBC catalog", 2.0),
        ("delta", "a Delta commit with publishing", 1.3)
      )
    } yield Row.ratio(
      s"an append at $files files ÷ $title$what",
      samples("client", files, at),
      samples(baseline, files, at),
      Some(Goal.atMost(s"$limit", limit))
    )
    val flat = Row.ratio(
      s"an append at ${sizes.last} files ÷ at ${sizes.head}",
      samples("client", sizes.last, 0),
      samples("client", sizes.head, 0)
    )
    val single = large.flatMap { case (files, taken) =>
      def of(kind: String, at: Int) = taken(kind).map(_(at)).toVector
      Seq(
        Row.ratio(s"one commit of $files files ÷ Iceberg's own", of("client", 0), of("own", 0)),
        Row.ratio(
          s"one commit of $files files ÷ Delta with publishing",
          of("client", 0),
          of("delta", 0)
        )
      )
    }
    Section(
      "An Iceberg client's commit",
      s"One guarded session; unpartitioned tables of ${WriteBackWorker.columns} columns, none of whose live files but the " +
        "new one has to exist. *Append* is `newAppend().appendFile(file).commit()` of Iceberg's library, with a file of one " +
        "row that was written before; through `DeltaIcebergCatalog`, and through Iceberg's own JDBC catalog on SQLite. The " +
        "commit of Delta is `OptimisticTransaction.commit` of such a file with statistics of all columns, with the hook that " +
        "publishes. The tables take turns. All write through Hadoop's local file system with system calls in place of " +
        "the programs that it starts (`chmod`, `readlink`), as object stores need none. Commits of many files run in a JVM " +
        "of their own with a heap of 512 MB; their footers are read by tasks.",
      ratios ++ Seq(flat) ++ single
    )
  }

  private def appended(settings: Settings, folder: Path, sizes: Seq[Int]) = {
    val worker =
      new ChildJvm("org.icebergwritercompat.bench.WriteBackWorker", folder.resolve("a").toString)
    try {
      worker.answer()
      val tables = for { files <- sizes; kind <- kinds } yield kind -> files
      tables.foreach { case (kind, files) => worker.ask(s"table $kind $files") }
      val taken = (0 until (if (settings.quick) 12 else 34)).map { i =>
        (if (i % 2 == 0) tables else tables.reverse).map { case (kind, files) =>
          (kind, files) -> worker.ask(s"append $kind $files")
        }.toMap
      }
      taken.drop(taken.size / 4)
    } finally worker.close()
  }

  private def committed(settings: Settings, folder: Path, files: Int) = {
    val worker = new ChildJvm(
      "org.icebergwritercompat.bench.WriteBackWorker",
      Seq(folder.resolve(s"b$files").toString),
      Seq("-Xms512m", "-Xmx512m", "-Xss4m")
    )
    try {
      worker.answer()
      kinds.foreach(kind => worker.ask(s"table $kind 10"))
      val taken = (0 until (if (settings.quick) 2 else 4)).map { i =>
        (if (i % 2 == 0) kinds else kinds.reverse)
          .map(kind => kind -> worker.ask(s"many $kind 10 $files"))
          .toMap
      }
      kinds.map(kind => kind -> taken.drop(1).map(_(kind))).toMap
    } finally worker.close()
  }
}

/** The child JVM that commits and measures. */
object WriteBackWorker {

  val columns = 20

  def main(args: Array[String]): Unit = {
    val worker = new WriteBackWorker(Paths.get(args(0)))
    println(s"${ChildJvm.Answer}0")
    Source.stdin.getLines().foreach { line =>
      val answer = line.split(' ').toSeq match {
        case Seq("table", kind, files)       => worker.table(kind, files.toInt); Seq(0d)
        case Seq("append", kind, files)      => worker.append(kind, files.toInt)
        case Seq("load", kind, files)        => worker.load(kind, files.toInt)
        case Seq("many", kind, files, count) => worker.many(kind, files.toInt, count.toInt)
        case other                           => sys.error(other.mkString(" "))
      }
      println(ChildJvm.Answer + answer.mkString(" "))
    }
    worker.stop()
  }
}

private final class WriteBackWorker(folder: Path) {

  private val spark = Sessions.start(
    Sessions.Guarded,
    folder.toString,
    Map(
      "spark.hadoop.fs.AbstractFileSystem.file.impl" -> classOf[QuickLocalFs].getName,
      "spark.hadoop.fs.file.impl" -> classOf[QuickLocalFs.AsFileSystem].getName
    )
  )

  private val schema = new Schema((0 until WriteBackWorker.columns).map { i =>
    val of = if (i % 2 == 0) Types.LongType.get else Types.StringType.get
    Types.NestedField.optional(i + 1, s"column_$i", of)
  }.asJava)

  private val delta: Catalog = {
    val made = new DeltaIcebergCatalog
    made.initialize("ice", java.util.Map.of())
    made
  }

  private lazy val own: Catalog = {
    Files.createDirectories(folder)
    val made = jdbc(new JdbcCatalog)
    made.createNamespace(namespace)
    made
  }

  private def jdbc(made: JdbcCatalog): JdbcCatalog = {
    made.setConf(spark.sessionState.newHadoopConf())
    made.initialize(
      "own",
      java.util.Map.of(
        "uri",
        s"jdbc:sqlite:$folder/own.db",
        "warehouse",
        folder.resolve("own").toUri.toString,
        "jdbc.schema-version",
        "V1"
      )
    )
    made
  }

  private val namespace = Namespace.of("default")

  private val tables = mutable.Map.empty[(String, Int), Table]

  private val random = new scala.util.Random(42)

  private var made = 0L

  private val servers = mutable.Map.empty[String, ServedCatalog]

  def stop(): Unit = {
    servers.values.foreach(_.close())
    spark.stop()
  }

  /** A catalog behind a server in this process, by the kind of its tables. */
  private def served(kind: String): Option[ServedCatalog] = Option.when(kind.endsWith("served")) {
    servers.getOrElseUpdate(
      kind,
      if (isOwn(kind)) ServedCatalog.of(new ServedJdbc(jdbc(_), folder), spark)
      else ServedCatalog.of(spark)
    )
  }

  private def isOwn(kind: String): Boolean = kind.startsWith("own")

  private def id(kind: String, files: Int): TableIdentifier =
    TableIdentifier.of(namespace, s"t_${kind}_$files")

  /** The milliseconds of loading a table that has not changed, and of asking whether it has. */
  def load(kind: String, files: Int): Seq[Double] =
    servers(kind).load(id(kind, files))

  /** A table with this number of files. */
  def table(kind: String, files: Int): Unit = {
    val options = java.util.Map.of("write.metadata.delete-after-commit.enabled", "true")
    val there = (if (isOwn(kind)) own else delta)
      .createTable(id(kind, files), schema, PartitionSpec.unpartitioned, options)
    if (!isOwn(kind))
      spark.sql(
        s"ALTER TABLE ${id(kind, files)} SET TBLPROPERTIES ('delta.checkpointInterval' = '100000'" +
          (if (kind == "delta") s", '${WriterCompat.Publish}' = 'true')" else ")")
      )
    if (isOwn(kind)) {
      val append = there.newFastAppend()
      (0 until files).foreach(i => append.appendFile(unreal(there, i)))
      append.commit()
    } else {
      commit(there, Vector.tabulate(files)(i => added(s"data/unreal-$i.parquet", 1048576)))
      there.refresh()
    }
    tables(kind -> files) = served(kind).fold(there)(_.catalog.loadTable(id(kind, files)))
  }

  private def unreal(there: Table, number: Int): DataFile =
    DataFiles
      .builder(there.spec)
      .withPath(s"${there.location}/data/unreal-$number.parquet")
      .withFormat(FileFormat.PARQUET)
      .withFileSizeInBytes(1048576)
      .withRecordCount(100000)
      .build()

  private def log(there: Table): DeltaLog = DeltaLog.forTable(spark, there.location)

  private def commit(there: Table, files: Seq[AddFile]): Unit = {
    log(there)
      .startTransaction(None)
      .commit(files, DeltaOperations.Write(SaveMode.Append, Some(Nil)))
    ()
  }

  private def added(path: String, size: Long): AddFile = AddFile(
    path = path,
    partitionValues = Map.empty,
    size = size,
    modificationTime = 1700000000000L,
    dataChange = true,
    stats = CommitLine.statistics(WriteBackWorker.columns, random)
  )

  /** The milliseconds and the CPU time of an append of one file. */
  def append(kind: String, files: Int): Seq[Double] = {
    val there = tables(kind -> files)
    val file = written(there)
    if (kind == "delta") {
      val add = added(relative(file), file.fileSizeInBytes)
      measured(commit(there, Seq(add)))
    } else measured(there.newAppend().appendFile(file).commit())
  }

  /** The same of a commit of many files, which are given by their manifest. */
  def many(kind: String, files: Int, count: Int): Seq[Double] = {
    val there = tables(kind -> files)
    val first = written(there)
    val source =
      Paths.get(new java.net.URI(new org.apache.hadoop.fs.Path(first.location).toUri.toString))
    made += 1
    // So many links as a file can have in any file system.
    var original = source
    val paths = (0 until count).map { i =>
      val link = source.resolveSibling(s"many-$made-$i.parquet")
      if (i % 10000 == 0) {
        Files.copy(source, link)
        original = link
      } else Files.createLink(link, original)
      link
    }
    System.gc()
    if (kind == "delta") {
      val adds = paths.map { path =>
        added(s"data/${path.getFileName}", first.fileSizeInBytes)
      }
      measured(commit(there, adds))
    } else {
      val manifest = there.asInstanceOf[BaseTable].operations.current.location +
        s"/metadata/${UUID.randomUUID}-m0.avro"
      val writer = ManifestFiles.write(there.spec, there.io.newOutputFile(manifest))
      Using.resource(writer) { w =>
        paths.foreach { path =>
          w.add(DataFiles.builder(there.spec).copy(first).withPath(s"file:$path").build())
        }
      }
      measured(there.newFastAppend().appendManifest(writer.toManifestFile).commit())
    }
  }

  private def relative(file: DataFile): String =
    file.location.substring(file.location.lastIndexOf("/data/") + 1)

  // With one row.
  private def written(there: Table): DataFile = {
    val writer = Parquet
      .writeData(
        there.io.newOutputFile(
          there.locationProvider.newDataLocation(s"${UUID.randomUUID}.parquet")
        )
      )
      .schema(there.schema)
      .withSpec(there.spec)
      .createWriterFunc((s: Schema, t: MessageType) => GenericParquetWriter.create(s, t))
      .build[GenericRecord]()
    val row = GenericRecord.create(there.schema)
    (0 until WriteBackWorker.columns).foreach { i =>
      row.set(i, if (i % 2 == 0) Long.box(random.nextLong()) else s"text $i")
    }
    Using.resource(writer)(_.write(row: GenericRecord))
    writer.toDataFile
  }

  private val system = ManagementFactory.getPlatformMXBean(classOf[OperatingSystemMXBean])

  private def measured(block: => Any): Seq[Double] = {
    val (begin, ran) = (System.nanoTime, system.getProcessCpuTime)
    block
    Seq((System.nanoTime - begin) / 1e6, (system.getProcessCpuTime - ran) / 1e6)
  }
}
