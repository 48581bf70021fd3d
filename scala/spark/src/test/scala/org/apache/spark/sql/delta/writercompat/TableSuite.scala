package org.apache.spark.sql.delta.writercompat

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.delta.TransactionExecutionObserver
import org.icebergwritercompat.testing.{Compliance, CopiedTables, SharedSpark, TestTable}
import org.scalatest.funsuite.AnyFunSuite

import java.nio.file.Files
import scala.util.Try

/** What the suites on real tables have in common. */
abstract class TableSuite extends AnyFunSuite with SharedSpark {

  protected val on: String = "'delta.enableIcebergWriterCompatV1' = 'true'"

  /** Columns of every kind of nesting. */
  protected val columns: String =
    "id BIGINT, name STRING, s STRUCT<x: DECIMAL(10, 2), y: STRUCT<z: TIMESTAMP>>, " +
      "tags ARRAY<STRUCT<k: STRING, v: INT>>, attrs MAP<STRING, STRUCT<a: INT, b: ARRAY<DATE>>>, " +
      "deep ARRAY<ARRAY<INT>>, day DATE"

  /** Two rows of these columns. */
  protected val someRows: String =
    "SELECT id, concat('n', id) AS name, " +
      "named_struct('x', CAST(1.5 AS DECIMAL(10, 2)), " +
      "'y', named_struct('z', TIMESTAMP'2026-01-01 00:00:00')) AS s, " +
      "array(named_struct('k', 'p', 'v', 1)) AS tags, " +
      "map('q', named_struct('a', 1, 'b', array(DATE'2026-01-02'))) AS attrs, " +
      "array(array(1, 2)) AS deep, DATE'2026-01-03' AS day FROM range(0, 2, 1, 1)"

  protected def frame: DataFrame = spark.sql(someRows)

  protected def insert(table: TestTable): Unit = sql(s"INSERT INTO ${table.name} $someRows")

  protected def assertCompliant(table: TestTable): Unit = {
    assert(Compliance.problems(table) == Nil)
    ()
  }

  /** A compliant table with two rows. */
  protected def compliant(table: TestTable = managed()): TestTable =
    CopiedTables.copyTo(table, "compliant") { made =>
      sql(s"CREATE TABLE ${made.name} USING delta TBLPROPERTIES ($on) AS $someRows")
    }

  /** A table without the feature, with these properties and, if asked, with two rows. */
  protected def plain(
      properties: Seq[(String, String)] = Nil,
      rows: Boolean = true,
      table: TestTable = managed()
  ): TestTable = CopiedTables.copyTo(table, ("plain", properties, rows)) { made =>
    val list = properties.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
    val clause = if (properties.isEmpty) "" else s"TBLPROPERTIES ($list)"
    sql(s"CREATE TABLE ${made.name} ($columns) USING delta $clause")
    if (rows) insert(made)
  }

  /** A table with the feature, partitioned by its column `p`, with these columns and rows. */
  protected def partitionedByP(columns: String, rows: String): TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} ($columns) USING delta PARTITIONED BY (p) TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES $rows")
    table
  }

  /** Puts a property into the log as another writer would, whom no guard asks. */
  protected def store(table: TestTable, key: String, value: String): Unit = {
    val metadata = table.log.metadata.deepCopy[ObjectNode]()
    metadata.withObject("/configuration").put(key, value)
    val commit = new ObjectMapper().createObjectNode().set[ObjectNode]("metaData", metadata)
    val file = table.folder.resolve("_delta_log").resolve(f"${table.log.version + 1}%020d.json")
    Files.writeString(file, commit.toString)
    ()
  }

  /** What `late` comes to if it has read and written before `early` begins, and commits after. */
  protected def race(late: => Any)(early: => Any): Try[Unit] = {
    val pause = new PausingObserver
    OnThread.meanwhile(Try[Unit] {
      TransactionExecutionObserver.withObserver(pause)(late)
      ()
    }) {
      try {
        assert(pause.awaitCommit())
        early
        ()
      } finally pause.release()
    }
  }

  protected def count(table: TestTable): Long = spark.table(table.name).count()

  protected def maxColumnId(table: TestTable): Long =
    table.log.properties("delta.columnMapping.maxColumnId").toLong
}
