package org.apache.spark.sql.delta.writercompat.remedies

import org.apache.spark.sql.delta.writercompat.{Offered, TableSuite}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.testing.{SharedSpark, TestTable}
import org.apache.spark.sql.delta.writercompat.read.DeltaTables

import java.nio.file.Files
import scala.util.Try

/**
 * What a refusal offers is run: every statement runs, no row is lost or changed, the fault is gone,
 * and what else the user wrote is kept.
 */
class RemedySuite extends TableSuite with Places {

  private val property = "delta.enableIcebergWriterCompatV1"

  /** The refusal of a statement; nothing is left of it. */
  private def refusal(table: TestTable, statement: String): IcebergWriterCompatException =
    refused(table)(sql(statement))

  /** Runs what is offered; with one statement all faults are gone. */
  private def applyRemedy(error: IcebergWriterCompatException): Unit =
    Offered.run(spark, error.remedy)

  private def rowsOf(table: TestTable): Set[String] = rows(s"SELECT * FROM ${table.name}")

  // --- New tables -----------------------------------------------------------------------------

  /** Clauses that have to be there afterwards. */
  private def clauses(folder: String): String =
    s"USING delta CLUSTER BY (k) COMMENT 'of it' LOCATION '$folder' " +
      s"TBLPROPERTIES ($on, 'my.key' = 'my; value', %s)"

  /** A fault of a CREATE: what is wrong in its columns, and in its properties. */
  private val faults: Seq[(String, String, String)] = Seq(
    ("a property", "", "'delta.enableDeletionVectors' = 'true'"),
    ("another key of a property", "", "'delta.enableChangeDataCapture' = 'true'"),
    ("a mapping mode", "", "'delta.columnMapping.mode' = 'name'"),
    ("a feature", "", "'delta.feature.deletionVectors' = 'supported'"),
    ("a type", "b SMALLINT COMMENT 'of b'", ""),
    ("a nested type", "s STRUCT<x: TINYINT COMMENT 'of x', `y y`: ARRAY<MAP<INT, SMALLINT>>>", ""),
    ("a type without a counterpart", "v VARIANT", ""),
    ("a reserved name", "_file STRING COMMENT 'of b'", ""),
    ("a nested name", "n STRUCT<a: INT>, `n.a` INT", ""),
    (
      "a default",
      "d INT DEFAULT 1 COMMENT 'of d'",
      "'delta.feature.allowColumnDefaults' = 'supported'"
    ),
    ("a generated column", "g BIGINT GENERATED ALWAYS AS (k + 1) COMMENT 'of g'", ""),
    ("an identity column", "i BIGINT GENERATED ALWAYS AS IDENTITY", "")
  )

  private def create(
      verb: String,
      table: TestTable,
      folder: String,
      column: String,
      key: String
  ) = {
    val all = Seq("k BIGINT NOT NULL COMMENT 'the; key'", column, "`last one` STRING")
      .filter(_.nonEmpty)
      .mkString(", ")
    val rest = clauses(folder).format(if (key.isEmpty) "'x' = 'y'" else key)
    s"$verb ${table.name} ($all) $rest"
  }

  /** What the user had written beside the fault. */
  private def assertKept(table: TestTable, columns: Int): Unit = {
    val log = table.log
    assert(log.properties.get("my.key").contains("my; value"))
    assert(log.metadata.path("description").asText == "of it")
    val schema = spark.table(table.name).schema
    assert(schema.head.getComment().contains("the; key"))
    assert(schema.last.name == "last one")
    assert(schema.length == columns)
    // The comment of a column stays whatever becomes of its type or name.
    assert(schema.fields.drop(1).forall { field =>
      val commented = Set("b", "d", "g", "file")(field.name)
      !commented || field.getComment().exists(_.startsWith("of "))
    })
    val detail = spark.sql(s"DESCRIBE DETAIL ${table.name}").select("clusteringColumns").head()
    assert(detail.getSeq[String](0) == Seq("k"))
    assertCompliant(table)
  }

  private def external(): TestTable = {
    val name = SharedSpark.freshName()
    TestTable(name, SharedSpark.freshFolder())
  }

