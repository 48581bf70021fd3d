package org.apache.spark.sql.delta.writercompat.report

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.{Finding, ReportJson, Severity, TableReport, Verdict}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.TestTable

import java.io.InputStream
import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What is reported of real tables, and that asking changes nothing. */
class ReportSuite extends TableSuite {

  private def check(table: TestTable): TableReport = Reports.check(spark, table.name, None)

  private def rulesOf(report: TableReport): Set[String] = report.findings.map(_.rule).toSet

  private def only(report: TableReport, rule: String): Finding = {
    val found = report.findings.filter(_.rule == rule)
    assert(found.sizeIs == 1, report.findings)
    found.head
  }

  /** Every file below a folder with its size and time, hidden ones too. */
  private def everything(folder: Path): Map[String, (Long, Long)] =
    if (!Files.exists(folder)) Map.empty
    else
      Using.resource(Files.walk(folder)) {
        _.iterator.asScala
          .map { path =>
            folder.relativize(path).toString ->
              (Files.size(path), Files.getLastModifiedTime(path).toMillis)
          }
          .toMap
      }

  private def unchanged[A](tables: TestTable*)(body: => A): A = {
    val before = tables.map(table => everything(table.folder))
    val answer = body
    assert(tables.map(table => everything(table.folder)) == before)
    answer
  }

  private def edit(table: TestTable, version: Long)(change: String => String): Unit = {
    val log = table.folder.resolve("_delta_log")
    val file = log.resolve(f"$version%020d.json")
    Files.writeString(file, change(Files.readString(file)))
    Using.resource(Files.list(log)) {
      _.iterator.asScala.filter(_.toString.endsWith(".crc")).toSeq.foreach(Files.delete)
    }
    DeltaLogs.forgetAll()
  }

  test("a compliant table has no findings, and its facts are those of the log") {
    val table = compliant()
    val report = unchanged(table)(check(table))
    assert(report.compliant && report.enabled && report.findings.isEmpty)
    assert(report.version.contains(table.log.version))
    assert(report.facts.files == table.log.liveFiles.size)
    assert(report.facts.bytes == table.log.liveFiles.values.map(_.get("size").asLong).sum)
    assert(report.facts.rows.contains(2L))
    assert(report.facts.enabling.verdict == Verdict.Enabled)
    assert(report.facts.features.map(_.name).toSet == table.log.writerFeatures)
    assert(report.columns.flatMap(_.id).max == maxColumnId(table))
    assert(report.columns.exists(c => c.name == "tags.element.k" && c.role == "field"))
  }

  test("a plain table with rows needs a rewrite, and says so of each reason at once") {
    val table = plain()
    val report = unchanged(table)(check(table))
    assert(!report.compliant && !report.enabled)
    assert(Set("B1", "B2", "B3", "C1", "C5", "E1").subsetOf(rulesOf(report)))
    assert(report.facts.enabling.verdict == Verdict.Rewrite)
    assert(report.facts.enabling.bytesToRewrite == report.facts.bytes)
    assert(only(report, "B1").severity == Severity.Info)
    assert(report.findings.forall(_.severity != Severity.Error))
  }

  test("a plain table without rows needs one commit, which then is accepted") {
    val table = plain(rows = false)
    assert(check(table).facts.enabling.verdict == Verdict.MetadataOnly)
    assert(IcebergWriterCompat.enable(spark, table.name))
    assert(check(table).compliant)
  }

  test("a table written all along in the right layout needs one commit") {
    val table = compliant()
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    val report = check(table)
    assert(report.facts.enabling.verdict == Verdict.MetadataOnly, report.findings)
    assert(IcebergWriterCompat.enable(spark, table.name))
  }

  test("a blocker is an error with a remedy") {
    val table = plain(Seq("delta.enableChangeDataFeed" -> "true"))
    sql(s"ALTER TABLE ${table.name} ADD CONSTRAINT positive CHECK (id >= 0)")
    val report = check(table)
    assert(report.facts.enabling.verdict == Verdict.Blocked)
    val errors = report.findings.filter(_.severity == Severity.Error)
    assert(errors.map(_.rule).toSet == Set("B7", "B8"), errors)
    errors.foreach(finding => sql(finding.remedy.text))
    assert(check(table).facts.enabling.verdict == Verdict.Rewrite)
  }

