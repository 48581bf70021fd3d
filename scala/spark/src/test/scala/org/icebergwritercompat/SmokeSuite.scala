package org.icebergwritercompat

import org.icebergwritercompat.model.BuildInfo
import org.icebergwritercompat.testing.{Compliance, SharedSpark}
import org.scalatest.funsuite.AnyFunSuite

/** The short way through the whole house, for every Spark line. */
class SmokeSuite extends AnyFunSuite with SharedSpark {

  private val property = "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"

  test("the session is guarded, and the jar is that of the running Spark line") {
    assert(spark.version.startsWith(BuildInfo.spark + "."))
    assert(IcebergWriterCompat.isInstalled)
    assert(IcebergWriterCompat.version.nonEmpty)
  }

  test("create, insert, evolve, refuse, drop the feature and take it back") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a INT, s STRUCT<x: ARRAY<INT>>) USING delta $property")
    sql(s"INSERT INTO ${table.name} VALUES (1, named_struct('x', array(1, 2)))")
    assert(Compliance.problems(table) == Nil)

    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (s.m MAP<STRING, STRUCT<v: DATE>>)")
    sql(
      s"INSERT INTO ${table.name} VALUES " +
        "(2, named_struct('x', array(3), 'm', map('k', named_struct('v', DATE'2026-01-01'))))"
    )
    assert(Compliance.problems(table) == Nil)
    assert(rows(s"SELECT a, s.m['k'].v FROM ${table.name}") == Set("[1,null]", "[2,2026-01-01]"))

    val error = refusedFor("UNSUPPORTED_DATA_TYPE", "C7", table) {
      sql(s"ALTER TABLE ${table.name} ADD COLUMNS (b SMALLINT)")
    }
    assert(error.getSqlState == "KD00E")
    assert(error.getMessage.endsWith(s"ALTER TABLE ${table.name} ADD COLUMNS (b INT)"))

    assert(IcebergWriterCompat.disable(spark, table.name))
    assert(!IcebergWriterCompat.isEnabled(spark, table.name))
    assert(!table.log.writerFeatures("icebergWriterCompatV1"))
    assert(IcebergWriterCompat.enable(spark, table.name))
    assert(Compliance.problems(table) == Nil)
  }

  test("procedures switch the feature on and off, and each line of Spark has what they return") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING delta AS SELECT 1S AS a, 'x' AS b")
    def call(procedure: String, more: String = "") = spark
      .sql(s"CALL iceberg_writer_compat.system.$procedure(table => '${table.name}'$more)")
      .collect()
      .toSeq
    assert(call("check").map(_.getAs[String]("rule")).contains("C7"))
    val plan = call("enable", ", rewrite => true, dry_run => true")
    assert(plan.map(_.getAs[String]("mode")).distinct == Seq("rewrite"))
    val done = call("enable", ", rewrite => true, drop => array('constraints')")
    assert(done.map(_.getAs[Boolean]("changed")) == Seq(true))
    assert(done.map(_.getAs[Long]("files_rewritten")) == Seq(1L))
    assert(Compliance.problems(table) == Nil)
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[1,x]"))
    assert(call("check") == Nil)
    assert(call("disable").map(_.getAs[Boolean]("changed")) == Seq(true))
  }

  test("a table by path, from a DataFrame") {
    val table = byPath()
    spark
      .range(3)
      .selectExpr("id", "map(id, array(id)) AS m")
      .write
      .format("delta")
      .option("delta.enableIcebergWriterCompatV1", "true")
      .save(table.folder.toString)
    assert(Compliance.problems(table) == Nil)
    assert(IcebergWriterCompat.isEnabled(spark, table.folder.toString))
  }

  test("CREATE TABLE AS SELECT, and a refused one that makes no folder") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING delta $property AS SELECT 1 AS a, array(1) AS l")
    assert(Compliance.problems(table) == Nil)

    val short = managed()
    refusedFor("UNSUPPORTED_DATA_TYPE", "C7", short) {
      sql(s"CREATE TABLE ${short.name} USING delta $property AS SELECT 1S AS a")
    }
    assert(!spark.catalog.tableExists(short.name))
  }
}
