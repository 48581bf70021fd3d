package org.apache.spark.sql.delta.writercompat.guard

import io.delta.tables.DeltaTable
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.testing.{FolderListing, SharedSpark, TestTable}

import java.nio.file.Files

/** RESTORE, CLONE and CONVERT TO DELTA, which never prepare a commit. */
class LargeCommitSuite extends TableSuite {

  test("RESTORE within the life of the feature brings rows and columns back") {
    val table = compliant()
    val columnsBefore = table.log.columns
    sql(s"ALTER TABLE ${table.name} DROP COLUMN tags")
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (more ARRAY<INT>)")
    insertMore(table)
    val max = maxColumnId(table)
    sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF 0")
    assertCompliant(table)
    assert(table.log.columns == columnsBefore)
    assert(count(table) == 2)
    // The ids of the columns that are gone again must not be given out once more.
    assert(maxColumnId(table) == max)
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (again INT)")
    assert(table.log.columns.find(_.name == "again").flatMap(_.id).exists(_ > max))
    assertCompliant(table)
  }

  private def insertMore(table: TestTable): Unit =
    sql(
      s"INSERT INTO ${table.name} SELECT id, name, s, attrs, deep, day, array(1) FROM ($someRows)"
    )

  test("RESTORE to a version before the feature is refused") {
    val table = plain(rows = false)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
    insert(table)
    refusedFor("DISABLING_REQUIRED_TABLE_FEATURE", "B1+", table) {
      sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF 0")
    }
    assertCompliant(table)
    assert(count(table) == 2)
  }

  test("RESTORE of a table without the feature is Delta's business") {
    val table = plain()
    insert(table)
    sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF 1")
    assert(count(table) == 2)
    assert(table.log.properties == Map.empty)
  }

  test("SHALLOW CLONE of a compliant table is compliant, and can be written") {
    val source = compliant()
    val table = managed()
    sql(s"CREATE TABLE ${table.name} SHALLOW CLONE ${source.name}")
    assertCompliant(table)
    assert(count(table) == 2)
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (more ARRAY<INT>)")
    sql(s"INSERT INTO ${table.name} SELECT *, array(1) FROM ($someRows)")
    assertCompliant(table)
    assert(count(table) == 4)
    refusedFor("UNSUPPORTED_DATA_TYPE", "C7", table, source) {
      sql(s"ALTER TABLE ${table.name} ADD COLUMNS (b SMALLINT)")
    }
  }

  test("a compliant table replaced by a SHALLOW CLONE of another stays compliant") {
    val (source, table) = (compliant(), compliant())
    insert(source)
    // Delta clones into tables without rows only.
    sql(s"DELETE FROM ${table.name}")
    sql(s"CREATE OR REPLACE TABLE ${table.name} SHALLOW CLONE ${source.name}")
    assertCompliant(table)
    assert(count(table) == 4)
  }

  private val byName = Seq("delta.columnMapping.mode" -> "name")
  private val byId = Seq("delta.columnMapping.mode" -> "id")
  private val all =
    s"$on, 'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'id'"
  private val violation = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION"
  private val modeChange = "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"

  // The source's mode and properties, the properties to override, and the condition.
  private val overridden: Seq[(String, Seq[(String, String)], String, String)] = Seq(
    ("none", Nil, on, s"$violation.WRONG_REQUIRED_TABLE_PROPERTY"),
    ("name", byName, on, s"$violation.WRONG_REQUIRED_TABLE_PROPERTY"),
    ("id", byId, on, s"$violation.WRONG_REQUIRED_TABLE_PROPERTY"),
    ("none", Nil, all, s"$violation.WRONG_REQUIRED_TABLE_PROPERTY"),
    ("name", byName, all, s"$violation.WRONG_REQUIRED_TABLE_PROPERTY"),
    ("id", byId, all, s"$violation.FIELD_ID_DOES_NOT_MATCH_PHYSICAL_NAME")
  )

  for ((mode, properties, overrides, condition) <- overridden)
    test(s"SHALLOW CLONE of a table of mode $mode with $overrides is refused") {
      val (source, table) = (plain(properties), managed())
      assert(conditionOf(source, table) {
        sql(s"CREATE TABLE ${table.name} SHALLOW CLONE ${source.name} TBLPROPERTIES ($overrides)")
      } == condition)
      assert(!Files.exists(table.folder))
      assert(!spark.catalog.tableExists(table.name))
    }

  /** The condition of a refusal, by Delta or by the guard, that leaves both tables as they are. */
  private def conditionOf(source: TestTable, table: TestTable)(body: => Unit): String = {
    val files = FolderListing.of(source.folder)
    val commits = (source.log.versions, table.log.versions)
    val error = intercept[Throwable with SparkThrowable](body)
    assert(FolderListing.of(source.folder) == files)
    assert((source.log.versions, table.log.versions) == commits)
    error.getCondition
  }

  test("SHALLOW CLONE of a plain table under a session default is a plain table") {
    val source = plain()
    val table = managed()
    byDefault(sql(s"CREATE TABLE ${table.name} SHALLOW CLONE ${source.name}"))
    assert(table.log.properties == Map.empty)
    assert(count(table) == 2)
  }

  Seq(
    ("none", Nil, modeChange),
    ("name", byName, modeChange),
    ("id", byId, s"$violation.DISABLING_REQUIRED_TABLE_FEATURE")
  ).foreach { case (mode, properties, condition) =>
    test(s"a compliant table cannot be replaced by a SHALLOW CLONE of one of mode $mode") {
      val (source, table) = (plain(properties), compliant())
      sql(s"DELETE FROM ${table.name}")
      assert(conditionOf(source, table) {
        sql(s"CREATE OR REPLACE TABLE ${table.name} SHALLOW CLONE ${source.name}")
      } == condition)
      assertCompliant(table)
    }
  }

