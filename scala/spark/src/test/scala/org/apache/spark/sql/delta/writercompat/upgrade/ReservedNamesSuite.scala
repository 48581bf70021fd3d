package org.apache.spark.sql.delta.writercompat.upgrade

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.functions.lit
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.{PlanMode, Severity, TableReport}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{ForeignFiles, LoggedTable, TestTable}

import java.util.{ArrayList => JArrayList}

/** Columns with names of Iceberg's metadata columns, at each door. */
class ReservedNamesSuite extends UpgradeTests {

  private val mapper = new ObjectMapper

  private def reserved(table: TestTable, rule: String)(body: => Any): String =
    refusedFor("INCOMPATIBLE_COLUMN_NAME", rule, table)(body).getMessageParameters.get("fix")

  private def run(fix: String): Unit = fix.split("\n").foreach(sql)

  private def names(log: LoggedTable): Seq[String] = log.columns.map(_.name)

  /** A table without the feature, with two rows and such a column; its new name is not free. */
  private def existing(properties: Seq[(String, String)]): TestTable = {
    val table = managed()
    val list = (properties :+ ("delta.appendOnly" -> "false"))
      .map { case (key, value) => s"'$key' = '$value'" }
      .mkString(", ")
    sql(
      s"CREATE TABLE ${table.name} (a INT, _row_id INT, row_id INT) USING delta " +
        s"TBLPROPERTIES ($list)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 2, 3), (4, 5, 6)")
    table
  }

  private def rowsOf(table: TestTable) = rows(s"SELECT * FROM ${table.name}")

  private val kept = Set("[1,2,3]", "[4,5,6]")

  private def assertMended(table: TestTable): Unit = {
    assert(names(table.log) == Seq("a", "row_id_2", "row_id"))
    assert(rowsOf(table) == kept)
    assertCompliant(table)
  }

  private val modes = Seq(
    "none" -> Nil,
    "name" -> mapped,
    "id" -> byId,
    "name and IcebergCompatV2" -> v2,
    "id and IcebergCompatV2" -> (byId :+ ("delta.enableIcebergCompatV2" -> "true"))
  )

  for ((mode, properties) <- modes) {
    test(s"a table of mode $mode is in the plan, refused, and enabled after the rename") {
      val table = existing(properties)
      def found(report: TableReport) =
        errors(report).map(finding => finding.rule -> finding.remedy.text)
      val planned = plan(table)
      assert(fact(planned).mode == PlanMode.Blocked)
      assert(found(planned).map(_._1) == Seq("N2"))
      val fix = found(planned).head._2
      assert(found(Reports.check(spark, table.name, None)) == Seq("N2" -> fix))
      val error = refused(table)(IcebergWriterCompat.enable(spark, table.name))
      assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UPGRADE_BLOCKED")
      assert(error.getMessageParameters.get("rule") == "N2")
      assert(error.remedy.text == fix)
      run(fix)
      upgrade(table, rewrite = true)
      assertMended(table)
    }

    test(s"ALTER of a table of mode $mode is refused with a statement that runs") {
      val table = existing(properties)
      val fix = reserved(table, "N2") {
        sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
      }
      run(fix)
      upgrade(table, rewrite = true)
      assertMended(table)
    }
  }

  test("ALTER of an empty table") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a INT, _FILE INT) USING delta")
    val alter = s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)"
    run(reserved(table, "N2")(sql(alter)))
    sql(alter)
    assert(names(table.log) == Seq("a", "FILE"))
    assertCompliant(table)
  }

  test("statements that create, replace and clone") {
    val source = existing(byId :+ ("delta.enableIcebergCompatV2" -> "true"))
    val made = managed()
    run(reserved(made, "N2") {
      sql(s"CREATE TABLE ${made.name} (a INT, _pos INT) USING delta TBLPROPERTIES ($on)")
    })
    assert(names(made.log) == Seq("a", "pos"))
    val statements = Seq[String => String](
      name =>
        s"CREATE OR REPLACE TABLE $name USING delta TBLPROPERTIES ($on) AS " +
          s"SELECT * FROM ${source.name}",
      name => s"CREATE TABLE $name SHALLOW CLONE ${source.name} TBLPROPERTIES ($on)",
      name => s"CREATE TABLE $name LIKE ${source.name} TBLPROPERTIES ($on)"
    )
    // LIKE takes no rows over.
    statements.zip(Seq(kept, kept, Set.empty[String])).foreach { case (statement, expected) =>
      val table = managed()
      run(reserved(table, "N2")(sql(statement(table.name))))
      assert(names(table.log) == Seq("a", "row_id_2", "row_id"))
      assert(rows(s"SELECT * FROM ${table.name}") == expected)
      assertCompliant(table)
    }
  }

  test("statements that add or rename a column, and writes that bring one") {
    val table = compliant()
    val frame = spark.table(table.name).withColumn("_deleted", lit(true))
    val doors = Seq[() => Any](
      () => sql(s"ALTER TABLE ${table.name} ADD COLUMN _deleted BOOLEAN"),
      () => sql(s"ALTER TABLE ${table.name} RENAME COLUMN name TO _deleted"),
      () =>
        frame.write
          .format("delta")
          .mode("append")
          .option("mergeSchema", "true")
          .saveAsTable(
            table.name
          )
    )
    doors.foreach(door => reserved(table, "N2+")(door()))
    reserved(table, "N2+") {
      frame.write
        .format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .saveAsTable(table.name)
    }
    assertCompliant(table)
  }

  test("for a table with the feature there is a warning, and the remedy fixes it") {
    val table = compliant()
    val broken = ForeignFiles.committed(table) { copy =>
      val metadata = copy.log.metadata.deepCopy[ObjectNode]()
      metadata.put("schemaString", copy.log.schemaString.replace("\"day\"", "\"_row_id\""))
      Seq(mapper.createObjectNode().set[ObjectNode]("metaData", metadata).toString)
    }
    val report = Reports.check(spark, broken.name, None)
    assert(report.compliant)
    assert(report.findings.size == 1)
    val finding = report.findings.head
    assert((finding.rule, finding.severity) == (("N2", Severity.Warning)))
    val result = mapper.readTree(
      IcebergWriterCompat.upgrade(spark, broken.name, "auto", false, new JArrayList[String], null)
    )
    assert(!result.get("changed").asBoolean)
    val warning = result.get("warnings").get(0)
    assert(warning.get("text").asText.startsWith("N2: "))
    val offered = warning.get("remedy")
    assert(offered.get("sql").get(0).asText == finding.remedy.sql.head)
    assert(offered.get("python").get(0).asText == s"spark.sql(\"${finding.remedy.sql.head}\")")
    // The table remains writable.
    sql(s"DELETE FROM ${broken.name} WHERE id = 0")
    val copyOfIt = intercept[IcebergWriterCompatException] {
      sql(s"CREATE TABLE ${managed().name} SHALLOW CLONE ${broken.name}")
    }
    assert(copyOfIt.getMessageParameters.get("rule") == "N2")
    finding.remedy.sql.foreach(sql)
    assert(Reports.check(spark, broken.name, None).findings == Nil)
    assert(names(broken.log).last == "row_id")
    assertCompliant(broken)
    reserved(broken, "N2+") {
      sql(s"RESTORE TABLE ${broken.name} TO VERSION AS OF ${broken.log.version - 1}")
    }
  }
}
