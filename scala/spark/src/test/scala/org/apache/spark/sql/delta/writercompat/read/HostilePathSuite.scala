package org.apache.spark.sql.delta.writercompat.read

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.delta.writercompat.publish.PublishedSuite
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.testing.{ForeignFiles, TestTable}

import java.nio.file.{Files, StandardCopyOption}
import java.util.{ArrayList => JArrayList}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}

/** A log that adds files which are none of the table's. */
class HostilePathSuite extends PublishedSuite {

  private val mapper = new ObjectMapper

  private def table(properties: String): TestTable = {
    val made = byPath()
    sql(s"CREATE TABLE ${made.name} (id INT) USING delta TBLPROPERTIES ($properties)")
    sql(s"INSERT INTO ${made.name} VALUES (1)")
    made
  }

  private lazy val guarded = table(on)
  private lazy val mapped = table(
    "'delta.columnMapping.mode' = 'id', 'delta.enableIcebergCompatV2' = 'true'"
  )

  /** A copy of the table whose next commit adds its file once more, by this path. */
  private def adding(table: TestTable, path: String, put: ObjectNode => Any = _ => ()): TestTable =
    ForeignFiles.committed(table) { copy =>
      val add = copy.log.liveFiles.head._2.deepCopy[ObjectNode]()
      add.put("path", path)
      put(add)
      Seq(mapper.createObjectNode().set[JsonNode]("add", add).toString)
    }

  /** Puts the table's file beside the folder. */
  private def withSecret(table: TestTable): TestTable = {
    val secret = table.folder.getParent.resolve("secret.parquet")
    Files.copy(table.log.liveFiles.head._1, secret, StandardCopyOption.REPLACE_EXISTING)
    table
  }

  private def check(table: TestTable): Seq[(String, String)] =
    findings(IcebergWriterCompat.check(spark, table.name, null))

  private def findings(json: String): Seq[(String, String)] =
    mapper
      .readTree(json)
      .get("findings")
      .elements
      .asScala
      .map(f => f.get("rule").asText -> f.get("severity").asText)
      .toSeq

  private val leaving = Seq("../secret.parquet", "a/../../secret.parquet", "%2e%2e/secret.parquet")

