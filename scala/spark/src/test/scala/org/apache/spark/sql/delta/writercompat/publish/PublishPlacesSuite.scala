package org.apache.spark.sql.delta.writercompat.publish

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.iceberg.{ManifestFiles, SortOrder, Table}
import org.apache.iceberg.types.Types.IntegerType
import org.apache.spark.sql.delta.DeltaLog
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{FolderListing, SharedSpark, TestTable}
import org.apache.spark.sql.delta.writercompat.read.DeltaTables

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Published tables whose folder or metadata is not as it was left. */
class PublishPlacesSuite extends PublishedSuite {

  private val mapper = new ObjectMapper

  private val published = s"$on, 'icebergWriterCompat.publish' = 'true'"

  private def created(table: TestTable, properties: String = on): TestTable = {
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, name STRING) USING delta TBLPROPERTIES ($properties)"
    )
    (1 to 2).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'a')"))
    publish(table)
    table
  }

  private def at(folder: Path): TestTable = TestTable(s"delta.`$folder`", folder)

  private def copied(table: TestTable): TestTable = {
    val target = at(SharedSpark.freshFolder())
    Using.resource(Files.walk(table.folder)) { paths =>
      paths.iterator.asScala.foreach { path =>
        Files.copy(path, target.folder.resolve(table.folder.relativize(path).toString))
      }
    }
    target
  }

  private def moved(table: TestTable): TestTable = {
    val target = at(SharedSpark.freshFolder())
    Files.move(table.folder, target.folder)
    DeltaLog.clearCache()
    target
  }

  private def problems(table: TestTable): Seq[String] =
    status(table).get("problems").elements.asScala.map(_.get("text").asText).toSeq

  private def verified(table: TestTable): Seq[String] =
    Reports.verify(spark, table.name, None, None).findings.filter(_.rule == "Iceberg").map(_.found)

  private def texts(node: JsonNode, field: String): Seq[String] =
    node.get(field).elements.asScala.map(_.asText).toSeq

  private def number(table: TestTable): Int =
    Path
      .of(metadata(table).metadataFileLocation)
      .getFileName
      .toString
      .drop(1)
      .takeWhile(_.isDigit)
      .toInt

  /** Everything that the published metadata names, as readers follow it. */
  private def named(table: TestTable): Seq[String] = {
    val current = metadata(table)
    val io = iceberg(table).io
    current.location +: current.previousFiles.asScala.toSeq.map(_.file) ++:
      current.snapshots.asScala.toSeq.flatMap { snapshot =>
        snapshot.manifestListLocation +: snapshot.allManifests(io).asScala.toSeq.flatMap { m =>
          m.path +: Using.resource(ManifestFiles.read(m, io, current.specsById)) { reader =>
            reader.iterator.asScala.map(_.location).toVector
          }
        }
      }
  }

  private def assertNewLine(table: TestTable): Unit = {
    assertSameTable(table)
    assert(problems(table) == Nil)
    named(table).foreach(file =>
      assert(new java.net.URI(encoded(file)).getPath.startsWith(s"${table.folder}"))
    )
  }

  private val anyRetention = Seq(
    "spark.databricks.delta.retentionDurationCheck.enabled" -> "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2"
  )

  private def vacuum(table: TestTable): Unit =
    withConf(anyRetention: _*)(sql(s"VACUUM ${table.name} RETAIN 0 HOURS"))

  test("a managed table that is renamed goes on in a new line, at the next version") {
    val old = created(managed())
    val (before, place) = (number(old), metadata(old).location)
    val table = managed()
    sql(s"ALTER TABLE ${old.name} RENAME TO ${table.name}")
    assert(status(table).get("published_version").isNull)
    assert(
      problems(table).head.contains(place) && problems(table).head.contains(s"${table.folder}")
    )
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    val result = publish(table)
    assert(texts(result, "mended").head.contains(place))
    assert(result.get("previous_version").isNull)
    assert(number(table) == before + 1)
    assertNewLine(table)
    sql(s"UPDATE ${table.name} SET name = 'd' WHERE id = 1")
    assert(publish(table).get("snapshots").asInt == 1)
    assertNewLine(table)
    // And back.
    sql(s"ALTER TABLE ${table.name} RENAME TO ${old.name}")
    publish(old)
    assertSameTable(old)
  }

  test("a copy and its original are two tables, whatever becomes of the other") {
    val original = created(byPath(), published)
    val copy = copied(original)
    val fresh = copied(original)
    val line = metadata(original).uuid
    // By a person, by a commit and by VACUUM.
    publish(copy)
    sql(s"INSERT INTO ${fresh.name} VALUES (7, 'fresh')")
    sql(s"UPDATE ${original.name} SET name = 'changed'")
    vacuum(original)
    Seq(copy, fresh).foreach(assertNewLine)
    assert(metadata(copy).uuid != metadata(fresh).uuid)
    val third = copied(original)
    sql(s"DELETE FROM ${original.name}")
    vacuum(original)
    vacuum(third)
    assertNewLine(third)
    assertPublished(original)
    assert(metadata(original).uuid == line)
  }

  test("a table whose folder was moved goes on, and its original is not needed") {
    val table = moved(created(byPath(), published))
    val listing = FolderListing.of(table.folder)
    assert(problems(table).size == 1)
    assert(FolderListing.of(table.folder) == listing)
    withConf(anyRetention: _*)(rows(s"VACUUM ${table.name} RETAIN 0 HOURS DRY RUN"))
    assert(FolderListing.of(table.folder) == listing)
    sql(s"DELETE FROM ${table.name} WHERE id = 1")
    assertNewLine(table)
    // The same folder by another way is the same place.
    val link = SharedSpark.freshFolder()
    Files.createSymbolicLink(link, table.folder)
    val linked = at(link)
    assert(problems(linked) == Nil)
    assert(publish(linked).get("snapshots").asInt == 0)
    assert(metadata(table).location == s"file:${table.folder}")
  }

  private def newest(table: TestTable): Path = file(metadata(table).metadataFileLocation)

  private def list(table: TestTable): Path = file(
    metadata(table).currentSnapshot.manifestListLocation
  )

  private def manifest(table: TestTable): Path =
    file(metadata(table).currentSnapshot.allManifests(iceberg(table).io).asScala.head.path)

  private def write(file: Path, bytes: Array[Byte]): Unit = {
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    Files.write(file, bytes)
    ()
  }

  private def cut(file: Path): Unit = write(file, Files.readAllBytes(file).take(200))

  private def remove(file: Path): Unit = {
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    Files.delete(file)
  }

  private def hint(text: String): TestTable => Unit =
    table => write(table.folder.resolve("metadata/version-hint.text"), text.getBytes)

  // What is done to the metadata, whether that leaves a file that cannot be read, and whether
  // what was published before is lost to readers.
  private val damages = Seq[(String, TestTable => Unit, Boolean)](
    ("metadata that breaks off", t => cut(newest(t)), true),
    ("metadata that is empty", t => write(newest(t), Array.empty), true),
    ("metadata that is gone", t => remove(newest(t)), false),
    (
      "all metadata that is gone",
      t =>
        (1 to number(t)).foreach(i =>
          Files.deleteIfExists(newest(t).resolveSibling(s"v$i.metadata.json"))
        ),
      false
    ),
    ("a manifest list that is gone", t => remove(list(t)), false),
    ("a manifest list that breaks off", t => cut(list(t)), true),
    ("a manifest that is gone", t => remove(manifest(t)), false),
    ("a manifest that breaks off", t => cut(manifest(t)), true),
    (
      "a stale checksum",
      t => { Files.write(newest(t), Array.fill[Byte](700)('{')); () },
      true
    ),
    ("a hint of 77", hint("77"), false),
    ("a hint of -1", hint("-1"), false),
    ("a hint that is no number", hint("seven"), false),
    ("an empty hint", hint(""), false)
  )

  damages.foreach { case (what, damage, isThere) =>
    test(s"$what is reported, and repaired by everything that publishes") {
      val table = created(byPath(), published)
      def mended(): Unit = {
        assertSameTable(table)
        assert(problems(table) == Nil)
        val hinted = Files.readString(table.folder.resolve("metadata/version-hint.text"))
        assert(hinted.toInt == number(table))
      }
      damage(table)
      if (!what.startsWith("all")) {
        assert(problems(table).size == 1)
        assert(verified(table) == problems(table))
      }
      val result = publish(table)
      mended()
      val aside = texts(result, "set_aside")
      assert(aside.nonEmpty == isThere)
      aside.foreach(name => assert(Files.exists(file(name)) && name.endsWith(".unreadable")))
      if (isThere) assert(texts(result, "mended").size == 1)
      assert(publish(table).get("snapshots").asInt == 0)
      Seq[() => Unit](
        () => sql(s"UPDATE ${table.name} SET name = concat(name, 'y')"),
        () => vacuum(table)
      ).foreach { change =>
        damage(table)
        change()
        mended()
      }
      assert(count(table) == 2)
    }
  }

  test("a manifest with other bytes than were written is found by who needs to read it") {
    val table = created(byPath(), published)
    val broken = manifest(table)
    write(broken, Array.fill[Byte](Files.size(broken).toInt)('x'))
    sql(s"UPDATE ${table.name} SET name = 'z'")
    assertSameTable(table)
    assert(Files.exists(broken.resolveSibling(s"${broken.getFileName}.unreadable")))
    assert(verified(table) == Nil)
    Seq[() => Any](
      () => mapper.readTree(IcebergWriterCompat.publishMending(spark, table.name)),
      () => vacuum(table)
    ).foreach { mend =>
      val again = manifest(table)
      write(again, Array.fill[Byte](Files.size(again).toInt)('x'))
      assert(problems(table) == Nil)
      assert(verified(table).exists(_.contains(again.getFileName.toString)))
      mend()
      assertSameTable(table)
      assert(verified(table) == Nil)
    }
  }

  test("an older snapshot that cannot be read is forgotten, and nothing else") {
    val table = created(byPath())
    (3 to 4).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'a')"))
    sql(s"UPDATE ${table.name} SET name = 'b'")
    publish(table)
    val all = snapshots(table)
    assert(all.size == 4)
    // A manifest of the first is not in the newest any more.
    cut(file(all.head.allManifests(iceberg(table).io).asScala.head.path))
    remove(file(all(1).manifestListLocation))
    assert(status(table).get("lag").asLong == 0)
    assert(problems(table).size == 3)
    assertThrows[Exception](inIceberg(table, Some(all(1).snapshotId)))
    val result = mapper.readTree(IcebergWriterCompat.publishMending(spark, table.name))
    assert(texts(result, "mended").size == 3)
    assert(texts(result, "set_aside").size == 1)
    assert(snapshots(table).map(_.snapshotId) == Seq(all(3).snapshotId))
    assertPublished(table)
    assert(problems(table) == Nil)
    vacuum(table)
    publish(table)
    assertPublished(table)
  }

  test("metadata that is not ours, or ahead, is kept until --anew") {
    def anew(table: TestTable): JsonNode =
      mapper.readTree(IcebergWriterCompat.publishAnew(spark, table.name))
    val table = numbers(byPath())
    sql(s"INSERT INTO ${table.name} VALUES (0, 'a')")
    madeByOthers(table)
    val theirs = table.folder.resolve("metadata/v1.metadata.json")
    val text = Files.readString(theirs)
    assert(problems(table).head.contains("NOT_OURS"))
    assert(verified(table) == problems(table))
    assert(refused(table)(publish(table)).getCondition.endsWith("NOT_OURS"))
    anew(table)
    assertSameTable(table)
    assert(Files.readString(theirs) == text)
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
    publish(table)
    Files
      .list(table.folder.resolve("_delta_log"))
      .iterator
      .asScala
      .toSeq
      .filter(_.getFileName.toString.contains(f"${2}%020d"))
      .foreach(Files.delete(_))
    DeltaLog.clearCache()
    assert(problems(table).head.contains("AHEAD"))
    assert(verified(table) == problems(table))
    assert(intercept[IcebergWriterCompatException](publish(table)).getCondition.endsWith("AHEAD"))
    anew(table)
    assertSameTable(table)
    assert(problems(table) == Nil)
  }

  /** Takes the newest commits from the log, as an older copy of it has none of them. */
  private def putBack(table: TestTable, version: Long): Unit = {
    val number = """\.?(\d{20})\..*""".r
    Using
      .resource(Files.list(table.folder.resolve("_delta_log")))(_.iterator.asScala.toSeq)
      .filter(_.getFileName.toString match {
        case number(digits) => digits.toLong > version
        case _              => false
      })
      .foreach(Files.delete(_))
    DeltaLog.clearCache()
  }

  private def versions(table: TestTable): Seq[Long] =
    snapshots(table).map(_.summary.get("delta-version").toLong)

  private def marks(table: TestTable): Seq[String] =
    snapshots(table).map(_.summary.get("delta-commit"))

  /** Published up to version 4, which Delta's log then no longer has. */
  private def parted(properties: String = on): TestTable = {
    val table = created(byPath(), properties)
    sql(s"UPDATE ${table.name} SET name = 'b' WHERE id = 1")
    sql(s"INSERT INTO ${table.name} VALUES (99, 'lost')")
    publish(table)
    assertPublished(table)
    assert(versions(table).takeRight(3) == (2L to 4L))
    putBack(table, 3)
    table
  }

  test("a log that was put back and went on is followed from the last common commit") {
    val table = parted()
    assert(problems(table).head.contains("AHEAD"))
    sql(s"DELETE FROM ${table.name} WHERE id = 2")
    val before = snapshots(table)
    assert(status(table).get("lag").asLong == 0)
    assert(problems(table).size == 1 && problems(table).head.contains("version 3"))
    assert(verified(table) == problems(table))
    val result = publish(table)
    assert(texts(result, "mended").size == 1)
    assertPublished(table)
    assert(problems(table) == Nil)
    assert(versions(table) == (2L to 4L))
    assert(snapshots(table).take(2).map(_.snapshotId) == before.take(2).map(_.snapshotId))
    snapshots(table).foreach { snapshot =>
      val version = snapshot.summary.get("delta-version")
      val seen = spark.read.format("delta").option("versionAsOf", version).load(s"${table.folder}")
      assert(inIceberg(table, Some(snapshot.snapshotId)) == inDelta(seen))
    }
    assertThrows[Exception](inIceberg(table, Some(before(2).snapshotId)))
    sql(s"UPDATE ${table.name} SET name = 'c'")
    assert(publish(table).get("snapshots").asInt == 1)
    assertPublished(table)
    assert(marks(table).distinct.size == 4)
  }

  test("commits, VACUUM and publish of later versions do not go on with what is not in the log") {
    // Of the same number as what was published, and of later ones.
    Seq(1, 2).foreach { commits =>
      val table = parted()
      (1 to commits).foreach(i => sql(s"INSERT INTO ${table.name} VALUES (${4 + i}, 'new')"))
      publish(table)
      assertPublished(table)
      assert(problems(table) == Nil)
    }
    Seq[TestTable => Unit](
      t => sql(s"INSERT INTO ${t.name} VALUES (5, 'new')"),
      t => sql(s"ALTER TABLE ${t.name} SET TBLPROPERTIES ('a' = 'b')"),
      t => {
        withConf("spark.icebergWriterCompat.catalog.type" -> "none") {
          sql(s"INSERT INTO ${t.name} VALUES (5, 'new')")
        }
        assert(problems(t).size == 1)
        vacuum(t)
      }
    ).foreach { change =>
      val table = parted(published)
      change(table)
      assertPublished(table)
      assert(problems(table) == Nil)
    }
  }

  test("a log that was put back behind the first published commit begins a new line") {
    Seq(0, 1).foreach { kept =>
      val table = created(byPath())
      val line = metadata(table).uuid
      putBack(table, kept)
      (3 to 5).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ($i, 'new')"))
      assert(problems(table).size == 1)
      publish(table)
      assertSameTable(table)
      assert(metadata(table).uuid != line)
      assert(versions(table) == Seq(kept + 3L))
      assert(problems(table) == Nil)
    }
  }

  test("columns of a log that was put back are those that it has then") {
    val table = created(byPath())
    sql(s"ALTER TABLE ${table.name} ADD COLUMN lost STRING")
    sql(s"INSERT INTO ${table.name} VALUES (98, 'a', 'lost')")
    publish(table)
    putBack(table, 2)
    sql(s"ALTER TABLE ${table.name} ADD COLUMN other DOUBLE")
    sql(s"INSERT INTO ${table.name} VALUES (3, 'b', 0.5)")
    publish(table)
    assertPublished(table)
    assert(versions(table) == Seq(2, 4))
  }

  /** Another table in the same place, which publishes nothing by itself. */
  private def anew(table: TestTable): Unit = {
    putBack(table, -1)
    val fresh = byPath()
    sql(s"CREATE TABLE ${fresh.name} (x STRING) USING delta TBLPROPERTIES ($on)")
    val commit = f"_delta_log/${0}%020d.json"
    Files.move(fresh.folder.resolve(commit), table.folder.resolve(commit))
    DeltaLog.clearCache()
    assert(table.log.version == 0)
  }

  test("a table that is created again in its place, with as many versions, begins a new line") {
    Seq(on, published).foreach { properties =>
      val table = created(byPath(), properties)
      val before = metadata(table)
      anew(table)
      (1 to 2).foreach(i => sql(s"INSERT INTO ${table.name} VALUES ('anew $i')"))
      assert(status(table).get("lag").asLong == 0)
      assert(problems(table).size == 1)
      publish(table)
      assertSameTable(table)
      assert(metadata(table).uuid != before.uuid)
      assert(versions(table) == Seq(2))
      assert(problems(table) == Nil)
    }
  }

  // Other writers leave it out, or write null.
  Seq("", ",\"txnId\":null").foreach { without =>
    test(s"commits without the id of a transaction ('$without') are told by their bytes") {
      def strip(table: TestTable): Unit = {
        val log = table.folder.resolve("_delta_log")
        Using.resource(Files.list(log))(_.iterator.asScala.toSeq).foreach { file =>
          if (file.toString.endsWith(".json"))
            write(
              file,
              Files.readString(file).replaceAll(",\"txnId\":\"[^\"]*\"", without).getBytes
            )
        }
        DeltaLog.clearCache()
      }
      val table = numbers(byPath())
      sql(s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b')")
      strip(table)
      publish(table)
      sql(s"INSERT INTO ${table.name} VALUES (99, 'lost')")
      strip(table)
      publish(table)
      assert(problems(table) == Nil)
      assert(marks(table).forall(_.matches("\\d:[0-9a-f]{64}")))
      val before = snapshots(table)
      putBack(table, 1)
      sql(s"INSERT INTO ${table.name} VALUES (3, 'new')")
      strip(table)
      assert(problems(table).size == 1)
      publish(table)
      assertPublished(table)
      assert(snapshots(table).head.snapshotId == before.head.snapshotId)
      assert(versions(table) == Seq(1, 2))
    }
  }

  test("metadata that does not tell its commits goes on, and tells those that follow") {
    val table = created(byPath())
    val line = metadata(table).uuid
    val text = mapper.readTree(Files.readString(newest(table)))
    Seq(text.get("properties"), text.at("/snapshots/0/summary"))
      .foreach {
        case node: ObjectNode =>
          node.remove(Seq("delta-commit", "delta-table-id", "delta-definition").asJava)
        case other => fail(s"$other")
      }
    write(newest(table), mapper.writeValueAsBytes(text))
    assert(!Files.readString(newest(table)).contains("delta-commit"))
    assert(!Files.readString(newest(table)).contains("delta-definition"))
    assert(problems(table) == Nil)
    assert(publish(table).get("snapshots").asInt == 0)
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    assert(texts(publish(table), "mended") == Nil)
    assertPublished(table)
    assert(metadata(table).uuid == line)
    assert(marks(table).count(_ != null) == 1)
    // Nothing tells that what came before is in the log.
    putBack(table, 2)
    sql(s"INSERT INTO ${table.name} VALUES (4, 'd')")
    publish(table)
    assertSameTable(table)
    assert(versions(table) == Seq(3))
  }

  test("a commit that the log has cleaned up is not missed, and the table's id is") {
    def cleanUp(table: TestTable): Unit = {
      val log = DeltaTables.find(spark, table.name).deltaLog
      log.checkpoint(log.update())
      (0 to 2).foreach(v => remove(table.folder.resolve(f"_delta_log/$v%020d.json")))
      DeltaLog.clearCache()
    }
    val table = created(byPath())
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    cleanUp(table)
    assert(problems(table) == Nil)
    assert(texts(publish(table), "mended") == Nil)
    assert(inIceberg(table) == inDelta(spark.table(table.name)))
    assert(versions(table) == Seq(2, 3))
    val other = created(byPath())
    anew(other)
    (1 to 3).foreach(i => sql(s"INSERT INTO ${other.name} VALUES ('anew $i')"))
    cleanUp(other)
    assert(problems(other).size == 1)
    publish(other)
    assert(inIceberg(other) == inDelta(spark.table(other.name)))
    assert(versions(other) == Seq(3))
  }

  test("Iceberg's writers find no place for a data file, and may tag snapshots") {
    val table = created(byPath())
    val target = iceberg(table)
    assertThrows[IllegalArgumentException](target.locationProvider())
    target.manageSnapshots().createTag("theirs", target.currentSnapshot.snapshotId).commit()
    assertPublished(table)
  }

  private def settle(table: TestTable, snapshot: Long, take: Boolean): JsonNode =
    mapper.readTree(
      if (take) IcebergWriterCompat.takeSnapshot(spark, table.name, snapshot)
      else IcebergWriterCompat.discardSnapshot(spark, table.name, snapshot)
    )

  test("what an Iceberg writer commits is noticed, kept, and taken over once") {
    val table = created(byPath(), published)
    val first = foreignAppend(table)
    val last = foreignAppend(table)
    assert(inIceberg(table).size == 4)
    val listing = FolderListing.of(table.folder)
    assert(problems(table).size == 1)
    Seq(s"$first", s"$last", "tester", "append", "/data/", "--take-snapshot", "discard in place")
      .foreach(word => assert(status(table).toString.contains(word), word))
    // The text goes for SQL, Python and the command line alike.
    assert(!problems(table).head.contains("CALL "))
    val refusal = refused(table)(publish(table))
    assert(refusal.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.FOREIGN_COMMIT")
    assert(refused(table)(vacuum(table)).getCondition == "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED")
    assert(FolderListing.of(table.folder) == listing)
    // The hook leaves it, and the commit.
    sql(s"INSERT INTO ${table.name} VALUES (5, 'e')")
    assert(iceberg(table).currentSnapshot.snapshotId == last)
    Seq(true, false).foreach { take =>
      assertThrows[IcebergWriterCompatException](settle(table, first, take))
      assertThrows[IcebergWriterCompatException](settle(table, 12345L, take))
    }
    settle(table, last, take = true)
    assert(count(table) == 5)
    assertPublished(table)
    assert(problems(table) == Nil)
    val version = table.log.version
    settle(table, last, take = true)
    assert(table.log.version == version)
    // Readers of its own snapshot find the files, until it is as old as others.
    assert(inIceberg(table, Some(last)).size == 4)
    sql(s"DELETE FROM ${table.name} WHERE id = 5")
    assertPublished(table)
  }

  test("what is taken over is appended once, however far the first attempt came") {
    val table = created(byPath())
    val snapshot = foreignAppend(table)
    val delta = DeltaTables.find(spark, table.name)
    // As if the process had ended before it was published.
    val writer = new ForeignRows(delta.deltaLog, None, metadata(table))
    val commit = org.icebergwritercompat.iceberg.publish.ForeignCommit
    val commits = commit.of(
      metadata(table),
      iceberg(table).asInstanceOf[org.apache.iceberg.BaseTable].operations,
      metadata(table).currentSnapshot,
      None
    )
    writer.append(commits)
    assert(count(table) == 3)
    settle(table, snapshot, take = true)
    assert(count(table) == 3)
    assertPublished(table)
  }

  test("what an Iceberg writer commits is dropped by name, with deletes and columns of its own") {
    val table = created(byPath())
    val before = iceberg(table).currentSnapshot
    iceberg(table)
      .updateSchema()
      .addColumn("theirs", IntegerType.get)
      .commit()
    val gone =
      Using.resource(iceberg(table).newScan().planFiles())(_.iterator.asScala.toSeq.head.file)
    iceberg(table).newDelete().deleteFile(gone).commit()
    val snapshot = iceberg(table).currentSnapshot.snapshotId
    assert(problems(table).head.contains("NOT_TAKEN"))
    assert(refused(table)(settle(table, snapshot, take = true)).getCondition.endsWith("NOT_TAKEN"))
    settle(table, snapshot, take = false)
    assert(iceberg(table).currentSnapshot.snapshotId == before.snapshotId)
    settle(table, snapshot, take = false)
    // Delta has none of these rows, so no result says that it had.
    Seq(snapshot, before.snapshotId).foreach { id =>
      val refusal = refused(table)(settle(table, id, take = true))
      assert(refusal.getCondition.endsWith("NO_SUCH_COMMIT"))
    }
    sql(s"INSERT INTO ${table.name} VALUES (9, 'i')")
    publish(table)
    assert(inIceberg(table) == inDelta(spark.table(table.name)))
    assert(iceberg(table).schema.columns.asScala.map(_.name) == Seq("id", "name"))
    assert(problems(table) == Nil)
  }

  private def discardChanges(table: TestTable, file: String): JsonNode =
    mapper.readTree(IcebergWriterCompat.discardChanges(spark, table.name, file))

  private def name(table: TestTable): String = newest(table).getFileName.toString

  // Changes of an Iceberg writer without a snapshot, and their descriptions.
  private val changes = Seq[(String, Table => Unit, String)](
    (
      "a column that is added",
      _.updateSchema().addColumn("theirs", IntegerType.get).commit(),
      "column theirs int is added"
    ),
    (
      "a column that is dropped",
      _.updateSchema().deleteColumn("name").commit(),
      "column name string is dropped"
    ),
    (
      "a column that is renamed",
      _.updateSchema().renameColumn("name", "title").commit(),
      "column name string is now title string"
    ),
    (
      "a column that gets a comment",
      _.updateSchema().updateColumnDoc("name", "theirs").commit(),
      "column name string is now name string COMMENT 'theirs'"
    ),
    ("columns in another order", _.updateSchema().moveFirst("name").commit(), "another order"),
    ("partitions", _.updateSpec().addField("id").commit(), "other partitions (id: identity of 1)"),
    (
      "a property that keeps writers away",
      _.updateProperties().remove("write.py-location-provider.impl").commit(),
      "property write.py-location-provider.impl is removed"
    ),
    (
      "a property that publishing sets",
      _.updateProperties().set("gc.enabled", "true").commit(),
      "property gc.enabled is 'true'"
    ),
    (
      "the format version",
      _.updateProperties().set("format-version", "3").commit(),
      "format version 3 instead of 2"
    )
  )

  changes.foreach { case (what, change, told) =>
    test(s"$what: changed by an Iceberg writer, it is noticed, kept and dropped by name") {
      val table = created(byPath(), published)
      change(iceberg(table))
      val theirs = name(table)
      val listing = FolderListing.of(table.folder)
      assert(problems(table).size == 1 && problems(table).head.contains(told), problems(table))
      val remedy = status(table).get("problems").get(0).at("/remedy/command/0").asText
      assert(remedy.endsWith(s"--discard-changes $theirs"))
      assert(verified(table) == problems(table))
      val refusal = refused(table)(publish(table))
      assert(refusal.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.FOREIGN_CHANGE")
      assert(refused(table)(vacuum(table)).getCondition == "ICEBERG_WRITER_COMPAT_VACUUM_REFUSED")
      withConf(anyRetention: _*)(
        assertThrows[Exception](rows(s"VACUUM ${table.name} RETAIN 0 HOURS DRY RUN"))
      )
      assert(refused(table)(discardChanges(table, "v1.metadata.json")) != null)
      assert(FolderListing.of(table.folder) == listing)
      // The hook leaves it, and the commit.
      sql(s"INSERT INTO ${table.name} VALUES (5, 'e')")
      assert(name(table) == theirs)
      discardChanges(table, theirs)
      def same(): Unit = {
        assert(inIceberg(table) == inDelta(spark.table(table.name)))
        assert(iceberg(table).schema.columns.asScala.map(_.name) == Seq("id", "name"))
        assert(iceberg(table).schema.columns.asScala.forall(_.doc == null))
        assert(iceberg(table).spec.isUnpartitioned)
        assert(metadata(table).formatVersion == 2)
        assert(metadata(table).property("gc.enabled", "") == "false")
        assert(metadata(table).properties.containsKey("write.py-location-provider.impl"))
        assert(problems(table) == Nil)
      }
      same()
      assert(discardChanges(table, name(table)).get("snapshots").asInt == 0)
      val unknown = refused(table)(discardChanges(table, "v99.metadata.json"))
      assert(unknown.getCondition.endsWith("NO_SUCH_CHANGE"))
      sql(s"DELETE FROM ${table.name} WHERE id = 1")
      same()
    }
  }

  test("properties and orders that publishing does not set are the Iceberg users' own") {
    val table = created(byPath(), published)
    iceberg(table).updateProperties().set("owner", "theirs").commit()
    iceberg(table).replaceSortOrder().asc("id").commit()
    assert(problems(table) == Nil)
    sql(s"ALTER TABLE ${table.name} ADD COLUMN more FLOAT")
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c', 0.5)")
    assertPublished(table)
    assert(metadata(table).property("owner", "") == "theirs")
    assert(metadata(table).sortOrder != SortOrder.unsorted)
    sql(s"ALTER TABLE ${table.name} DROP COLUMN more")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN name COMMENT 'ours'")
    assert(problems(table) == Nil)
    assertPublished(table)
  }

  test("rows of an Iceberg writer who raised the format version are taken over, in a new line") {
    val table = created(byPath())
    iceberg(table).updateProperties().set("format-version", "3").commit()
    val snapshot = foreignAppend(table)
    assert(status(table).get("problems").toString.contains(s"--take-snapshot $snapshot"))
    settle(table, snapshot, take = true)
    assert(count(table) == 3)
    assertSameTable(table)
    assert(metadata(table).formatVersion == 2)
    assert(problems(table) == Nil)
  }

  test("what an Iceberg writer changed before the folder was moved is not lost without a word") {
    val table = created(byPath())
    iceberg(table).updateSchema().addColumn("theirs", IntegerType.get).commit()
    val target = moved(table)
    assert(problems(target).size == 1 && problems(target).head.contains("theirs"))
    assert(refused(target)(publish(target)).getCondition.endsWith("FOREIGN_CHANGE"))
    discardChanges(target, name(target))
    assertNewLine(target)
  }

  Seq[(String, Path => Unit)](
    "missing" -> (remove(_)),
    "cut off" -> (cut(_)),
    "of other bytes" -> (file => write(file, Array.fill[Byte](Files.size(file).toInt)('x')))
  ).foreach { case (how, damage) =>
    test(s"rows of an Iceberg writer whose file is $how are not taken over") {
      val table = created(byPath(), published)
      foreignAppend(table)
      val last = foreignAppend(table)
      Using
        .resource(Files.list(table.folder.resolve("data")))(_.iterator.asScala.toSeq)
        .filter(_.toString.endsWith(".parquet"))
        .take(1)
        .foreach(damage)
      if (how != "of other bytes") assert(problems(table).head.contains("NOT_TAKEN"))
      val version = table.log.version
      val refusal = refused(table)(settle(table, last, take = true))
      assert(refusal.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.NOT_TAKEN")
      assert(table.log.version == version)
      settle(table, last, take = false)
      assert(inIceberg(table) == inDelta(spark.table(table.name)))
      assert(problems(table) == Nil)
    }
  }

  test("an older snapshot that was made current again is followed by the newest") {
    val table = created(byPath())
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    publish(table)
    iceberg(table).manageSnapshots().rollbackTo(snapshots(table).head.snapshotId).commit()
    assert(problems(table).size == 1)
    publish(table)
    assertPublished(table)
    assert(problems(table) == Nil)
  }

  test("folders that no reader opens in any form are refused, by the character") {
    Seq("#", "?", "\"", "\t").foreach { character =>
      val folder = SharedSpark.freshFolder().resolve(s"a${character}b")
      Files.createDirectories(folder.getParent)
      val table = byPath()
      numbers(table)
      sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
      Files.move(table.folder, folder)
      DeltaLog.clearCache()
      val odd = at(folder)
      assert(problems(odd).size == 1)
      val error = intercept[IcebergWriterCompatException](publish(odd))
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.FOLDER")
      assert(!Files.exists(folder.resolve("metadata")))
    }
  }
}
