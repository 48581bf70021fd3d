package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.kernel.KernelTable
import org.icebergwritercompat.report.{
  Finding,
  PlanFact,
  PlanMode,
  Severity,
  TableReport,
  UpgradeResult
}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{CopiedTables, FolderListing, FolderState, TestTable}

/** What the suites on upgrades have in common. */
abstract class UpgradeTests extends TableSuite {

  protected val mapped = Seq("delta.columnMapping.mode" -> "name")
  protected val v2 = mapped :+ ("delta.enableIcebergCompatV2" -> "true")
  protected val v1 = mapped :+ ("delta.enableIcebergCompatV1" -> "true")
  protected val byId = Seq("delta.columnMapping.mode" -> "id")

  protected def upgrading(table: TestTable, mode: String, rewrite: Boolean, drop: Seq[String]) =
    TableUpgrade.of(spark, table.name, mode, rewrite, drop)

  protected def upgrade(
      table: TestTable,
      mode: String = "auto",
      rewrite: Boolean = false,
      drop: Seq[String] = Nil
  ): UpgradeResult = upgrading(table, mode, rewrite, drop).run()

  protected def plan(
      table: TestTable,
      rewrite: Boolean = false,
      drop: Seq[String] = Nil
  ): TableReport = {
    val before = FolderState.of(table.folder)
    val report = upgrading(table, "auto", rewrite, drop).plan()
    assert(FolderState.of(table.folder) == before)
    report
  }

  protected def fact(report: TableReport): PlanFact = report.plan.get

  protected def errors(report: TableReport): Seq[Finding] =
    report.findings.filter(_.severity == Severity.Error)

  /** Runs `body` with timestamps written as 64 bits, as IcebergCompatV2 has them. */
  protected def micros[T](body: => T): T =
    withConf("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MICROS")(body)

  /** A table of flat and nested columns without lists and maps, in several files. */
  protected def flat(properties: Seq[(String, String)], more: String = ""): TestTable =
    CopiedTables.copyTo(managed(), ("flat", properties, more))(makeFlat(_, properties, more))

  private def makeFlat(
      table: TestTable,
      properties: Seq[(String, String)],
      more: String
  ): Unit = {
    val list = properties.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
    val clause = if (properties.isEmpty) "" else s"TBLPROPERTIES ($list)"
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, name STRING, s STRUCT<x: DECIMAL(38, 10), " +
        s"y: STRUCT<z: TIMESTAMP>>, day DATE) USING delta $more $clause"
    )
    for (i <- 0 until 3) micros {
      sql(
        s"INSERT INTO ${table.name} SELECT id, concat('n', id), named_struct('x', " +
          "CAST(12345678901234567890.0123456789 AS DECIMAL(38, 10)) + id, 'y', named_struct('z', " +
          s"TIMESTAMP'2026-01-01 00:00:00.123456')), DATE'2026-01-01' + $i " +
          s"FROM range(${10 * i}, ${10 * i + 10}, 1, 1)"
      )
    }
  }

  /** The table of `columns`, in several files, that has IcebergCompatV2 all along. */
  protected def nested(more: String = ""): TestTable =
    CopiedTables.copyTo(managed(), ("nested", more)) { made =>
      val list = v2.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
      sql(s"CREATE TABLE ${made.name} ($columns) USING delta $more TBLPROPERTIES ($list)")
      insert(made)
      insert(made)
    }

  protected def dataFiles(table: TestTable): Set[String] =
    FolderListing.of(table.folder).filterNot(_.startsWith("_delta_log"))

  protected def all(table: TestTable): Seq[String] =
    spark.table(table.name).collect().map(_.toString).sorted.toSeq

  /** The upgrade leaves rows and data files as they are, and a table that is as it should be. */
  protected def assertMetadataOnly(
      table: TestTable,
      noted: Seq[String] = Nil
  ): UpgradeResult = {
    val (version, rows, files) = (table.log.version, all(table), dataFiles(table))
    assert(fact(plan(table)).mode == PlanMode.Metadata, plan(table).findings)
    val result = upgrade(table)
    assert(result.changed && result.mode == PlanMode.Metadata && result.filesRewritten == 0)
    assert(result.version == version + 1 && table.log.version == version + 1)
    assert(result.filesKept == table.log.liveFiles.size)
    assert(dataFiles(table) == files)
    assertUpgraded(table, version, rows, noted)
    result
  }

  /** `noted` are the rules about which the report says something, though none is broken. */
  protected def assertUpgraded(
      table: TestTable,
      before: Long,
      rows: Seq[String],
      noted: Seq[String] = Nil
  ): Unit = {
    assert(all(table) == rows)
    val old = spark.sql(s"SELECT * FROM ${table.name} VERSION AS OF $before")
    assert(old.collect().map(_.toString).sorted.toSeq == rows)
    val actions = table.log.actions(table.log.version)
    val files = actions.filter(action => Set("add", "remove")(action._1)).map(_._2)
    assert(files.forall(!_.get("dataChange").asBoolean))
    assertCompliant(table)
    assert(new KernelTable(table.folder).count() == rows.size)
    val report = Reports.verify(spark, table.name, None, None)
    assert(report.compliant && report.findings.map(_.rule) == noted, report.findings)
    assert(Reports.check(spark, table.name, None).compliant)
    // A second call has nothing to do.
    val version = table.log.version
    assert(!upgrade(table).changed && table.log.version == version)
    assert(fact(plan(table)).mode == PlanMode.NoChange)
  }

  protected def assertWritable(table: TestTable): Unit = {
    val version = table.log.version
    val (rows, name) = (all(table), table.name)
    sql(s"INSERT INTO $name SELECT * FROM $name WHERE id = 1")
    sql(s"UPDATE $name SET name = 'changed' WHERE id = 1")
    sql(s"MERGE INTO $name t USING (SELECT 0L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    sql(s"OPTIMIZE $name")
    assertCompliant(table)
    assert(spark.sql(s"SELECT * FROM $name WHERE id = 0").isEmpty)
    sql(s"RESTORE TABLE $name TO VERSION AS OF $version")
    assert(all(table) == rows)
    assertCompliant(table)
    // What Delta keeps beside the log says the same as the log.
    DeltaLog.clearCache()
    val fresh = DeltaLog.forTable(spark, table.folder.toString).update()
    assert(fresh.numOfFiles == table.log.liveFiles.size)
    fresh.checksumOpt.foreach { checksum =>
      assert(checksum.numFiles == table.log.liveFiles.size)
      assert(checksum.metadata == fresh.metadata)
    }
    assert(fresh.validateChecksum())
  }
}
