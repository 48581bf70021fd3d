package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, Metadata}
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.testing.TestTable

import scala.util.{Failure, Success}

/** Two writers on one table: the one that loses is checked against the commit that won. */
class ConcurrencySuite extends TableSuite {

  private def logOf(table: TestTable): DeltaLog =
    DeltaLog.forTable(spark, table.folder.toString)

  private def begin(table: TestTable): OptimisticTransaction =
    logOf(table).startTransaction(catalogTableOpt = None)

  private def switchedOn(metadata: Metadata): Metadata =
    metadata.copy(configuration =
      metadata.configuration + ("delta.enableIcebergWriterCompatV1" -> "true")
    )

  private val someFile: AddFile =
    AddFile("f.parquet", Map.empty, 1, 1, dataChange = true, stats = """{"numRecords":1}""")

  private def assertLost(table: TestTable)(commit: => Any): Unit = {
    val version = table.log.version
    intercept[DeltaConcurrentModificationException](commit)
    assert(table.log.version == version)
  }

  test("an append that began before the feature was switched on is refused") {
    val table = plain(rows = false)
    val append = begin(table)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
    assertLost(table)(append.commit(Seq(someFile), DeltaOperations.ManualUpdate))
    insert(table)
    assertCompliant(table)
  }

  test("switching on fails if rows were appended meanwhile") {
    val table = plain(rows = false)
    val enabling = begin(table)
    enabling.updateMetadata(switchedOn(enabling.metadata))
    insert(table)
    assertLost(table)(enabling.commit(Nil, DeltaOperations.ManualUpdate))
    assert(count(table) == 2)
    assert(!table.log.properties.contains("delta.enableIcebergWriterCompatV1"))
  }

  test("two schema changes do not give one id to two columns") {
    val table = compliant()
    val adding = begin(table)
    val schema = adding.metadata.schema.add("late", "int")
    adding.updateMetadata(adding.metadata.copy(schemaString = schema.json))
    sql(s"ALTER TABLE ${table.name} ADD COLUMN early INT")
    assertLost(table)(adding.commit(Nil, DeltaOperations.ManualUpdate))
    assertCompliant(table)
  }

  test("two appends both win") {
    val table = compliant()
    val first = begin(table)
    insert(table)
    first.commit(Nil, DeltaOperations.ManualUpdate)
    assert(count(table) == 4)
    assertCompliant(table)
  }

  test("metadata that comes as an action is judged like a statement") {
    val table = plain()
    val raw = begin(table)
    val error =
      refused(table)(raw.commit(Seq(switchedOn(raw.metadata)), DeltaOperations.ManualUpdate))
    assert(error.getCondition.endsWith("TABLE_NOT_COMPLIANT"))
  }

  test("a file whose statistics name no column is refused") {
    val table = compliant()
    val transaction = begin(table)
    val file = someFile.copy(stats = """{"minValues":{"id":1},"numRecords":1}""")
    refusedFor("INCOMPATIBLE_FILE_ACTION", "D3", table)(
      transaction.commit(Seq(file), DeltaOperations.ManualUpdate)
    )
  }

  /**
   * A writer that commits first.
   *
   * @param table
   *   a table as it is before
   * @param rows
   *   how many rows it has after this commit
   * @param after
   *   how many rows it has once each of the losers has committed too; `None` if that must fail
   */
  private case class Winner(
      name: String,
      table: () => TestTable,
      commit: TestTable => Unit,
      rows: Long,
      after: Seq[Option[Long]] = Seq(None, None, None),
      guardedAfter: Boolean = true
  )

  private def statement(text: String)(table: TestTable): Unit =
    sql(text.replace("{t}", table.name))

  private def changed(table: TestTable)(statements: String*): TestTable = {
    statements.foreach(statement(_)(table))
    table
  }

