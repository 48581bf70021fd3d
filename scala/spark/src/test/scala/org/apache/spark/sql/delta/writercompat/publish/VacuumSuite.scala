package org.apache.spark.sql.delta.writercompat.publish

import io.delta.tables.DeltaTable
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.commands.VacuumCommand
import org.icebergwritercompat.testing.{FolderListing, TestTable}
import org.apache.spark.sql.delta.writercompat.read.DeltaTables

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** VACUUM of tables that are published, and of others. */
class VacuumSuite extends PublishedSuite {

  private val anyRetention = Seq("spark.databricks.delta.retentionDurationCheck.enabled" -> "false")

  // Delta makes so many tasks, whatever there is to list.
  private val fast = Seq("spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2")

  private def vacuum(statement: String, confs: Seq[(String, String)] = Nil): Unit =
    withConf(fast ++ confs: _*)(sql(statement))

  private def filesBelow(folder: Path): Seq[Path] =
    Using.resource(Files.walk(folder))(_.iterator.asScala.filter(Files.isRegularFile(_)).toVector)

  private def put(folder: Path, name: String, text: String = "x"): Path = {
    val file = folder.resolve(name)
    Files.createDirectories(file.getParent)
    Files.writeString(file, text)
    age(file, 10)
    file
  }

  /** A table with a file that is live, one that was removed, and a lag; and what was removed. */
  private def published(table: TestTable = managed()): (TestTable, Set[Path]) = {
    numbers(table)
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    publish(table)
    val before = table.log.liveFiles.keySet
    sql(s"UPDATE ${table.name} SET name = 'b'")
    sql(s"INSERT INTO ${table.name} VALUES (2, 'c')")
    (table, before)
  }

  private def inventory(table: TestTable): String =
    filesBelow(table.folder)
      .map { file =>
        s"('file:$file', ${Files.size(file)}L, false, ${Files.getLastModifiedTime(file).toMillis}L)"
      }
      .mkString(
        "(SELECT * FROM VALUES (CAST(NULL AS STRING), 0L, false, 0L), (NULL, NULL, NULL, NULL), ",
        ", ",
        " AS t(path, length, isDir, modificationTime))"
      )

  private val ways = Seq[(String, TestTable => Unit)](
    "SQL" -> (table => sql(s"VACUUM ${table.name} RETAIN 0 HOURS")),
    "SQL LITE" -> (table => sql(s"VACUUM '${table.folder}' LITE RETAIN 0 HOURS")),
    "an inventory" -> (table =>
      sql(s"VACUUM ${table.name} USING INVENTORY ${inventory(table)} RETAIN 0 HOURS")
    ),
    "parallel deletion" -> (table =>
      withConf("spark.databricks.delta.vacuum.parallelDelete.enabled" -> "true") {
        sql(s"VACUUM ${table.name} RETAIN 0 HOURS")
      }
    ),
    "a program" -> (table => { DeltaTable.forPath(spark, table.folder.toString).vacuum(0); () }),
    "Delta's own method" -> (table => {
      val delta = DeltaTables.find(spark, table.name)
      VacuumCommand.gc(spark, delta, dryRun = false, Some(0d)).collect(); ()
    })
  )

  ways.foreach { case (way, vacuum) =>
    test(s"what is published is brought up to date and kept by VACUUM through $way") {
      val (table, removed) = published()
      filesBelow(table.folder.resolve("metadata")).foreach(age(_, 10))
      withConf(fast ++ anyRetention: _*)(vacuum(table))
      removed.foreach(file => assert(!Files.exists(file)))
      assert(metadata(table).snapshots.size == 1)
      publish(table)
      assertPublished(table)
    }
  }

  test("snapshots that are younger than the retention keep all their files") {
    val (table, removed) = published()
    publish(table)
    // Delta goes by when the file was removed, which may be long before that is committed.
    val log = table.folder.resolve("_delta_log")
    val commit = log.resolve(f"${2}%020d.json")
    Files.writeString(
      commit,
      Files
        .readString(commit)
        .replaceAll("\"deletionTimestamp\":\\d+", "\"deletionTimestamp\":1000")
    )
    filesBelow(log).filter(_.toString.endsWith(".crc")).foreach(Files.delete(_))
    filesBelow(table.folder).filter(_.toString.endsWith(".parquet")).foreach(age(_, 10))
    DeltaLog.clearCache()
    val orphan = put(table.folder, "part-of-nothing.parquet")
    vacuum(s"VACUUM ${table.name}")
    assert(!Files.exists(orphan))
    removed.foreach(file => assert(Files.exists(file)))
    assert(snapshots(table).size == 3)
    snapshots(table).foreach { snapshot =>
      val version = snapshot.summary.get("delta-version")
      val seen = spark.read.format("delta").option("versionAsOf", version).table(table.name)
      assert(inIceberg(table, Some(snapshot.snapshotId)) == inDelta(seen))
    }
    // No reader uses these an hour later.
    vacuum(s"VACUUM ${table.name} RETAIN 0 HOURS", anyRetention)
    removed.foreach(file => assert(!Files.exists(file)))
    publish(table)
    assertPublished(table)
  }

  test("a dry run changes nothing and tells what VACUUM deletes") {
    val (table, removed) = published()
    put(table.folder, "metadata/notes.txt")
    val before = FolderListing.of(table.folder)
    val told = withConf(fast ++ anyRetention: _*) {
      rows(s"VACUUM ${table.name} RETAIN 0 HOURS DRY RUN")
    }
    assert(told == removed.map(file => s"[file:$file]"))
    assert(FolderListing.of(table.folder) == before)
  }

  test("a retention that is too short is refused by Delta before anything is published") {
    val (table, _) = published()
    val before = FolderListing.of(table.folder)
    intercept[IllegalArgumentException](sql(s"VACUUM ${table.name} RETAIN 0 HOURS"))
    assert(FolderListing.of(table.folder) == before)
  }

  test("a partition column called metadata is none of Iceberg's") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT, metadata INT) USING delta PARTITIONED BY (metadata) " +
        s"TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 1)")
    val orphans = Seq("metadata=1/x.parquet", "metadata=2/x.parquet").map(put(table.folder, _))
    publish(table)
    vacuum(s"VACUUM ${table.name}")
    orphans.foreach(file => assert(!Files.exists(file)))
    publish(table)
    assertPublished(table)
  }

  test("a folder called metadata that is not of this project is treated as Delta does") {
    val foreign = """{"format-version": 2, "properties": {}}"""
    Seq("notes.txt" -> "x", "v1.metadata.json" -> foreign).foreach { case (name, text) =>
      Seq(numbers(), plain()).foreach { table =>
        sql(s"ALTER TABLE ${table.name} ADD COLUMN more INT")
        val file = put(table.folder, s"metadata/$name", text)
        val version = table.log.version
        vacuum(s"VACUUM ${table.name}")
        assert(!Files.exists(file))
        assert(table.log.version == version + 2)
      }
    }
  }

  private def vacuumRefused(table: TestTable): String = {
    val error = refused(table)(vacuum(s"VACUUM ${table.name} RETAIN 0 HOURS", anyRetention))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED")
    assert(error.getMessageParameters.get("metadata") == s"file:${table.folder}/metadata")
    error.getMessage
  }

  test("a feature that was dropped after publishing stands against VACUUM") {
    val (table, _) = published()
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    val offer = s"CALL iceberg_writer_compat.system.enable(table => 'default.${table.name}')"
    assert(vacuumRefused(table).contains(s"Run: $offer"))
    sql(offer)
    vacuum(s"VACUUM ${table.name}")
    publish(table)
    assertPublished(table)
  }
}