  for ((what, column, key) <- faults)
    test(s"CREATE with $what is offered with all else that was written") {
      val table = external()
      val error = refusal(table, create("CREATE TABLE", table, s"${table.folder}", column, key))
      applyRemedy(error)
      assertKept(table, 2 + (if (column.isEmpty) 0 else count(column)))
      insertOne(table)
    }

  // Columns on the highest level, by the commas outside of angle brackets and parentheses.
  private def count(columns: String): Int =
    columns.replaceAll("<[^<>]*(<[^<>]*(<[^<>]*>[^<>]*)*>[^<>]*)*>", "").split(", ").length

  private def insertOne(table: TestTable): Unit = {
    sql(s"INSERT INTO ${table.name} (k, `last one`) VALUES (1, 'z')")
    assert(count(table) == 1)
  }

  for {
    ((first, column, key), i) <- faults.zipWithIndex
    (second, otherColumn, otherKey) <- faults.drop(i + 1)
    // Two reserved names, and two modes, would be one fault.
    if key.isEmpty || otherKey.isEmpty || column.isEmpty && otherColumn.isEmpty
  } test(s"CREATE with $first and $second is offered without both") {
    val table = external()
    val error = refusal(
      table,
      create(
        "CREATE TABLE",
        table,
        s"${table.folder}",
        Seq(column, otherColumn).filter(_.nonEmpty).mkString(", "),
        Seq(key, otherKey).filter(_.nonEmpty).mkString(", ")
      )
    )
    applyRemedy(error)
    assert(table.log.properties("my.key") == "my; value")
    assert(table.log.metadata.path("description").asText == "of it")
    val schema = spark.table(table.name).schema
    assert(schema.length == 2 + Seq(column, otherColumn).filter(_.nonEmpty).map(count).sum)
    assertCompliant(table)
  }

  for ((place, table) <- places)
    test(s"CREATE, CTAS and REPLACE $place, with two faults") {
      val columns = "(k INT, b SMALLINT COMMENT 'of b') USING delta PARTITIONED BY (k) "
      val properties = s"TBLPROPERTIES ($on, 'delta.enableRowTracking' = 'true', 'my.key' = 'a')"
      val query = "AS SELECT 1 AS k, CAST(2 AS SMALLINT) AS b"
      val created = table()
      applyRemedy(refusal(created, s"CREATE TABLE ${created.name} $columns $properties"))
      assert(created.log.metadata.path("partitionColumns").toString == """["k"]""")
      assert(spark.table(created.name).schema("b").getComment().contains("of b"))
      val selected = table()
      applyRemedy(
        refusal(
          selected,
          s"CREATE TABLE ${selected.name} USING delta PARTITIONED BY (k) $properties $query"
        )
      )
      assert(rowsOf(selected) == Set("[2,1]", "[1,2]").intersect(rowsOf(selected)))
      assert(count(selected) == 1)
      // Its own rows are what the statement reads.
      val replaced = plain(rows = true, table = table())
      val before = rowsOf(replaced)
      applyRemedy(
        refusal(
          replaced,
          s"CREATE OR REPLACE TABLE ${replaced.name} USING delta $properties " +
            s"AS SELECT *, CAST(1 AS TINYINT) AS more FROM ${replaced.name}"
        )
      )
      assert(rows(s"SELECT * EXCEPT (more) FROM ${replaced.name}") == before)
      Seq(created, selected, replaced).foreach { made =>
        assert(made.log.properties("my.key") == "a")
        assertCompliant(made)
      }
    }

  test("CTAS with columns of names, types and a WITH of its own") {
    val table = external()
    val error = refusal(
      table,
      s"""CREATE TABLE ${table.name} USING delta -- a; comment
         |LOCATION '${table.folder}' TBLPROPERTIES ($on)
         |AS WITH s AS (SELECT 1 AS _row_id, named_struct('x', 2S, '_file', 'f') AS c)
         |SELECT * FROM s""".stripMargin
    )
    applyRemedy(error)
    assert(rowsOf(table) == Set("[1,[2,f]]"))
    assert(spark.table(table.name).columns.toSeq == Seq("row_id", "c"))
    assertCompliant(table)
  }

