package org.apache.spark.sql.delta.writercompat

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.apache.spark.sql.delta.{DeltaConcurrentModificationException, DeltaLog}
import org.apache.spark.sql.delta.TransactionExecutionObserver
import org.apache.spark.sql.streaming.{StreamingQueryException, Trigger}
import org.icebergwritercompat.{IcebergWriterCompat, Reports}
import org.icebergwritercompat.kernel.KernelTable
import org.icebergwritercompat.report._
import org.icebergwritercompat.testing._

import java.nio.file.Files
import java.util.concurrent.ConcurrentLinkedQueue
import scala.jdk.CollectionConverters._
import scala.util.Try

/** Tables that stock Delta made, which get the feature with the files they have. */
class UpgradeSuite extends TableSuite {

  private val mapper = new ObjectMapper

  private val mapped = Seq("delta.columnMapping.mode" -> "name")
  private val v2 = mapped :+ ("delta.enableIcebergCompatV2" -> "true")
  private val v1 = mapped :+ ("delta.enableIcebergCompatV1" -> "true")
  private val byId = Seq("delta.columnMapping.mode" -> "id")

  private def upgrading(table: TestTable, mode: String, rewrite: Boolean, drop: Seq[String]) =
    Upgrading.of(spark, table.name, mode, rewrite, drop)

  private def upgrade(
      table: TestTable,
      mode: String = "auto",
      rewrite: Boolean = false,
      drop: Seq[String] = Nil
  ): UpgradeResult = upgrading(table, mode, rewrite, drop).run()

  private def plan(
      table: TestTable,
      rewrite: Boolean = false,
      drop: Seq[String] = Nil
  ): TableReport = {
    val before = FolderState.of(table.folder)
    val report = upgrading(table, "auto", rewrite, drop).plan()
    assert(FolderState.of(table.folder) == before)
    report
  }

  private def fact(report: TableReport): PlanFact = report.plan.get

  private def errors(report: TableReport): Seq[Finding] =
    report.findings.filter(_.severity == Severity.Error)

  /** Runs `body` with timestamps written as 64 bits, as IcebergCompatV2 has them. */
  private def micros[T](body: => T): T =
    withConf("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MICROS")(body)

  /** A table of flat and nested columns without lists and maps, in several files. */
  private def flat(properties: Seq[(String, String)], more: String = ""): TestTable = {
    val table = managed()
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
    table
  }

  /** The table of `columns`, in several files, that has IcebergCompatV2 all along. */
  private def nested(more: String = ""): TestTable = {
    val table = managed()
    val list = v2.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
    sql(s"CREATE TABLE ${table.name} ($columns) USING delta $more TBLPROPERTIES ($list)")
    insert(table)
    insert(table)
    table
  }

  private def dataFiles(table: TestTable): Set[String] =
    FolderListing.of(table.folder).filterNot(_.startsWith("_delta_log"))

  private def all(table: TestTable): Seq[String] =
    spark.table(table.name).collect().map(_.toString).sorted.toSeq

  private def stats(table: TestTable): Seq[JsonNode] =
    table.log.liveFiles.values.toSeq.map(add => mapper.readTree(add.get("stats").asText))

  /** The upgrade leaves rows and data files as they are, and a table that is as it should be. */
  private def assertMetadataOnly(table: TestTable): UpgradeResult = {
    val (version, rows, files) = (table.log.version, all(table), dataFiles(table))
    assert(fact(plan(table)).mode == PlanMode.Metadata, plan(table).findings)
    val result = upgrade(table)
    assert(result.changed && result.mode == PlanMode.Metadata && result.filesRewritten == 0)
    assert(result.version == version + 1 && table.log.version == version + 1)
    assert(result.filesKept == table.log.liveFiles.size)
    assert(dataFiles(table) == files)
    assertUpgraded(table, version, rows)
    result
  }