  for (path <- leaving) test(s"$path is found, and neither published nor taken by an upgrade") {
    val broken = adding(withSecret(guarded), path)
    assert(check(broken) == Seq("D9" -> "error"))
    assert(
      findings(IcebergWriterCompat.verify(spark, broken.name, null, null)).contains("D9" -> "error")
    )
    assert(findings(IcebergWriterCompat.history(spark, broken.name)) == Seq("D9" -> "error"))
    val unpublished = refused(broken)(publish(broken))
    assert(unpublished.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.BREAKS_RULES")
    assert(unpublished.getMessageParameters.get("rule") == "D9")
    val on = refused(broken)(IcebergWriterCompat.enable(spark, broken.name))
    assert(on.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.ENABLED_BUT_BROKEN")
    assert(on.getMessageParameters.get("rule") == "D9")
    // The copy that the remedy makes has all rows, and no path leaves a folder.
    assert(on.remedy == unpublished.remedy)
    assert(on.remedy.sql.nonEmpty)
    on.remedy.sql.foreach(sql(_))
    val plain = adding(withSecret(mapped), path)
    assert(check(plain).contains("D9" -> "error"))
    refusedFor("UPGRADE_BLOCKED", "D9", plain)(IcebergWriterCompat.enable(spark, plain.name))
    refusedFor("UPGRADE_BLOCKED", "D9", plain) {
      IcebergWriterCompat.upgrade(spark, plain.name, "rewrite", true, new JArrayList[String], null)
    }
    val altered = refused(plain) {
      sql(s"ALTER TABLE ${plain.name} SET TBLPROPERTIES (${this.on})")
    }
    assert(altered.getMessageParameters.get("rule").contains("D9"))
  }

  test("a commit that was published before does not take a hostile one along") {
    val copy = ForeignFiles.copyOf(withSecret(guarded))
    publish(copy)
    val add = copy.log.liveFiles.head._2.deepCopy[ObjectNode]().put("path", "../secret.parquet")
    val next = copy.folder.resolve("_delta_log").resolve(f"${copy.log.version + 1}%020d.json")
    Files.write(
      next,
      java.util.List.of(mapper.createObjectNode().set[JsonNode]("add", add).toString)
    )
    val refusal = refused(copy)(publish(copy))
    assert(refusal.getMessageParameters.get("rule") == "D9")
    assert(status(copy).get("lag").asLong == 1)
    // Once it has left, publishing goes on past the commit that had it.
    sql(s"DELETE FROM ${copy.name}")
    sql(s"INSERT INTO ${copy.name} VALUES (7)")
    publish(copy)
    assert(inIceberg(copy) == Seq("{7}"))
    assert(!snapshots(copy).exists(_.summary.get("delta-version") == "2"))
  }

  test("absolute paths are shown, and kept to") {
    val path = guarded.log.liveFiles.head._1
    val cloned = adding(guarded, path.toUri.toString)
    assert(check(cloned) == Seq("D9" -> "info"))
    val report = mapper.readTree(IcebergWriterCompat.check(spark, cloned.name, null))
    assert(report.get("compliant").asBoolean)
    val finding = report.get("findings").get(0)
    assert(finding.get("files").asLong == 1)
    assert(finding.get("examples").get(0).asText.endsWith(path.getFileName.toString))
    publish(cloned)
    assert(inIceberg(cloned) == inDelta(spark.table(cloned.name)))
  }

  test("an unknown scheme is found, and not published") {
    val broken = adding(guarded, "nosuch://host/part-0.parquet")
    assert(check(broken) == Seq("D9" -> "error"))
    assert(findings(IcebergWriterCompat.history(spark, broken.name)) == Seq("D9" -> "error"))
    val refusal = refused(broken)(publish(broken))
    assert(refusal.getMessageParameters.get("rule") == "D9")
    assert(refusal.getMessage.contains("nosuch://host/part-0.parquet"))
    val verified = findings(IcebergWriterCompat.verify(spark, broken.name, null, null))
    assert(Set("D9", "E0").subsetOf(verified.map(_._1).toSet))
    val plain = adding(mapped, "nosuch://host/part-0.parquet")
    val blocked = refused(plain)(IcebergWriterCompat.enable(spark, plain.name))
    assert(blocked.getMessageParameters.get("rule").contains("E0"))
  }

  private val doors: Seq[(String, TestTable => Any)] = Seq(
    "check" -> (t => IcebergWriterCompat.check(spark, t.name, null)),
    "verify" -> (t => IcebergWriterCompat.verify(spark, t.name, null, null)),
    "history" -> (t => IcebergWriterCompat.history(spark, t.name)),
    "enable" -> (t => IcebergWriterCompat.enable(spark, t.name)),
    "publish" -> publish,
    "status" -> status,
    "table function" -> (t => sql(s"SELECT * FROM iceberg_writer_compat_check('${t.name}')"))
  )

  // Delta's commands read the state of the table before they begin a transaction.
  private val commands = Seq(
    "DELETE FROM {t}",
    "DELETE FROM {t} WHERE id = 1",
    "UPDATE {t} SET id = 5",
    "MERGE INTO {t} USING (SELECT 1 AS id) s ON s.id = {t}.id WHEN MATCHED THEN DELETE",
    "OPTIMIZE {t}",
    "REORG TABLE {t} APPLY (PURGE)",
    "RESTORE TABLE {t} TO VERSION AS OF 0",
    "DESCRIBE DETAIL {t}",
    "CREATE TABLE delta.`{f}_clone` SHALLOW CLONE {t}"
  )

  // Delta computes the state of the table with these paths, and fails at the file alone.
  private def isRead(path: String): Boolean = path.nonEmpty && path != "."

  for (path <- Seq("jar:file:/x!/y", "a:b", "%zz", "", "."))
    test(s"statements on a table with the path '$path' commit nothing, and say where it is") {
      val statements = Seq(
        "INSERT INTO {t} VALUES (2)",
        "ALTER TABLE {t} ADD COLUMN z INT",
        "VACUUM {t} DRY RUN",
        "VACUUM {t}",
        "VACUUM {t} LITE"
      ) ++ (if (isRead(path)) Nil else commands)
      statements.foreach { text =>
        val broken = adding(guarded, path)
        val folder = broken.folder.toString
        val refusal = refused(broken)(sql(text.replace("{t}", broken.name).replace("{f}", folder)))
        val said = refusal.getMessageParameters
        assert(refusal.getCondition == "ICEBERG_WRITER_COMPAT_MALFORMED_LOG", text)
        assert(said.get("field") == "add.path" && said.get("version") == "2", text)
        assert(said.get("table").contains(folder), text)
      }
    }

  for (
    path <- Seq("/../etc/passwd", "file://host/x.parquet", "hdfs://no-such-host.invalid/x.parquet")
  )
    test(s"the path $path is found, and not published") {
      val broken = adding(guarded, path)
      assert(check(broken) == Seq("D9" -> "error"))
      assert(refused(broken)(publish(broken)).getMessageParameters.get("rule") == "D9")
      val plain = adding(mapped, path)
      assert(check(plain).contains("D9" -> "error"))
      val blocked = refused(plain)(IcebergWriterCompat.enable(spark, plain.name))
      assert(blocked.getCondition.endsWith("UPGRADE_BLOCKED"))
    }

  // Delta cannot read these logs either.
  for (path <- Seq("jar:file:/x!/y", "a:b", ".", "%zz", "", " ", "a\\b", "a\nb"))
    test(s"the path '${path.replace("\n", "(newline)")}' is reported everywhere") {
      for (base <- Seq(guarded, mapped); (door, go) <- doors) {
        val broken = adding(base, path)
        val version = broken.log.version
        Try(go(broken)) match {
          case Failure(e: SparkThrowable) =>
            val said = s"$door: ${e.getCondition}: $e"
            assert(e.getCondition.contains("ICEBERG_WRITER_COMPAT_"), said)
            assert(e.getMessageParameters.get("table").contains(broken.folder.toString), said)
            if (e.getCondition == "ICEBERG_WRITER_COMPAT_MALFORMED_LOG") {
              assert(e.getMessageParameters.get("version") == version.toString, said)
              assert(e.getMessageParameters.get("field") == "add.path", said)
            }
          case Failure(e)         => fail(s"$door: $e")
          case Success(s: String) =>
            // A path that Delta reads all the same.
            assert(Set("check", "verify", "history")(door), s"$door took it")
            assert(findings(s).exists { case (rule, severity) =>
              rule == "D9" && severity == "error"
            })
          case Success(_) => assert(Set("status", "table function")(door), s"$door took it")
        }
        assert(broken.log.version == version)
      }
    }
}