  private val winners = Seq(
    Winner(
      "enabling an empty table",
      () => plain(rows = false),
      statement(s"ALTER TABLE {t} SET TBLPROPERTIES ($on)"),
      rows = 0
    ),
    Winner(
      "enabling a table that had the feature",
      () => changed(compliant())("ALTER TABLE {t} DROP FEATURE icebergWriterCompatV1"),
      statement(s"ALTER TABLE {t} SET TBLPROPERTIES ($on)"),
      rows = 2
    ),
    Winner(
      "DROP FEATURE",
      () => compliant(),
      statement("ALTER TABLE {t} DROP FEATURE icebergWriterCompatV1"),
      rows = 2,
      guardedAfter = false
    ),
    Winner(
      "ADD COLUMN",
      () => compliant(),
      statement("ALTER TABLE {t} ADD COLUMN early ARRAY<INT>"),
      rows = 2
    ),
    Winner(
      "RENAME COLUMN",
      () => compliant(),
      statement("ALTER TABLE {t} RENAME COLUMN name TO label"),
      rows = 2
    ),
    Winner(
      "RESTORE",
      () => changed(compliant())(s"INSERT INTO {t} $someRows"),
      statement("RESTORE TABLE {t} TO VERSION AS OF 0"),
      rows = 2,
      after = Seq(Some(4), None, None)
    ),
    Winner(
      "RESTORE to fewer columns",
      () => changed(compliant())("ALTER TABLE {t} ADD COLUMN late INT"),
      statement("RESTORE TABLE {t} TO VERSION AS OF 0"),
      rows = 2
    ),
    Winner(
      "CLONE from the table",
      () => compliant(),
      table => {
        val clone = managed()
        sql(s"CREATE TABLE ${clone.name} SHALLOW CLONE ${table.name}")
        assertCompliant(clone)
        assert(count(clone) == 2)
      },
      rows = 2,
      after = Seq(Some(4), Some(2), Some(3))
    ),
    Winner(
      "CLONE into the table",
      () => changed(compliant())("DELETE FROM {t}"),
      table => {
        val source = compliant()
        insert(source)
        sql(s"CREATE OR REPLACE TABLE ${table.name} SHALLOW CLONE ${source.name}")
      },
      rows = 4
    ),
    Winner(
      "OPTIMIZE",
      () => changed(compliant())(s"INSERT INTO {t} $someRows"),
      statement("OPTIMIZE {t}"),
      rows = 4,
      after = Seq(Some(6), None, None)
    )
  )

  private val losers: Seq[(String, TestTable => Unit)] = Seq(
    "append" -> (table => frame.write.format("delta").mode("append").saveAsTable(table.name)),
    "overwrite" -> (table => frame.write.format("delta").mode("overwrite").saveAsTable(table.name)),
    "MERGE" -> statement(
      s"MERGE INTO {t} t USING (SELECT id + 1 AS key, name FROM ($someRows)) s ON t.id = s.key " +
        "WHEN MATCHED THEN UPDATE SET t.deep = NULL WHEN NOT MATCHED THEN INSERT (id) VALUES (key)"
    )
  )

  for (winner <- winners; ((name, lose), after) <- losers.zip(winner.after)) {
    val verb = if (after.isEmpty) "fails" else "commits too"
    test(s"$name $verb, when ${winner.name} wins") {
      val table = winner.table()
      var version = -1L
      val outcome = race(lose(table)) {
        winner.commit(table)
        version = table.log.version
        assert(count(table) == winner.rows)
      }
      outcome match {
        case Success(_) => assert(after.isDefined && table.log.version > version)
        case Failure(_: DeltaConcurrentModificationException) =>
          assert(after.isEmpty && table.log.version == version)
        case Failure(other) => throw other
      }
      assert(count(table) == after.getOrElse(winner.rows))
      sql(s"DELETE FROM ${table.name} WHERE id = 0")
      if (winner.guardedAfter) assertCompliant(table)
      else assert(!table.log.properties.contains("delta.enableIcebergWriterCompatV1"))
    }
  }
}
