package org.icebergwritercompat.docs

import org.apache.spark.sql.delta.writercompat.Offered
import org.icebergwritercompat.contract.{Rule, Violation}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.rules.Statements
import org.icebergwritercompat.testing.{Compliance, FolderListing, SharedSpark, TestTable}
import org.scalatest.funsuite.AnyFunSuite

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

class RuleExamplesSuite extends AnyFunSuite with SharedSpark {

  test("every rule has one example, and the examples have the order of the rules") {
    assert(RuleExamples.all.map(_.rule.id) == V1.rules.all.map(_.id))
  }

  for (rule <- V1.rules.all) RuleExamples.of(rule) match {
    case example: LogExample =>
      ruleTests(rule, "lines", example.foundInPassing, example.foundInFailing)
    case example: FooterExample =>
      ruleTests(rule, "file", example.foundInPassing, example.foundInFailing)
    case example: SqlExample => sqlTests(rule, example)
  }

  private def ruleTests(
      rule: Rule,
      what: String,
      foundInPassing: => Seq[Violation],
      foundInFailing: => Seq[Violation]
  ): Unit = {
    test(s"${rule.id} accepts the $what of the example that passes") {
      assert(foundInPassing.map(_.summary) == Nil)
    }
    test(s"${rule.id} alone refuses the $what of the one that fails") {
      assert(foundInFailing.map(_.rule.id).distinct == Seq(rule.id))
      Statements.assertParsed(foundInFailing.head.remedy.text)
    }
  }

  private def sqlTests(rule: Rule, example: SqlExample): Unit = {
    test(s"${rule.id} accepts the statements that pass") {
      inShop(example) { folder =>
        example.passes.init.foreach(sql)
        val before = logs(folder)
        sql(example.passes.last)
        assert(logs(folder) != before)
        tables(folder)
          .filter(_.log.properties.contains("delta.enableIcebergWriterCompatV1"))
          .foreach(table => assert(Compliance.problems(table) == Nil))
      }
    }
    test(
      s"${rule.id} alone refuses the statement that fails, leaves nothing, and names one that runs"
    ) {
      inShop(example) { folder =>
        example.fails.init.foreach(sql)
        val before = (logs(folder), shown)
        val error = intercept[IcebergWriterCompatException](sql(example.fails.last))
        assert((logs(folder), shown) == before)
        assert(
          error.getCondition == s"DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.${example.condition}",
          error.getMessage
        )
        assert(error.getMessageParameters.get("rule") == rule.id)
        assert(RuleExample.particulars(named(error.getMessage)) == example.says)
        Offered.run(spark, error.remedy)
        tables(folder).foreach(table => rows(s"SELECT * FROM shop.${table.name}"))
      }
    }
  }

  test("a statement that adds a field below a list, a map or a struct runs") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (s STRUCT<x: INT>, l ARRAY<STRUCT<x: INT>>, " +
        "m MAP<INT, STRUCT<x: INT>>) USING delta TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true', 'delta.enableTypeWidening' = 'true')"
    )
    Seq("s.x", "l.element.x", "m.value.x").foreach { column =>
      val error = refusedFor("INCOMPATIBLE_SCHEMA_CHANGE", "C13", table) {
        sql(s"ALTER TABLE ${table.name} ALTER COLUMN $column TYPE DOUBLE")
      }
      val fix = error.getMessageParameters.get("fix")
      assert(fix == s"ALTER TABLE default.${table.name} ADD COLUMNS (${column}_2 DOUBLE)")
      sql(fix)
    }
    assert(Compliance.problems(table) == Nil)
  }

  /** Runs `body` in an empty database of the name that the examples go by. */
  private def inShop(example: SqlExample)(body: Path => Unit): Unit = {
    val folder = SharedSpark.freshFolder()
    val setting = "SET ([^=]+)=.*".r
    val confs = example.fails.collect { case setting(key) => key }
    sql(s"CREATE DATABASE shop LOCATION '${folder.toUri}'")
    try
      withConf(confs.map(key => key -> spark.conf.get(key)): _*) {
        sql("USE shop")
        example.setUp.foreach(sql)
        body(folder)
      }
    finally {
      sql("USE default")
      sql("DROP DATABASE shop CASCADE")
    }
  }

  // Delta gives files random names.
  private def named(message: String): String =
    message.replaceAll("\\S*part-[-.\\w]+\\.parquet", "part-00000.parquet")

  private def shown: Set[String] = rows("SHOW TABLES IN shop")

  private def tables(folder: Path): Seq[TestTable] =
    if (!Files.exists(folder)) Nil
    else
      Using.resource(Files.list(folder)) {
        _.iterator.asScala.toSeq.sorted.map(path => TestTable(path.getFileName.toString, path))
      }

  /** The commits of all tables; files that no commit names do no harm. */
  private def logs(folder: Path): Set[String] =
    FolderListing.of(folder).filter(_.contains("_delta_log"))
}
