package org.apache.spark.sql.delta.writercompat.publish

import io.delta.tables.DeltaTable
import org.apache.logging.log4j.LogManager
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.spark.sql.streaming.Trigger
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.kernel.{KernelTable, Record}
import org.icebergwritercompat.testing.{SharedSpark, TestTable}

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path}
import java.util.concurrent.ConcurrentLinkedQueue
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Tables that ask to be published after each commit. */
class PublishHookSuite extends PublishedSuite {

  private val publishing = s"$on, 'icebergWriterCompat.publish' = 'true'"

  private def created(table: TestTable = managed()): TestTable = {
    sql(
      s"CREATE TABLE ${table.name} (id INT, name STRING) USING delta TBLPROPERTIES ($publishing)"
    )
    table
  }

  private def set(table: TestTable, property: String, value: String): Unit =
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('$property' = '$value')")

  private def published(table: TestTable): Long =
    metadata(table).property("delta-version", "").toLong

  /** What `status` says is wrong, and what helps. */
  private def problems(table: TestTable): Seq[(String, String)] =
    status(table).get("problems").elements.asScala.toSeq.map { problem =>
      problem.get("text").asText -> problem.at("/remedy/command/0").asText
    }

  /** What the hook has logged meanwhile. */
  private def warnings(body: => Unit): Seq[String] = {
    val seen = new ConcurrentLinkedQueue[String]
    val appender = new AbstractAppender("seen", null, null, false, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = {
        seen.add(event.getMessage.getFormattedMessage)
        Option(event.getThrown).foreach(stack => seen.add(s"$stack\n"))
        ()
      }
    }
    appender.start()
    val logger = LogManager.getLogger(PublishHook.getClass.getName.stripSuffix("$"))
    logger.asInstanceOf[Logger].addAppender(appender)
    try body
    finally logger.asInstanceOf[Logger].removeAppender(appender)
    // No stack follows.
    assert(seen.asScala.forall(!_.contains("\n")), seen)
    seen.asScala.toSeq
  }

  test("every statement that commits publishes what it committed") {
    val table = created()
    assertPublished(table)
    Seq(
      s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
      s"UPDATE ${table.name} SET name = 'd' WHERE id = 1",
      s"DELETE FROM ${table.name} WHERE id = 2",
      s"MERGE INTO ${table.name} t USING (SELECT 3 AS id UNION ALL SELECT 4) s ON t.id = s.id " +
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new')",
      s"ALTER TABLE ${table.name} RENAME COLUMN name TO title",
      s"INSERT INTO ${table.name} VALUES (5, 'e')",
      s"OPTIMIZE ${table.name}",
      s"RESTORE TABLE ${table.name} TO VERSION AS OF 1",
      s"INSERT OVERWRITE ${table.name} VALUES (6, 'f')",
      s"TRUNCATE TABLE ${table.name}"
    ).foreach { statement =>
      withClue(statement) {
        assert(warnings(sql(statement)) == Nil)
        assert(published(table) == table.log.version)
      }
    }
    assertPublished(table)
    assert(snapshots(table).map(_.summary.get("delta-version").toLong).distinct.size > 6)
  }

  test("data frames, streams and builders publish too") {
    val table = created(byPath())
    val path = table.folder.toString
    val rows = spark.range(3).selectExpr("CAST(id AS INT) AS id", "'x' AS name")
    rows.write.format("delta").mode("append").save(path)
    assert(published(table) == table.log.version)
    val source = SharedSpark.freshFolder().toString
    rows.write.parquet(source)
    spark.readStream
      .schema(rows.schema)
      .parquet(source)
      .writeStream
      .format("delta")
      .option("checkpointLocation", SharedSpark.freshFolder().toString)
      .trigger(Trigger.AvailableNow())
      .start(path)
      .awaitTermination()
    assertPublished(table)
    assert(count(table) == 6)
    DeltaTable.forPath(spark, path).delete("id = 1")
    assertPublished(table)
  }

