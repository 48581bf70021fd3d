package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.testing.TestTable

/** A table without files has no past, whatever the table went through that it is made like. */
class NoPastSuite extends TableSuite {

  private val recorded = "delta.typeChanges"

  /** A table with rows whose column `i` was an INT and is a DOUBLE, which Iceberg cannot read. */
  private lazy val widened: TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (i INT, s STRUCT<k: INT>) USING delta " +
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, named_struct('k', 1))")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN i TYPE DOUBLE")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN s.k TYPE DOUBLE")
    assert(table.log.schemaString.contains(recorded))
    table
  }

  private def assertWithoutPast(table: TestTable): Unit = {
    assertCompliant(table)
    assert(!table.log.schemaString.contains(recorded))
    sql(s"INSERT INTO ${table.name} VALUES (2.5, named_struct('k', 3.5))")
    assert(rows(s"SELECT i, s.k FROM ${table.name} WHERE i = 2.5") == Set("[2.5,3.5]"))
    assertCompliant(table)
  }

  test("CREATE TABLE LIKE a table with type changes that Iceberg does not have") {
    val (named, byDefaultOnly) = (managed(), managed())
    sql(s"CREATE TABLE ${named.name} LIKE ${widened.name} TBLPROPERTIES ($on)")
    assertWithoutPast(named)
    byDefault(sql(s"CREATE TABLE ${byDefaultOnly.name} LIKE ${widened.name}"))
    assertWithoutPast(byDefaultOnly)
    // The table it is made like, and one without the feature, are left to Delta.
    val plainCopy = managed()
    sql(s"CREATE TABLE ${plainCopy.name} LIKE ${widened.name}")
    Seq(widened, plainCopy).foreach(table => assert(table.log.schemaString.contains(recorded)))
  }

  test("a query whose columns carry their type changes along") {
    withConf("spark.databricks.delta.typeWidening.removeSchemaMetadata" -> "false") {
      val source = spark.table(widened.name)
      assert(source.schema.json.contains(recorded))
      val (ctas, replaced, overwritten, saved) = (managed(), compliant(), compliant(), byPath())
      sql(
        s"CREATE TABLE ${ctas.name} USING delta TBLPROPERTIES ($on) AS SELECT * FROM ${widened.name}"
      )
      sql(s"REPLACE TABLE ${replaced.name} USING delta AS SELECT * FROM ${widened.name}")
      source.write
        .format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .saveAsTable(overwritten.name)
      source.write
        .format("delta")
        .option("delta.enableIcebergWriterCompatV1", "true")
        .save(saved.folder.toString)
      Seq(ctas, replaced, overwritten, saved).foreach(assertWithoutPast)
    }
  }

  test("switching the feature on for a table that has lost all its rows") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true') " +
        "AS SELECT 1 AS i, named_struct('k', 1) AS s"
    )
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN i TYPE DOUBLE")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN s.k TYPE DOUBLE")
    sql(s"DELETE FROM ${table.name}")
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
    assertWithoutPast(table)
  }

  test("CREATE TABLE LIKE takes no feature along that nothing in the new table uses") {
    val source = plain(Seq("delta.enableDeletionVectors" -> "true"))
    sql(s"ALTER TABLE ${source.name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    val table = managed()
    sql(s"CREATE TABLE ${table.name} LIKE ${source.name} TBLPROPERTIES ($on)")
    insert(table)
    assertCompliant(table)
    assert(!table.log.writerFeatures("deletionVectors"))
    // What the new table would use is its own doing.
    val used = managed()
    refusedFor("WRONG_REQUIRED_TABLE_PROPERTY", "B6", used) {
      val vectors = "'delta.enableDeletionVectors' = 'true'"
      sql(s"CREATE TABLE ${used.name} LIKE ${source.name} TBLPROPERTIES ($on, $vectors)")
    }
  }

  test("CREATE TABLE LIKE a table of any mapping, evolved, with the feature or without") {
    val evolved = compliant()
    sql(s"ALTER TABLE ${evolved.name} DROP COLUMN name")
    sql(s"ALTER TABLE ${evolved.name} ADD COLUMNS (more ARRAY<STRUCT<q: INT>>)")
    sql(s"ALTER TABLE ${evolved.name} RENAME COLUMN day TO date")
    Seq(plain(), plain(Seq("delta.columnMapping.mode" -> "id")), evolved).foreach { source =>
      val table = managed()
      sql(s"CREATE TABLE ${table.name} LIKE ${source.name} TBLPROPERTIES ($on)")
      sql(s"INSERT INTO ${table.name} SELECT * FROM ${source.name}")
      assertCompliant(table)
      assert(count(table) == 2)
    }
  }
}
