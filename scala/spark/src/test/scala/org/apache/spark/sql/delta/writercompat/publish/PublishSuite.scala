package org.apache.spark.sql.delta.writercompat.publish

import org.apache.iceberg.data.IcebergGenerics
import org.apache.iceberg.types.Type.TypeID
import org.apache.spark.sql.delta.stats.StatisticsCollection
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{ElsewhereFileSystem, NotingLogStore, SharedSpark, TestTable}
import org.apache.spark.sql.delta.writercompat.read.DeltaTables

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Tables published, and read back by Iceberg's own reader. */
class PublishSuite extends PublishedSuite {

  test("a table of every kind of nesting is read back whole, and again is a no-op") {
    val table = compliant()
    val first = publish(table)
    assertPublished(table)
    assert(operations(table) == Seq("append"))
    assert(first.get("files_added").asLong == table.log.liveFiles.size)
    assert(first.get("previous_version").isNull)
    assert(first.get("snapshot_id").asLong == metadata(table).currentSnapshot.snapshotId)
    assert(first.get("metadata_location").asText.endsWith("/metadata/v1.metadata.json"))
    val again = publish(table)
    assert(again.get("metadata_location") == first.get("metadata_location"))
    assert(again.get("snapshots").asInt == 0)
    assert(again.get("previous_version").asLong == 0)
  }

  test("an empty table has metadata and no snapshot") {
    val table = numbers()
    assert(status(table).get("published_version").isNull)
    assert(publish(table).get("snapshot_id").isNull)
    assert(metadata(table).currentSnapshot == null)
    assertPublished(table)
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    assert(status(table).get("lag").asLong == 1)
    publish(table)
    assertPublished(table)
  }