  test("a table made of a query, of itself or of another one is published when it is there") {
    val table = managed()
    def create(what: String, id: Int) = sql(
      s"$what TABLE ${table.name} USING delta TBLPROPERTIES ($publishing) AS SELECT $id AS id"
    )
    create("CREATE", 1)
    assertPublished(table)
    create("CREATE OR REPLACE", 2)
    assertPublished(table)
    // The property was not removed.
    sql(s"CREATE OR REPLACE TABLE ${table.name} USING delta AS SELECT 3 AS id")
    assertPublished(table)
    spark.sql("SELECT 4 AS id").write.format("delta").mode("overwrite").saveAsTable(table.name)
    assertPublished(table)
    val copy = managed()
    sql(s"CREATE TABLE ${copy.name} SHALLOW CLONE ${table.name}")
    assert(published(copy) == 0)
    assert(inIceberg(copy) == Seq("{4}"))
    assert(metadata(copy).uuid != metadata(table).uuid)
  }

  test(
    "a table that exists is published from the statement on that asks for it, until one ends it"
  ) {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (id INT) USING delta TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES (1)")
    assert(!Files.exists(table.folder.resolve("metadata")))
    set(table, "icebergWriterCompat.publish", "TRUE")
    assertPublished(table)
    sql(s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('icebergWriterCompat.publish')")
    sql(s"INSERT INTO ${table.name} VALUES (2)")
    assert(published(table) == 2)
    assert(inIceberg(table) == Seq("{1}"))
    set(table, "icebergWriterCompat.publish", "false")
    assert(published(table) == 2)
    set(table, "icebergWriterCompat.publish", "true")
    assertPublished(table)
  }

  test("commits of others are caught up with") {
    val table = created()
    new KernelTable(table.folder).append(Record(1, "kernel"))
    assert(published(table) == 0)
    sql(s"INSERT INTO ${table.name} VALUES (2, 'spark')")
    assertPublished(table)
    assert(snapshots(table).size == 2)
  }

  test("sessions that commit at the same time publish each commit once") {
    val table = created()
    Using.resource(new Threads(4)) { threads =>
      threads.all(4)((1 to 3).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'a')")))
    }
    assertPublished(table)
    assert(count(table) == 12)
    assert(snapshots(table).map(_.summary.get("delta-version").toLong) == (1L to 12L))
  }

  test("a commit stands though it cannot be published, and the next that can catches up") {
    def metadataFolder(table: TestTable): Path = table.folder.resolve("metadata")
    val failures = Seq[(String, TestTable => () => Unit)](
      "the newest metadata is there and cannot be opened" -> { table =>
        val newest = Path.of(java.net.URI.create(metadata(table).metadataFileLocation))
        val kept = Files.move(newest, newest.resolveSibling("kept"))
        Files.createDirectory(newest)
        () => {
          Files.delete(newest)
          Files.move(kept, newest)
          ()
        }
      },
      "the folder cannot be written to" -> { table =>
        val elsewhere = table.folder.resolveSibling(s"${table.folder.getFileName}-elsewhere")
        Files.move(metadataFolder(table), elsewhere)
        Files.writeString(metadataFolder(table), "no folder")
        () => {
          Files.delete(metadataFolder(table))
          Files.move(elsewhere, metadataFolder(table))
          ()
        }
      }
    )
    failures.foreach { case (what, break) =>
      withClue(what) {
        val table = created()
        sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
        val mend = break(table)
        val seen = warnings {
          (2 to 4).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'b')"))
        }
        assert(table.log.version == 4)
        assert(count(table) == 4)
        // Once, and not with each commit.
        assert(seen.size == 1, seen)
        assert(seen.head.contains(s"default.${table.name} is committed but not published"))
        val call = s"CALL iceberg_writer_compat.system.publish(table => 'default.${table.name}')"
        assert(seen.head.endsWith(s"Run: $call"))
        mend()
        val told = problems(table)
        assert(told.map(_._1.contains("but was not since version 1: ")) == Seq(true), told)
        assert(told.map(_._2) == Seq(s"iceberg-writer-compat publish 'default.${table.name}'"))
        assert(published(table) == 1)
        assert(warnings(sql(s"INSERT INTO ${table.name} VALUES (5, 'c')")) == Nil)
        assertPublished(table)
        assert(problems(table) == Nil)
        assert(snapshots(table).size == 5)
      }
    }
  }

