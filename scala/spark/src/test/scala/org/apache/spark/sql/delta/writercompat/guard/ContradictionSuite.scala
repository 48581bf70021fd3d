package org.apache.spark.sql.delta.writercompat.guard

import org.apache.logging.log4j.LogManager
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.spark.sql.delta.DeltaUnsupportedOperationException
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.testing.TestTable

import scala.collection.mutable

/** What a user says against the feature is refused; what a session default says gives way. */
class ContradictionSuite extends TableSuite {

  private def with1(property: (String, String)) = s"'${property._1}' = '${property._2}'"

  /** A property, the sub-condition and the rule it breaks. */
  private val contradictions: Seq[((String, String), String, String)] = Seq(
    (("delta.columnMapping.mode", "name"), "WRONG_REQUIRED_TABLE_PROPERTY", "B3"),
    (("delta.columnMapping.mode", "none"), "WRONG_REQUIRED_TABLE_PROPERTY", "B3"),
    (("delta.enableIcebergCompatV2", "false"), "WRONG_REQUIRED_TABLE_PROPERTY", "B2"),
    (("delta.enableIcebergCompatV1", "true"), "WRONG_REQUIRED_TABLE_PROPERTY", "B5"),
    (("delta.enableDeletionVectors", "true"), "WRONG_REQUIRED_TABLE_PROPERTY", "B6"),
    (("delta.enableChangeDataCapture", "true"), "WRONG_REQUIRED_TABLE_PROPERTY", "B7"),
    (("delta.feature.deletionVectors", "supported"), "INCOMPATIBLE_TABLE_FEATURE", "A6"),
    (("delta.feature.rowTracking", "supported"), "INCOMPATIBLE_TABLE_FEATURE", "A6"),
    (("delta.feature.allowColumnDefaults", "supported"), "INCOMPATIBLE_TABLE_FEATURE", "A6")
  )