  private def assertUpgraded(table: TestTable, before: Long, rows: Seq[String]): Unit = {
    assert(all(table) == rows)
    val old = spark.sql(s"SELECT * FROM ${table.name} VERSION AS OF $before")
    assert(old.collect().map(_.toString).sorted.toSeq == rows)
    val actions = table.log.actions(table.log.version)
    val files = actions.filter(action => Set("add", "remove")(action._1)).map(_._2)
    assert(files.forall(!_.get("dataChange").asBoolean))
    assertCompliant(table)
    val report = Reports.verify(spark, table.name, None, None)
    assert(report.compliant && report.findings.isEmpty, report.findings)
    assert(Reports.check(spark, table.name, None).compliant)
    // A second call has nothing to do.
    val version = table.log.version
    assert(!upgrade(table).changed && table.log.version == version)
    assert(fact(plan(table)).mode == PlanMode.NoChange)
  }

  private def assertWritable(table: TestTable): Unit = {
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

  for (
    (what, make) <- Seq[(String, () => TestTable)](
      "name" -> (() => flat(mapped)),
      "name with IcebergCompatV1" -> (() => flat(v1)),
      "name with IcebergCompatV2, lists and maps" -> (() => nested()),
      "id" -> (() => flat(byId))
    )
  ) test(s"a table of mode $what gets the feature by one commit") {
    val table = make()
    assertMetadataOnly(table)
    assertWritable(table)
    assert(!table.log.writerFeatures("icebergCompatV1"))
    assert(!table.log.properties.contains("delta.enableIcebergCompatV1"))
  }

  test("partition values and statistics are the same under other names, to the digit") {
    val table = nested("PARTITIONED BY (name)")
    sql(s"INSERT INTO ${table.name} (id, name) VALUES (7, NULL)")
    def values = table.log.liveFiles.values
      .map(_.get("partitionValues").properties.asScala.map(_.getValue.toString).toSeq)
      .toSeq
      .sortBy(_.toString)
    def bounds = stats(table).map(_.get("maxValues").toString.replaceAll("\"col-[^\"]*\"", "c"))
    val (partitions, maxima) = (values, bounds.sorted)
    assertMetadataOnly(table)
    assert(values == partitions)
    assert(bounds.sorted == maxima)
    assert(table.log.liveFiles.values.forall { add =>
      add.get("partitionValues").fieldNames.asScala.toSeq == Seq("col-2")
    })
  }

  /** Every value in the statistics, as it is spelled there. */
  private def digits(table: TestTable): Seq[String] = table.log.liveFiles.values.toSeq
    .flatMap(add => "\"col-[^\"]*\":([^{,}]+)".r.findAllMatchIn(add.get("stats").asText))
    .map(_.group(1))
    .sorted

  private def filesRead(query: String): Int =
    spark.sql(query).inputFiles.length

  test("files are skipped by partition and by statistics as before") {
    val table = flat(mapped)
    val before = digits(table)
    upgrade(table)
    assert(digits(table) == before && before.nonEmpty)
    assert(filesRead(s"SELECT * FROM ${table.name}") == 3)
    assert(filesRead(s"SELECT * FROM ${table.name} WHERE id = 15") == 1)
    assert(filesRead(s"SELECT * FROM ${table.name} WHERE s.x > 12345678901234567911") == 1)
    val partitioned = nested("PARTITIONED BY (name)")
    upgrade(partitioned)
    val where = s"SELECT * FROM ${partitioned.name} WHERE name = 'n1'"
    assert(filesRead(where) == 2 && spark.sql(where).count() == 2)
  }

  test("a clustered table stays clustered") {
    val table = flat(mapped, "CLUSTER BY (day, s.x)")
    assertMetadataOnly(table)
    assert(Reports.check(spark, table.name, None).facts.clusteringColumns == Seq("day", "s.x"))
    val domains = table.log.versions.flatMap(table.log.actions).collect {
      case ("domainMetadata", domain) if domain.get("domain").asText == "delta.clustering" =>
        domain.get("configuration").asText
    }
    val columns = mapper.readTree(domains.last).get("clusteringColumns").toString
    assert(columns == """[["col-7"],["col-3","col-4"]]""")
  }

  test("a table whose columns were renamed, dropped and added keeps the ids they have") {
    val table = flat(mapped)
    sql(s"ALTER TABLE ${table.name} RENAME COLUMN name TO label")
    sql(s"ALTER TABLE ${table.name} DROP COLUMN s.y")
    sql(s"ALTER TABLE ${table.name} ADD COLUMN name STRING")
    sql(s"ALTER TABLE ${table.name} RENAME COLUMN name TO other")
    sql(s"ALTER TABLE ${table.name} RENAME COLUMN label TO name")
    sql(s"INSERT INTO ${table.name} (id, other) VALUES (100, 'o')")
    val ids = table.log.columns.flatMap(_.below).map { case (path, column) => path -> column.id }
    assertMetadataOnly(table)
    assert(
      table.log.columns.flatMap(_.below).map { case (path, column) => path -> column.id } == ids
    )
  }

  for (
    (what, properties) <- Seq(
      "without column mapping" -> Nil,
      "of protocol (1, 2)" -> Seq("delta.minReaderVersion" -> "1", "delta.minWriterVersion" -> "2"),
      "of protocol (2, 5), by name" ->
        (mapped ++ Seq("delta.minReaderVersion" -> "2", "delta.minWriterVersion" -> "5"))
    )
  ) test(s"a table $what with lists is planned, refused, and rewritten when asked") {
    val table = plain(properties)
    insert(table)
    val (version, rows) = (table.log.version, all(table))
    val live = table.log.liveFiles.size
    val planned = plan(table)
    assert(fact(planned).mode == PlanMode.Rewrite)
    assert(fact(planned).filesToRewrite == live && planned.facts.enabling.exact)
    val bytes = table.log.liveFiles.values.map(_.get("size").asLong).sum
    assert(fact(planned).bytesToRewrite == bytes)
    val error = refused(table)(upgrade(table))
    assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.REWRITE_NEEDED")
    assert(error.getMessage.contains(s"$live of $live data file(s)"))
    assert(refused(table)(upgrade(table, "metadata")).getCondition == error.getCondition)
    val result = upgrade(table, rewrite = true)
    assert(result.mode == PlanMode.Rewrite && result.filesRewritten == live)
    assert(result.version == version + 1 && result.filesKept == 0)
    assertUpgraded(table, version, rows)
  }

  test("only the files that fail are written anew") {
    val table = flat(Nil)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    micros(sql(s"INSERT INTO ${table.name} (id) VALUES (100)"))
    val kept = table.log
      .actions(table.log.version)
      .collectFirst { case ("add", add) =>
        add.get("path").asText
      }
      .get
    val (version, rows) = (table.log.version, all(table))
    val groups = fact(plan(table)).groups.map(group => group.verdict -> group.files).toMap
    assert(groups == Map("keep" -> 1L, "rewrite" -> 3L))
    val result = upgrade(table, "rewrite")
    assert(result.filesRewritten == 3 && result.filesKept == 1)
    assert(table.log.liveFiles.values.exists(_.get("path").asText == kept))
    assertUpgraded(table, version, rows)
    assertWritable(table)
  }

  test("a file with timestamps of 96 bits is written anew, which most of Spark's are") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ('delta.columnMapping.mode' = " +
        "'name') AS SELECT 1 AS id, 'n' AS name, TIMESTAMP'2026-01-01 00:00:00.123456' AS at"
    )
    val (version, rows) = (table.log.version, all(table))
    assert(fact(plan(table)).groups.map(_.rules) == Seq(Seq("E4")))
    upgrade(table, "rewrite")
    assertUpgraded(table, version, rows)
  }

