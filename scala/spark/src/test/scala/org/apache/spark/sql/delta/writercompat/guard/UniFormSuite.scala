package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta.writercompat.publish.PublishedSuite
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.TestTable

import java.nio.file.Files

/** A table is published by this project or by Delta's UniForm, never by both. */
class UniFormSuite extends PublishedSuite {

  private val formats = "delta.universalFormat.enabledFormats"
  private val uniForm = s"'$formats' = 'iceberg'"
  private val publishing = "'icebergWriterCompat.publish' = 'true'"
  private val feature = "delta.enableIcebergWriterCompatV1" -> "true"
  private val wrong = "WRONG_REQUIRED_TABLE_PROPERTY"

  private def fixOf(error: IcebergWriterCompatException): String = {
    assert(error.getMessageParameters.get("property") == formats)
    error.getMessageParameters.get("fix")
  }

  test("a new table is refused by every door, with a statement that publishes it") {
    val byName: Seq[TestTable => Any] = Seq(
      t => sql(s"CREATE TABLE ${t.name} (id BIGINT) USING delta TBLPROPERTIES ($on, $uniForm)"),
      t =>
        sql(
          s"CREATE TABLE ${t.name} (id BIGINT) USING delta " +
            s"TBLPROPERTIES ($on, 'delta.enableIcebergCompatV2' = 'true', $uniForm)"
        ),
      t =>
        byDefault(sql(s"CREATE TABLE ${t.name} USING delta TBLPROPERTIES ($uniForm) AS $someRows")),
      t =>
        sql(
          s"CREATE OR REPLACE TABLE ${t.name} USING delta TBLPROPERTIES ($on, $uniForm) AS $someRows"
        ),
      t =>
        sql(
          s"CREATE TABLE ${t.name} (id BIGINT) USING delta TBLPROPERTIES ($on, $uniForm, $publishing)"
        ),
      t =>
        frame.write.format("delta").options(Map(feature, formats -> "iceberg")).saveAsTable(t.name),
      t =>
        frame
          .writeTo(t.name)
          .using("delta")
          .tableProperty(feature._1, feature._2)
          .tableProperty(formats, "iceberg,hudi")
          .create()
    )
    byName.foreach { create =>
      val table = managed()
      val fix = fixOf(refusedFor(wrong, "B13", table)(create(table)))
      assert(!Files.exists(table.folder) && !spark.catalog.tableExists(table.name))
      // Of a program's call, the calls to change are named.
      assert(Seq(publishing, "\"icebergWriterCompat.publish\", \"true\")").exists(fix.contains))
    }
    val table = managed()
    sql(fixOf(refusedFor(wrong, "B13", table)(byName.head(table))))
    sql(s"INSERT INTO ${table.name} VALUES (1)")
    assertPublished(table)
    val saved = byPath()
    refusedFor(wrong, "B13", saved) {
      frame.write
        .format("delta")
        .options(Map(feature, formats -> "iceberg"))
        .save(saved.folder.toString)
    }
    assert(!Files.exists(saved.folder))
  }

  test("a session default of UniForm gives way") {
    val default = s"spark.databricks.delta.properties.defaults.${formats.stripPrefix("delta.")}"
    val (table, saved) = (managed(), byPath())
    withConf(default -> "iceberg") {
      sql(s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows")
      frame.write.format("delta").options(Map(feature)).save(saved.folder.toString)
    }
    Seq(table, saved).foreach { made =>
      assertCompliant(made)
      assert(made.log.properties.get(formats).contains(""))
    }
  }

  test("a table with the feature is refused UniForm, whether it is published or not") {
    val table = compliant()
    def setUniForm(more: String = "") =
      fixOf(refusedFor(wrong, "B13+", table) {
        sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($uniForm$more)")
      })
    setUniForm(s", $publishing")
    sql(setUniForm())
    assertPublished(table)
    setUniForm()
    refusedFor(wrong, "B13", table) {
      sql(
        s"CREATE OR REPLACE TABLE ${table.name} USING delta " +
          s"TBLPROPERTIES ($on, $uniForm) AS $someRows"
      )
    }
    // Where nothing in the statement asks for an IcebergCompat, Delta leaves UniForm out.
    sql(s"CREATE OR REPLACE TABLE ${table.name} USING delta TBLPROPERTIES ($uniForm) AS $someRows")
    assert(!table.log.properties.contains(formats))
    refusedFor(wrong, "B13+", table) {
      sql(s"REORG TABLE ${table.name} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")
    }
    assertPublished(table)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('$formats' = '')")
    assertCompliant(table)
  }

  private val v2 = Seq(
    "delta.columnMapping.mode" -> "id",
    "delta.enableIcebergCompatV2" -> "true",
    formats -> "iceberg"
  )

  test("a table with UniForm gets the feature once UniForm is off") {
    // By its path Delta has no catalog to tell of what UniForm wrote, and writes nothing.
    val (empty, filled) = (plain(v2, rows = false, byPath()), plain(v2, table = byPath()))
    Seq(empty, filled).foreach { table =>
      val refusal = refused(table)(sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)"))
      assert(refusal.getMessageParameters.get("rule").startsWith("B13"))
    }
    sql(s"ALTER TABLE ${empty.name} SET TBLPROPERTIES ('$formats' = '')")
    sql(s"ALTER TABLE ${empty.name} SET TBLPROPERTIES ($on)")
    insert(empty)
    assertCompliant(empty)
    def upgrading = TableUpgrade.of(spark, filled.name, "auto", rewrite = false, Nil)
    val blocked = upgrading.plan().plan.get
    assert(blocked.mode == org.icebergwritercompat.report.PlanMode.Blocked)
    val fix = s"ALTER TABLE ${filled.name} SET TBLPROPERTIES ('$formats' = '')"
    assert(
      blocked.remedies.flatMap(_.sql).exists(_.contains(s"('$formats' = '')")),
      blocked.remedies
    )
    assert(refused(filled)(upgrading.run()).getMessage.contains("B13"))
    sql(fix)
    assert(upgrading.run().changed)
    assertCompliant(filled)
  }

  test("a table that got both from another program can be written, and is published once") {
    val table = byPath()
    compliant(table)
    store(table, formats, "iceberg")
    insert(table)
    assertCompliant(table)
    val commits = table.log.version
    def isUniForm(body: => Any): Boolean =
      intercept[IcebergWriterCompatException](body).getCondition ==
        "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.UNIFORM"
    assert(isUniForm(publish(table)))
    assert(isUniForm(sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($publishing)")))
    assert(!Files.exists(table.folder.resolve("metadata")))
    assert(table.log.version == commits)
    // A copy would get it again, and so would a table that is restored to such a version.
    val copy = byPath()
    val offered = fixOf(refusedFor(wrong, "B13", copy) {
      sql(s"CREATE TABLE ${copy.name} SHALLOW CLONE ${table.name}")
    })
    sql(offered)
    assert(count(copy) == 4)
    assertCompliant(copy)
    val other = byPath()
    sql(
      s"CREATE OR REPLACE TABLE ${other.name} SHALLOW CLONE ${table.name} TBLPROPERTIES ('$formats' = '')"
    )
    assertCompliant(other)
    val offer = intercept[IcebergWriterCompatException](publish(table)).remedy.sql
    assert(offer.nonEmpty)
    offer.foreach(sql(_))
    publish(table)
    assert(inIceberg(table) == inDelta(spark.table(table.name)))
    refusedFor(wrong, "B13+", table)(sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF $commits"))
  }
}
