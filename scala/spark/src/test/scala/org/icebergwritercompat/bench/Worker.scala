package org.icebergwritercompat.bench

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations, Snapshot}
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{Lifecycle, Profile}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.{FileStatistics, WriterCompat}
import org.apache.spark.sql.delta.writercompat.datafiles.DataActionConverter
import org.apache.spark.sql.delta.writercompat.read.TableStates

import java.nio.file.{Files, Path, Paths}
import scala.collection.mutable
import scala.io.Source

/** The kinds of tables that are compared. */
object Layout {

  /** A table with the feature. */
  val Compat = "compat"

  /** The same table without the feature: IcebergCompatV2, id mode, physical names `col-<id>`. */
  val Twin = "twin"

  /** IcebergCompatV2 and id mode, with the physical names of 40 letters that Delta assigns. */
  val Uuid = "uuid"
}

/** The child JVM that makes tables and measures. */
object Worker {

  def main(args: Array[String]): Unit = {
    val (kind, folder) = (args(0), args(1))
    val worker = new Worker(kind, Paths.get(folder))
    println(s"${ChildJvm.Answer}0")
    Source.stdin.getLines().foreach { line =>
      val answer = line.split(' ').toSeq match {
        case Seq("fresh", layout, columns)         => worker.fresh(layout, columns.toInt); Seq(0d)
        case Seq("commit", layout, columns, files) =>
          Seq(worker.commit(layout, columns.toInt, files.toInt))
        case Seq("insert", layout, columns)       => Seq(worker.insert(layout, columns.toInt))
        case Seq("start", layout, columns, times) =>
          Seq(worker.start(layout, columns.toInt, times.toInt))
        case Seq("own", layout, columns, files) =>
          worker.own(layout, columns.toInt, files.toInt)
        case other => sys.error(other.mkString(" "))
      }
      println(ChildJvm.Answer + answer.mkString(" "))
    }
    worker.stop()
  }
}

private final class Worker(kind: String, folder: Path) {

  private val spark = Sessions.start(kind, folder.toString)

  private val templates = mutable.HashMap.empty[(String, Int), Path]
  private val tables = mutable.HashMap.empty[(String, Int), Path]
  private var made = 0
  private var added = 0L

  def stop(): Unit = spark.stop()

  /** Continues with a new empty table, so that no log gets long. */
  def fresh(layout: String, columns: Int): Unit = {
    val template = templates.getOrElseUpdate(layout -> columns, create(layout, columns))
    DeltaLog.clearCache()
    made += 1
    val path = folder.resolve(s"table-$made")
    Files.createDirectories(path.resolve("_delta_log"))
    Files.copy(firstCommit(template), firstCommit(path))
    tables.put(layout -> columns, path).foreach(old => ScratchFolder.delete(old))
    deltaLog(layout, columns).update().numOfFiles
    System.gc()
  }

  /** The milliseconds of committing new files, without starting the transaction. */
  def commit(layout: String, columns: Int, files: Int): Double = {
    val log = deltaLog(layout, columns)
    val snapshot = log.update()
    val actions = newFiles(snapshot, files)
    val transaction = log.startTransaction(None)
    millis(transaction.commit(actions, DeltaOperations.Write(SaveMode.Append, Some(Nil))))
  }

  /** The milliseconds of a statement that inserts one row. */
  def insert(layout: String, columns: Int): Double = {
    val row = Iterator.tabulate(columns)(Columns.literal).mkString(", ")
    val statement = s"INSERT INTO delta.`${tables(layout -> columns)}` VALUES ($row)"
    millis(spark.sql(statement))
  }

  /** The milliseconds of starting one transaction. */
  def start(layout: String, columns: Int, times: Int): Double = {
    val log = deltaLog(layout, columns)
    val snapshot = log.update()
    millis {
      var i = 0
      while (i < times) { log.startTransaction(None, Some(snapshot)); i += 1 }
    } / times
  }

  /**
   * The milliseconds of the rules alone for such a commit: all of them, and parsing the statistics.
   */
  def own(layout: String, columns: Int, files: Int): Seq[Double] = {
    val snapshot = deltaLog(layout, columns).update()
    val actions = newFiles(snapshot, files)
    def state =
      TableStates.of("t", Lifecycle.Changing, snapshot.protocol, snapshot.metadata, Profile.Rfc)
    val all = millis {
      val table = state
      val shown = new DataActionConverter(table)
      val found = V1.rules.check(table) ++
        actions.iterator.flatMap(shown.of).flatMap(V1.rules.check(table, _))
      require(found.isEmpty, "the rules refuse what is measured")
    }
    val names = state.physicalNames
    val parsing = millis(actions.foreach(add => FileStatistics.parse(add.stats, names)))
    Seq(all, parsing)
  }

