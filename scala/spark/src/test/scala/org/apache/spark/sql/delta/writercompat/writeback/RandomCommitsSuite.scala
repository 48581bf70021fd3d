package org.apache.spark.sql.delta.writercompat.writeback

import com.sun.management.OperatingSystemMXBean
import org.apache.iceberg.data.{IcebergGenerics, Record}
import org.apache.iceberg.types.Type
import org.apache.iceberg.{DataFile, PartitionData, PartitionSpec, Schema, Table, Transaction}
import org.apache.spark.sql.delta.DeltaLog
import org.icebergwritercompat.kernel.{KernelTable, Record => KernelRecord}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{Compliance, TestTable}
import org.scalatest.Outcome

import java.lang.management.ManagementFactory
import java.net.URI
import java.nio.file.Files
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/**
 * Random sequences of operations by Iceberg's library and by Delta on one table, which is judged
 * after each of them: by what a model says, by Delta Kernel, by Iceberg's library through the
 * catalog and by what is published, and by the log with the footers of the files. Now and then
 * Delta's own reader and older versions are asked as well.
 *
 * {{{
 * build/sbt "spark41/testOnly *RandomCommitsSuite -- -Dseed=7 -Doperations=20000"
 * }}}
 *
 * A failure names the seed of its table, which is then the first one: `-Dseed=<it>
 * -Doperations=25`.
 */
class RandomCommitsSuite extends ClientSuite {

  private val aTable = 25

  private var seed = 1L

  private var operations = 300

  override def withFixture(test: NoArgTest): Outcome = {
    def number(key: String) = test.configMap.get(key).map(_.toString.toLong)
    number("seed").foreach(seed = _)
    number("operations").foreach(n => operations = n.toInt)
    super.withFixture(test)
  }

  test("whatever Iceberg's clients and Delta do in turn, all see the same rows") {
    val costs = mutable.Map.empty[String, Vector[Double]].withDefaultValue(Vector.empty)
    def cpu(): Double = processor.getProcessCpuTime / 1e6
    def timed[T](what: String)(body: => T): T = {
      val begin = cpu()
      val result = body
      costs(what) :+= cpu() - begin
      result
    }
    def run(table: TestTable, random: RandomTable, steps: Int): Unit = {
      val judge = new Judge(table, random)
      timed("create")(random.create())
      judge.judge(whole = false)
      (1 until steps).foreach { n =>
        val begin = cpu()
        val what = random.step()
        costs(what) :+= cpu() - begin
        val whole = n == steps - 1
        timed(if (whole) "judging by all" else "judging")(judge.judge(whole))
      }
    }
    val ran = cpu()
    val wrong = (0 until operations by aTable).flatMap { first =>
      val table = managed()
      val random =
        new RandomTable(s"default.${table.name}", seed + first / aTable, new Doors(table))
      val result = Try {
        withConf(
          "spark.sql.datetime.java8API.enabled" -> "true",
          // One checkpoint a table: it costs more than what is tested here.
          "spark.databricks.delta.properties.defaults.checkpointInterval" -> "15"
        ) {
          run(table, random, math.min(aTable, operations - first))
        }
      }
      // The folder of a table that failed stays for a look.
      if (result.isSuccess) catalog.dropTable(id(table), true)
      result.failed.toOption.map(e => s"${random.story}: $e in ${table.folder}" -> e)
    }
    val each = (cpu() - ran) / operations
    info(f"seed $seed: $operations operations, each $each%.0f ms of CPU time of the whole process")
    costs.toSeq.sortBy(-_._2.sum).foreach { case (what, times) =>
      info(f"${times.sum / times.size}%7.0f ms on average, ${times.size}%5d times: $what")
    }
    wrong.headOption.foreach { case (_, e) => fail(wrong.map(_._1).mkString("\n"), e) }
  }

  private val processor = ManagementFactory.getPlatformMXBean(classOf[OperatingSystemMXBean])

  private final class Doors(table: TestTable) extends RandomTable.Doors {

    override def sql(statement: String): Unit = RandomCommitsSuite.this.sql(statement)

    override def load(name: String): Table = client(table)

    override def create(name: String, schema: Schema, spec: PartitionSpec): Unit = {
      catalog.createTable(id(table), schema, spec)
      ()
    }

    override def creating(name: String, schema: Schema, spec: PartitionSpec): Transaction =
      catalog.buildTable(id(table), schema).withPartitionSpec(spec).createTransaction()

    override def replacing(name: String, schema: Schema, spec: PartitionSpec): Transaction =
      catalog.buildTable(id(table), schema).withPartitionSpec(spec).replaceTransaction()

    override def log(name: String): DeltaLog = DeltaLog.forTable(spark, table.folder.toString)

    override def version(name: String): Long = versionOf(table)

    override def write(
        there: Table,
        partition: Option[PartitionData],
        rows: Vector[Record]
    ): DataFile = file(there, partition, rows: _*)
  }

  private def versionOf(table: TestTable): Long =
    Iterator
      .from(0)
      .takeWhile(v => Files.exists(table.folder.resolve(f"_delta_log/$v%020d.json")))
      .size - 1L

