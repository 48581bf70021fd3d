package org.apache.spark.sql.delta.writercompat.upgrade

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations}
import org.apache.spark.sql.delta.writercompat.Offered
import org.apache.spark.sql.streaming.{StreamingQueryException, Trigger}
import org.apache.spark.sql.types.{MetadataBuilder, StructType}
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.kernel.KernelTable
import org.icebergwritercompat.report.{PlanMode, Severity, TableReport, Verdict}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{ForeignFiles, SharedSpark, TestTable}

import java.nio.file.Files
import java.util.concurrent.ConcurrentLinkedQueue
import scala.jdk.CollectionConverters._

/** Tables that stock Delta made, which get the feature with the files they have. */
class UpgradeSuite extends UpgradeTests {

  private val mapper = new ObjectMapper

  private def stats(table: TestTable): Seq[JsonNode] =
    table.log.liveFiles.values.toSeq.map(add => mapper.readTree(add.get("stats").asText))

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
      "of protocol (1, 2)" -> versions(1, 2),
      "of protocol (1, 3)" -> versions(1, 3),
      "of protocol (1, 4)" -> versions(1, 4),
      "of protocol (1, 7)" -> (versions(1, 7) :+ ("delta.feature.domainMetadata" -> "supported")),
      "of protocol (2, 5), by name" -> (mapped ++ versions(2, 5)),
      "of protocol (2, 6), by name" -> (mapped ++ versions(2, 6)),
      "of protocol (3, 7), by id" -> (byId ++ versions(3, 7))
    )
  ) test(s"a table $what with lists is planned, refused, and rewritten when asked") {
    val table = plain(properties)
    insert(table)
    properties.collectFirst { case ("delta.minWriterVersion", writer) =>
      assert(table.log.protocol.get("minWriterVersion").asText == writer)
    }
    val (version, rows) = (table.log.version, all(table))
    val live = table.log.liveFiles.size
    val planned = plan(table)
    assert(fact(planned).mode == PlanMode.Rewrite)
    assert(fact(planned).filesToRewrite == live && planned.facts.enabling.exact)
    assert(!fact(planned).typesOnly && !planned.facts.enabling.typesOnly)
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

  private def versions(reader: Int, writer: Int): Seq[(String, String)] =
    Seq("delta.minReaderVersion" -> s"$reader", "delta.minWriterVersion" -> s"$writer")

  test("only the files that cannot be kept are rewritten") {
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

  test("a file with timestamps of 96 bits, Spark's default, is rewritten") {
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

  test("bytes and shorts become ints in rewritten files") {
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

  test("bytes and shorts of a table without files become ints where that is asked for") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (id SMALLINT, l ARRAY<TINYINT>) USING delta")
    assertTypesOnly(table, "id SMALLINT", "l.element TINYINT")
    val result = upgrade(table, rewrite = true)
    assert(result.changed && result.filesRewritten == 0)
    assertUpgraded(table, 0, Nil)
  }

  /** That the table gets the feature by one commit, where these types may become INT. */
  private def assertTypesOnly(table: TestTable, columns: String*): Unit = {
    val wanted = columns.map(column => s"$column becomes INT")
    val planned = plan(table)
    assert(fact(planned).mode == PlanMode.Rewrite && fact(planned).filesToRewrite == 0)
    assert(fact(planned).typesOnly)
    assert(fact(planned).steps.filter(_.name == "widen").map(_.what) == wanted)
    for (report <- Seq(planned, Reports.check(spark, table.name, None), verified(table))) {
      assert(errors(report).isEmpty)
      assert(report.facts.enabling.verdict == Verdict.Rewrite)
      assert(report.facts.enabling.filesToRewrite == 0 && report.facts.enabling.typesOnly)
      assert(report.facts.enabling.reason.endsWith(s"is written: ${wanted.mkString(", ")}."))
      val found = report.findings.filter(_.rule == "C7")
      assert(found.map(_.severity) == columns.map(_ => Severity.Warning))
      assert(found.map(_.remedy.sql).distinct == Seq(planned.findings.head.remedy.sql))
    }
    val version = table.log.version
    for (mode <- Seq("auto", "metadata")) {
      val error = refused(table)(upgrade(table, mode))
      assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.REWRITE_NEEDED")
      assert(error.getMessageParameters.get("rule") == "C7")
      assert(wanted.forall(error.getMessage.contains(_)))
      assert(error.getMessageParameters.get("fix") == planned.findings.head.remedy.text)
    }
    assert(table.log.version == version)
  }

  private def verified(table: TestTable): TableReport =
    Reports.verify(spark, table.name, None, None)

  test("bytes and shorts without files become ints in structs, lists, maps and partition columns") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, s STRUCT<a: TINYINT, l: ARRAY<SMALLINT>>, " +
        "m MAP<TINYINT, STRUCT<b: SMALLINT>>, p SMALLINT) USING delta PARTITIONED BY (p)"
    )
    sql(s"INSERT INTO ${table.name} (id, p) VALUES (1, 2)")
    sql(s"DELETE FROM ${table.name}")
    assertTypesOnly(
      table,
      "s.a TINYINT",
      "s.l.element SMALLINT",
      "m.key TINYINT",
      "m.value.b SMALLINT",
      "p SMALLINT"
    )
    val version = table.log.version
    assert(upgrade(table, "rewrite").version == version + 1)
    assertUpgraded(table, version, Nil)
    assert(!table.log.schemaString.matches("(?s).*\"(byte|short)\".*"))
    sql(
      s"INSERT INTO ${table.name} VALUES (1, named_struct('a', 70000, 'l', array(70000)), " +
        "map(70000, named_struct('b', 70000)), 70000)"
    )
    assertCompliant(table)
  }

  test("a short that no file has needs no rewrite of the files") {
    val table = flat(mapped)
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (small SMALLINT)")
    val live = table.log.liveFiles.size
    val enabling = verified(table).facts.enabling
    assert(enabling.verdict == Verdict.Rewrite && enabling.filesToRewrite == 0)
    assert(enabling.reason.endsWith("is written: small SMALLINT becomes INT."))
    val (version, rows) = (table.log.version, all(table))
    val result = upgrade(table, rewrite = true)
    assert(result.filesRewritten == 0 && result.filesKept == live)
    assertUpgraded(table, version, rows)
  }

  test("an empty table with blockers and shorts is blocked by the blockers alone") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id INT, a SMALLINT) USING delta " +
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    sql(s"ALTER TABLE ${table.name} ADD CONSTRAINT positive CHECK (a > 0)")
    val planned = plan(table)
    assert(fact(planned).mode == PlanMode.Blocked)
    assert(errors(planned).map(_.rule).toSet == Set("B7", "B8"))
    assert(planned.findings.map(_.rule).contains("C7"))
    for (report <- Seq(planned, Reports.check(spark, table.name, None)))
      assert(report.facts.enabling.typesOnly)
    val error = refused(table)(upgrade(table))
    assert(error.getCondition.endsWith(".UPGRADE_BLOCKED"))
    // What is offered does all that is left to do.
    Offered.run(spark, error.remedy)
    assertCompliant(table)
    assert(spark.table(table.name).schema("a").dataType.sql == "INT")
  }

  test("records of type changes mean nothing where there are no files") {
    val table = managed()
    val properties = widening.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
    sql(
      s"CREATE TABLE ${table.name} (id INT, m MAP<INT, INT>) USING delta TBLPROPERTIES ($properties)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, map(1, 1))")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN id TYPE DOUBLE")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN m.key TYPE BIGINT")
    sql(s"DELETE FROM ${table.name}")
    val version = table.log.version
    for (report <- Seq(plan(table), Reports.check(spark, table.name, None)))
      assert(report.facts.enabling.verdict == Verdict.MetadataOnly)
    upgrade(table)
    assertUpgraded(table, version, Nil)
    assert(!table.log.schemaString.contains("fromType"))
  }

  private val widening = mapped :+ ("delta.enableTypeWidening" -> "true")

  test("files from before a promotion stay, and so does the record of it") {
    val table = managed()
    val properties = widening.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
    sql(
      s"CREATE TABLE ${table.name} (id INT, name STRING, b TINYINT, s STRUCT<x: SMALLINT>, " +
        s"m DECIMAL(5, 2)) USING delta TBLPROPERTIES ($properties)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 'n', -128, named_struct('x', 300), 1.25)")
    for (change <- Seq("id TYPE BIGINT", "b TYPE INT", "s.x TYPE INT", "m TYPE DECIMAL(20, 2)"))
      sql(s"ALTER TABLE ${table.name} ALTER COLUMN $change")
    sql(s"INSERT INTO ${table.name} VALUES (2, 'o', 128, named_struct('x', 70000), 99999.5)")
    assertMetadataOnly(table)
    assert(table.log.schemaString.split("fromType").length == 5)
  }

  test("files from before a type change that Iceberg does not have are rewritten, without record") {
    val table = managed()
    val properties = widening.map { case (key, value) => s"'$key' = '$value'" }.mkString(", ")
    sql(
      s"CREATE TABLE ${table.name} (id INT, name STRING, a INT, d DATE, m DECIMAL(5, 2), " +
        s"s STRUCT<l: ARRAY<SMALLINT>>) USING delta TBLPROPERTIES ($properties, " +
        "'delta.feature.timestampNtz' = 'supported')"
    )
    sql(
      s"INSERT INTO ${table.name} VALUES (1, 'n', 1, DATE'2026-01-01', 1.25, " +
        "named_struct('l', array(1, null)))"
    )
    for (
      change <- Seq(
        "id TYPE BIGINT",
        "a TYPE DOUBLE",
        "d TYPE TIMESTAMP_NTZ",
        "m TYPE DECIMAL(10, 4)",
        "s.l.element TYPE DOUBLE"
      )
    ) sql(s"ALTER TABLE ${table.name} ALTER COLUMN $change")
    sql(
      s"INSERT INTO ${table.name} VALUES (2, 'o', 1.5, TIMESTAMP_NTZ'2026-01-01 01:00:00', 1.2345, " +
        "named_struct('l', array(0.5)))"
    )
    val (version, rows) = (table.log.version, all(table))
    assert(Reports.check(spark, table.name, None).facts.enabling.verdict == Verdict.Rewrite)
    // The newer file has a list, whose elements have no ids yet.
    assert(fact(plan(table)).groups.map(_.rules.toSet).toSet.size == 2)
    assert(refused(table)(upgrade(table)).getCondition.endsWith(".REWRITE_NEEDED"))
    assert(upgrade(table, "rewrite").filesRewritten == 2)
    assertUpgraded(table, version, rows)
    val recorded = table.log.schemaString
    assert(recorded.contains("fromType") && !recorded.contains("\"toType\":\"double\""))
    assert(recorded.split("fromType").length == 2)
  }

  test("row counts that the log lacks come from the footers, and no file is written for them") {
    val table = flat(mapped)
    withConf("spark.databricks.delta.stats.collect" -> "false") {
      micros(sql(s"INSERT INTO ${table.name} (id) VALUES (100), (101)"))
    }
    val enabling = Reports.check(spark, table.name, None).facts.enabling
    assert(enabling.verdict == Verdict.MetadataOnly)
    assert(fact(plan(table)).steps.find(_.name == "count").flatMap(_.files).contains(2L))
    assertMetadataOnly(table)
    assert(stats(table).map(_.get("numRecords").asLong).sorted == Seq(1L, 1L, 10L, 10L, 10L))
    assert(spark.table(table.name).count() == 32)
    assertWritable(table)
  }

  test("of a table whose names are right already, only files without row counts are entered") {
    val table = flat(mapped)
    upgrade(table)
    IcebergWriterCompat.disable(spark, table.name)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'false')")
    withConf("spark.databricks.delta.stats.collect" -> "false") {
      micros(sql(s"INSERT INTO ${table.name} (id) VALUES (100)"))
    }
    val (version, rows) = (table.log.version, all(table))
    assert(upgrade(table).filesKept == 4)
    assert(table.log.actions(version + 1).count(_._1 == "add") == 1)
    assertUpgraded(table, version, rows)
  }

  test("field ids that lead to other columns than the names are not believed") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, b INT) USING delta " +
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
    )
    // A file of another writer with its own ids, which Delta reads by name.
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

  test("ids that a schema without column mapping was left with lead nowhere") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a INT NOT NULL, b INT NOT NULL) USING delta")
    sql(s"INSERT INTO ${table.name} VALUES (1, 2)")
    // As a table whose mapping was taken out by other means; each column has the other's name.
    val log = DeltaLog.forTable(spark, table.folder.toString)
    val transaction = log.startTransaction(catalogTableOpt = None)
    val schema = StructType(
      transaction.metadata.schema.zip(Seq(2L -> "b", 1L -> "a")).map { case (field, (id, name)) =>
        val left = new MetadataBuilder()
          .putLong("delta.columnMapping.id", id)
          .putString("delta.columnMapping.physicalName", name)
        field.copy(metadata = left.build())
      }
    )
    transaction.commit(
      Seq(transaction.metadata.copy(schemaString = schema.json)),
      DeltaOperations.ManualUpdate
    )
    assert(rows(s"SELECT a, b FROM ${table.name}") == Set("[1,2]"))
    upgrade(table, "rewrite")
    assert(rows(s"SELECT a, b FROM ${table.name}") == Set("[1,2]"))
    assertCompliant(table)
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
    val table = flat(mapped ++ Seq("delta.enableChangeDataCapture" -> "true"))
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
    fact(blocked).remedies
      .flatMap(_.sql)
      .foreach(fix => assert(error.getMessage.contains(s"Run: $fix")))
    val names = Seq("change-data-feed", "constraints", "defaults", "row-tracking")
    names.foreach(name => assert(error.getMessageParameters.get("fix").contains(s"'$name'")))
    assert(refused(table)(upgrade(table, drop = names.take(2))).getMessage.contains("B9"))
    val planned = fact(plan(table, drop = names))
    assert(planned.mode == PlanMode.Metadata)
    val steps = planned.steps.filter(_.name == "drop").map(_.what)
    assert(steps.toSet == fact(blocked).remedies.flatMap(_.sql).toSet)
    upgrade(table, drop = names)
    assertUpgraded(table, table.log.version - 1, rows)
    assert(!table.log.writerFeatures("allowColumnDefaults"))
  }

  test("a type that Iceberg does not have is a blocker") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, v VARIANT) USING delta " +
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    sql(s"INSERT INTO ${table.name} (id) VALUES (1)")
    val report = plan(table)
    assert(fact(report).mode == PlanMode.Blocked)
    assert(errors(report).map(_.rule).contains("C7"), errors(report))
    val error = refused(table)(upgrade(table, "rewrite"))
    assert(error.getCondition.endsWith(".UPGRADE_BLOCKED"))
  }

  for ((mode, rewrites) <- Seq("name" -> false, "none" -> true))
    test(s"generated and identity columns become plain ones if asked, in a table of mode $mode") {
      val table = managed()
      sql(
        s"CREATE TABLE ${table.name} (id BIGINT GENERATED ALWAYS AS IDENTITY, name STRING, d DATE, " +
          "y INT GENERATED ALWAYS AS (year(d))) USING delta PARTITIONED BY (y) " +
          s"TBLPROPERTIES ('delta.columnMapping.mode' = '$mode')"
      )
      sql(s"INSERT INTO ${table.name} (name, d) VALUES ('n', DATE'2026-01-01'), ('o', NULL)")
      val (version, rows) = (table.log.version, all(table))
      val error = refused(table)(upgrade(table, rewrite = true))
      assert(error.getCondition.endsWith(".UPGRADE_BLOCKED"))
      val fix = error.getMessageParameters.get("fix")
      assert(
        fix.endsWith("rewrite => true, drop => array('generated-columns', 'identity-columns'))")
      )
      assert(errors(plan(table)).map(_.rule).toSet == Set("C10", "C11"))
      val drop = Seq("generated-columns", "identity-columns")
      assert(
        refused(table)(upgrade(table, drop = drop.take(1), rewrite = true)).getMessage
          .contains("C10")
      )
      val steps = fact(plan(table, drop = drop)).steps.filter(_.name == "drop").map(_.what)
      assert(steps.size == 2 && steps.exists(_.contains("column y")), steps)
      assert(upgrade(table, rewrite = rewrites, drop = drop).version == version + 1)
      assertUpgraded(table, version, rows)
      sql(s"INSERT INTO ${table.name} VALUES (7, 'p', DATE'2026-01-01', 1)")
      assert(spark.sql(s"SELECT * FROM ${table.name} WHERE id = 7 AND y = 1").count() == 1)
      assertCompliant(table)
    }

  test("row tracking that IcebergCompatV3 holds on to is left to the user, who copies the rows") {
    val table = flat(mapped :+ ("delta.enableIcebergCompatV3" -> "true"))
    val fixes = errors(plan(table)).map(_.remedy.text).distinct
    assert(fixes.size == 1 && fixes.head.startsWith("CREATE TABLE "), fixes)
    val error = refused(table)(upgrade(table, drop = Seq("row-tracking")))
    assert(error.getMessageParameters.get("fix") == fixes.head)
    sql(fixes.head)
    assert(count(TestTable(table.name + "_iceberg", table.folder)) == 30)
  }

  test("a shallow clone keeps the files of the table it was made from") {
    val source = flat(mapped)
    val table = managed()
    sql(s"CREATE TABLE ${table.name} SHALLOW CLONE ${source.name}")
    micros(sql(s"INSERT INTO ${table.name} (id) VALUES (100)"))
    assertMetadataOnly(table, noted = Seq("D9"))
    assert(table.log.liveFiles.size == 4 && count(table) == 31 && count(source) == 30)
  }

  test("folders of rewritten files that were not committed are named") {
    val table = flat(Nil)
    val lost = s"rewritten-${java.util.UUID.randomUUID}"
    Files.createDirectories(table.folder.resolve(lost))
    Files.copy(
      table.folder.resolve(dataFiles(table).head),
      table.folder.resolve(lost).resolve("part-0.parquet")
    )
    assert(upgrade(table, "rewrite").orphans == Seq(lost))
    // Nothing else is orphaned, nor is what an older version refers to.
    sql(s"OPTIMIZE ${table.name}")
    assert(
      RewrittenFiles.orphans(DeltaLog.forTable(spark, table.folder.toString).update()) == Seq(lost)
    )
  }

  test("unknown names are refused with the known ones") {
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

  test("Delta Kernel reads an upgraded table") {
    val table = nested("PARTITIONED BY (name)")
    sql(s"INSERT INTO ${table.name} $someRows")
    upgrade(table)
    insert(table)
    assert(new KernelTable(table.folder).rows().size == 8)
    val ids = new KernelTable(table.folder).rows().map(_.values.head)
    assert(ids.sortBy(_.toString) == Seq.fill(4)(0L) ++ Seq.fill(4)(1L))
  }

  test("with Delta's setting a stream continues after the upgrade, and reads nothing twice") {
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