  test("bytes and shorts become ints where files are written anew") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ('delta.columnMapping.mode' = " +
        "'name') AS SELECT id, concat('n', id) AS name, CAST(id AS SMALLINT) AS s, " +
        "named_struct('b', CAST(-id AS TINYINT)) AS t FROM range(3)"
    )
    val (version, rows) = (table.log.version, all(table))
    val steps = fact(plan(table)).steps.filter(_.name == "widen").map(_.what)
    assert(steps == Seq("s SMALLINT becomes INT", "t.b TINYINT becomes INT"))
    upgrade(table, "rewrite")
    assert(
      spark.table(table.name).select("s", "t.b").schema.map(_.dataType.sql).toSet == Set("INT")
    )
    assertUpgraded(table, version, rows)
  }

  test("field ids that lead to other columns than the names are not believed") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, b INT) USING delta " +
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
    )
    // Somebody's file with ids of its own, which Delta takes by its names.
    val foreign = ForeignFiles.committed(table) { copy =>
      val file = ForeignFiles.write(
        copy.folder.resolve("f.parquet"),
        "optional int32 a = 2;",
        "optional int32 b = 1;"
      )(_.append("a", 10).append("b", 20))
      Seq(ForeignFiles.add("f.parquet", Files.size(file), 1))
    }
    sql(s"ALTER TABLE ${foreign.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    assert(rows(s"SELECT a, b FROM ${foreign.name}") == Set("[10,20]"))
    val error = refused(foreign)(upgrade(foreign))
    assert(error.getCondition.endsWith(".REWRITE_NEEDED"))
    assert(error.getMessageParameters.get("rule") == "E1f")
    upgrade(foreign, "rewrite")
    assert(rows(s"SELECT a, b FROM ${foreign.name}") == Set("[10,20]"))
    assertCompliant(foreign)
  }

  test("files that a plan has looked into are not opened again to do it") {
    val table = flat(mapped)
    val described = new ConcurrentLinkedQueue[String]
    val listener = new SparkListener {
      override def onJobStart(job: SparkListenerJobStart): Unit = {
        described.add(job.properties.getProperty("spark.job.description", ""))
        ()
      }
    }
    def looks(body: => Any): Int = {
      described.clear()
      body
      spark.sparkContext.listenerBus.waitUntilEmpty()
      described.asScala.count(_.startsWith("Reading the footers"))
    }
    spark.sparkContext.addSparkListener(listener)
    try {
      assert(looks(plan(table)) > 0)
      micros(sql(s"DELETE FROM ${table.name} WHERE id = 1"))
      assert(looks(plan(table)) > 0)
      assert(looks(upgrade(table)) == 0)
    } finally spark.sparkContext.removeSparkListener(listener)
    assertCompliant(table)
  }

  test("what stands in the way is named all at once, and dropped when asked") {
    val table = flat(mapped ++ Seq("delta.enableChangeDataFeed" -> "true"))
    sql(s"ALTER TABLE ${table.name} ADD CONSTRAINT positive CHECK (id >= 0)")
    sql(
      s"ALTER TABLE ${table.name} SET TBLPROPERTIES " +
        "('delta.feature.allowColumnDefaults' = 'supported')"
    )
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN name SET DEFAULT 'x'")
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    val rows = all(table)
    val blocked = plan(table)
    assert(fact(blocked).mode == PlanMode.Blocked)
    assert(blocked.facts.enabling.verdict == Verdict.Blocked)
    assert(errors(blocked).map(_.rule).toSet == Set("A6", "B7", "B8", "B9", "C12"))
    val checked = Reports.check(spark, table.name, None)
    assert(checked.facts.enabling.verdict == Verdict.Blocked)
    val error = refused(table)(upgrade(table))
    assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UPGRADE_BLOCKED")
    fact(blocked).statements.foreach(fix => assert(error.getMessage.contains(s"Run: $fix")))
    val names = Seq("change-data-feed", "constraints", "defaults", "row-tracking")
    names.foreach(name => assert(error.getMessageParameters.get("fix").contains(s""""$name"""")))
    assert(refused(table)(upgrade(table, drop = names.take(2))).getMessage.contains("B9"))
    val planned = fact(plan(table, drop = names))
    assert(planned.mode == PlanMode.Metadata)
    val steps = planned.steps.filter(_.name == "drop").map(_.what)
    assert(steps.toSet == fact(blocked).statements.toSet)
    upgrade(table, drop = names)
    assertUpgraded(table, table.log.version - 1, rows)
    assert(!table.log.writerFeatures("allowColumnDefaults"))
  }

  test("a column that is generated, or a type that Iceberg has not, is left to the user") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, d DATE, y INT GENERATED ALWAYS AS (year(d)), " +
        "v VARIANT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    sql(s"INSERT INTO ${table.name} (id, d) VALUES (1, DATE'2026-01-01')")
    val report = plan(table)
    assert(fact(report).mode == PlanMode.Blocked)
    assert(Set("C7", "C11").subsetOf(errors(report).map(_.rule).toSet), errors(report))
    val error = refused(table)(upgrade(table, "rewrite"))
    assert(error.getCondition.endsWith(".UPGRADE_BLOCKED"))
  }

  test("names that nobody knows are refused with those there are") {
    val table = flat(mapped)
    for (
      (call, said) <- Seq[(() => Any, String)](
        (() => upgrade(table, mode = "fast"), "auto, metadata, rewrite"),
        (
          () => upgrade(table, drop = Seq("rows")),
          "deletion-vectors, checkpoint-protection, constraints"
        )
      )
    ) {
      val error = refused(table)(call())
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_WRONG_OPTION")
      assert(error.getMessageParameters.get("allowed").startsWith(said))
    }
  }

  test("an upgraded table leaves the feature, and comes back") {
    val table = flat(mapped)
    upgrade(table)
    assert(IcebergWriterCompat.disable(spark, table.name))
    assert(!table.log.writerFeatures("icebergWriterCompatV1"))
    assert(!table.log.properties.contains("delta.enableIcebergWriterCompatV1"))
    val rows = all(table)
    val version = table.log.version
    assert(upgrade(table).mode == PlanMode.Metadata)
    // The names are right already, so no file is entered again.
    assert(!table.log.lastKinds("add"))
    assertUpgraded(table, version, rows)
  }

  /** Runs `late` up to its commit, then `early`, and then the commit. */
  private def race(late: => Unit)(early: => Unit): Try[Unit] = {
    val pause = new PausingObserver
    OnThread.meanwhile(Try(TransactionExecutionObserver.withObserver(pause)(late))) {
      try {
        assert(pause.awaitCommit())
        early
      } finally pause.release()
    }
  }

  for (
    (what, make, mode) <- Seq[(String, () => TestTable, String)](
      ("by metadata", () => flat(mapped), "metadata"),
      ("by a rewrite", () => flat(Nil), "rewrite")
    )
  ) {
    test(s"an append while a table is upgraded $what is upgraded too") {
      val table = make()
      val outcome = race { upgrade(table, mode); () } {
        micros(sql(s"INSERT INTO ${table.name} (id) VALUES (100)"))
      }
      outcome.get
      assert(count(table) == 31)
      assertUpgraded(table, table.log.version - 1, all(table))
    }

    test(s"an append that began before an upgrade $what fails") {
      val table = make()
      val rows = all(table)
      val outcome = race {
        spark
          .range(100, 101)
          .toDF("id")
          .write
          .format("delta")
          .mode("append")
          .saveAsTable(table.name)
      } {
        upgrade(table, mode)
        ()
      }
      assert(outcome.failed.get.isInstanceOf[DeltaConcurrentModificationException], outcome)
      assertUpgraded(table, table.log.version - 1, rows)
    }
  }

  test("a file that is deleted while others are written anew is not written back") {
    val table = flat(Nil)
    val outcome = race { upgrade(table, "rewrite"); () } {
      sql(s"DELETE FROM ${table.name} WHERE id < 15")
    }
    outcome.get
    assert(count(table) == 15)
    assertUpgraded(table, table.log.version - 1, all(table))
  }

  test("Delta Kernel reads an upgraded table") {
    val table = nested("PARTITIONED BY (name)")
    sql(s"INSERT INTO ${table.name} $someRows")
    upgrade(table)
    insert(table)
    assert(new KernelTable(table.folder).rows().size == 8)
    val ids = new KernelTable(table.folder).rows().map(_.values.head)
    assert(ids.sortBy(_.toString) == Seq.fill(4)(0L) ++ Seq.fill(4)(1L))
  }

  test("a stream goes on after the upgrade where Delta is told to, and reads nothing twice") {
    val (table, target) = (flat(mapped), byPath())
    val checkpoint = SharedSpark.freshFolder().toString
    def run(): Unit = spark.readStream
      .table(table.name)
      .writeStream
      .format("delta")
      .option("checkpointLocation", checkpoint)
      .trigger(Trigger.AvailableNow())
      .start(target.folder.toString)
      .awaitTermination()
    run()
    upgrade(table)
    sql(s"INSERT INTO ${table.name} (id) VALUES (100)")
    val error = intercept[StreamingQueryException](run())
    assert(error.getMessage.contains("changing mode is not supported"))
    val past =
      "spark.databricks.delta.streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled"
    withConf(past -> "true")(run())
    sql(s"INSERT INTO ${table.name} (id) VALUES (101)")
    run()
    assert(count(target) == 32)
    assert(spark.table(target.name).select("id").distinct().count() == 32)
  }
}
