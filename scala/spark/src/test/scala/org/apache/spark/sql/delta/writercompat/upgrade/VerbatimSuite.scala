package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.spark.sql.AnalysisException
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{SharedSpark, TestTable}
import org.apache.spark.sql.delta.writercompat.read.Sessions

/** Names that look like variables of Spark are not substituted. */
class VerbatimSuite extends UpgradeTests {

  private def verbatim(statement: String): Unit = {
    Sessions.verbatim(spark, statement).collect()
    ()
  }

  // The session catalog takes no such names; a folder may have any.
  private def named(): TestTable = {
    val folder = SharedSpark.freshFolder().resolve(s"t$${spark.app.name}")
    TestTable(s"delta.`$folder`", folder)
  }

  test("tables, columns and constraints keep their names, in what is run and in what is offered") {
    val table = named()
    val properties = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    verbatim(s"CREATE TABLE ${table.name} (id INT, `a$${x}` INT) USING delta $properties")
    verbatim(s"INSERT INTO ${table.name} VALUES (1, 2)")
    Seq("c1", "c2").foreach { constraint =>
      verbatim(s"ALTER TABLE ${table.name} ADD CONSTRAINT $constraint CHECK (`a$${x}` > 0)")
    }
    withConf("x" -> "elsewhere", "spark.sql.variable.substitute" -> "true") {
      val report = Reports.check(spark, table.name, None)
      val name = s"delta.`file:${table.folder}`"
      assert(report.table == name)
      val argument = s"'${table.name}'".replace("${", "\\u0024{")
      val byFunction =
        rows(s"SELECT DISTINCT table_name FROM iceberg_writer_compat_check($argument)")
      assert(byFunction == Set(s"[$name]"))
      // Spark substitutes in the text of a statement before anybody else sees it.
      val inText = intercept[AnalysisException] {
        spark.sql(s"SELECT * FROM iceberg_writer_compat_check('${table.name}')").collect()
      }
      assert(inText.getMessage.contains(s"t${spark.conf.get("spark.app.name")}"))
      val whole = s"'${table.name}'"
      val twoPieces = spark.sql(
        s"SELECT DISTINCT table_name FROM iceberg_writer_compat_check(${whole.replace("${", "$' '{")})"
      )
      assert(twoPieces.collect().map(_.getString(0)).toSeq == Seq(name))
      // The remedy first switches the substitution off.
      val fix = report.findings.find(_.rule == "B8").get.remedy.text
      val statement = s"ALTER TABLE $name DROP CONSTRAINT c1"
      assert(fix == s"SET spark.sql.variable.substitute=false\n$statement")
      fix.split("\n").foreach(sql)
      spark.conf.set("spark.sql.variable.substitute", "true")
      val refusal = intercept[IcebergWriterCompatException](upgrade(table))
      assert(refusal.remedy.sql.head == "SET spark.sql.variable.substitute=false")
      assert(refusal.remedy.sql(1).contains(s"system.enable(table => '$name', drop => array("))
      refusal.remedy.sql.foreach(sql)
      spark.conf.set("spark.sql.variable.substitute", "true")
      assertCompliant(table)
      assert(table.log.columns.map(_.name) == Seq("id", "a${x}"))
      assert(spark.conf.get("spark.sql.variable.substitute") == "true")
      assert(IcebergWriterCompat.isEnabled(spark, table.name))
    }
  }
}