  override protected def plain(value: Any): String = value match {
    case row: KernelRecord => row.values.map(plain).mkString("{", ", ", "}")
    case other             => super.plain(other)
  }

  /** Judges one table. */
  private final class Judge(table: TestTable, random: RandomTable) {

    private val kernel = new KernelTable(table.folder)

    private val compliance = new Compliance.OfClients

    // Each column keeps its id, and no other gets it.
    private val ids = mutable.HashMap.empty[Int, Int]

    private def rows(expected: Expected): Seq[String] = expected.rows.map { row =>
      text(Kind.Struct(expected.columns), row)
    }.sorted

    private def text(kind: Kind, value: Any): String = (Values.now(value, kind), kind) match {
      case (null, _)                             => "null"
      case (row: Map[_, _], Kind.Struct(fields)) =>
        val known = row.asInstanceOf[Values.Row]
        fields.map(f => text(f.kind, known.getOrElse(f.serial, null))).mkString("{", ", ", "}")
      case (other, _) => plain(other)
    }

    /** Judges the newest version; `whole` asks those who take longer, too. */
    def judge(whole: Boolean): Unit = {
      val expected = random.expected
      val version = versionOf(table)
      random.reached(version)
      val wanted = rows(expected)
      assert(kernel.rows().map(plain).sorted == wanted, "(Delta Kernel)")
      val there = client(table)
      assert(read(there) == wanted, "(Iceberg by the catalog)")
      val published = iceberg(table)
      assert(metadataOf(published).metadataFileLocation == metadataOf(there).metadataFileLocation)
      assert(published.properties.get("delta-version") == version.toString)
      assertColumns(expected, there)
      expected.properties.foreach { case (key, value) =>
        assert(there.properties.get(key) == value, key)
      }
      val log = table.log
      assert(log.columns.map(_.name) == expected.columns.map(_.name))
      assert(there.schema.columns.asScala.map(c => Some(c.fieldId.toLong)) == log.columns.map(_.id))
      val files = Using.resource(there.newScan().planFiles()) { tasks =>
        tasks.asScala.map(task => URI.create(encoded(task.file.location)).getPath).toVector
      }
      assert(files.sorted == log.liveFiles.keys.map(_.toString).toVector.sorted)
      assert(compliance.problems(log) == Nil)
      if (whole) judgeWhole(expected, there)
    }

    private def judgeWhole(expected: Expected, there: Table): Unit = {
      assert(inDelta(spark.table(table.name)) == rows(expected), "(Delta)")
      assertFound(expected)
      val older = random.history.keys.toVector
      val version = older(older.size / 2)
      val past = rows(random.history(version))
      assert(kernel.rows(Some(version)).map(plain).sorted == past, s"(version $version)")
      there.snapshots.asScala
        .filter(_.summary.get("delta-version") == version.toString)
        .foreach { snapshot =>
          val scan = IcebergGenerics.read(there).useSnapshot(snapshot.snapshotId)
          val found = Using.resource(scan.build())(_.asScala.map(plain).toSeq.sorted)
          assert(found == past, s"(snapshot of version $version)")
        }
      val findings = Reports.verify(spark, table.name, None, None).findings
      assert(findings.map(f => f.rule -> f.found) == Nil)
      assert(new Compliance.OfClients().problems(table.log) == Nil)
    }

    /** Rows are not left out because of statistics. */
    private def assertFound(expected: Expected): Unit = for {
      row <- expected.rows.headOption
      Column(serial, name, kind: Kind.Plain) <- random.some(expected.columns, 3)
      value = row.getOrElse(serial, null) if value != null
    } {
      val filter = s"`$name` = ${Values.sql(value, kind)}"
      val wanted = expected.rows.count { other =>
        val theirs = other.getOrElse(serial, null)
        theirs != null && isSame(theirs, value, kind)
      }
      assert(spark.table(table.name).where(filter).count() == wanted, filter)
    }

    // Delta and Spark take -0.0 for 0.0, and NaN for itself.
    private def isSame(one: Any, other: Any, kind: Kind): Boolean =
      (Values.now(one, kind), Values.now(other, kind)) match {
        case (a: Double, b: Double) => a == b || a.isNaN && b.isNaN
        case (a: Float, b: Float)   => a == b || a.isNaN && b.isNaN
        case (a, b)                 => a == b
      }

    private def read(there: Table): Seq[String] =
      Using.resource(IcebergGenerics.read(there).build())(_.asScala.map(plain).toSeq.sorted)

    private def assertColumns(expected: Expected, there: Table): Unit = {
      val struct: Type = there.schema.asStruct
      assert(Values.shape(struct) == Kind.Struct(expected.columns).toString)
      def visit(columns: Vector[Column], found: Type): Unit = columns.foreach { column =>
        val field = found.asStructType.field(column.name)
        val known = ids.getOrElseUpdate(column.serial, field.fieldId)
        assert(known == field.fieldId, column)
        column.kind match {
          case Kind.Struct(fields) => visit(fields, field.`type`)
          case _                   =>
        }
      }
      visit(expected.columns, struct)
      assert(ids.values.toSet.size == ids.size)
      ()
    }
  }
}