  test("each commit becomes a snapshot that says what the commit did, and when") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} SELECT id, concat('n', id) FROM range(0, 10, 1, 1)")
    publish(table)
    Seq(
      s"INSERT INTO ${table.name} VALUES (100, 'a'), (101, null)",
      s"UPDATE ${table.name} SET name = 'b' WHERE id = 1",
      s"DELETE FROM ${table.name} WHERE id = 2",
      s"DELETE FROM ${table.name} WHERE id >= 100",
      s"MERGE INTO ${table.name} t USING (SELECT 3 AS id UNION ALL SELECT 200) s ON t.id = s.id " +
        "WHEN MATCHED THEN UPDATE SET name = 'm' WHEN NOT MATCHED THEN INSERT (id, name) " +
        "VALUES (s.id, 'new')",
      s"INSERT INTO ${table.name} VALUES (300, 'c')",
      s"OPTIMIZE ${table.name}",
      s"RESTORE TABLE ${table.name} TO VERSION AS OF 2"
    ).foreach(sql)
    val last = table.log.version
    publish(table)
    assertPublished(table)
    assert(
      operations(table) == Seq(
        "append",
        "append",
        "overwrite",
        "overwrite",
        "delete",
        "overwrite",
        "append",
        "replace",
        "overwrite"
      )
    )
    val versions = snapshots(table).map(_.summary.get("delta-version").toLong)
    assert(versions == (1L to last))
    snapshots(table).zip(versions).foreach { case (snapshot, version) =>
      val seen = spark.read.format("delta").option("versionAsOf", version).table(table.name)
      assert(inIceberg(table, Some(snapshot.snapshotId)) == inDelta(seen))
    }
    val history = metadata(table).snapshotLog.asScala.map(_.snapshotId)
    assert(history == snapshots(table).map(_.snapshotId))
    val times = snapshots(table).map(_.timestampMillis)
    assert(times == times.sorted)
    val committed = spark
      .sql(s"DESCRIBE HISTORY ${table.name}")
      .select("version", "timestamp")
      .collect()
      .map(row => row.getLong(0) -> row.getTimestamp(1).getTime)
      .toMap
    versions.zip(times).foreach { case (version, time) => assert(committed(version) == time) }
  }

  test("in-commit timestamps are those of the snapshots") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT) USING delta TBLPROPERTIES ($on, " +
        "'delta.enableInCommitTimestamps' = 'true')"
    )
    publish(table)
    sql(s"INSERT INTO ${table.name} VALUES (1)")
    publish(table)
    val info = table.log.actions(table.log.version).head._2
    assert(snapshots(table).last.timestampMillis == info.get("inCommitTimestamp").asLong)
  }

  test("schemas evolve by id, and those of before stay with their snapshots") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, gone STRING, s STRUCT<x: INT, y: INT>, " +
        "l ARRAY<STRUCT<k: INT>>, m MAP<STRING, INT>, t TIMESTAMP) USING delta " +
        s"TBLPROPERTIES ($on, 'delta.enableTypeWidening' = 'true')"
    )
    sql(
      s"INSERT INTO ${table.name} VALUES (1, 'g', named_struct('x', 1, 'y', 2), " +
        "array(named_struct('k', 3)), map('q', 4), TIMESTAMP'2026-01-01 00:00:00.123456')"
    )
    publish(table)
    assertPublished(table)
    val before = snapshots(table).head
    Seq(
      "RENAME COLUMN a TO b",
      "RENAME COLUMN s.x TO z",
      "RENAME COLUMN t TO at",
      "DROP COLUMN gone",
      "DROP COLUMN s.y",
      "ADD COLUMNS (gone INT COMMENT 'again', s.y STRING, l.element.n DATE)",
      "ALTER COLUMN b TYPE BIGINT",
      "ALTER COLUMN at FIRST"
    ).foreach { change =>
      sql(s"ALTER TABLE ${table.name} $change")
      publish(table)
      assertPublished(table)
    }
    sql(
      s"INSERT INTO ${table.name} (b, gone, at) VALUES (5000000000, 7, " +
        "TIMESTAMP'2026-01-02 00:00:00')"
    )
    publish(table)
    assertPublished(table)
    assert(iceberg(table).schema.findField("gone").doc == "again")
    val properties = metadata(table).properties.asScala.keySet
    assert(properties("write.metadata.metrics.column.at"))
    assert(!properties("write.metadata.metrics.column.t"))
    val old = iceberg(table).schemas.get(before.schemaId)
    assert(old.columns.asScala.map(_.name) == Seq("a", "gone", "s", "l", "m", "t"))
    assert(metadata(table).snapshots.size == 2)
  }

  test("a restored schema is the one that was, not a new one") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    publish(table)
    val (was, version) = (metadata(table).currentSchemaId, table.log.version)
    sql(s"ALTER TABLE ${table.name} ADD COLUMN more INT")
    publish(table)
    assert(metadata(table).currentSchemaId != was)
    sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF $version")
    publish(table)
    assert(metadata(table).currentSchemaId == was)
    assertPublished(table)
  }

  private val partitions = Seq(
    "INT" -> Seq("1", "-2", "null"),
    "BIGINT" -> Seq("5000000000", "null"),
    "BOOLEAN" -> Seq("true", "false", "null"),
    "FLOAT" -> Seq("CAST('1.1' AS FLOAT)", "CAST('NaN' AS FLOAT)"),
    "DOUBLE" -> Seq("1.0E-5D", "CAST('-Infinity' AS DOUBLE)"),
    "STRING" -> Seq("'a b'", "'Zürich/北%20'", "'x=1'", "null", s"'${"long" * 30}'"),
    "DATE" -> Seq("DATE'2026-11-18'", "DATE'0001-01-01'", "DATE'9999-12-31'", "null"),
    "TIMESTAMP" -> Seq(
      "TIMESTAMP'2026-11-18 12:00:00.123456 Europe/Zurich'",
      "TIMESTAMP'1899-12-31 23:59:59Z'",
      "null"
    ),
    "TIMESTAMP_NTZ" -> Seq("TIMESTAMP_NTZ'2026-03-29 02:30:00'", "null")
  )

  partitions.foreach { case (dataType, values) =>
    test(s"a table partitioned by $dataType is read back whole, after a delete too") {
      val table = managed()
      sql(
        s"CREATE TABLE ${table.name} (a INT, p $dataType) USING delta PARTITIONED BY (p) " +
          s"TBLPROPERTIES ($on)"
      )
      sql(s"INSERT INTO ${table.name} VALUES (0, ${values.head})")
      publish(table)
      values.zipWithIndex.foreach { case (value, i) =>
        sql(s"INSERT INTO ${table.name} VALUES (${i * 2 + 1}, $value), (${i * 2 + 2}, $value)")
      }
      publish(table)
      assertPublished(table)
      sql(s"DELETE FROM ${table.name} WHERE a IN (0, 1)")
      sql(s"DELETE FROM ${table.name} WHERE a > 2")
      publish(table)
      assertPublished(table)
      assert(metadata(table).spec.fields.asScala.map(_.name) == Seq("p"))
      assert(metadata(table).spec.fields.asScala.map(_.fieldId) == Seq(1000))
    }
  }

  test("binary partitions are refused by name, and nothing is written") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, p BINARY) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($on)"
    )
    val error = refused(table)(publish(table))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.PARTITION_TYPE")
    assert(error.getMessageParameters.get("column") == "p")
  }

  test("a table without the feature is refused, and nothing is written") {
    val table = plain()
    val error = refused(table)(publish(table))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.FEATURE_OFF")
    assert(error.remedy.command == Seq(s"iceberg-writer-compat enable 'default.${table.name}'"))
  }

  test("a table that is replaced with partitions of its own keeps what was readable") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b')")
    publish(table)
    val before = snapshots(table).head
    sql(
      s"CREATE OR REPLACE TABLE ${table.name} USING delta PARTITIONED BY (name) " +
        s"TBLPROPERTIES ($on) AS SELECT 'x' AS name, 7L AS id"
    )
    publish(table)
    assertPublished(table)
    sql(s"DELETE FROM ${table.name}")
    publish(table)
    assertPublished(table)
    assert(inIceberg(table, Some(before.snapshotId)).size == 2)
  }

  test("a partition column replaced by one of the same name is another one") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, p INT) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 1)")
    publish(table)
    sql(
      s"CREATE OR REPLACE TABLE ${table.name} (a INT, p BIGINT) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (2, 5000000000)")
    publish(table)
    assertPublished(table)
  }

  test("files of odd names are found") {
    val table = byPath()
    sql(
      s"CREATE TABLE ${table.name} (a INT, p STRING) USING delta PARTITIONED BY (p) " +
        s"TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a b%c#d?e+f=g'), (2, '100%'), (3, 'ü')")
    publish(table)
    assertPublished(table)
  }

  private def hint(table: TestTable): Path = table.folder.resolve("metadata/version-hint.text")

  test("after a crash between metadata and hint, the next run completes the hint") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    publish(table)
    sql(s"INSERT INTO ${table.name} VALUES (2, 'b')")
    publish(table)
    assert(Files.readString(hint(table)) == "2")
    Seq(() => Files.writeString(hint(table), "1"), () => Files.delete(hint(table))).foreach {
      crash =>
        crash()
        publish(table)
        assert(Files.readString(hint(table)) == "2")
        assertPublished(table)
    }
    Files.delete(hint(table))
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    publish(table)
    assert(Files.readString(hint(table)) == "3")
    assertPublished(table)
  }

  test("what a crash left before the metadata does not show") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    val folder = Files.createDirectories(table.folder.resolve("metadata"))
    Files.writeString(folder.resolve("0a1b-m0.avro"), "half")
    Files.writeString(folder.resolve("0a1b.metadata.json"), "{")
    publish(table)
    assertPublished(table)
    assert(snapshots(table).size == 1)
  }

  test("a log that was cleaned up leads to the same rows, in one snapshot") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    publish(table)
    (2 to 14).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'b')"))
    sql(s"DELETE FROM ${table.name} WHERE id IN (1, 5)")
    sql(s"ALTER TABLE ${table.name} ADD COLUMN more INT")
    val log = table.folder.resolve("_delta_log")
    assert(Files.exists(log.resolve(f"${10}%020d.checkpoint.parquet")))
    val expected = inDelta(spark.table(table.name))
    (0 until 10).foreach { version =>
      Seq(f"$version%020d.json", f".$version%020d.json.crc", f"$version%020d.crc").foreach { name =>
        Files.deleteIfExists(log.resolve(name))
      }
    }
    publish(table)
    assert(inIceberg(table) == expected)
    assert(snapshots(table).size == 2)
    assert(metadata(table).property("delta-version", "") == "16")
  }

  test("a file that is added again is there once") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b')")
    publish(table)
    val delta = DeltaTables.find(spark, table.name)
    StatisticsCollection.recompute(spark, delta.deltaLog, delta.catalogTable)
    assert(table.log.lastKinds("add") && !table.log.lastKinds("remove"))
    publish(table)
    assertPublished(table)
  }

  test("publishers that race publish each commit once") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (0, 'a')")
    publish(table)
    (1 to 6).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'b')"))
    val results = Using.resource(new Threads(4)) { threads =>
      threads.all(4)(publish(table))
    }
    assertPublished(table)
    assert(results.map(_.get("snapshots").asInt).sum == 6)
    assert(results.forall(_.get("delta_version").asLong == table.log.version))
    assert(snapshots(table).map(_.summary.get("delta-version").toLong) == (1L to 7L))
  }

  test("publishers that race for the first time publish the table once") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (0, 'a')")
    val results = Using.resource(new Threads(3))(_.all(3)(publish(table)))
    assertPublished(table)
    assert(results.map(_.get("snapshots").asInt).sum == 1)
    assert(snapshots(table).size == 1)
  }

  test("where the files are not on a local disk, publishers that race publish each commit once") {
    withConf(ElsewhereFileSystem.confs: _*) {
      val folder = SharedSpark.freshFolder()
      val table = TestTable(s"delta.`elsewhere:$folder`", folder)
      numbers(table, "PARTITIONED BY (name)")
      sql(s"INSERT INTO ${table.name} VALUES (0, 'a')")
      val first = Using.resource(new Threads(3))(_.all(3)(publish(table)))
      assert(first.map(_.get("snapshots").asInt).sum == 1)
      (1 to 4).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'b')"))
      sql(s"DELETE FROM ${table.name} WHERE id = 0")
      val results = Using.resource(new Threads(4))(_.all(4)(publish(table)))
      assertPublished(table)
      assert(results.map(_.get("snapshots").asInt).sum == 5)
      assert(
        metadata(table).snapshots.asScala
          .map(_.manifestListLocation)
          .forall(_.contains("elsewhere:"))
      )
      assert(Files.readString(hint(table)) == "6")
    }
  }

  Seq("INSERT INTO %s VALUES (9, 'z')", "DELETE FROM %s WHERE id = 0").foreach { statement =>
    test(
      s"a publisher overtaken before it has written the hint publishes nothing twice: $statement"
    ) {
      withConf(ElsewhereFileSystem.confs: _*) {
        val folder = SharedSpark.freshFolder()
        val table = TestTable(s"delta.`elsewhere:$folder`", folder)
        numbers(table, "PARTITIONED BY (name)")
        sql(s"INSERT INTO ${table.name} VALUES (0, 'a')")
        publish(table)
        sql(s"INSERT INTO ${table.name} VALUES (1, 'b')")
        sql(statement.format(table.name))
        sql(s"INSERT INTO ${table.name} VALUES (2, 'b')")
        var other = 0
        ElsewhereFileSystem.after("v2.metadata.json") {
          other = publish(table).get("snapshots").asInt
        }
        val own = publish(table).get("snapshots").asInt
        assert((own, other) == ((1, 2)))
        assertPublished(table)
        assert(snapshots(table).map(_.summary.get("delta-version").toLong) == (1L to 4L))
        snapshots(table).foreach { snapshot =>
          val version = snapshot.summary.get("delta-version")
          val seen = spark.read.format("delta").option("versionAsOf", version).table(table.name)
          assert(inIceberg(table, Some(snapshot.snapshotId)) == inDelta(seen))
        }
        assert(Files.readString(hint(table)) == "4")
      }
    }
  }

  test("Delta's log store is asked for no file outside of the log") {
    withConf(ElsewhereFileSystem.confs: _*) {
      val folder = SharedSpark.freshFolder()
      val table = TestTable(s"delta.`elsewhere:$folder`", folder)
      val (written, read) = NotingLogStore.of("elsewhere") {
        numbers(table)
        sql(s"INSERT INTO ${table.name} VALUES (0, 'a')")
        publish(table)
        sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')")
        sql(s"UPDATE ${table.name} SET name = 'b'")
        IcebergWriterCompat.publishAnew(spark, table.name)
        status(table)
      }
      val log = folder.resolve("_delta_log").toString
      Seq(written, read).foreach { files =>
        assert(files.exists(_.getName.endsWith(".json")))
        assert(files.filterNot(_.toUri.getPath.startsWith(s"$log/")) == Nil)
      }
      assertSameTable(table)
    }
  }

  test("metadata of another writer is not changed") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (0, 'a')")
    madeByOthers(table)
    val error = refused(table)(publish(table))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.NOT_OURS")
  }

  test("what was published of another table at this place is not gone back from") {
    val table = numbers(byPath())
    (1 to 3).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'a')"))
    publish(table)
    val kept = metadata(table).metadataFileLocation
    Using.resource(Files.list(table.folder.resolve("_delta_log"))) { files =>
      files.iterator.asScala.toSeq
        .filter(_.getFileName.toString.contains(f"${3}%020d"))
        .foreach(Files.delete(_))
    }
    org.apache.spark.sql.delta.DeltaLog.clearCache()
    val error = intercept[IcebergWriterCompatException](publish(table))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.AHEAD")
    assert(metadata(table).metadataFileLocation == kept)
  }

  test("no row is lost to the bounds of any column") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (i INT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38, 9), " +
        "s STRING, day DATE, t TIMESTAMP, n TIMESTAMP_NTZ) USING delta " +
        s"TBLPROPERTIES ($on)"
    )
    val rows = Seq(
      "2147483647, 9223372036854775807, CAST('-0.0' AS FLOAT), -0.0D, " +
        "99999999999999999999999999999.999999999, repeat('z', 40), DATE'9999-12-31', " +
        "TIMESTAMP'2026-01-01 00:00:00.123456Z', TIMESTAMP_NTZ'2026-01-01 00:00:00.999999'",
      "-2147483648, -9223372036854775808, CAST('NaN' AS FLOAT), double('NaN'), " +
        "-99999999999999999999999999999.999999999, '', DATE'0001-01-01', " +
        "TIMESTAMP'1850-01-01 00:00:00.000001Z', TIMESTAMP_NTZ'1850-01-01 00:00:00.000001'",
      "0, 9007199254740993, CAST('Infinity' AS FLOAT), double('-Infinity'), 0.000000001, " +
        s"concat(repeat('é', 31), '😀', 'tail'), DATE'1900-01-01', " +
        "TIMESTAMP'9999-12-31 23:59:59.999999Z', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
    )
    withConf("spark.sql.session.timeZone" -> "Europe/Zurich") {
      rows.foreach(row => sql(s"INSERT INTO ${table.name} VALUES ($row)"))
    }
    publish(table)
    assertPublished(table)
    val schema = iceberg(table).schema
    import org.apache.iceberg.expressions.Expressions
    val all = Using.resource(IcebergGenerics.read(iceberg(table)).build())(_.asScala.toSeq)
    for {
      column <- schema.columns.asScala
      record <- all
      value = record.getField(column.name)
      if !plain(value).contains("NaN")
    } {
      val literal = column.`type`.typeId match {
        case TypeID.DATE      => value.toString
        case TypeID.TIMESTAMP => value.toString
        case _                => value
      }
      Using.resource(
        iceberg(table).newScan().filter(Expressions.equal(column.name, literal)).planFiles()
      ) { tasks =>
        assert(tasks.asScala.nonEmpty, s"${column.name} = $value")
        val found = Using.resource(
          IcebergGenerics
            .read(iceberg(table))
            .where(Expressions.equal(column.name, literal))
            .build()
        )(_.asScala.map(plain).toSet)
        assert(found(plain(record)), s"${column.name} = $value")
      }
    }
  }

  test("writers of Iceberg are steered away from what Delta cannot take") {
    val table = numbers()
    publish(table)
    val properties = metadata(table).properties
    assert(properties.get("gc.enabled") == "false")
    Seq("delete", "update", "merge").foreach { kind =>
      assert(properties.get(s"write.$kind.mode") == "copy-on-write")
    }
  }
}
