package org.apache.spark.sql.delta.writercompat.writeback

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.iceberg._
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.publish.SparkPublishing
import org.icebergwritercompat.testing.TestTable

import java.nio.file.{Files, Path}
import java.util.UUID
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What becomes of the files that Iceberg clients write: kept as long as needed, and no longer. */
class ClientFilesSuite extends ClientSuite {

  private def filesBelow(folder: Path): Seq[Path] =
    Using.resource(Files.walk(folder))(_.iterator.asScala.filter(Files.isRegularFile(_)).toVector)

  private def put(table: TestTable, name: String): Path = {
    val made = table.folder.resolve(name)
    Files.createDirectories(made.getParent)
    Files.writeString(made, "x")
  }

  private def vacuum(table: TestTable): Unit =
    withConf("spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2") {
      sql(s"VACUUM ${table.name}")
    }

  private def assertReadable(table: TestTable): Unit = {
    assertSame(table)
    snapshots(table).foreach { snapshot =>
      val version = snapshot.summary.get("delta-version")
      val seen = spark.read.format("delta").option("versionAsOf", version).table(table.name)
      assert(inIceberg(table, Some(snapshot.snapshotId)) == inDelta(seen))
    }
  }

  test("what refused and abandoned commits leave goes when it is old, and not before") {
    val table = numbers()
    val there = client(table)
    append(there, Seq(1L, "a"))
    val second = append(there, Seq(2L, "b"))
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    there.newDelete().deleteFile(second).commit()
    // Refused: the client leaves its data file.
    val refused = file(there, None, record(there.schema, 9L, "x"))
    intercept[Exception](there.newAppend().appendFile(refused).toBranch("b").commit())
    // What clients leave that have died, by the names of Iceberg's library, Spark and DuckDB.
    val uuid = UUID.randomUUID
    val abandoned = file(refused.location) +: Seq(
      s"metadata/$uuid-m0.avro",
      s"metadata/snap-123-1-$uuid.avro",
      s"metadata/snap-123-$uuid.avro",
      s"metadata/optimized-m-$uuid.avro",
      s"data/$uuid.parquet"
    ).map(put(table, _))
    val others = put(table, "metadata/notes-of-somebody.avro")
    vacuum(table)
    abandoned.foreach(left => assert(Files.exists(left)))
    assertReadable(table)
    val (data, log) = filesBelow(table.folder).partition(!_.toString.contains("/_delta_log/"))
    assert(log.nonEmpty)
    data.foreach(age(_, 10))
    vacuum(table)
    abandoned.foreach(left => assert(!Files.exists(left), left))
    assert(Files.exists(others))
    assertReadable(table)
    assert(snapshots(table).size == 4)
    append(there, Seq(4L, "d"))
    assertReadable(table)
  }

  test("a manifest that a client wrote before it lost a race stays as long as a snapshot has it") {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    publish(table)
    val there = client(table)
    val made = file(there, None, record(there.schema, 2L, "b"))
    val location = s"${there.location}/metadata/${UUID.randomUUID}-m0.avro"
    val writer = ManifestFiles.write(there.spec, there.io.newOutputFile(location))
    Using.resource(writer)(_.add(made))
    val manifest = writer.toManifestFile
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    publish(table)
    there.refresh()
    there.newFastAppend().appendManifest(manifest).commit()
    assert(there.currentSnapshot.allManifests(there.io).asScala.exists(_.path == location))
    val line = snapshots(table)
    assert(line.size == 3)
    // The first snapshot ends, and the oldest that stays was made after the manifest.
    Seq(line(0).manifestListLocation -> 14L, location -> 13L, line(1).manifestListLocation -> 12L)
      .foreach { case (path, days) => age(file(path), days) }
    SparkPublishing
      .of(spark, table.name)
      .filesNeededSince(line(1).timestampMillis + 1, dryRun = false)
    assert(snapshots(table).map(_.snapshotId) == line.tail.map(_.snapshotId))
    assert(!Files.exists(file(line(0).manifestListLocation)))
    assert(Files.exists(file(location)))
    assertReadable(table)
    // And the same by the next commit, which looks at fewer lists.
    shift(table, java.time.Duration.ofDays(-20))
    age(file(location), 13)
    append(client(table), Seq(4L, "d"))
    assertReadable(table)
  }

  test("files are kept for older snapshots, even if a client does not say that it removed them") {
    val table = numbers()
    val there = client(table)
    val first = append(there, Seq(1L, "a"))
    append(there, Seq(2L, "b"))
    val operations = there.asInstanceOf[BaseTable].operations
    val transaction = there.newTransaction()
    transaction.newDelete().deleteFile(first).commit()
    val updated = transaction.table.asInstanceOf[HasTableOperations].operations.current
    val snapshot = new ObjectMapper()
      .readTree(SnapshotParser.toJson(updated.currentSnapshot))
      .asInstanceOf[ObjectNode]
    val summary = snapshot.get("summary").asInstanceOf[ObjectNode]
    summary.remove(java.util.List.of("deleted-data-files", "deleted-records", "removed-files-size"))
    val silent = TableMetadata
      .buildFrom(operations.current)
      .setBranchSnapshot(SnapshotParser.fromJson(snapshot.toString), "main")
      .build()
    operations.commit(operations.current, silent)
    assert(!iceberg(table).currentSnapshot.summary.containsKey("deleted-data-files"))
    assert(count(table) == 1)
    // As if it had been removed long before it was committed.
    val commit = table.folder.resolve("_delta_log").resolve(f"${table.log.version}%020d.json")
    Files.writeString(
      commit,
      Files
        .readString(commit)
        .replaceAll("\"deletionTimestamp\":\\d+", "\"deletionTimestamp\":1000")
    )
    filesBelow(commit.getParent).filter(_.toString.endsWith(".crc")).foreach(Files.delete(_))
    filesBelow(table.folder).filter(_.toString.endsWith(".parquet")).foreach(age(_, 10))
    DeltaLog.clearCache()
    vacuum(table)
    assert(Files.exists(file(first.location)))
    assertReadable(table)
  }
}