  private val ways: Seq[(String, (TestTable, (String, String)) => Unit)] = Seq(
    "CREATE TABLE" -> { (table, property) =>
      sql(
        s"CREATE TABLE ${table.name} ($columns) USING delta " +
          s"TBLPROPERTIES ($on, ${with1(property)})"
      )
    },
    "CREATE TABLE AS SELECT" -> { (table, property) =>
      sql(
        s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on, ${with1(property)}) " +
          s"AS $someRows"
      )
    },
    "save" -> { (table, property) =>
      frame.write
        .format("delta")
        .option("delta.enableIcebergWriterCompatV1", "true")
        .option(property._1, property._2)
        .save(table.folder.toString)
    },
    "a session default for the feature" -> { (table, property) =>
      byDefault(
        sql(
          s"CREATE TABLE ${table.name} ($columns) USING delta " +
            s"TBLPROPERTIES (${with1(property)})"
        )
      )
    }
  )

  for ((property, condition, rule) <- contradictions; (way, create) <- ways)
    test(s"${property._1} = ${property._2} beside the feature is refused: $way") {
      val table = byPath()
      val error = refusedFor(condition, rule, table)(create(table, property))
      assert(error.getMessage.contains(property._1.stripPrefix("delta.feature.")))
      assert(!java.nio.file.Files.exists(table.folder))
    }

  // Delta itself judges the columns by IcebergCompatV1 before any transaction begins.
  private val judgedByDelta = "delta.enableIcebergCompatV1"

  test(s"$judgedByDelta = true is refused by Delta when a compliant table is replaced") {
    val table = compliant()
    val version = table.log.version
    val error = intercept[DeltaUnsupportedOperationException] {
      sql(
        s"CREATE OR REPLACE TABLE ${table.name} ($columns) USING delta " +
          s"TBLPROPERTIES ($on, '$judgedByDelta' = 'true')"
      )
    }
    assert(error.getMessage.contains("IcebergCompatV1"))
    assert(table.log.version == version)
    assertCompliant(table)
  }

  for ((property, condition, rule) <- contradictions if property._1 != judgedByDelta)
    test(s"${property._1} = ${property._2} is refused when a compliant table is replaced") {
      val table = compliant()
      refusedFor(condition, rule, table) {
        sql(
          s"CREATE OR REPLACE TABLE ${table.name} ($columns) USING delta " +
            s"TBLPROPERTIES ($on, ${with1(property)})"
        )
      }
      assertCompliant(table)
    }

  // With column mapping on, Delta itself has its say on the mapping mode.
  for ((property, condition, rule) <- contradictions if property._1 != "delta.columnMapping.mode")
    test(s"${property._1} = ${property._2} is refused when a compliant table is altered") {
      val table = compliant()
      refusedFor(condition, rule, table) {
        sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES (${with1(property)})")
      }
      assertCompliant(table)
    }

  Seq("maybe", "", "1").foreach { value =>
    test(s"the property with the value '$value' is refused") {
      val table = byPath()
      val error = refused(table) {
        sql(
          s"CREATE TABLE ${table.name} ($columns) USING delta " +
            s"TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = '$value')"
        )
      }
      assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.INVALID_PROPERTY_VALUE")
    }
  }

  private val types: Seq[(String, String)] = Seq(
    "TINYINT" -> "a",
    "SMALLINT" -> "a",
    "VARIANT" -> "a",
    "STRUCT<x: ARRAY<SMALLINT>>" -> "a.x.element",
    "MAP<TINYINT, INT>" -> "a.key",
    "ARRAY<STRUCT<v: VARIANT>>" -> "a.element.v"
  )

  for ((dataType, place) <- types)
    test(s"a column of type $dataType is refused in a new table, at $place") {
      val table = byPath()
      val error = refusedFor("UNSUPPORTED_DATA_TYPE", "C7", table) {
        sql(s"CREATE TABLE ${table.name} (a $dataType) USING delta TBLPROPERTIES ($on)")
      }
      assert(error.getMessageParameters.get("column") == place)
    }

  private def default(key: String) =
    "spark.databricks.delta.properties.defaults." + key.stripPrefix("delta.")

  private val defaults: Seq[(String, String)] = Seq(
    "delta.columnMapping.mode" -> "name",
    "delta.columnMapping.mode" -> "none",
    "delta.enableIcebergCompatV2" -> "false",
    "delta.enableDeletionVectors" -> "true",
    "delta.enableRowTracking" -> "true",
    "delta.enableChangeDataFeed" -> "true",
    "delta.enableChangeDataCapture" -> "true",
    "delta.feature.deletionVectors" -> "supported",
    "delta.feature.rowTracking" -> "enabled"
  )

  for ((key, value) <- defaults) {
    test(s"the session default $key = $value gives way in SQL, with a warning") {
      val table = managed()
      val warnings = withConf(default(key) -> value) {
        warningsOf(sql(s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows"))
      }
      assertCompliant(table)
      assert(warnings.exists(_.contains(key)), warnings)
      assert(
        table.log.writerFeatures.intersect(
          Set("deletionVectors", "rowTracking", "changeDataFeed")
        ) == Set.empty
      )
    }

    test(s"the session default $key = $value gives way for a DataFrame") {
      val table = byPath()
      withConf(default(key) -> value) {
        frame.write
          .format("delta")
          .option("delta.enableIcebergWriterCompatV1", "true")
          .save(table.folder.toString)
      }
      assertCompliant(table)
    }
  }

  test("all contradicting session defaults give way at once, the harmless ones stay") {
    val table = managed()
    val all = (defaults.toMap ++ Map(
      "delta.feature.v2Checkpoint" -> "supported",
      "delta.logRetentionDuration" -> "interval 7 days"
    )).map { case (k, v) => default(k) -> v }
    withConf(all.toSeq: _*) {
      byDefault(sql(s"CREATE TABLE ${table.name} USING delta AS $someRows"))
    }
    assertCompliant(table)
    assert(table.log.writerFeatures("v2Checkpoint"))
    assert(table.log.properties.get("delta.logRetentionDuration").contains("interval 7 days"))
  }

  // Delta asks a property's own key first, whichever of the two a session default sets.
  test("an alternate key in the statement counts beside a session default for the property") {
    val feed = default("delta.enableChangeDataFeed")
    def create(table: TestTable, value: String): Unit = withConf(feed -> "true") {
      sql(
        s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on, " +
          s"'delta.enableChangeDataCapture' = '$value') AS $someRows"
      )
    }
    val (off, wanted) = (byPath(), byPath())
    create(off, "false")
    assertCompliant(off)
    sql(s"UPDATE ${off.name} SET name = 'u' WHERE id = 1")
    assert(count(off) == 2)
    refusedFor("WRONG_REQUIRED_TABLE_PROPERTY", "B7", wanted)(create(wanted, "true"))
  }

  test("a session default that fits makes no noise") {
    val table = managed()
    val warnings = withConf(default("delta.columnMapping.mode") -> "id") {
      warningsOf(sql(s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows"))
    }
    assertCompliant(table)
    assert(warnings == Nil)
  }

  test("the session defaults of a table without the feature are left alone") {
    val table = managed()
    withConf(
      default("delta.columnMapping.mode") -> "name",
      default("delta.enableDeletionVectors") -> "true"
    ) {
      sql(s"CREATE TABLE ${table.name} ($columns) USING delta")
    }
    assert(table.log.properties.get("delta.enableDeletionVectors").contains("true"))
    assert(table.log.properties.get("delta.columnMapping.mode").contains("name"))
  }

  /** The project's own warnings while `body` runs. */
  private def warningsOf(body: => Unit): Seq[String] = {
    val seen = mutable.Buffer.empty[String]
    val appender = new AbstractAppender("seen", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit =
        if (event.getLoggerName.contains("writercompat"))
          seen.synchronized { seen += event.getMessage.getFormattedMessage; () }
    }
    appender.start()
    val root = LogManager.getRootLogger.asInstanceOf[Logger]
    root.addAppender(appender)
    try body
    finally root.removeAppender(appender)
    seen.toSeq
  }
}
