package org.apache.spark.sql.delta.writercompat.guard

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.delta.writercompat.{OnThread, TableSuite}
import org.apache.spark.sql.delta.writercompat.report.{TableInspector, WouldBreak}
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.apache.spark.sql.functions.lit
import org.apache.spark.sql.streaming.Trigger
import org.icebergwritercompat.docs.RulesPage
import org.icebergwritercompat.rules.FooterRules
import org.icebergwritercompat.testing.{ForeignFiles, TestTable}
import org.apache.spark.sql.delta.writercompat.datafiles.DataFileAudit
import org.apache.spark.sql.delta.writercompat.read.DeltaTables

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/** A line of the table in `docs/writing.md`: where a setting was tried, and what came of it. */
private final case class Tried(where: String, key: String, value: String, outcome: String)

private object Tried {

  private val line = """\| (\S+) \| `([^`]+)` \| `([^`]*)` \| (.+) \|""".r

  /** All lines of the page. */
  def all: Seq[Tried] =
    Files.readString(RulesPage.path.resolveSibling("writing.md")).linesIterator.toSeq.collect {
      case line(where, key, value, outcome) => Tried(where, key, value, outcome)
    }
}

/** What settings of the session, of Hadoop, of the table and of the writer do to guarded files. */
class WrittenFilesSuite extends TableSuite {

  private val ddl = "d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, l ARRAY<INT>, m MAP<STRING, INT>, " +
    "c DECIMAL(9, 2), e DECIMAL(18, 2), x DOUBLE, s STRING, i INT"

  private val early = "DATE'1500-01-01' AS d, TIMESTAMP'1500-01-01 00:00:00Z' AS t, " +
    "TIMESTAMP_NTZ'1500-01-01 00:00:00' AS n, array(1, 2) AS l, map('a', 1) AS m, " +
    "CAST(1.25 AS DECIMAL(9, 2)) AS c, CAST(2.5 AS DECIMAL(18, 2)) AS e, 0.5D AS x, " +
    "'a long text' AS s, CAST(id AS INT) AS i"

  private val twoRows = s"SELECT $early FROM range(0, 2, 1, 1)"

