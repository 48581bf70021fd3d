package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.delta.writercompat.{Offered, TableSuite}
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.TestTable

/** The feature is switched on and off for tables that exist. */
class EnablingSuite extends TableSuite {

  private def enable(table: TestTable, more: String = ""): Unit =
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on$more)")

  private val emptyTables: Seq[(String, Seq[(String, String)])] = Seq(
    "none" -> Nil,
    "name" -> Seq("delta.columnMapping.mode" -> "name"),
    "id" -> Seq("delta.columnMapping.mode" -> "id"),
    "name and IcebergCompatV2" ->
      Seq("delta.columnMapping.mode" -> "name", "delta.enableIcebergCompatV2" -> "true"),
    "none and the feature listed" ->
      Seq("delta.feature.icebergWriterCompatV1" -> "supported")
  )

  for ((mode, properties) <- emptyTables)
    test(s"an empty table of mode $mode is enabled, and then written") {
      val table = plain(properties, rows = false)
      enable(table)
      assertCompliant(table)
      insert(table)
      sql(s"ALTER TABLE ${table.name} ADD COLUMNS (tags.element.more ARRAY<INT>)")
      assertCompliant(table)
      assert(count(table) == 2)
    }

  test("an empty table is enabled with all three properties at once") {
    val table = plain(rows = false)
    enable(table, ", 'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'id'")
    assertCompliant(table)
  }

  test("a table whose rows are all deleted is enabled as an empty one") {
    val table = plain()
    sql(s"DELETE FROM ${table.name}")
    enable(table)
    insert(table)
    assertCompliant(table)
    assert(count(table) == 2)
  }

  test("an empty table that breaks a rule is refused, with everything that stands against it") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a SMALLINT, l ARRAY<STRUCT<b: TINYINT>>) USING delta")
    val error = refused(table)(enable(table))
    assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.TABLE_NOT_COMPLIANT")
    val findings = error.getMessageParameters.get("findings").linesIterator.filter(_.nonEmpty).toSeq
    assert(findings.map(_.takeWhile(_ != ' ').length).forall(_ == 1))
    assert(findings.count(_.startsWith("- C7, column a ")) == 1)
    assert(findings.count(_.startsWith("- C7, column l.element.b ")) == 1)
    assert(error.getMessageParameters.get("count") == findings.size.toString)
  }

  for ((mode, properties) <- emptyTables)
    test(s"a table of mode $mode with files is refused, with a list that ends in a statement") {
      val table = plain(properties)
      val error = refused(table)(enable(table))
      assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.TABLE_NOT_COMPLIANT")
      assert(error.getMessageParameters.get("rule").split(", ").contains("E1"))
      assert(!table.log.properties.contains("delta.enableIcebergWriterCompatV1"))
      // The call the text ends with gives this table the feature, and keeps the rows.
      assert(error.getMessage.endsWith(error.getMessageParameters.get("fix")))
      val before = rows(s"SELECT * FROM ${table.name}")
      Offered.run(spark, error.remedy)
      assertCompliant(table)
      assert(rows(s"SELECT * FROM ${table.name}") == before)
    }

  test("a table that left the feature with its files comes back") {
    val table = compliant()
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    insert(table)
    sql(s"DELETE FROM ${table.name} WHERE id = 0")
    enable(table)
    assertCompliant(table)
    insert(table)
    assertCompliant(table)
    assert(count(table) == 4)
  }

  test("a table that got a column of a random name outside of the feature does not come back") {
    val table = compliant()
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (more INT)")
    val error = refused(table)(enable(table))
    assert(error.getMessageParameters.get("rule").split(", ").toSeq == Seq("C2"))
    assert(error.getMessageParameters.get("findings").contains("column more "))
  }

  for (
    (what, change) <- Seq(
      "set to false" -> "SET TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'false')",
      "unset" -> "UNSET TBLPROPERTIES ('delta.enableIcebergWriterCompatV1')"
    )
  )
    test(s"the property cannot be $what by itself") {
      val table = compliant()
      val error = refusedFor("DISABLING_REQUIRED_TABLE_FEATURE", "B1+", table) {
        sql(s"ALTER TABLE ${table.name} $change")
      }
      assertCompliant(table)
      // The way out that the text names is one.
      sql(error.getMessageParameters.get("fix"))
      assert(!table.log.writerFeatures("icebergWriterCompatV1"))
    }

  test("a table cannot be replaced by one without the feature") {
    val table = compliant()
    refusedFor("DISABLING_REQUIRED_TABLE_FEATURE", "B1+", table) {
      sql(
        s"CREATE OR REPLACE TABLE ${table.name} (a INT) USING delta " +
          "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'false')"
      )
    }
    assertCompliant(table)
  }

  Seq("delta.enableIcebergCompatV2" -> "B2", "delta.columnMapping.mode" -> "B3").foreach {
    case (key, rule) =>
      test(s"$key cannot be unset while the feature is on") {
        val table = compliant()
        refusedFor("WRONG_REQUIRED_TABLE_PROPERTY", rule, table) {
          sql(s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('$key')")
        }
        assertCompliant(table)
      }
  }

  test("other features the table cannot have are refused when altered in") {
    val table = compliant()
    refusedFor("WRONG_REQUIRED_TABLE_PROPERTY", "B6", table) {
      sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    }
  }

  test("a program enables and disables by name and by path, and gets the result") {
    val table = plain(rows = false)
    assert(!IcebergWriterCompat.isEnabled(spark, table.name))
    assert(IcebergWriterCompat.enable(spark, table.name))
    assert(!IcebergWriterCompat.enable(spark, table.name))
    assert(IcebergWriterCompat.isEnabled(spark, table.folder.toString))
    assert(IcebergWriterCompat.isEnabled(spark, s"default.${table.name}"))
    assert(IcebergWriterCompat.isEnabled(spark, s"delta.`${table.folder}`"))
    assertCompliant(table)
    assert(IcebergWriterCompat.disable(spark, table.folder.toString))
    assert(!IcebergWriterCompat.disable(spark, table.name))
  }

  test("a program switches the default of a session on and off") {
    assert(!IcebergWriterCompat.isEnabledByDefault(spark))
    IcebergWriterCompat.enableByDefault(spark)
    try {
      assert(IcebergWriterCompat.isEnabledByDefault(spark))
      assertCompliant(plain())
    } finally IcebergWriterCompat.disableByDefault(spark)
    assert(!IcebergWriterCompat.isEnabledByDefault(spark))
    assert(plain(rows = false).log.properties == Map.empty)
  }

  test("what is no Delta table is refused by its name") {
    val (view, other) = (managed(), managed())
    sql(s"CREATE TABLE ${other.name} (a INT) USING parquet")
    val error =
      intercept[IcebergWriterCompatException](IcebergWriterCompat.enable(spark, other.name))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE")
    assert(error.getMessageParameters.get("table") == other.name)
    // Spark itself says this of views.
    sql(s"CREATE VIEW ${view.name} AS SELECT 1 AS a")
    val ofView = intercept[AnalysisException](IcebergWriterCompat.enable(spark, view.name))
    assert(ofView.getMessage.contains(s"`${view.name}` is a view"))
  }

  Seq("no_such_table", "no_such_db.t", "/no/such/folder").foreach { name =>
    test(s"$name is not there, says Spark or Delta") {
      intercept[AnalysisException](IcebergWriterCompat.enable(spark, name))
    }
  }
}
