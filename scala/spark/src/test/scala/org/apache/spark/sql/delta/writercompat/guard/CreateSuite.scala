package org.apache.spark.sql.delta.writercompat.guard

import io.delta.tables.DeltaTable
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.streaming.Trigger
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.testing.{Compliance, TestTable}

/** One property is enough, by whatever way a table comes to be. */
class CreateSuite extends TableSuite {

  private val property = "delta.enableIcebergWriterCompatV1"

  /** Ways that end with a table of two rows. */
  private val ways: Seq[(String, TestTable => Unit)] = Seq(
    "CREATE TABLE" -> { table =>
      sql(s"CREATE TABLE ${table.name} ($columns) USING delta TBLPROPERTIES ($on)")
      insert(table)
    },
    "CREATE TABLE IF NOT EXISTS" -> { table =>
      sql(s"CREATE TABLE IF NOT EXISTS ${table.name} ($columns) USING delta TBLPROPERTIES ($on)")
      insert(table)
    },
    "CREATE TABLE AS SELECT" -> { table =>
      sql(s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows")
    },
    "CREATE OR REPLACE TABLE" -> { table =>
      sql(s"CREATE OR REPLACE TABLE ${table.name} ($columns) USING delta TBLPROPERTIES ($on)")
      insert(table)
    },
    "CREATE OR REPLACE TABLE AS SELECT" -> { table =>
      sql(s"CREATE OR REPLACE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows")
    },
    "CREATE TABLE PARTITIONED BY" -> { table =>
      sql(
        s"CREATE TABLE ${table.name} USING delta PARTITIONED BY (day, name) " +
          s"TBLPROPERTIES ($on) AS $someRows"
      )
    },
    "CREATE TABLE CLUSTER BY" -> { table =>
      sql(
        s"CREATE TABLE ${table.name} USING delta CLUSTER BY (day) TBLPROPERTIES ($on) " +
          s"AS $someRows"
      )
    },
    "the property in other letters" -> { table =>
      sql(
        s"CREATE TABLE ${table.name} USING delta " +
          s"TBLPROPERTIES ('delta.ENABLEICEBERGWRITERCOMPATV1' = 'True') AS $someRows"
      )
    },
    "all three properties" -> { table =>
      sql(
        s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on, " +
          "'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'id') " +
          s"AS $someRows"
      )
    },
    "IcebergCompatV2 without a mapping mode" -> { table =>
      sql(
        s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on, " +
          s"'delta.enableIcebergCompatV2' = 'true') AS $someRows"
      )
    },
    "the feature by its own property beside" -> { table =>
      sql(
        s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on, " +
          s"'delta.feature.icebergWriterCompatV1' = 'supported') AS $someRows"
      )
    },
    "DeltaTable.create" -> { table =>
      DeltaTable
        .create(spark)
        .tableName(table.name)
        .addColumns(StructType.fromDDL(columns))
        .property(property, "true")
        .execute()
      insert(table)
    },
    "DeltaTable.createOrReplace" -> { table =>
      DeltaTable
        .createOrReplace(spark)
        .tableName(table.name)
        .addColumns(StructType.fromDDL(columns))
        .property(property, "true")
        .execute()
      insert(table)
    },
    "saveAsTable" -> { table =>
      frame.write.format("delta").option(property, "true").saveAsTable(table.name)
    },
    "saveAsTable with IcebergCompatV2 and without a mapping mode" -> { table =>
      frame.write
        .format("delta")
        .option(property, "true")
        .option("delta.enableIcebergCompatV2", "true")
        .saveAsTable(table.name)
    },
    "saveAsTable, overwriting nothing" -> { table =>
      frame.write.format("delta").mode("overwrite").option(property, "true").saveAsTable(table.name)
    },
    "DataFrameWriterV2.create" -> { table =>
      frame.writeTo(table.name).using("delta").tableProperty(property, "true").create()
    },
    "DataFrameWriterV2.createOrReplace" -> { table =>
      frame.writeTo(table.name).using("delta").tableProperty(property, "true").createOrReplace()
    }
  )

  private val waysByPath: Seq[(String, TestTable => Unit)] = Seq(
    "CREATE TABLE by path" -> { table =>
      sql(s"CREATE TABLE ${table.name} ($columns) USING delta TBLPROPERTIES ($on)")
      insert(table)
    },
    "CREATE TABLE AS SELECT by path" -> { table =>
      sql(s"CREATE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows")
    },
    "save" -> { table =>
      frame.write.format("delta").option(property, "true").save(table.folder.toString)
    },
    "save, partitioned" -> { table =>
      frame.write
        .format("delta")
        .option(property, "true")
        .partitionBy("day")
        .save(table.folder.toString)
    },
    "save, then append" -> { table =>
      val (first, second) = (frame.where("id = 0"), frame.where("id = 1"))
      first.write.format("delta").option(property, "true").save(table.folder.toString)
      second.write.format("delta").mode("append").save(table.folder.toString)
    },
    "DeltaTable.create by location" -> { table =>
      DeltaTable
        .create(spark)
        .location(table.folder.toString)
        .addColumns(StructType.fromDDL(columns))
        .property(property, "true")
        .execute()
      insert(table)
    }
  )

  private val waysByDefault: Seq[(String, TestTable => Unit)] = Seq(
    "CREATE TABLE by default" -> { table =>
      byDefault(sql(s"CREATE TABLE ${table.name} ($columns) USING delta"))
      insert(table)
    },
    "CREATE TABLE AS SELECT by default" -> { table =>
      byDefault(sql(s"CREATE TABLE ${table.name} USING delta AS $someRows"))
    },
    "IcebergCompatV2 by default and without a mapping mode" -> { table =>
      byDefault(
        sql(
          s"CREATE TABLE ${table.name} USING delta " +
            s"TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true') AS $someRows"
        )
      )
    },
    "save by default" -> { table =>
      byDefault(frame.write.format("delta").save(table.folder.toString))
    },
    "DataFrameWriterV2 by default" -> { table =>
      byDefault(frame.writeTo(table.name).using("delta").create())
    },
    "a stream by default" -> { table =>
      val source = plain()
      byDefault {
        spark.readStream
          .table(source.name)
          .writeStream
          .format("delta")
          .option("checkpointLocation", byPath().folder.toString)
          .trigger(Trigger.AvailableNow())
          .start(table.folder.toString)
          .awaitTermination()
      }
    }
  )

  private def check(way: String, table: => TestTable)(create: TestTable => Unit): Unit =
    test(way) {
      val created = table
      create(created)
      assertCompliant(created)
      assert(count(created) == 2)
      assert(
        rows(
          s"SELECT name, s.y.z, tags[0].v, attrs['q'].b[0], deep[0][1] " +
            s"FROM ${created.name} WHERE id = 1"
        ) == Set("[n1,2026-01-01 00:00:00.0,1,2026-01-02,2]")
      )
      // Every folder and every file of a table that was right at once is right.
      assert(created.log.liveFiles.nonEmpty)
    }

  ways.foreach { case (way, create) => check(way, managed())(create) }
  waysByPath.foreach { case (way, create) => check(way, byPath())(create) }
  waysByDefault.foreach { case (way, create) => check(way, byPath())(create) }

  test("CREATE TABLE LIKE") {
    val source = compliant()
    val copy = managed()
    sql(s"CREATE TABLE ${copy.name} LIKE ${source.name}")
    insert(copy)
    assertCompliant(copy)
  }

  test("columns get ids and names in the order of the log, nested ids below their names") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, m MAP<STRING, ARRAY<STRUCT<x: INT>>>) USING delta " +
        s"TBLPROPERTIES ($on)"
    )
    assertCompliant(table)
    val fields = table.log.columns.flatMap(_.below)
    assert(fields.map(_._1) == Seq("a", "m", "m.value.element.x"))
    val ids = fields.flatMap { case (_, field) => (field.id +: field.nestedIds).flatten }
    assert(ids.sorted == (1L to 6L))
    assert(maxColumnId(table) == 6)
    assert(table.log.readerVersion == 2)
    assert(table.log.version == 0)
  }

  test("a reader feature makes it reader version 3, with columnMapping for readers") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (t TIMESTAMP_NTZ) USING delta TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES (TIMESTAMP_NTZ'2026-01-01 00:00:00')")
    assertCompliant(table)
    assert(table.log.readerVersion == 3)
    assert(table.log.readerFeatures == Set("columnMapping", "timestampNtz"))
  }

  private val modes: Seq[(String, Seq[(String, String)])] = Seq(
    "none" -> Nil,
    "name" -> Seq("delta.columnMapping.mode" -> "name"),
    "id" -> Seq("delta.columnMapping.mode" -> "id"),
    "compliant" -> Seq(property -> "true")
  )

  private val replacements: Seq[(String, TestTable => Unit)] = Seq(
    "CREATE OR REPLACE TABLE" -> { table =>
      sql(s"CREATE OR REPLACE TABLE ${table.name} ($columns) USING delta TBLPROPERTIES ($on)")
      insert(table)
    },
    "REPLACE TABLE" -> { table =>
      sql(
        s"REPLACE TABLE ${table.name} ($columns, more ARRAY<INT>) USING delta " +
          s"TBLPROPERTIES ($on)"
      )
      sql(s"INSERT INTO ${table.name} SELECT *, array(1) FROM ($someRows)")
    },
    "CREATE OR REPLACE TABLE AS SELECT" -> { table =>
      sql(s"CREATE OR REPLACE TABLE ${table.name} USING delta TBLPROPERTIES ($on) AS $someRows")
    },
    "CREATE OR REPLACE TABLE AS SELECT from itself" -> { table =>
      sql(
        s"CREATE OR REPLACE TABLE ${table.name} USING delta TBLPROPERTIES ($on) " +
          s"AS SELECT * FROM ${table.name}"
      )
    },
    "DataFrameWriterV2.replace" -> { table =>
      frame.writeTo(table.name).using("delta").tableProperty(property, "true").replace()
    },
    "a session default" -> { table =>
      byDefault(sql(s"CREATE OR REPLACE TABLE ${table.name} USING delta AS $someRows"))
    }
  )

  for ((mode, properties) <- modes; (way, replace) <- replacements)
    test(s"$way over a table of mode $mode") {
      val table = plain(properties)
      replace(table)
      assertCompliant(table)
      assert(count(table) == 2)
      assert(rows(s"SELECT attrs['q'].a FROM ${table.name}") == Set("[1]"))
    }

  test("replacing a table without the property keeps the feature") {
    val table = compliant()
    val before = maxColumnId(table)
    sql(s"CREATE OR REPLACE TABLE ${table.name} (a INT, l ARRAY<INT>) USING delta")
    sql(s"INSERT INTO ${table.name} VALUES (1, array(1))")
    assertCompliant(table)
    assert(maxColumnId(table) >= before)
    frame.writeTo(table.name).using("delta").replace()
    assertCompliant(table)
  }

  // Delta takes properties from a DataFrame's options only where it makes a table.
  test("overwriting a table by saveAsTable leaves its properties as they are") {
    val table = plain()
    def overwrite(key: String, value: String): Unit = frame.write
      .format("delta")
      .mode("overwrite")
      .option("overwriteSchema", "true")
      .option(key, value)
      .saveAsTable(table.name)
    overwrite("delta.logRetentionDuration", "interval 7 days")
    overwrite(property, "true")
    assert(table.log.properties == Map.empty)
    assert(count(table) == 2)
  }

  test("overwriting a compliant table by saveAsTable keeps it compliant") {
    val table = compliant()
    frame
      .selectExpr("*", "array(map('k', 1)) AS more")
      .write
      .format("delta")
      .mode("overwrite")
      .option("overwriteSchema", "true")
      .saveAsTable(table.name)
    assertCompliant(table)
    assert(count(table) == 2)
  }

  test("a table without the property is as Delta alone makes it") {
    val table = plain()
    assert((table.log.readerVersion, table.log.writerVersion) == ((1, 2)))
    assert(table.log.properties == Map.empty)
    assert(table.log.columns.flatMap(_.below).forall { case (_, field) =>
      field.id.isEmpty && field.physicalName.isEmpty
    })
    table.log.liveFiles.keys.foreach { file =>
      assert(Compliance.footer(file).containsField("name"))
    }
  }

  test("the feature listed without the property binds nothing, and stays listed") {
    val table = plain(Seq("delta.feature.icebergWriterCompatV1" -> "supported"), rows = false)
    assert(table.log.writerFeatures("icebergWriterCompatV1"))
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (b SMALLINT)")
    assert(table.log.writerFeatures("icebergWriterCompatV1"))
  }
}
