package org.apache.spark.sql.delta.writercompat.publish

import org.apache.spark.sql.delta.DeltaLog
import org.icebergwritercompat.testing.TestTable

import java.nio.file.{Files, Path}
import java.sql.Timestamp
import java.time.Duration
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What is kept of the past of published tables, and for how long. */
class PublishHistorySuite extends PublishedSuite {

  private def folder(table: TestTable): Path = table.folder.resolve("metadata")

  private def names(table: TestTable): Set[String] =
    Using.resource(Files.list(folder(table))) { files =>
      files.iterator.asScala.map(_.getFileName.toString).filterNot(_.startsWith(".")).toSet
    }

  /** A table with a commit so many days ago each, published after each of them. */
  private def published(properties: String, days: Int*): TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, name STRING) USING delta " +
        s"TBLPROPERTIES ($on, $properties)"
    )
    days.zip(days.tail :+ 0).zipWithIndex.foreach { case ((day, next), i) =>
      commit(table, i)
      pass(table, day - next)
    }
    table
  }

  private def commit(table: TestTable, i: Int): Unit = {
    if (i % 2 == 0) sql(s"INSERT INTO ${table.name} VALUES ($i, 'a'), (-$i, 'b')")
    else sql(s"UPDATE ${table.name} SET name = 'c$i'")
    publish(table)
    ()
  }

  /** Makes all that is published so many days older. */
  private def pass(table: TestTable, days: Int): Unit = shift(table, Duration.ofDays(-days.toLong))

  private def versions(table: TestTable): Seq[Long] =
    snapshots(table).map(_.summary.get("delta-version").toLong)

  private def assertReadable(table: TestTable): Unit = {
    snapshots(table).foreach { snapshot =>
      val version = snapshot.summary.get("delta-version")
      val seen = spark.read.format("delta").option("versionAsOf", version).table(table.name)
      assert(inIceberg(table, Some(snapshot.snapshotId)) == inDelta(seen))
    }
    val history = iceberg(table).history.asScala.map(_.snapshotId)
    assert(history == snapshots(table).map(_.snapshotId))
  }

  test("commits that are published together long after have the times that Delta has for them") {
    val table = published("'x' = 'y'", 0)
    val days = Seq(5, 3, 2, 1)
    days.foreach(day => sql(s"INSERT INTO ${table.name} VALUES ($day, 'd')"))
    val log = table.folder.resolve("_delta_log")
    (Seq(7, 6) ++ days).zipWithIndex.foreach { case (day, version) =>
      age(log.resolve(f"$version%020d.json"), day.toLong)
    }
    pass(table, 6)
    DeltaLog.clearCache()
    publish(table)
    val inDeltasHistory = spark
      .sql(s"DESCRIBE HISTORY ${table.name}")
      .collect()
      .map(row => row.getAs[Long]("version") -> row.getAs[Timestamp]("timestamp").getTime)
      .toMap
    val times = snapshots(table).map(s => s.summary.get("delta-version") -> s.timestampMillis)
    assert(times.tail == (2L to 5L).map(version => s"$version" -> inDeltasHistory(version)))
    val between = inDeltasHistory(3) + 3600000
    val asOf = iceberg(table).history.asScala.filter(_.timestampMillis <= between).last.snapshotId
    assert(
      inIceberg(table, Some(asOf)) ==
        inDelta(
          spark.read.option("timestampAsOf", new Timestamp(between).toString).table(table.name)
        )
    )
    assertReadable(table)
    assertPublished(table)
  }

  test("snapshots are kept as long as Delta promises their versions, and those that readers see") {
    // Version 3 was replaced 6 days ago.
    val table = published("'x' = 'y'", 30, 20, 9, 6, 1, 0)
    assert(versions(table) == Seq(3, 4, 5, 6))
    assertReadable(table)
    assertPublished(table)
  }

  test("the retention of the table counts, and a snapshot that readers see stays for ever") {
    val table = published("'delta.deletedFileRetentionDuration' = 'interval 2 days'", 9, 5, 3, 1, 0)
    assert(versions(table) == Seq(3, 4, 5))
    assert(versions(published("'x' = 'y'", 60)) == Seq(1))
  }

  test("a snapshot that a tag names is kept, with its files") {
    val table = published("'x' = 'y'", 20, 10)
    val tagged = snapshots(table).head.snapshotId
    iceberg(table).manageSnapshots().createTag("kept", tagged).commit()
    Seq(5, 5, 0).zipWithIndex.foreach { case (days, i) =>
      commit(table, i + 2)
      pass(table, days)
    }
    assert(versions(table) == Seq(1, 3, 4, 5))
    withConf(
      "spark.databricks.delta.retentionDurationCheck.enabled" -> "false",
      "spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2"
    )(sql(s"VACUUM ${table.name} RETAIN 0 HOURS"))
    assert(versions(table) == Seq(1, 5))
    assert(inIceberg(table, Some(tagged)).size == 2)
  }

  test("old files that nothing leads to are removed, and nothing else") {
    val table = published("'x' = 'y'", 30, 20, 9)
    val uuid = java.util.UUID.randomUUID
    val orphans = Seq(s"$uuid-m0.avro", s"snap-1-1-$uuid.avro", s"$uuid.metadata.json")
    val kept = Seq("notes.txt", s"snap-2-1-$uuid.avro", s"$uuid.parquet", s"$uuid-stats.avro")
    (orphans ++ kept).foreach(name => Files.writeString(folder(table).resolve(name), "x"))
    val before = names(table)
    before.filterNot(_ == kept(1)).foreach(name => age(folder(table).resolve(name), 10))
    commit(table, 3)
    assert(versions(table) == Seq(3, 4))
    val after = names(table)
    assert(orphans.filter(after) == Nil)
    assert(kept.filterNot(after) == Nil)
    val lists = snapshots(table).map(s => s.manifestListLocation.split('/').last).toSet
    assert(after.filter(_.startsWith("snap-")) == lists + kept(1))
    assert(after.filter(_.matches("v\\d+\\..*")) == (1 to 4).map(i => s"v$i.metadata.json").toSet)
    val manifests = snapshots(table)
      .flatMap(_.allManifests(iceberg(table).io).asScala)
      .map(_.path.split('/').last)
      .toSet
    assert(after.filter(_.matches(".*-m\\d+\\.avro")) == manifests)
    assert((before -- after -- orphans).exists(_.matches(".*-m\\d+\\.avro")))
    assertReadable(table)
    assertPublished(table)
  }

  Seq(Duration.ofSeconds(90), Duration.ofMinutes(10), Duration.ofDays(3)).foreach { ahead =>
    test(s"publishing goes on when the clock is back by $ahead, and times do not go back") {
      val table = published("'x' = 'y'", 1, 0)
      shift(table, ahead)
      val before = metadata(table)
      assert(before.lastUpdatedMillis > System.currentTimeMillis())
      commit(table, 2)
      commit(table, 3)
      sql(s"OPTIMIZE ${table.name}")
      sql(s"ALTER TABLE ${table.name} ADD COLUMN more INT")
      publish(table)
      assert(versions(table) == Seq(1, 2, 3, 4, 5))
      assert(metadata(table).lastUpdatedMillis >= before.lastUpdatedMillis)
      assertTimesGoOn(table)
      assertReadable(table)
      assertPublished(table)
      withConf(
        "spark.databricks.delta.retentionDurationCheck.enabled" -> "false",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2"
      )(sql(s"VACUUM ${table.name} RETAIN 0 HOURS"))
      publish(table)
      assert(inIceberg(table) == inDelta(spark.table(table.name)))
    }
  }

  test("metadata of another line in the folder keeps all files") {
    val table = published("'x' = 'y'", 30, 20)
    val other = s"00007-${java.util.UUID.randomUUID}.metadata.json"
    Files.writeString(folder(table).resolve(other), "{}")
    names(table).foreach(name => age(folder(table).resolve(name), 10))
    val before = names(table)
    commit(table, 2)
    assert(versions(table) == Seq(2, 3))
    assert((before -- names(table)) == Set.empty)
  }

  test("versions of the metadata do not pile up") {
    val table = published("'x' = 'y'", 30)
    (1 to 105).foreach { i =>
      val current = iceberg(table).asInstanceOf[org.apache.iceberg.BaseTable].operations
      current.commit(
        current.current,
        org.apache.iceberg.TableMetadata
          .buildFrom(current.current)
          .setProperties(java.util.Map.of("i", i.toString))
          .build()
      )
    }
    commit(table, 2)
    pass(table, 20)
    commit(table, 3)
    pass(table, 20)
    names(table).foreach(name => age(folder(table).resolve(name), 10))
    commit(table, 4)
    val left = names(table).filter(_.matches("v\\d+\\..*"))
    assert(left.size == 9)
    assert(metadata(table).previousFiles.size == 8)
    assert(!left("v1.metadata.json") && left("v109.metadata.json"))
    assertPublished(table)
  }

  test("what steers writers of Iceberg is set again where it is missing") {
    val table = published("'x' = 'y'", 1)
    val file = folder(table).resolve("v1.metadata.json")
    Files.deleteIfExists(folder(table).resolve(".v1.metadata.json.crc"))
    Files.writeString(
      file,
      Files
        .readString(file)
        // As metadata was before it told what publishing had set.
        .replaceAll("\"delta-definition\"\\s*:\\s*\"[^\"]*\",?", "")
        .replaceAll("\"gc.enabled\"\\s*:\\s*\"false\",?", "")
        .replace("\"copy-on-write\"", "\"merge-on-read\"")
    )
    assert(metadata(table).property("gc.enabled", "unset") == "unset")
    commit(table, 1)
    val properties = metadata(table).properties
    assert(properties.get("gc.enabled") == "false")
    Seq("delete", "update", "merge").foreach { kind =>
      assert(properties.get(s"write.$kind.mode") == "copy-on-write")
    }
  }
}
