package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{AddFile, Metadata}
import org.icebergwritercompat.testing.TestTable

/** Two writers on one table: whoever loses is judged against what won. */
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
}