  test("features are supported, active or enabled, each by itself") {
    val table = plain(Seq("delta.feature.deletionVectors" -> "supported"), rows = false)
    val feature = check(table).facts.features.find(_.name == "deletionVectors").get
    assert(feature.supported && !feature.active && feature.enabled.contains(false))
    assert(!feature.allowed)
    val legacy = check(table).facts.features.find(_.name == "checkConstraints")
    legacy.foreach(f => assert(f.supported && !f.active && f.allowed))
  }

  test("a column that is NOT NULL uses no feature that is not allowed") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a INT NOT NULL) USING delta TBLPROPERTIES ($on)")
    val report = check(table)
    assert(report.compliant && report.facts.features.forall(_.allowed), report.facts.features)
    val constrained = managed()
    sql(s"CREATE TABLE ${constrained.name} (a INT NOT NULL) USING delta")
    val invariant = """{\\\"expression\\\":{\\\"expression\\\":\\\"a > 0\\\"}}"""
    edit(constrained, 0) {
      _.replace(
        """\"metadata\":{}""",
        s"""\\"metadata\\":{\\"delta.invariants\\":\\"$invariant\\"}"""
      )
    }
    assert(!check(constrained).facts.features.find(_.name == "invariants").get.allowed)
  }

  test("an older version is reported as it was") {
    val table = compliant()
    insert(table)
    val report = Reports.check(spark, table.name, Some(0))
    assert(report.version.contains(0L) && report.facts.rows.contains(2L))
    val error = intercept[AnalysisException](Reports.check(spark, table.name, Some(99)))
    assert(error.getMessage.contains("Cannot time travel Delta table to version 99"))
  }

  test("live files that break a rule are counted, with examples") {
    val table = compliant()
    (1 to 7).foreach(_ => insert(table))
    (1 to 7).foreach { version =>
      edit(table, version.toLong)(_.replaceAll("\\\\\"numRecords\\\\\":\\d+,?", ""))
    }
    val report = unchanged(table)(check(table))
    val finding = only(report, "D1")
    assert(finding.files.contains(7L))
    assert(finding.examples.sizeIs == Finding.MaxExamples)
    assert(finding.examples.forall(_.contains(".parquet: it has no numRecords")))
    assert(report.facts.rows.isEmpty && !report.compliant)
  }

  test("sizes and row counts that cannot be are findings") {
    val table = compliant()
    (1 to 3).foreach(_ => insert(table))
    def rows(count: String): String => String =
      _.replaceAll("(numRecords\\\\\":)\\d+", "$1" + count)
    edit(table, 1)(rows("-1"))
    edit(table, 2)(rows("9223372036854775807"))
    edit(table, 3)(_.replaceFirst("\"size\":\\d+", "\"size\":null"))
    val report = unchanged(table)(check(table))
    val found = report.findings.map(finding => finding.rule -> finding.examples)
    assert(found.map { case (rule, examples) =>
      rule -> examples.size
    } == Seq("D1" -> 1, "D1s" -> 2))
    val sizes = found.last._2.map(_.split(": ").last.takeWhile(_ != ',')).toSet
    assert(sizes == Set("its numRecords is 9223372036854775807", "its size is 0 byte(s)"))
    assert(report.facts.rows.isEmpty)
    assert(sqlFindings("check", s"'${table.name}'").toSet == Set("D1", "D1s"))
    Seq("99999999999999999999", "1.0", "'1'").foreach { version =>
      val error = intercept[IcebergWriterCompatException] {
        sqlFindings("check", s"'${table.name}', $version")
      }
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_WRONG_ARGUMENTS")
    }
  }

  test("sizes whose sum is too large for Delta are a malformed field") {
    val table = compliant()
    (1 to 2).foreach(_ => insert(table))
    (1 to 2).foreach { version =>
      edit(table, version.toLong)(
        _.replaceFirst("\"size\":\\d+", s"\"size\":${Long.MaxValue}")
      )
    }
    Seq[(String, () => Any)](
      "check" -> (() => check(table)),
      "verify" -> (() => IcebergWriterCompat.verify(spark, table.name, null, null)),
      "enable" -> (() => IcebergWriterCompat.enable(spark, table.name)),
      "INSERT" -> (() => insert(table))
    ).foreach { case (door, go) =>
      val error = unchanged(table)(intercept[IcebergWriterCompatException](go()))
      val said = error.getMessageParameters
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_MALFORMED_LOG", door)
      assert(said.get("field") == "add.size" && said.get("version") == "1", door)
    }
  }

  test("a partition column that is null is a finding") {
    val table = compliant()
    edit(table, 0)(_.replace("\"partitionColumns\":[]", "\"partitionColumns\":[null]"))
    val finding = only(check(table), "C18")
    assert(finding.found.contains("<null>"))
    assert(!ReportJson.of(check(table)).contains("[null]"))
  }

  private def sqlFindings(function: String, arguments: String): Seq[String] =
    spark
      .sql(s"SELECT rule FROM iceberg_writer_compat_$function($arguments)")
      .collect()
      .toSeq
      .map(_.getString(0))

  test("a statement that breaks rules is reported with every violation, and is not run") {
    val table = compliant()
    val statement =
      s"ALTER TABLE ${table.name} ADD COLUMNS (small SMALLINT, tiny TINYINT, fine INT)"
    val report = unchanged(table)(Reports.wouldBreak(spark, statement))
    assert(report.statement.contains(statement) && !report.compliant)
    assert(report.findings.map(f => f.rule -> f.place.name) == Seq("C7" -> "small", "C7" -> "tiny"))
    assert(check(table).compliant)
    insert(table)
  }

  test("a statement that breaks no rule is reported as such, and is not run") {
    val table = compliant()
    val report = unchanged(table) {
      Reports.wouldBreak(spark, s"ALTER TABLE ${table.name} ADD COLUMNS (fine INT)")
    }
    assert(report.compliant)
    assert(report.columns.exists(column => column.name == "fine" && column.id.isDefined))
    assert(!table.log.columns.exists(_.name == "fine"))
  }

  test("each kind of statement is answered, and changes nothing") {
    val table = compliant()
    val t = table.name
    val expected = Seq(
      s"ALTER TABLE $t SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')" -> Set("B7"),
      s"ALTER TABLE $t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')" -> Set("B9"),
      s"ALTER TABLE $t UNSET TBLPROPERTIES ('delta.enableIcebergWriterCompatV1')" -> Set("B1+"),
      s"ALTER TABLE $t ADD CONSTRAINT positive CHECK (id > 0)" -> Set("B8"),
      s"ALTER TABLE $t DROP FEATURE icebergCompatV2" -> Set("A3"),
      s"ALTER TABLE $t RENAME COLUMN name TO _file" -> Set("N2+"),
      s"ALTER TABLE $t RENAME COLUMN name TO label" -> Set.empty[String],
      s"ALTER TABLE $t DROP COLUMN name" -> Set.empty[String],
      s"ALTER TABLE $t CLUSTER BY (name)" -> Set.empty[String],
      s"CREATE OR REPLACE TABLE $t (a SMALLINT) USING delta" -> Set("C7"),
      s"CREATE OR REPLACE TABLE $t USING delta AS SELECT CAST(1 AS TINYINT) AS b" -> Set("C7"),
      s"REPLACE TABLE $t (a INT, s STRUCT<b: INT>) USING delta TBLPROPERTIES ($on)" ->
        Set.empty[String]
    )
    expected.foreach { case (statement, rules) =>
      val report = unchanged(table)(Reports.wouldBreak(spark, statement))
      val errors = report.findings.filter(_.severity == Severity.Error).map(_.rule).toSet
      assert(
        rules.subsetOf(errors) && errors.isEmpty == rules.isEmpty,
        (statement, report.findings)
      )
    }
    insert(table)
    assertCompliant(table)
  }

  test("a feature that another one leaves in the protocol is reported") {
    val table = compliant()
    sql(
      s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.feature.vacuumProtocolCheck' = 'supported')"
    )
    val drop = s"ALTER TABLE ${table.name} DROP FEATURE vacuumProtocolCheck"
    val finding = only(unchanged(table)(Reports.wouldBreak(spark, drop)), "A5")
    assert(
      finding.place.name == "checkpointProtection" && finding.remedy.text.endsWith(
        "TRUNCATE HISTORY"
      )
    )
    assert(
      intercept[IcebergWriterCompatException](sql(drop)).getMessage.contains(finding.remedy.text)
    )
    assert(Reports.wouldBreak(spark, s"$drop TRUNCATE HISTORY").compliant)
  }

  test("a table that is not there is neither created nor registered") {
    val table = managed()
    val bad = s"CREATE TABLE ${table.name} (a SMALLINT, b INT) USING delta TBLPROPERTIES ($on)"
    val good = s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows"
    assert(rulesOf(Reports.wouldBreak(spark, bad)) == Set("C7"))
    val report = Reports.wouldBreak(spark, good)
    assert(report.compliant && report.version.isEmpty, report.findings)
    assert(!Files.exists(table.folder))
    assert(!spark.catalog.tableExists(table.name))
    sql(good)
    assertCompliant(table)
  }

  test("a statement on a table without the feature is judged like its next version") {
    val table = plain(rows = false)
    val report = unchanged(table) {
      Reports.wouldBreak(spark, s"ALTER TABLE ${table.name} ADD COLUMNS (small SMALLINT)")
    }
    assert(!report.enabled && only(report, "C7").place.name == "small")
    val enabling = unchanged(table) {
      Reports.wouldBreak(spark, s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
    }
    assert(enabling.compliant, enabling.findings)
    val withRows = plain()
    val refused = unchanged(withRows) {
      Reports.wouldBreak(spark, s"ALTER TABLE ${withRows.name} SET TBLPROPERTIES ($on)")
    }
    assert(!refused.compliant)
    assert(rulesOf(refused).contains("E1") || rulesOf(refused).contains("B3"), refused.findings)
  }

  test("other columns are judged by id, matched by name") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a INT, b STRING, p INT) USING delta TBLPROPERTIES ($on)")
    def asked(columns: String): TableReport = unchanged(table) {
      Reports.wouldBreak(spark, table.name, StructType.fromDDL(columns))
    }
    assert(asked("a INT, b STRING, p INT, n ARRAY<INT>").compliant)
    assert(rulesOf(asked("a STRING, b STRING, p INT")) == Set("C14"))
    assert(rulesOf(asked("a INT, b STRING, p INT, n INT NOT NULL")) == Set("C14r"))
    assert(rulesOf(asked("a INT NOT NULL, b STRING, p SMALLINT")) == Set("C7", "C14", "C14n"))
  }

  test("a statement that Delta itself refuses, or of another kind, is answered clearly") {
    val table = compliant()
    val refused = unchanged(table) {
      Reports.wouldBreak(
        spark,
        s"ALTER TABLE ${table.name} DROP COLUMN id, name, s, tags, attrs, deep, day"
      )
    }
    assert(only(refused, "Delta").found.nonEmpty)
    val error = intercept[IcebergWriterCompatException] {
      unchanged(table)(Reports.wouldBreak(spark, s"DELETE FROM ${table.name}"))
    }
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_STATEMENT_NOT_SUPPORTED")
    intercept[SparkThrowable](Reports.wouldBreak(spark, "ALTER TABLE nowhere ADD COLUMNS (a INT)"))
    intercept[SparkThrowable](Reports.wouldBreak(spark, "ALTER TABEL t ADD"))
    assert(count(table) == 2)
  }

  test("history names the version and operation that broke a rule, and the version that fixed it") {
    val table = plain(rows = false)
    insert(table)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    insert(table)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')")
    val report = unchanged(table)(Reports.history(spark, table.name))
    val finding = only(report, "B7")
    assert(finding.firstVersion.contains(2L) && finding.mendedVersion.contains(4L))
    assert(finding.operation.contains("SET TBLPROPERTIES") && finding.firstTimestamp.isDefined)
    assert(report.history.map(_.fromVersion).contains(0L))
  }

  test("history finds files without a row count, until they are gone") {
    val table = compliant()
    insert(table)
    edit(table, 1)(_.replaceAll("\\\\\"numRecords\\\\\":\\d+,?", ""))
    sql(s"DELETE FROM ${table.name} WHERE true")
    val finding = only(Reports.history(spark, table.name), "D1")
    assert(finding.firstVersion.contains(1L) && finding.mendedVersion.contains(2L))
    assert(finding.files.contains(1L) && finding.severity == Severity.Error)
  }

  test("history of a compliant table is empty, also where its log begins with a checkpoint") {
    val table = compliant()
    insert(table)
    assert(Reports.history(spark, table.name).findings.isEmpty)
    DeltaLogs.checkpoint(spark, table)
    insert(table)
    (0 to 0).foreach { version =>
      Files.delete(table.folder.resolve("_delta_log").resolve(f"$version%020d.json"))
    }
    DeltaLogs.forgetAll()
    val report = Reports.history(spark, table.name)
    assert(
      report.findings.isEmpty && report.history.map(_.fromVersion).contains(1L),
      report.history
    )
  }

  private def verify(table: TestTable, files: Option[Long] = None): TableReport =
    Reports.verify(spark, table.name, None, files)

  test("verify opens all data files, and finds nothing in those of a compliant table") {
    val table = compliant()
    insert(table)
    val report = unchanged(table)(verify(table))
    assert(report.compliant && report.findings.isEmpty)
    val live = table.log.liveFiles.size
    assert(report.audit.exists(a => a.filesRead == live && a.filesLive == live && !a.sampled))
    assert(report.facts.enabling.exact)
  }

  test("verify opens as many data files as it is told to") {
    val table = compliant()
    (1 to 4).foreach(_ => insert(table))
    val audit = verify(table, Some(2)).audit
    assert(audit.exists(a => a.filesRead == 2 && a.filesLive > 2 && a.sampled))
  }

  test("verify counts the files without ids, with examples that are there") {
    val table = plain()
    insert(table)
    val report = unchanged(table)(verify(table))
    val live = table.log.liveFiles.keySet.map(_.getFileName.toString)
    val finding = only(report, "E1f")
    assert(finding.found == s"In ${live.size} file(s): none of its columns has a field id")
    assert(finding.files.contains(live.size.toLong) && finding.severity == Severity.Warning)
    assert(finding.examples.forall(example => live(example.takeWhile(_ != ':'))))
  }

  test("verify names a data file that is gone") {
    val table = compliant()
    val file = table.log.liveFiles.keys.head
    Files.delete(file)
    val finding = only(unchanged(table)(verify(table)), "E0")
    assert(finding.severity == Severity.Error && finding.files.contains(1L))
    assert(finding.examples.exists(_.contains(file.getFileName.toString)))
  }

  test("table functions answer in SQL, with conditions and joins") {
    val table = plain()
    val query = s"SELECT rule, severity, place FROM iceberg_writer_compat_check('${table.name}') " +
      "WHERE place_kind = 'property' ORDER BY rule"
    val answer = unchanged(table)(spark.sql(query).collect().map(_.toSeq).toSeq)
    assert(answer.contains(Seq("B1", "info", "delta.enableIcebergWriterCompatV1")))
    val joined = spark.sql(
      s"SELECT c.rule FROM iceberg_writer_compat_check('${table.name}', 0) c " +
        s"JOIN iceberg_writer_compat_history('${table.name}') h ON c.rule = h.rule"
    )
    assert(joined.collect().nonEmpty)
    val ids = spark.sql(
      s"SELECT files FROM iceberg_writer_compat_verify('${table.name}', 1) WHERE rule = 'E1f'"
    )
    assert(ids.collect().map(_.getLong(0)) === Array(1L))
    val columns = spark.sql(s"SELECT * FROM iceberg_writer_compat_history('${table.name}')").columns
    assert(
      columns
        .takeRight(4) === Array("first_version", "first_timestamp", "operation", "mended_version")
    )
    Seq("", "1", "'a', 'b'", "'a', 1, 2", "rand()").foreach { arguments =>
      val error = intercept[IcebergWriterCompatException] {
        spark.sql(s"SELECT * FROM iceberg_writer_compat_check($arguments)").collect()
      }
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_WRONG_ARGUMENTS")
    }
  }

  test("bad input is answered by one clear line") {
    def condition(table: String): String =
      intercept[Exception](Reports.check(spark, table, None)) match {
        case e: SparkThrowable => e.getCondition
        case e                 => fail(s"$table: $e", e)
      }
    assert(condition("no_such_table") == "TABLE_OR_VIEW_NOT_FOUND")
    assert(condition("`a;b`.`c'd`") == "TABLE_OR_VIEW_NOT_FOUND")
    assert(condition("a;b") == "ICEBERG_WRITER_COMPAT_WRONG_NAME")
    assert(condition("/no/such/folder") == "DELTA_MISSING_DELTA_TABLE")
    sql("CREATE TABLE not_delta (a INT) USING parquet")
    assert(condition("not_delta") == "ICEBERG_WRITER_COMPAT_NOT_A_DELTA_TABLE")
    val table = compliant()
    edit(table, 0)(_.take(900))
    assert(condition(table.name) == "ICEBERG_WRITER_COMPAT_MALFORMED_LOG")
    val future = compliant()
    edit(future, 0)(
      _.replace("\"minReaderVersion\":2", "\"minReaderVersion\":3")
        .replace(
          "\"writerFeatures\":[",
          "\"readerFeatures\":[\"later\"],\"writerFeatures\":[\"later\","
        )
    )
    assert(condition(future.name) == "DELTA_UNSUPPORTED_FEATURES_FOR_READ")
  }

  test("a wide and deep table is reported in full") {
    val wide = managed()
    val columns = (1 to 10000).map(i => s"c$i INT").mkString(", ")
    sql(s"CREATE TABLE ${wide.name} ($columns) USING delta TBLPROPERTIES ($on)")
    assert(check(wide).columns.sizeIs == 10000)
    val deep = managed()
    val nested = (1 to 50).foldLeft("INT")((inner, i) => s"STRUCT<f$i: $inner>")
    sql(s"CREATE TABLE ${deep.name} (a $nested) USING delta TBLPROPERTIES ($on)")
    val report = check(deep)
    assert(report.columns.sizeIs == 51 && report.compliant)
  }

  test("a folder can be given relative to where Spark runs") {
    val table = byPath()
    sql(s"CREATE TABLE ${table.name} (a INT) USING delta TBLPROPERTIES ($on)")
    val relative = Path.of("").toAbsolutePath.relativize(table.folder).toString
    assert(Reports.check(spark, relative, None).compliant)
  }

  test("the current folder and its parent are paths, and no path is no table") {
    val here = Path.of("").toAbsolutePath
    for (
      (named, told, expected) <- Seq(
        (".", s"file:$here", "DELTA_MISSING_DELTA_TABLE"),
        ("..", s"file:${here.getParent}", "DELTA_MISSING_DELTA_TABLE"),
        ("delta.``", "``", "TABLE_OR_VIEW_NOT_FOUND")
      )
    )
      for (
        ask <- Seq[String => Any](
          Reports.check(spark, _, None),
          IcebergWriterCompat.publish(spark, _)
        )
      ) {
        val error = intercept[AnalysisException](ask(named))
        assert(error.getCondition == expected)
        assert(error.getMessage.contains(told))
      }
  }

  test("a short that becomes an int is not a blocker") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} USING delta AS SELECT 1S AS s, array(2Y) AS l")
    val report = check(table)
    assert(report.facts.enabling.verdict == Verdict.Rewrite, report.findings)
    val fixes = report.findings.filter(_.severity == Severity.Warning).map(_.remedy.text).distinct
    assert(
      fixes == Seq(
        s"CALL iceberg_writer_compat.system.enable(table => 'default.${table.name}', rewrite => true)"
      )
    )
    fixes.foreach(sql)
    assert(check(table).compliant && rows(s"SELECT * FROM ${table.name}") == Set("[1,ArraySeq(2)]"))
  }

  private val mapper = new ObjectMapper

  test("JSON has every part by its documented name") {
    val table = compliant()
    val json = mapper.readTree(IcebergWriterCompat.check(spark, table.name, null))
    def names(node: JsonNode): Set[String] = node.fieldNames.asScala.toSet
    assert(
      names(json) == Set("format", "kind", "table", "location", "version", "timestamp") ++
        Set("profile", "enabled", "compliant", "statement", "facts", "columns", "findings") ++
        Set("audit", "history", "plan", "contract")
    )
    assert(json.get("format").asInt == 2 && json.get("kind").asText == "check")
    assert(json.get("compliant").asBoolean && json.get("statement").isNull)
    assert(json.at("/facts/enabling/verdict").asText == "enabled")
    assert(json.at("/columns/0/physical_name").asText == "col-1")
  }

  test("the jar has the texts of all rules") {
    val rules = Using.resource(getClass.getResourceAsStream("/iceberg-writer-compat-rules.json"))(
      mapper.readTree(_: InputStream)
    )
    assert(
      rules.elements.asScala.map(_.get("rule").asText).toSeq == V1.contract.rules.all.map(_.id)
    )
    val rule = rules.elements.asScala.find(_.get("rule").asText == "C7").get
    assert(rule.get("checked").asText == "table")
  }
}

/** Delta's own view of its logs. */
private object DeltaLogs {
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.delta.DeltaLog

  /** Makes Delta read all logs again. */
  def forgetAll(): Unit = DeltaLog.clearCache()

  def checkpoint(spark: SparkSession, table: TestTable): Unit = {
    val log = DeltaLog.forTable(spark, table.folder.toString)
    log.checkpoint(log.update())
  }
}
