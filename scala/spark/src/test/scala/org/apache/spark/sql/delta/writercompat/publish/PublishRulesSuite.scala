package org.apache.spark.sql.delta.writercompat.publish

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{Malformation, MalformedLogs, TestTable}

import java.nio.file.Files
import java.util.{ArrayList => JArrayList}
import scala.jdk.CollectionConverters._

/** What `check` calls broken is not published, and `enable` says what it is. */
class PublishRulesSuite extends PublishedSuite {

  private val mapper = new ObjectMapper
  private val nodes = JsonNodeFactory.instance

  private lazy val good: TestTable = partitionedByP("a INT, p INT", "(1, 1), (2, 2)")

  private val emptied: ObjectNode = nodes.objectNode

  private def broken(field: String, value: JsonNode): TestTable =
    MalformedLogs.copyOf(good, Malformation(field.split('/').toSeq, "", Some(value)))

  private val id = "metaData/schemaString/#/fields/0/metadata/delta.columnMapping"

  private val cases: Seq[(String, String, JsonNode, String)] = Seq(
    ("no partition values", "add/partitionValues", emptied, "D2"),
    ("the id 0", s"$id.id", nodes.numberNode(0), "C2"),
    ("the id -1", s"$id.id", nodes.numberNode(-1), "C2"),
    ("a wrong name", s"$id.physicalName", nodes.textNode("col-7"), "C2"),
    (
      "no column mapping",
      "metaData/configuration/delta.columnMapping.mode",
      nodes.textNode("none"),
      "B3"
    ),
    ("ORC", "metaData/format/provider", nodes.textNode("orc"), "B12"),
    ("statistics by logical names", "add/stats/#/nullCount", nodes.objectNode.put("a", 0), "D3")
  )

  private def rules(error: IcebergWriterCompatException): Seq[String] =
    error.getMessageParameters.get("rule").split(", ").toSeq

  for ((what, field, value, rule) <- cases) test(s"$what: neither published nor called in order") {
    val table = broken(field, value)
    val checked = mapper
      .readTree(IcebergWriterCompat.check(spark, table.name, null))
      .get("findings")
      .elements
      .asScala
      .filter(_.get("severity").asText == "error")
      .map(_.get("rule").asText)
      .toSeq
    assert(checked.contains(rule))
    val refusal = refused(table)(publish(table))
    assert(refusal.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.BREAKS_RULES")
    assert(rules(refusal).contains(rule) && rules(refusal).toSet.subsetOf(checked.toSet))
    assert(refusal.getMessageParameters.get("version") == "1")
    val enabled = refused(table)(IcebergWriterCompat.enable(spark, table.name))
    assert(
      enabled.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.ENABLED_BUT_BROKEN"
    )
    assert(rules(enabled) == checked.distinct)
    val plan = mapper
      .readTree(
        IcebergWriterCompat
          .upgradePlan(spark, table.name, "auto", false, new JArrayList[String], null)
      )
      .get("plan")
    assert(plan.get("mode").asText == "blocked")
    assert(plan.get("remedies").elements.asScala.exists { remedy =>
      remedy.get("sql").elements.asScala.map(_.asText).toSeq == enabled.remedy.sql
    })
  }

  test("a table in order is published, and its feature is on already") {
    val table = MalformedLogs.copyOf(good, Malformation(Seq("remove", "x"), "", None))
    assert(!IcebergWriterCompat.enable(spark, table.name))
    publish(table)
    assertPublished(table)
  }

  private def append(table: TestTable, kind: String, action: JsonNode): Unit = {
    val next = table.folder.resolve("_delta_log").resolve(f"${table.log.version + 1}%020d.json")
    Files.write(
      next,
      java.util.List.of(mapper.createObjectNode().set[JsonNode](kind, action).toString)
    )
    ()
  }

  test("a commit that breaks a rule is not published by publish, hook or VACUUM until fixed") {
    val table = MalformedLogs.copyOf(good, Malformation(Seq("remove", "x"), "", None))
    publish(table)
    val published = iceberg(table).currentSnapshot.snapshotId
    val file = table.log.liveFiles.values.find(_.get("partitionValues").toString.contains("1")).get
    append(
      table,
      "add",
      file.deepCopy[ObjectNode]().set[ObjectNode]("partitionValues", emptied)
    )
    val refusal = refused(table)(publish(table))
    assert(rules(refusal) == Seq("D2"))
    assert(refusal.getMessageParameters.get("file") == null)
    assert(refusal.getMessage.contains(file.get("path").asText))
    val vacuum = intercept[IcebergWriterCompatException](sql(s"VACUUM ${table.name}"))
    assert(vacuum.getCondition == "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED")
    assert(vacuum.getMessage.contains("D2"))
    // The hook never fails a commit, and publishes nothing while the file is live.
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
    assert(iceberg(table).currentSnapshot.snapshotId == published)
    append(
      table,
      "remove",
      nodes.objectNode
        .put("path", file.get("path").asText)
        .put("deletionTimestamp", System.currentTimeMillis())
        .put("dataChange", true)
    )
    sql(s"INSERT INTO ${table.name} VALUES (9, 9)")
    assertPublished(table)
    assert(inIceberg(table) == Seq("{2, 2}", "{9, 9}"))
    sql(s"VACUUM ${table.name}")
  }

  test("columns that change between commits are judged by what each commit had") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (a INT, b INT) USING delta TBLPROPERTIES ($on)")
    publish(table)
    sql(s"INSERT INTO ${table.name} VALUES (1, 1)")
    sql(s"CREATE OR REPLACE TABLE ${table.name} (c STRING) USING delta TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES ('x')")
    publish(table)
    assert(inIceberg(table) == Seq("{x}"))
    assert(snapshots(table).map(_.summary.get("delta-version")) == Seq("1", "2", "3"))
  }
}