  test("a process that made none of the commits says what the folder shows") {
    val table = created()
    // A writer that does not publish.
    new KernelTable(table.folder).append(Record(1, "kernel"))
    val lagging = "The table asks to be published after each commit, but was not"
    assert(problems(table).map(_._1) == Seq(s"$lagging since version 0"))
    val folder = table.folder.resolve("metadata")
    val permissions = Files.getPosixFilePermissions(folder)
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("r-xr-xr-x"))
    try assert(problems(table).head._1.endsWith("metadata cannot be written to by this user."))
    finally { Files.setPosixFilePermissions(folder, permissions); () }
    // Without the property, only the lag is reported.
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'false')")
    assert(status(table).get("lag").asLong == 2 && problems(table) == Nil)
  }

  test("a table may be published in the background") {
    val table = withConf(PublishHook.AsyncConf -> "true") {
      val table = created()
      (1 to 5).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'a')"))
      table
    }
    assert(PublishHook.drain())
    assertPublished(table)
    val seen = warnings(withConf(PublishHook.AsyncConf -> "yes") {
      sql(s"INSERT INTO ${table.name} VALUES (6, 'b')")
    })
    assert(seen.exists(_.contains("SET spark.icebergWriterCompat.publish.async=true")))
    assert(table.log.version == 6)
  }

  private def refusedValue(tables: TestTable*)(body: => Any): IcebergWriterCompatException = {
    val error = refused(tables: _*)(body)
    assert(
      error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.INVALID_PROPERTY_VALUE",
      error.getMessage
    )
    error
  }

  test("what would have no effect is refused where it is set") {
    val table = compliant()
    Seq(
      "icebergWriterCompat.publish" -> "yes",
      "icebergWriterCompat.Publish" -> "true",
      "icebergwritercompat.publishing" -> "true",
      "icebergWriterCompat.publish.table" -> "",
      "icebergWriterCompat.publish.table" -> "one",
      "icebergWriterCompat.publish.table" -> "a.b c"
    ).foreach { case (key, value) =>
      val error = refusedValue(table)(set(table, key, value))
      assert(error.getMessageParameters.get("property") == key)
      val fix = error.getMessageParameters.get("fix")
      sql(fix)
      sql(
        s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES IF EXISTS " +
          "('icebergWriterCompat.publish', 'icebergWriterCompat.publish.table')"
      )
    }
  }

  private val asOption = "icebergWriterCompat.publish" -> "true"

  test("asked for as an option, it works where that creates a table by its name") {
    val feature = "delta.enableIcebergWriterCompatV1" -> "true"
    val numbers = spark.range(2).toDF("id")
    val doors = Seq[TestTable => Any](
      t =>
        numbers.write
          .format("delta")
          .options(Map(feature, "ICEBERGWriterCompat.publish" -> "true"))
          .saveAsTable(t.name),
      t => numbers.writeTo(t.name).using("delta").options(Map(feature, asOption)).create(),
      t =>
        numbers
          .writeTo(t.name)
          .using("delta")
          .tableProperty(feature._1, feature._2)
          .tableProperty(asOption._1, asOption._2)
          .create(),
      t => {
        sql(
          s"CREATE TABLE ${t.name} (id BIGINT) USING delta " +
            s"OPTIONS ('icebergWriterCompat.publish' = 'true') TBLPROPERTIES ($on)"
        )
        sql(s"INSERT INTO ${t.name} VALUES (0), (1)")
      },
      t => {
        DeltaTable
          .create(spark)
          .tableName(t.name)
          .addColumn("id", "BIGINT")
          .property(feature._1, feature._2)
          .property(asOption._1, asOption._2)
          .execute()
        numbers.write.insertInto(t.name)
      }
    )
    doors.zipWithIndex.foreach { case (door, number) =>
      withClue(s"door $number: ") {
        val table = managed()
        door(table)
        assert(table.log.properties.get(asOption._1).contains("true"))
        assertPublished(table)
        assert(count(table) == 2)
      }
    }
    val wrong = managed()
    refusedValue(wrong)(
      numbers.write
        .format("delta")
        .options(Map(feature, "icebergWriterCompat.publich" -> "true"))
        .saveAsTable(wrong.name)
    )
  }

  test("asked for as an option of a write that cannot set it, it is refused") {
    val table = numbers()
    val (path, checkpoint) = (byPath(), byPath())
    val rows = spark.range(2).selectExpr("id", "'x' AS name")
    val source = SharedSpark.freshFolder().toString
    rows.write.parquet(source)
    val doors = Seq[() => Any](
      () =>
        rows.write
          .format("delta")
          .option("delta.enableIcebergWriterCompatV1", "true")
          .option(asOption._1, asOption._2)
          .save(path.folder.toString),
      () =>
        rows.write.format("delta").mode("append").options(Map(asOption)).saveAsTable(table.name),
      () => rows.write.format("delta").options(Map(asOption)).insertInto(table.name),
      () => rows.writeTo(table.name).options(Map(asOption)).append(),
      () => rows.writeTo(table.name).options(Map(asOption)).overwritePartitions(),
      () =>
        spark.readStream
          .schema(rows.schema)
          .parquet(source)
          .writeStream
          .format("delta")
          .option("checkpointLocation", checkpoint.folder.toString)
          .option(asOption._1, asOption._2)
          .trigger(Trigger.AvailableNow())
          .start(path.folder.toString)
    )
    doors.zipWithIndex.foreach { case (door, number) =>
      withClue(s"door $number: ") {
        val error = refusedValue(table, path)(door())
        assert(error.getMessageParameters.get("property") == asOption._1)
      }
    }
    val odd = SharedSpark.freshFolder().resolve("a`b")
    compliant(TestTable(s"delta.`${odd.toString.replace("`", "``")}`", odd))
    val refusal = refusedValue(table) {
      frame.write.format("delta").mode("append").options(Map(asOption)).save(odd.toString)
    }
    assert(refusal.getMessageParameters.get("fix").contains("/a``b` SET "))
    val fix = refusedValue(table)(doors(1)()).getMessageParameters.get("fix")
    sql(fix)
    assertPublished(table)
  }

  test("a table without the feature is told what it lacks") {
    val existing = plain()
    val error = refusedValue(existing)(set(existing, "icebergWriterCompat.publish", "true"))
    assert(error.getMessage.contains("delta.enableIcebergWriterCompatV1"))
    val table = managed()
    refusedValue(table)(
      sql(
        s"CREATE TABLE ${table.name} (id INT) USING delta " +
          "TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')"
      )
    )
    byDefault(
      sql(
        s"CREATE TABLE ${table.name} (id INT) USING delta " +
          "TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')"
      )
    )
    assertPublished(table)
  }

  test("a table that cannot be published is refused where that is asked for") {
    val table = managed()
    def create(properties: String) = sql(
      s"CREATE TABLE ${table.name} (a INT, p BINARY) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($properties)"
    )
    def condition(body: => Any) = refused(table)(body).getCondition
    val expected = "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.PARTITION_TYPE"
    assert(condition(create(publishing)) == expected)
    create(on)
    assert(condition(set(table, "icebergWriterCompat.publish", "true")) == expected)
  }

  test("a table that leaves the feature is not published any more") {
    val table = created()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    assert(!table.log.properties.contains("icebergWriterCompat.publish"))
    val seen = warnings(sql(s"INSERT INTO ${table.name} VALUES (2, 'b')"))
    assert(seen == Nil)
    assert(published(table) == 1)
    assert(inIceberg(table) == Seq("{1, a}"))
  }
}