  test("more columns than anybody wants to write again") {
    val table = managed()
    val columns = (1 to 60).map(i => s"c$i INT").mkString(", ")
    applyRemedy(
      refusal(
        table,
        s"CREATE TABLE ${table.name} ($columns, b TINYINT) USING delta TBLPROPERTIES ($on)"
      )
    )
    assert(spark.table(table.name).columns.length == 61)
  }

  test("LIKE a table with a type that is not supported") {
    val source = managed()
    sql(
      s"CREATE TABLE ${source.name} (b SMALLINT COMMENT 'of b', p STRING) USING delta PARTITIONED BY (p)"
    )
    val table = external()
    applyRemedy(
      refusal(
        table,
        s"CREATE TABLE ${table.name} LIKE ${source.name} USING delta LOCATION '${table.folder}' " +
          s"TBLPROPERTIES ($on, 'my.key' = 'a')"
      )
    )
    assert(spark.table(table.name).schema("b").getComment().contains("of b"))
    assert(table.log.metadata.path("partitionColumns").toString == """["p"]""")
    assert(table.log.properties("my.key") == "a")
    assertCompliant(table)
  }

  test("a decimal as partition column, and another partitioning in REPLACE") {
    val table = managed()
    val decimal = s"CREATE TABLE ${table.name} (d DECIMAL(3, 1), p INT, v INT) USING delta " +
      s"PARTITIONED BY (d, p) COMMENT 'of it' TBLPROPERTIES ($on)"
    applyRemedy(refusal(table, decimal))
    assert(table.log.metadata.path("partitionColumns").toString == """["p"]""")
    assert(table.log.metadata.path("description").asText == "of it")
    val other = s"REPLACE TABLE ${table.name} (d INT, v INT) USING delta PARTITIONED BY (v) " +
      s"COMMENT 'other' TBLPROPERTIES ($on)"
    applyRemedy(refusal(table, other))
    assert(table.log.metadata.path("partitionColumns").toString == """["p"]""")
    assert(spark.table(table.name).columns.toSet == Set("d", "v", "p"))
    assert(table.log.metadata.path("description").asText == "other")
  }

  // --- Existing tables ------------------------------------------------------------------------

  for ((place, table) <- places)
    test(s"ADD COLUMNS $place keeps comments, order and the other columns") {
      val made = compliant(table())
      val before = rowsOf(made).size
      applyRemedy(
        refusal(
          made,
          s"ALTER TABLE ${made.name} ADD COLUMNS (x INT, y SMALLINT COMMENT 'k' FIRST, " +
            "s.n STRUCT<a: TINYINT COMMENT 'of a'> AFTER x, _pos INT, z STRING)"
        )
      )
      val schema = spark.table(made.name).schema
      assert(schema.head.name == "y" && schema.head.getComment().contains("k"))
      assert(Set("x", "y", "pos", "z").subsetOf(schema.fieldNames.toSet))
      assert(rowsOf(made).size == before)
      assertCompliant(made)
    }

  for ((place, table) <- places)
    test(s"SET TBLPROPERTIES $place keeps the properties that are allowed") {
      val made = compliant(table())
      val before = rowsOf(made)
      applyRemedy(
        refusal(
          made,
          s"ALTER TABLE ${made.name} SET TBLPROPERTIES ('my.key' = 'a', " +
            "'delta.enableDeletionVectors' = 'true', 'delta.enableIcebergCompatV3' = 'true')"
        )
      )
      assert(made.log.properties("my.key") == "a")
      assert(rowsOf(made) == before)
      assertCompliant(made)
    }

  for {
    (place, table) <- places
    (from, to) <- Seq("DATE" -> "TIMESTAMP_NTZ", "INT" -> "DOUBLE")
  } test(s"$from to $to $place gets a column beside it") {
    val made = table()
    sql(
      s"CREATE TABLE ${made.name} (c $from) USING delta " +
        s"TBLPROPERTIES ($on, 'delta.enableTypeWidening' = 'true')"
    )
    sql(s"INSERT INTO ${made.name} VALUES (NULL)")
    applyRemedy(refusal(made, s"ALTER TABLE ${made.name} ALTER COLUMN c TYPE $to"))
    assert(spark.table(made.name).columns.toSeq == Seq("c", "c_2"))
    assert(count(made) == 1)
    assertCompliant(made)
  }