  private def created(more: String = ""): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} ($ddl) USING delta TBLPROPERTIES ($on$more)")
    table
  }

  private def assertClean(table: TestTable): Unit = {
    val delta = DeltaTables.find(spark, table.name)
    val snapshot = delta.update()
    val state = new TableInspector(spark).stateOf(delta, snapshot)
    assert(DataFileAudit.run(spark, snapshot, state).findings == Nil)
    assertCompliant(table)
  }

  private def added(table: TestTable): Seq[Path] =
    table.log.actions(table.log.version).collect { case ("add", add) =>
      table.folder.resolve(add.get("path").asText)
    }

  /** What a file says of itself, part by part, without the values that are of this file alone. */
  private def parts(file: Path): Map[String, String] = {
    val input = HadoopInputFile.fromPath(new HadoopPath(file.toUri), new Configuration(false))
    val footer = Using.resource(ParquetFileReader.open(input))(_.getFooter)
    val groups = footer.getBlocks.asScala.toSeq
    val chunks = groups.flatMap(_.getColumns.asScala)
    def each(what: String) = chunks.map(_.toString).map(_ => what).distinct.mkString
    Map(
      "schema" -> footer.getFileMetaData.getSchema.toString,
      "keys" -> footer.getFileMetaData.getKeyValueMetaData.asScala.keySet.toSeq.sorted.mkString,
      "codec" -> chunks.map(_.getCodec.name).distinct.mkString(", "),
      "encodings" -> chunks
        .map(c => s"${c.getPath} ${c.getEncodings.asScala.toSeq.map(_.name).sorted}")
        .distinct
        .mkString,
      "row groups" -> groups.size.toString,
      "bounds" -> chunks
        .map(c =>
          s"${c.getPath} ${Option(c.getStatistics).map(s => s.minAsString + s.maxAsString)}"
        )
        .distinct
        .mkString,
      "null counts" -> chunks.map(c => c.getStatistics.getNumNulls.toString).distinct.mkString,
      "bloom filters" -> chunks.map(_.getBloomFilterOffset > 0).distinct.mkString,
      "files" -> each("")
    )
  }

  private def shown(files: Seq[Path], usual: Map[String, String]): String = {
    val found = files.map(parts)
    val other = usual.keys.toSeq.sorted.filter(part => found.exists(_(part) != usual(part)))
    val words = other.map {
      case "codec" => s"codec ${found.head("codec")}"
      case part    => s"other $part"
    } ++ Option.when(files.size > 1)(s"${files.size} files")
    if (words.isEmpty) "as without it" else words.mkString(", ")
  }

  private def withHadoop[T](key: String, value: String)(body: => T): T = {
    val conf = spark.sparkContext.hadoopConfiguration
    val before = Option(conf.get(key))
    conf.set(key, value)
    try body
    finally before.fold(conf.unset(key))(conf.set(key, _))
  }

  private def write(table: TestTable, tried: Tried): Unit = {
    def insert() = sql(s"INSERT INTO ${table.name} $twoRows")
    val Tried(where, key, value, _) = tried
    where match {
      case "session" => withConf(key -> value)(insert())
      case "Hadoop"  => withHadoop(key, value)(insert())
      case "option"  =>
        spark
          .sql(twoRows)
          .write
          .format("delta")
          .mode("append")
          .option(key, value)
          .saveAsTable(table.name)
      case "table" =>
        sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('$key' = '$value')")
        try insert()
        finally {
          val version = table.log.version
          sql(s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('$key')")
          assert(table.log.version == version + 1)
        }
    }
  }

  test("with each setting of the page the files are as the page says, and the rows unchanged") {
    val table = created()
    sql(s"INSERT INTO ${table.name} $twoRows")
    val usual = parts(added(table).head)
    val rows = spark.table(table.name).collect().map(_.toString).toSet
    val tried = Tried.all
    assert(tried.size > 50)
    val found = tried.map { one =>
      val before = table.log.liveFiles.keySet
      val version = table.log.version
      val outcome = Try(write(table, one)).fold(
        {
          case e: SparkThrowable if e.getCondition != null => s"refused: ${e.getCondition}"
          case _                                           => "refused"
        },
        { _ =>
          val files = (table.log.liveFiles.keySet -- before).toSeq
          shown(files, usual)
        }
      )
      if (outcome.startsWith("refused")) {
        assert(table.log.liveFiles.keySet == before, one)
        assert(one.where == "table" || table.log.version == version, one)
      }
      one.copy(outcome = outcome)
    }
    val wrong =
      found.diff(tried).map(t => s"| ${t.where} | `${t.key}` | `${t.value}` | ${t.outcome} |")
    assert(wrong.isEmpty, wrong.mkString("\n", "\n", "\n"))
    assert(spark.table(table.name).collect().map(_.toString).toSet == rows)
    assert(spark.sparkContext.getLocalProperty(PinnedFiles.ofTasks.head._1) == null)
    assertClean(table)
  }

  private val hostile = Seq(
    "spark.sql.parquet.datetimeRebaseModeInWrite" -> "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite" -> "LEGACY",
    "spark.sql.parquet.outputTimestampType" -> "INT96",
    "spark.sql.parquet.writeLegacyFormat" -> "true"
  )

  test("every door writes files in the same form, and no other table is touched") {
    val (table, copy, other) = (created(), managed(), managed())
    val checkpoint = copy.folder.resolveSibling(s"${copy.name}-checkpoint")
    withConf(hostile: _*) {
      sql(s"INSERT INTO ${table.name} $twoRows")
      withConf(
        "spark.databricks.delta.optimizeWrite.enabled" -> "true",
        "spark.sql.adaptive.enabled" -> "true"
      )(spark.sql(twoRows).repartition(2).withColumn("i", lit(2)).writeTo(table.name).append())
      sql(s"UPDATE ${table.name} SET s = 'other' WHERE i = 1")
      sql(
        s"MERGE INTO ${table.name} t USING ($twoRows) s ON t.i = s.i AND t.i = 0 " +
          "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT *"
      )
      OnThread(sql(s"INSERT INTO ${table.name} $twoRows"))
      sql(s"CREATE TABLE ${copy.name} USING delta TBLPROPERTIES ($on) AS $twoRows")
      spark.readStream
        .table(table.name)
        .writeStream
        .option("checkpointLocation", checkpoint.toString)
        .format("delta")
        .trigger(Trigger.AvailableNow())
        .toTable(copy.name)
        .awaitTermination()
      assertClean(table)
      sql(s"OPTIMIZE ${table.name}")
      sql(s"INSERT INTO ${table.name} $twoRows")
      sql(s"CREATE TABLE ${other.name} USING delta AS $twoRows")
    }
    assertClean(table)
    assertClean(copy)
    assert(
      rows(s"SELECT DISTINCT d, t, n FROM ${table.name}") ==
        rows(s"SELECT DATE'1500-01-01', TIMESTAMP'1500-01-01 00:00:00Z', TIMESTAMP_NTZ'1500-01-01'")
    )
    assert(spark.table(copy.name).count() > 4)
    assert(parts(added(other).head)("keys").contains("legacyDateTime"))
  }

  // Files of the legacy calendar

  /** A table that has left the feature, and a file that was written under these settings. */
  private def left(settings: (String, String)*): TestTable = {
    val table = created()
    sql(s"INSERT INTO ${table.name} $twoRows")
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    withConf(settings: _*)(sql(s"INSERT INTO ${table.name} $twoRows"))
    table
  }

  private def switchOn(table: TestTable): Unit =
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")

  test("the feature is not switched on over files that only their footers show to be wrong") {
    for (
      (settings, expected) <- Seq(
        hostile.take(1) -> Set("E11"),
        hostile.drop(3) -> Set("E6", "E7"),
        hostile.take(1) ++ hostile.drop(3) -> Set("E6", "E7", "E11")
      )
    ) {
      val table = left(settings: _*)
      val version = table.log.version
      val before = rows(s"SELECT * FROM ${table.name}")
      val error = refused(table)(switchOn(table))
      assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.TABLE_NOT_COMPLIANT")
      assert(error.getMessageParameters.get("rule").split(", ").toSet == expected)
      val dry =
        new WouldBreak(spark).statement(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
      assert(dry.findings.map(_.rule).toSet == expected)
      // By the metadata as an action of a commit, too.
      val program = refused(table) {
        val delta = DeltaTables.find(spark, table.name)
        val txn = delta.deltaLog.startTransaction(delta.catalogTable, Some(delta.update()))
        val metadata = txn.metadata.copy(configuration =
          txn.metadata.configuration + ("delta.enableIcebergWriterCompatV1" -> "true")
        )
        txn.commit(Seq(metadata), org.apache.spark.sql.delta.DeltaOperations.ManualUpdate)
      }
      assert(program.getMessageParameters.get("rule").split(", ").toSet == expected)
      // What is offered writes those files again where they are.
      assert(
        error.getMessageParameters.get("fix") ==
          s"CALL iceberg_writer_compat.system.enable(table => 'default.${table.name}', rewrite => true)"
      )
      assert(table.log.version == version)
      val result = TableUpgrade.of(spark, table.name, "auto", rewrite = true, Nil).run()
      assert((result.filesRewritten, result.filesKept) == ((1, 1)))
      assertClean(table)
      assert(rows(s"SELECT * FROM ${table.name}") == before)
    }
  }

  test("RESTORE and CLONE do not switch the feature on over such files either") {
    val table = created()
    sql(s"INSERT INTO ${table.name} $twoRows")
    val version = table.log.version
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    withConf(hostile.take(1): _*)(sql(s"INSERT INTO ${table.name} $twoRows"))
    sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF $version")
    assertClean(table)
    // An older guard let such files in.
    val foreign = left(hostile.take(1): _*)
    val forged = ForeignFiles.committed(foreign) { copy =>
      val lines = copy.log.actions(0).toMap
      Seq("protocol", "metaData").map(kind => s"""{"$kind":${lines(kind)}}""")
    }
    val clone = managed()
    val error = refused()(sql(s"CREATE TABLE ${clone.name} SHALLOW CLONE ${forged.name}"))
    assert(error.getMessageParameters.get("rule") == FooterRules.DaysAreGregorian.id)
    sql(s"ALTER TABLE ${forged.name} DROP FEATURE icebergWriterCompatV1")
    val back = forged.log.version - 1
    val restored = refused(forged)(sql(s"RESTORE TABLE ${forged.name} TO VERSION AS OF $back"))
    assert(restored.getMessageParameters.get("rule") == FooterRules.DaysAreGregorian.id)
    val history = spark.sql(s"DESCRIBE HISTORY ${forged.name}").where(s"version = $back")
    val time = history.select("timestamp").collect().head.getTimestamp(0)
    val byTime = refused(forged)(sql(s"RESTORE TABLE ${forged.name} TO TIMESTAMP AS OF '$time'"))
    assert(byTime.getMessageParameters == restored.getMessageParameters)
  }

  // Encryption

  test("files are not encrypted, nor left plain where encryption is asked for") {
    val table = created()
    val key = "parquet.encryption.footer.key"
    val factory = "parquet.crypto.factory.class"
    val byKeys = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
    def insert() = sql(s"INSERT INTO ${table.name} $twoRows")
    withConf(factory -> byKeys, key -> "k1") {
      val version = table.log.version
      val error = intercept[Exception](insert())
      assert(error.getMessage.contains("ENCRYPTED_DATA_FILES"), error)
      assert(table.log.version == version)
      assert(error.getMessage.endsWith(s"Run: SET $key="))
      sql(s"SET $key=")
      insert()
    }
    withConf(factory -> "com.example.Encrypting") {
      assert(intercept[Exception](insert()).getMessage.endsWith(s"Run: SET $factory=$byKeys"))
    }
    assertClean(table)
  }
}
