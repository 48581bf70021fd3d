package org.apache.spark.sql.delta.writercompat.remedies

import io.delta.tables.DeltaTable
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.streaming.{StreamingQueryException, Trigger}
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.TestTable

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** A refused statement that creates a table leaves no folder, no file and no entry in a catalog. */
class RefusedNewTableSuite extends TableSuite {

  private val property = "delta.enableIcebergWriterCompatV1"
  private val byId =
    s"$on, 'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'id'"

  private lazy val narrow = narrowTable()
  private lazy val unmapped = plain()
  private lazy val mapped = plain(Seq("delta.columnMapping.mode" -> "id"))
  private def narrowTable(): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING delta AS SELECT CAST(id AS SMALLINT) AS b FROM range(2)")
    table
  }

  /** Every folder and file below a folder, and the folder itself. */
  private def tree(folder: Path): Set[String] =
    if (!Files.exists(folder)) Set.empty
    else Using.resource(Files.walk(folder))(_.iterator.asScala.map(_.toString).toSet)

  // By name alone: other suites leave tables whose log cannot be read.
  private def tableCount: Long = spark.sql("SHOW TABLES").count()

  /** Runs a refused statement in a new folder, and in an empty existing folder. */
  private def leavesNothing(statement: TestTable => Any, tables: => TestTable): Unit =
    Seq(false, true).foreach { exists =>
      val table = tables
      if (exists) Files.createDirectories(table.folder)
      val (before, catalog) = (tree(table.folder.getParent), tableCount)
      val error = intercept[Exception](statement(table))
      val causes = Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).toSeq
      assert(
        causes.exists(e =>
          e.isInstanceOf[IcebergWriterCompatException] || e.getMessage.contains("numRecords")
        ),
        error
      )
      assert(tree(table.folder.getParent) == before)
      assert(tableCount == catalog)
      assert(!table.name.startsWith("t") || !spark.catalog.tableExists(table.name))
    }

  for ((wanted, properties) <- Seq("the property" -> on, "all properties" -> byId)) {
    def clones(source: => TestTable): Seq[TestTable => Any] = Seq(
      t => sql(s"CREATE TABLE ${t.name} SHALLOW CLONE ${source.name} TBLPROPERTIES ($properties)"),
      t =>
        sql(
          s"CREATE OR REPLACE TABLE ${t.name} SHALLOW CLONE ${source.name} TBLPROPERTIES ($properties)"
        )
    )
    test(s"SHALLOW CLONE with $wanted") {
      for (source <- Seq(unmapped, mapped); clone <- clones(source)) {
        leavesNothing(clone, managed())
        leavesNothing(clone, byPath())
      }
      leavesNothing(
        t =>
          sql(
            s"CREATE TABLE ${SharedName.of(t)} SHALLOW CLONE ${unmapped.name} " +
              s"TBLPROPERTIES ($properties) LOCATION '${t.folder}/a/b'"
          ),
        byPath()
      )
    }
  }

  test("DeltaTable.clone") {
    val overrides = Map(property -> "true")
    Seq(overrides, overrides + ("delta.columnMapping.mode" -> "id")).foreach { properties =>
      leavesNothing(
        t =>
          DeltaTable
            .forName(spark, unmapped.name)
            .clone(t.folder.toString, isShallow = true, replace = false, properties),
        byPath()
      )
    }
  }

  test("the statement that a refused clone offers copies the rows") {
    val target = managed()
    val error = refusedFor("WRONG_REQUIRED_TABLE_PROPERTY", "B2", target, unmapped) {
      sql(s"CREATE TABLE ${target.name} SHALLOW CLONE ${unmapped.name} TBLPROPERTIES ($on)")
    }
    sql(error.getMessageParameters.get("fix"))
    assertCompliant(target)
    assert(count(target) == 2)
    // A table that is there already stays as it is, whatever it would be a clone of.
    val there = plain()
    sql(
      s"CREATE TABLE IF NOT EXISTS ${there.name} SHALLOW CLONE ${unmapped.name} TBLPROPERTIES ($on)"
    )
    assert(there.log.properties == Map.empty)
  }

  test("CREATE, CTAS, LIKE and the builder, by name and by path") {
    val source = narrow.name
    val statements: Seq[TestTable => Any] = Seq(
      t => sql(s"CREATE TABLE ${t.name} (b SMALLINT) USING delta TBLPROPERTIES ($on)"),
      t => sql(s"CREATE OR REPLACE TABLE ${t.name} (b SMALLINT) USING delta TBLPROPERTIES ($on)"),
      t => sql(s"CREATE TABLE ${t.name} USING delta TBLPROPERTIES ($on) AS SELECT * FROM $source"),
      t => sql(s"CREATE TABLE ${t.name} LIKE $source TBLPROPERTIES ($on)")
    )
    for (statement <- statements) {
      leavesNothing(statement, managed())
      leavesNothing(statement, byPath())
    }
    leavesNothing(
      t =>
        DeltaTable
          .createOrReplace(spark)
          .tableName(t.name)
          .addColumns(StructType.fromDDL("b SMALLINT"))
          .property(property, "true")
          .execute(),
      managed()
    )
  }

  test("a DataFrame's ways, and the first batch of a stream") {
    val source = spark.table(narrow.name)
    Seq[TestTable => Any](
      t => source.write.format("delta").option(property, "true").saveAsTable(t.name),
      t => source.writeTo(t.name).using("delta").tableProperty(property, "true").create(),
      t => source.writeTo(t.name).using("delta").tableProperty(property, "true").createOrReplace()
    ).foreach(leavesNothing(_, managed()))
    leavesNothing(
      t => source.write.format("delta").option(property, "true").save(t.folder.toString),
      byPath()
    )
    leavesNothing(t => byDefault(stream(narrow, t)), byPath())
  }

  private def stream(source: TestTable, target: TestTable): Unit = {
    val checkpoint = Files.createTempDirectory("checkpoint")
    spark.readStream
      .table(source.name)
      .writeStream
      .format("delta")
      .option("checkpointLocation", checkpoint.toString)
      .trigger(Trigger.AvailableNow())
      .start(target.folder.toString)
      .awaitTermination()
  }

  // Delta itself asks for the row counts, when the files are there.
  test("what is refused at the commit, when its files have been written") {
    val table = compliant()
    val rows = unmapped
    withConf("spark.databricks.delta.stats.collect" -> "false") {
      Seq[TestTable => Any](
        t =>
          sql(
            s"CREATE TABLE ${t.name} USING delta PARTITIONED BY (day) TBLPROPERTIES ($on) AS $someRows"
          ),
        t => frame.write.format("delta").option(property, "true").save(t.folder.toString)
      ).foreach(leavesNothing(_, byPath()))
      val error = intercept[StreamingQueryException] {
        val target = byPath()
        try byDefault(stream(rows, target))
        finally assert(tree(target.folder) == Set.empty)
      }
      assert(error.getMessage.contains("numRecords"))
      val before = tree(table.folder)
      intercept[UnsupportedOperationException](insert(table))
      assert(tree(table.folder) == before)
    }
  }

  private object SharedName {
    def of(table: TestTable): String = s"named_${table.folder.getFileName}"
  }
}