  for ((place, table) <- places)
    test(s"switching the feature on $place by a plain statement offers to do it in place") {
      val made = plain(table = table())
      sql(s"ALTER TABLE ${made.name} ADD CONSTRAINT c CHECK (id >= 0)")
      val before = rowsOf(made)
      val error = refusal(made, s"ALTER TABLE ${made.name} SET TBLPROPERTIES ($on)")
      assert(error.remedy.isInstanceOf[Remedy.Enable], error.getMessage)
      applyRemedy(error)
      assert(rowsOf(made) == before)
      assertCompliant(made)
    }

  for (
    (place, table) <- places;
    (what, column) <- Seq("VOID" -> "NULL", "VARIANT" -> "parse_json('1')")
  )
    test(s"a column of type $what $place keeps its rows") {
      val made = table()
      sql(s"CREATE TABLE ${made.name} USING delta AS SELECT 1 AS a, $column AS v")
      val error = refusal(made, s"ALTER TABLE ${made.name} SET TBLPROPERTIES ($on)")
      applyRemedy(error)
      assert(rows(s"SELECT a FROM ${made.name}") == Set("[1]"))
    }

  for ((place, table) <- places)
    test(s"SHALLOW CLONE $place is offered as a copy of the same name and rows") {
      val source = plain()
      sql(s"ALTER TABLE ${source.name} SET TBLPROPERTIES ('old' = 'b')")
      val target = table()
      applyRemedy(
        refusal(
          target,
          s"CREATE TABLE ${target.name} SHALLOW CLONE ${source.name} VERSION AS OF 1 " +
            s"TBLPROPERTIES ($on, 'my.key' = 'a')"
        )
      )
      assert(rowsOf(target) == rowsOf(source))
      assert(target.log.properties("my.key") == "a")
      assertCompliant(target)
    }

  test("dropping a feature that has to wait says so") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT) USING delta " +
        s"TBLPROPERTIES ($on, 'delta.checkpointPolicy' = 'v2')"
    )
    val error = refusal(table, s"ALTER TABLE ${table.name} DROP FEATURE v2Checkpoint")
    assert(error.remedy.note.exists(_.contains("24 hours")))
    assert(error.getMessage.contains("24 hours"))
  }

  test("a folder in the warehouse that the catalog does not know is called by its path") {
    val folder = SharedSpark.warehouse.resolve(SharedSpark.freshName())
    val table = TestTable(s"delta.`$folder`", folder)
    compliant(table)
    val error = refusal(table, s"ALTER TABLE ${table.name} ADD COLUMNS (b SMALLINT)")
    assert(error.getMessageParameters.get("table").contains("delta.`"))
  }

  test("publishing without the feature, and a property that is misspelt") {
    val table = external()
    val misspelt = s"CREATE TABLE ${table.name} (a INT) USING delta LOCATION '${table.folder}' " +
      "TBLPROPERTIES ('icebergWriterCompat.publish' = 'true', 'my.key' = 'a')"
    val error = intercept[IcebergWriterCompatException](sql(misspelt))
    applyRemedy(error)
    assert(table.log.properties("my.key") == "a")
    assertCompliant(table)
  }

  test("for a DataFrame writer the remedy names the calls, not an incomplete statement") {
    val table = managed()
    val error = refused(table) {
      spark
        .sql("SELECT CAST(1 AS SMALLINT) AS b, 2 AS _file")
        .write
        .format("delta")
        .option(property, "true")
        .option("delta.enableRowTracking", "true")
        .saveAsTable(table.name)
    }
    assert(
      error.remedy.sql == Seq(
        ".withColumn(\"b\", col(\"b\").cast(\"INT\"))",
        ".withColumnRenamed(\"_file\", \"file\")",
        ".option(\"delta.enableRowTracking\", \"false\")"
      )
    )
    assert(error.getMessage.contains("\nUse: .withColumn("))
    assert(!Files.exists(table.folder))
  }

  test("a parquet table is copied, and not only described") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING parquet AS SELECT 1 AS a")
    val error = intercept[IcebergWriterCompatException](DeltaTables.find(spark, table.name))
    applyRemedy(error)
    assert(rows(s"SELECT * FROM ${table.name}_iceberg") == Set("[1]"))
    assert(Try(DeltaTables.find(spark, s"${table.name}_iceberg")).isSuccess)
  }
}
