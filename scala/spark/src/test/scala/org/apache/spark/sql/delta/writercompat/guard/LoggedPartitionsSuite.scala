package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.delta.writercompat.upgrade.UpgradeTests
import org.apache.spark.sql.streaming.Trigger
import org.icebergwritercompat.report.{PlanMode, Severity, Verdict}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{ForeignFiles, TestTable}

import java.nio.file.Files

/** Values of partition columns that the log cannot hold as they are. */
class LoggedPartitionsSuite extends UpgradeTests {

  private val marker = "__HIVE_DEFAULT_PARTITION__"

  private def bytes(column: String) = s"hex(CAST(CAST($column AS STRING) AS BINARY))"

  /** The value of `p` by the number `a`, as Delta reads it from the log. */
  private def inLog(table: TestTable): Set[String] = rows(
    s"SELECT a, ${bytes("p")} FROM ${table.name}"
  )

  /** The same, as the files have it. */
  private def inFiles(table: TestTable): Set[String] = {
    val files = table.log.liveFiles.keys.map(_.toString).toSeq
    spark.read.parquet(files: _*).createOrReplaceTempView("files")
    rows(s"SELECT `col-1`, ${bytes("`col-2`")} FROM files")
  }

  private def partitioned(dataType: String): TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, p $dataType) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($on)"
    )
    table
  }

  private val odd = Seq(
    ("STRING", Nil) -> Seq(
      "''",
      s"'$marker'",
      s"' $marker'",
      s"'${marker.toLowerCase}'",
      "' a '",
      "'..'",
      "'%5F%2F'",
      "'NULL'",
      "'a=b/c:d'",
      "'Zürich 北'",
      "CAST(X'FF61' AS STRING)",
      "null"
    ),
    ("BINARY", Nil) -> Seq("X''", s"CAST('$marker' AS BINARY)", "X'FF00'", "X'61'", "null"),
    ("DATE", Nil) -> Seq("DATE'-0044-03-15'", "DATE'+12026-02-28'", "DATE'0000-01-01'"),
    ("DATE", Seq("spark.sql.legacy.timeParserPolicy" -> "LEGACY")) ->
      Seq("DATE'1582-10-10'", "DATE'0001-01-01'", "DATE'2026-01-01'", "null"),
    // The clocks go back at 01:00 UTC.
    ("TIMESTAMP", Seq("spark.sql.session.timeZone" -> "Europe/Zurich")) -> Seq(
      "TIMESTAMP'2026-10-25 00:30:00Z'",
      "TIMESTAMP'2026-10-25 01:30:00Z'",
      "TIMESTAMP'1850-01-01 00:00:00.000001Z'",
      "TIMESTAMP'0001-01-01 00:00:00Z'",
      // The log has no sign of the year.
      "TIMESTAMP'-0044-03-15 12:00:00.000001Z'",
      "TIMESTAMP'0000-12-31 23:59:59.999999Z'",
      "null"
    ),
    ("TIMESTAMP_NTZ", Nil) -> Seq("TIMESTAMP_NTZ'2026-03-29 02:30:00.5'", "null"),
    ("DOUBLE", Nil) -> Seq("DOUBLE('NaN')", "-0.0D", "0.0D", "1.0E-300D", "null")
  )

  odd.foreach { case ((dataType, settings), values) =>
    test(s"the log and the files agree on $dataType values such as ${values.head}") {
      val table = partitioned(dataType)
      withConf(settings: _*) {
        val numbered = values.zipWithIndex.map { case (value, i) => s"($i, $value)" }
        sql(s"INSERT INTO ${table.name} VALUES ${numbered.mkString(", ")}")
        assert(inLog(table) == inFiles(table))
        assert(inLog(table).size == values.size)
        assert(Reports.verify(spark, table.name, None, None).findings == Nil)
        sql(s"OPTIMIZE ${table.name}")
        sql(s"UPDATE ${table.name} SET p = p")
        assert(inLog(table) == inFiles(table))
      }
    }
  }

  test("a static partition of the marker is refused by Delta, and nothing is overwritten") {
    val table = partitioned("STRING")
    sql(s"INSERT INTO ${table.name} VALUES (1, null), (2, 'x')")
    val before = (table.log.version, rows(s"SELECT * FROM ${table.name}"))
    // The rows get null, as in every write, which is not the partition that is named.
    val refusal = intercept[AnalysisException] {
      sql(s"INSERT OVERWRITE ${table.name} PARTITION (p = '$marker') VALUES (3)")
    }
    assert(refusal.getCondition == "DELTA_REPLACE_WHERE_MISMATCH")
    assert((table.log.version, rows(s"SELECT * FROM ${table.name}")) == before)
    // What docs/writing.md offers.
    sql(s"INSERT OVERWRITE ${table.name} PARTITION (p = null) VALUES (3)")
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[3,null]", "[2,x]"))
    assert(inLog(table) == inFiles(table))
  }

  test("the marker of null is null, whatever writes it") {
    val table = partitioned("STRING")
    val name = table.name
    sql(s"INSERT INTO $name VALUES (1, '$marker'), (2, 'x'), (3, 'y')")
    sql(s"UPDATE $name SET p = '$marker' WHERE a = 2")
    sql(
      s"MERGE INTO $name t USING (SELECT 3 AS a, '$marker' AS p UNION ALL SELECT 4, '$marker') s " +
        "ON t.a = s.a WHEN MATCHED THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT *"
    )
    withConf("spark.sql.sources.partitionOverwriteMode" -> "dynamic") {
      sql(s"INSERT OVERWRITE $name SELECT a, '$marker' FROM $name")
    }
    spark
      .sql(s"SELECT 5 AS a, '$marker' AS p")
      .write
      .format("delta")
      .mode("overwrite")
      .option("replaceWhere", "a > 4")
      .saveAsTable(name)
    assert(rows(s"SELECT a FROM $name WHERE p IS NULL") == (1 to 5).map(i => s"[$i]").toSet)
    assert(inLog(table) == inFiles(table))
    assert(Reports.verify(spark, name, None, None).findings == Nil)
    // A column without nulls gets none.
    val must = partitioned("STRING NOT NULL")
    refusedByDelta(must)(sql(s"INSERT INTO ${must.name} VALUES (1, '$marker')"))
  }

  // Spark's optimizer takes an alias of the same name away, and with it the identity of the column.
  test("the log and the files agree whatever plan the rows come from") {
    val table = partitioned("STRING")
    val name = table.name
    val source = s"${table.folder}-source"
    val values = s"VALUES (1, ''), (2, '$marker'), (3, 'x') AS v(a, p)"
    spark.sql(s"SELECT * FROM $values").write.parquet(source)
    sql(s"INSERT INTO $name SELECT a AS a, p AS p FROM parquet.`$source`")
    spark
      .sql(s"SELECT a + 3 AS A, p AS P FROM parquet.`$source`")
      .write
      .format("delta")
      .mode("append")
      .saveAsTable(name)
    spark.readStream
      .schema("a INT, P STRING")
      .parquet(source)
      .selectExpr("a + 6 AS a", "P")
      .writeStream
      .format("delta")
      .option("checkpointLocation", s"$source-checkpoint")
      .trigger(Trigger.AvailableNow())
      .toTable(name)
      .awaitTermination()
    assert(rows(s"SELECT count(*), count(p) FROM $name") == Set("[9,3]"))
    assert(inLog(table) == inFiles(table))
    assert(Reports.verify(spark, name, None, None).findings == Nil)
  }

  private def refusedByDelta(table: TestTable)(body: => Any): Unit = {
    val version = table.log.version
    intercept[Exception](body)
    assert(table.log.version == version)
    ()
  }

  /** What CONVERT TO DELTA makes of partitions without a value. */
  private def converted(types: String, partitions: String, values: String): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} ($types) USING parquet PARTITIONED BY ($partitions)")
    sql(s"INSERT INTO ${table.name} VALUES $values")
    sql(s"CONVERT TO DELTA ${table.name}")
    assert(
      table.log.liveFiles.values.exists(_.get("partitionValues").toString.contains(marker))
    )
    table
  }

  test("a table with markers as text gets the feature when its user has said what they are") {
    val table = converted("i INT, p STRING", "p", "(1, 'x'), (2, null)")
    val name = table.name
    val before = all(table)
    assert(before.contains(s"[2,$marker]"))

    val checked = Reports.check(spark, name, None)
    assert(checked.facts.enabling.verdict == Verdict.Blocked)
    val found = checked.findings.filter(_.severity == Severity.Error)
    assert(found.map(_.rule) == Seq("D4n"))
    assert(fact(plan(table, rewrite = true)).mode == PlanMode.Blocked)
    val error = refused(table)(upgrade(table, rewrite = true))
    assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UPGRADE_BLOCKED")
    assert(error.getMessageParameters.get("rule") == "D4n")
    val altered = refused(table)(sql(s"ALTER TABLE $name SET TBLPROPERTIES ($on)"))
    assert(altered.getMessageParameters.get("rule") == "D4n")
    assert(all(table) == before)

    val fix = error.getMessageParameters.get("fix")
    assert(Seq(found.head.remedy.text, altered.getMessageParameters.get("fix")) == Seq(fix, fix))
    sql(fix)
    val said = all(table)
    assert(said == Seq("[1,x]", "[2,null]"))
    assert(upgrade(table, rewrite = true).changed)
    assert(all(table) == said)
    assert(Reports.verify(spark, name, None, None).findings == Nil)
    assertCompliant(table)
  }

  test("a marker in a column that is no text is null before and after") {
    val table =
      converted("i INT, n INT, d DATE", "n, d", "(1, 1, null), (2, null, DATE'2026-01-01')")
    val before = all(table)
    assert(before == Seq("[1,1,null]", "[2,null,2026-01-01]"))
    assert(plan(table, rewrite = true).findings.map(_.rule).contains("D4n"))
    assert(upgrade(table, rewrite = true).changed)
    assert(all(table) == before)
    assert(Reports.verify(spark, table.name, None, None).findings == Nil)
    assertCompliant(table)
  }

  test("a file that is added with the marker is refused, and found where it is") {
    val table = partitioned("STRING")
    sql(s"INSERT INTO ${table.name} VALUES (1, 'x')")
    val foreign = ForeignFiles.committed(table) { copy =>
      val file = ForeignFiles.write(
        copy.folder.resolve("foreign.parquet"),
        "optional int32 col-1 = 1;",
        "optional binary col-2 (STRING) = 2;"
      )(_.append("col-1", 2).append("col-2", marker))
      Seq(ForeignFiles.add("foreign.parquet", Files.size(file), 1, Map("col-2" -> marker)))
    }
    val report = Reports.verify(spark, foreign.name, None, None)
    assert(report.findings.map(_.rule) == Seq("D4n"))
    sql(report.findings.head.remedy.text)
    assert(Reports.verify(spark, foreign.name, None, None).findings == Nil)
    val back = foreign.log.version - 1
    refusedFor("INCOMPATIBLE_FILE_ACTION", "D4n", foreign) {
      sql(s"RESTORE TABLE ${foreign.name} TO VERSION AS OF $back")
    }
  }

  test("an upgrade in a time zone whose clocks go back keeps every instant") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, p TIMESTAMP) USING delta PARTITIONED BY (p)"
    )
    val instants = Seq("2026-10-25 00:30:00Z", "2026-10-25 01:30:00Z")
    withConf("spark.sql.session.timeZone" -> "UTC") {
      instants.zipWithIndex.foreach { case (t, i) =>
        sql(s"INSERT INTO ${table.name} VALUES ($i, TIMESTAMP'$t')")
      }
    }
    withConf("spark.sql.session.timeZone" -> "Europe/Zurich") {
      withConf("spark.databricks.delta.write.utcTimestampPartitionValues" -> "false") {
        sql(s"INSERT INTO ${table.name} VALUES (2, TIMESTAMP'2026-07-01 10:00:00Z')")
      }
      def instantsNow = rows(s"SELECT a, unix_micros(p) FROM ${table.name}")
      val before = instantsNow
      assert(before.size == 3)
      assert(upgrade(table, rewrite = true).filesRewritten == 3)
      assert(instantsNow == before)
      assert(inLog(table) == inFiles(table))
    }
  }
}