  private def parquet(): TestTable = {
    val table = byPath()
    frame.write.parquet(table.folder.toString)
    table
  }

  private val sessionDefault =
    "spark.databricks.delta.properties.defaults.enableIcebergWriterCompatV1"

  /** What both ways to convert offer instead; a program names the partitions by themselves. */
  private def refusedToConvert(
      table: TestTable,
      folder: TestTable,
      setting: String,
      partitions: Option[String] = None
  ): String = {
    val clause = partitions.fold("")(columns => s" PARTITIONED BY ($columns)")
    val doors = Seq[() => Any](
      () => sql(s"CONVERT TO DELTA ${table.name}$clause"),
      () =>
        partitions.fold(DeltaTable.convertToDelta(spark, table.name)) {
          DeltaTable.convertToDelta(spark, table.name, _)
        }
    )
    val fixes = doors.map { door =>
      val error = refusedFor("FILES_WITHOUT_COLUMN_IDS", "E1", folder)(byDefault(door()))
      assert(!Files.exists(folder.folder.resolve("_delta_log")))
      assert(error.getMessageParameters.get("folder").endsWith(folder.folder.toString))
      assert(error.getMessageParameters.get("setting") == setting)
      error.getMessageParameters.get("fix")
    }
    assert(fixes.distinct.size == 1)
    fixes.head
  }

  test("CONVERT TO DELTA under a session default is refused: the files have no ids") {
    val folder = parquet()
    val path = folder.copy(name = s"parquet.`${folder.folder}`")
    sql(refusedToConvert(path, folder, sessionDefault))
    val copy = folder.folder.resolveSibling(s"${folder.folder.getFileName}_iceberg")
    assertCompliant(TestTable(s"delta.`$copy`", copy))
    assert(spark.read.parquet(folder.folder.toString).count() == 2)
    withConf(sessionDefault -> "false")(sql(s"CONVERT TO DELTA ${path.name}"))
    assert(count(folder) == 2)
    // It is a Delta table now, which the statement leaves alone.
    byDefault(sql(s"CONVERT TO DELTA ${path.name}"))
    assert(folder.log.version == 0)
  }

  test("CONVERT TO DELTA of a folder with a backtick offers a copy that can be made") {
    val folder = SharedSpark.freshFolder().resolve("a`b")
    frame.write.parquet(folder.toString)
    def inSql(format: String, folder: java.nio.file.Path): TestTable =
      TestTable(s"$format.`${folder.toString.replace("`", "``")}`", folder)
    sql(refusedToConvert(inSql("parquet", folder), inSql("delta", folder), sessionDefault))
    val copy = inSql("delta", folder.resolveSibling("a`b_iceberg"))
    assertCompliant(copy)
    assert(count(copy) == 2)
  }

  test("CONVERT TO DELTA of a partitioned folder is refused with a copy of its partitions") {
    val folder = byPath()
    spark
      .range(4)
      .selectExpr("id", "id % 2 AS `p q`")
      .write
      .partitionBy("p q")
      .parquet(
        folder.folder.toString
      )
    val path = folder.copy(name = s"parquet.`${folder.folder}`")
    sql(refusedToConvert(path, folder, sessionDefault, Some("`p q` BIGINT")))
    val copy = folder.folder.resolveSibling(s"${folder.folder.getFileName}_iceberg")
    assertCompliant(TestTable(s"delta.`$copy`", copy))
    assert(rows(s"SELECT `p q`, count(*) FROM delta.`$copy` GROUP BY 1") == Set("[0,2]", "[1,2]"))
  }

  test("CONVERT TO DELTA of a table of the catalog is refused") {
    val table = managed()
    frame.write.format("parquet").saveAsTable(table.name)
    sql(refusedToConvert(table, table, sessionDefault))
    val copy = table.folder.resolveSibling(s"${table.name}_iceberg")
    assertCompliant(TestTable(s"${table.name}_iceberg", copy))
    sql(s"CONVERT TO DELTA ${table.name}")
    assert(table.log.properties == Map.empty)
    assert(count(table) == 2)
    byDefault(sql(s"CONVERT TO DELTA ${table.name}"))
    assert(table.log.version == 0)
  }

  test("CONVERT TO DELTA of a table with the property is refused; the table's own word counts") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING parquet TBLPROPERTIES ($on) AS $someRows")
    refusedToConvert(table, table, "delta.enableIcebergWriterCompatV1")
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES (${on.replace("true", "false")})")
    byDefault(sql(s"CONVERT TO DELTA ${table.name}"))
    assert(count(table) == 2)
    assert(table.log.properties.get("delta.enableIcebergWriterCompatV1").contains("false"))
  }

  test("CONVERT TO DELTA without the session default is Delta's business") {
    val table = parquet()
    sql(s"CONVERT TO DELTA parquet.`${table.folder}`")
    assert(table.log.version == 0)
    assert(table.log.properties == Map.empty)
    assert(Files.exists(table.folder.resolve("_delta_log")))
    assert(count(table) == 2)
  }

  test("DROP FEATURE with its commits is free to go") {
    val table = compliant()
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    assert(!table.log.writerFeatures("icebergWriterCompatV1"))
    assert(!table.log.properties.contains("delta.enableIcebergWriterCompatV1"))
    assert(table.log.properties.get("delta.columnMapping.mode").contains("id"))
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (b TINYINT)")
    assert(count(table) == 2)
  }
}