  private def deltaLog(layout: String, columns: Int): DeltaLog =
    DeltaLog.forTable(spark, tables(layout -> columns).toString)

  private def firstCommit(table: Path): Path =
    table.resolve("_delta_log").resolve("0" * 20 + ".json")

  private def create(layout: String, columns: Int): Path = {
    val path = folder.resolve(s"template-$layout-$columns")
    val definition = Iterator.tabulate(columns)(Columns.definition).mkString(", ")
    val properties =
      if (layout == Layout.Compat) Seq(WriterCompat.Enabled -> "true")
      else
        Seq(
          WriterCompat.IcebergCompatV2Enabled -> "true",
          WriterCompat.ColumnMappingMode -> WriterCompat.IdMode
        )
    // Equal in all tables, and higher than any version that is reached.
    val all = (properties :+ ("delta.checkpointInterval" -> "10000"))
      .map { case (key, value) => s"'$key' = '$value'" }
      .mkString(", ")
    spark.sql(s"CREATE TABLE delta.`$path` ($definition) USING delta TBLPROPERTIES ($all)")
    if (layout == Layout.Twin) {
      val json = Files.readString(firstCommit(path))
      val uuidName =
        """(columnMapping\.id\\":(\d+),.{0,60}?physicalName\\":\\")col-[-0-9a-f]{36}""".r
      val renamed =
        uuidName.replaceAllIn(json, m => m.group(1).replace("\\", "\\\\") + "col-" + m.group(2))
      require("col-[-0-9a-f]{36}".r.findFirstIn(renamed).isEmpty, "a column kept its name")
      Files.writeString(firstCommit(path), renamed)
    }
    path
  }

  private def newFiles(snapshot: Snapshot, count: Int): Seq[AddFile] = {
    val statistics = Columns.statistics(snapshot.metadata.schema)
    Vector.fill(count) {
      added += 1
      AddFile(
        path = f"part-00000-$added%08d-4c1f-4f8e-9d55-6a3f7c0e9b21-c000.snappy.parquet",
        partitionValues = Map.empty,
        size = 1048576,
        modificationTime = 1700000000000L,
        dataChange = true,
        // A new string for each file, as when a log is read.
        stats = new String(statistics)
      )
    }
  }

  private def millis(block: => Any): Double = {
    val begin = System.nanoTime
    block
    (System.nanoTime - begin) / 1e6
  }
}

/** The columns of the tables that are compared. */
object Columns {

  // The type, a literal, and a lower and an upper bound in the form of statistics.
  private val kinds = Vector(
    ("INT", "17", "3", "2147480000"),
    ("BIGINT", "1700000000", "1", "9007199254740993"),
    ("STRING", "'some text'", "\"a quite ordinary value\"", "\"the last one of them\""),
    ("DOUBLE", "0.25D", "-1.5", "12345.678"),
    ("DATE", "DATE'2024-02-29'", "\"1970-01-01\"", "\"2024-02-29\""),
    (
      "TIMESTAMP",
      "TIMESTAMP'2024-02-29 12:00:00'",
      "\"1970-01-01T00:00:00.000Z\"",
      "\"2024-02-29T12:00:00.000Z\""
    ),
    ("DECIMAL(18,2)", "1.25BD", "0.01", "99999999.99")
  )

  private def kind(i: Int) = kinds(i % kinds.size)

  def definition(i: Int): String = s"column_$i ${kind(i)._1}"

  def literal(i: Int): String = kind(i)._2

  /** The statistics of one file: row count, and bounds and null count of every column. */
  def statistics(schema: StructType): String = {
    val names = schema.fields.map { field =>
      if (field.metadata.contains(WriterCompat.PhysicalName))
        field.metadata.getString(WriterCompat.PhysicalName)
      else field.name
    }
    def values(of: Int => String): String =
      names.iterator.zipWithIndex
        .map { case (name, i) => "\"" + name + "\":" + of(i) }
        .mkString("{", ",", "}")
    s"""{"numRecords":100000,"minValues":${values(kind(_)._3)},""" +
      s""""maxValues":${values(kind(_)._4)},"nullCount":${values(_ => "0")},"tightBounds":true}"""
  }
}
