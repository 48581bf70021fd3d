package org.apache.spark.sql.delta.writercompat.writeback

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.iceberg.types.Types
import org.apache.iceberg.types.Types.NestedField
import org.apache.iceberg.util.SnapshotUtil
import org.apache.iceberg.{BaseTable, Schema, SnapshotParser, Table, TableMetadata}
import org.apache.spark.sql.streaming.{StreamingQueryException, Trigger}
import org.icebergwritercompat.testing.{SharedSpark, TestTable}

import java.nio.file.Files
import java.time.{Duration, Instant}
import java.util.concurrent.ConcurrentLinkedQueue
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What the log says of the commits of Iceberg clients, and how streams come across them. */
class ClientCommitsSuite extends ClientSuite {

  /** A table with two rows and these properties. */
  private def filled(properties: String*): TestTable = {
    val table = managed()
    val all = (on +: properties).mkString(", ")
    sql(s"CREATE TABLE ${table.name} (id BIGINT, name STRING) USING delta TBLPROPERTIES ($all)")
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b')")
    table
  }

  test("the history has the operation, the engine and the snapshot id of each commit") {
    val table = managed()
    val schema = new Schema(
      NestedField.optional(1, "id", Types.LongType.get),
      NestedField.optional(2, "name", Types.StringType.get)
    )
    val there = catalog.createTable(id(table), schema)
    def by(engine: String, snapshot: org.apache.iceberg.SnapshotUpdate[_]): Long = {
      snapshot.set("engine-name", engine)
      snapshot.set("engine-version", "1")
      snapshot.commit()
      there.currentSnapshot.snapshotId
    }
    val first = file(there, None, record(schema, 1L, "a"), record(schema, 2L, "b"))
    val second = file(there, None, record(schema, 1L, "a"))
    val third = file(there, None, record(schema, 1L, "a"))
    val ids = Seq(
      by("one", there.newAppend().appendFile(first)),
      by("two", there.newOverwrite().deleteFile(first).addFile(second)),
      by("three", there.newRewrite().deleteFile(second).addFile(third)),
      by("four", there.newDelete().deleteFile(third))
    )
    there.updateProperties().set("k", "v").commit()
    there.updateSchema().addColumn("x", Types.LongType.get).commit()
    there.manageSnapshots().rollbackTo(ids.head).commit()
    val history = spark
      .sql(s"DESCRIBE HISTORY ${table.name}")
      .select("version", "operation", "operationParameters", "operationMetrics")
      .collect()
      .sortBy(_.getLong(0))
    assert(
      history.map(_.getString(1)).toSeq == Seq(
        "CREATE",
        "APPEND",
        "OVERWRITE",
        "REPLACE",
        "DELETE",
        "SET PROPERTIES",
        "ALTER",
        "ROLLBACK"
      ).map(name => s"ICEBERG $name")
    )
    val said = history.map(_.getMap[String, String](2))
    assert(
      said.slice(1, 5).map(_("engine-name")).toSeq == Seq("one", "two", "three", "four")
    )
    assert(said.slice(1, 5).forall(_("engine-version") == "1"))
    assert(said.slice(1, 5).map(_("snapshot-id").toLong).toSeq == ids)
    assert(said(7)("snapshot-id").toLong == ids.head)
    val metrics = history.map(_.getMap[String, String](3))
    assert(metrics(2)("numAddedFiles") == "1" && metrics(2)("numRemovedFiles") == "1")
    assertSame(table)
  }

  test("snapshots have the in-commit timestamps of Delta's commits, in order") {
    val table = filled("'delta.enableInCommitTimestamps' = 'true'")
    val there = client(table)
    val transaction = there.newTransaction()
    Seq(3L, 4L).foreach { i =>
      val made = file(there, None, record(there.schema, i, "x"))
      transaction.newAppend().appendFile(made).commit()
    }
    Thread.sleep(20)
    transaction.commitTransaction()
    append(there, Seq(5L, "e"))
    val times = Seq(2L, 3L).map { version =>
      table.log.actions(version).head match {
        case ("commitInfo", info) => info.get("inCommitTimestamp").asLong
        case other                => fail(s"$other")
      }
    }
    assert(times == times.sorted && times.distinct == times)
    val published = snapshots(table).filter(_.summary.containsKey("delta-version"))
    val newest = published.takeRight(2)
    assert(newest.map(_.summary.get("delta-version")) == Seq("2", "3"))
    assert(newest.map(_.timestampMillis) == times)
    val all = snapshots(table).map(_.timestampMillis)
    assert(all == all.sorted)
    assertSameByTime(table, times)
    assertSame(table)
  }

  /** By time, both go back to the same rows. */
  private def assertSameByTime(table: TestTable, times: Seq[Long]): Unit =
    times.foreach { time =>
      val found = SnapshotUtil.snapshotIdAsOfTime(iceberg(table), time)
      val seen = spark.read
        .format("delta")
        .option("timestampAsOf", Instant.ofEpochMilli(time).toString)
        .table(table.name)
      assert(inIceberg(table, Some(found)) == inDelta(seen))
    }

  test("the clock of a client may be ahead or behind by less than a minute") {
    val table = filled()
    val there = client(table)
    val operations = there.asInstanceOf[BaseTable].operations
    def commit(row: Long, shift: Duration): Long = {
      val made = there.newAppend().appendFile(file(there, None, record(there.schema, row, "x")))
      val json = mapper.readTree(SnapshotParser.toJson(made.apply())).asInstanceOf[ObjectNode]
      json.put("timestamp-ms", json.get("timestamp-ms").asLong + shift.toMillis)
      val snapshot = SnapshotParser.fromJson(json.toString)
      val base = operations.current
      val updated = TableMetadata.buildFrom(base).setBranchSnapshot(snapshot, "main").build()
      operations.commit(base, updated)
      snapshot.snapshotId
    }
    def clock(): Long = Files
      .getLastModifiedTime(table.folder.resolve(f"_delta_log/${table.log.version}%020d.json"))
      .toMillis
    val times = Seq(50, -50)
      .map(Duration.ofSeconds(_))
      .zipWithIndex
      .map { case (shift, i) =>
        val ids = commit(10L + i, shift)
        assert(metadata(table).currentSnapshot.snapshotId == ids)
        // That of Delta's commit, or a little later.
        val time = metadata(table).currentSnapshot.timestampMillis
        assert(time >= clock() && time <= System.currentTimeMillis())
        sql(s"INSERT INTO ${table.name} VALUES (${20 + i}, 'd')")
        append(there, Seq(30L + i, "y"))
        time
      }
    assertTimesGoOn(table)
    // By more, Iceberg's library refuses it before anything is committed.
    val before = table.log.version
    Seq(Duration.ofHours(1), Duration.ofDays(400), Duration.ofHours(-1)).foreach { shift =>
      intercept[IllegalArgumentException](commit(40, shift))
      assert(table.log.version == before)
    }
    assertSameByTime(table, times)
    assertSame(table)
  }

  private val mapper = new ObjectMapper

  test("each version has the same rows in Delta and, by its snapshot, in Iceberg") {
    val table = filled()
    val there = client(table)
    append(there, Seq(3L, "c"), Seq(4L, null))
    there.updateSchema().renameColumn("name", "title").addColumn("n", Types.LongType.get).commit()
    append(there, Seq(5L, "e", 50L))
    sql(s"RESTORE ${table.name} TO VERSION AS OF 2")
    append(client(table), Seq(6L, "f"))
    val seen = snapshots(table).map { snapshot =>
      val version = snapshot.summary.get("delta-version")
      val rows = spark.read.format("delta").option("versionAsOf", version).table(table.name)
      assert(inIceberg(table, Some(snapshot.snapshotId)) == inDelta(rows), version)
      version.toLong
    }
    // All but the one that changed the columns alone.
    assert(seen == Seq(1, 2, 4, 5, 6))
    assertSame(table)
  }

  test("row tracking that is supported and inactive stays so, and rows get their numbers") {
    withConf("spark.icebergWriterCompat.profile" -> "rfc-current") {
      val table = filled("'delta.feature.rowTracking' = 'supported'")
      assert(table.log.writerFeatures("rowTracking"))
      val there = client(table)
      val made = append(there, Seq(3L, "c"), Seq(4L, "d"))
      val rewritten =
        file(there, None, record(there.schema, 3L, "c"), record(there.schema, 4L, "d"))
      there.newRewrite().deleteFile(made).addFile(rewritten).commit()
      sql(s"INSERT INTO ${table.name} VALUES (5, 'e')")
      append(client(table), Seq(6L, "f"))
      val files = table.log.liveFiles.values.toSeq
      val numbers = files.map { add =>
        val rows = new com.fasterxml.jackson.databind.ObjectMapper()
          .readTree(add.get("stats").asText)
          .get("numRecords")
          .asLong
        add.get("baseRowId").asLong -> rows
      }.sorted
      // No two rows have the same one.
      assert(numbers.zip(numbers.drop(1)).forall { case ((a, rows), (b, _)) => a + rows <= b })
      assert(files.forall(_.has("defaultRowCommitVersion")))
      assert(!table.log.properties.get("delta.enableRowTracking").contains("true"))
      assertSame(table)
    }
  }

  test("columns whose metrics are published in another way are renamed, dropped and replaced") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, f FLOAT, s STRUCT<d: DOUBLE, e: DOUBLE>, g DOUBLE) " +
        s"USING delta TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 1.5, struct(2.5, double('NaN')), 3.5)")
    def modes: Set[String] =
      iceberg(table).properties.keySet.asScala.filter(_.contains("metrics.column")).toSet
    val there = client(table)
    val before = modes
    assert(before.nonEmpty)
    there
      .updateSchema()
      .renameColumn("f", "ff")
      .renameColumn("s.d", "dd")
      .renameColumn("s", "t")
      .deleteColumn("g")
      .commit()
    there.updateSchema().addColumn("g", Types.FloatType.get).deleteColumn("t.e").commit()
    append(
      there,
      Seq(2L, 4.5f, record(there.schema.findType("t").asStructType.asSchema, 5.5), 6.5f)
    )
    assert(modes.nonEmpty && modes != before)
    assertSame(table)
    val refused = intercept[org.apache.iceberg.exceptions.ValidationException] {
      val key = modes.head
      there.updateProperties().set(key, "full").commit()
    }
    assert(refused.getMessage.contains("COMMIT_REFUSED.PROPERTY]"))
    // A replaced table has other columns.
    catalog.buildTable(id(table), one("id")).replaceTransaction().commitTransaction()
    append(client(table), Seq(7L))
    assertSame(table)
  }

  test("a table that is replaced keeps its name, its feature and its history") {
    val table = filled("'iceberg.kept' = 'by delta'")
    val before = client(table).currentSnapshot.snapshotId
    val other = new Schema(NestedField.optional(1, "name", Types.StringType.get))
    val transaction = catalog.buildTable(id(table), other).replaceTransaction()
    val there = transaction.table
    transaction.newAppend().appendFile(file(there, None, record(there.schema, "only"))).commit()
    transaction.commitTransaction()
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[only]"))
    assert(inIceberg(table, Some(before)) == Seq("{1, a}", "{2, b}"))
    assert(rows(s"SELECT * FROM ${table.name} VERSION AS OF 1") == Set("[1,a]", "[2,b]"))
    // A column of the same name is the same column.
    assert(table.log.columns.map(_.id) == Seq(Some(2L)))
    assertSame(table)
    // Without rows, which is a commit of its own.
    catalog.buildTable(id(table), one("id")).replaceTransaction().commitTransaction()
    assert(count(table) == 0)
    append(client(table), Seq(7L))
    assertSame(table)
    // And one that nobody has yet.
    val fresh = managed()
    val create = catalog.buildTable(id(fresh), one("n")).createOrReplaceTransaction()
    create.newAppend().appendFile(file(create.table, None, record(one("n"), 1L))).commit()
    create.commitTransaction()
    assert(count(fresh) == 1)
    assertSame(fresh)
  }

  private def one(name: String) = new Schema(NestedField.optional(1, name, Types.LongType.get))

  test("one snapshot may add, remove and replace, and a transaction may have many") {
    val table = filled()
    val there = client(table)
    val first = append(there, Seq(3L, "c"))
    val transaction = there.newTransaction()
    transaction.newDelete().deleteFile(first).commit()
    transaction.updateSchema().addColumn("n", Types.IntegerType.get).commit()
    val wider = transaction.table.schema
    val second = file(there, None, record(there.schema, 4L, "d"))
    transaction.newAppend().appendFile(second).commit()
    transaction
      .updateSchema()
      .updateColumn("n", Types.LongType.get)
      .renameColumn("n", "m")
      .commit()
    transaction.updateProperties().set("k", "v").commit()
    transaction.commitTransaction()
    assert(wider.columns.size == 3)
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[1,a,null]", "[2,b,null]", "[4,d,null]"))
    assert(table.log.version == 3 && snapshots(table).size == 4)
    sql(s"INSERT INTO ${table.name} VALUES (5, 'e', 5000000000)")
    assertSame(table)
  }

  /** What a stream of Delta reads from where it stopped the last time. */
  private def streamed(
      table: TestTable,
      checkpoint: String,
      options: (String, String)*
  ): Seq[Long] = {
    val seen = new ConcurrentLinkedQueue[Long]
    spark.readStream
      .options(options.toMap)
      .table(table.name)
      .writeStream
      .option("checkpointLocation", checkpoint)
      .trigger(Trigger.AvailableNow())
      .foreachBatch { (batch: org.apache.spark.sql.Dataset[org.apache.spark.sql.Row], _: Long) =>
        batch.select("id").collect().foreach(row => seen.add(row.getLong(0)))
      }
      .start()
      .awaitTermination()
    seen.asScala.toSeq.sorted
  }

  test("a stream of Delta reads what clients append, once") {
    val table = filled()
    val checkpoint = SharedSpark.freshFolder().toString
    assert(streamed(table, checkpoint) == Seq(1, 2))
    val there = client(table)
    val first = append(there, Seq(3L, "c"))
    val second = append(there, Seq(4L, "d"))
    sql(s"INSERT INTO ${table.name} VALUES (5, 'e')")
    assert(streamed(table, checkpoint) == Seq(3, 4, 5))
    // The same rows in other files.
    val together = file(there, None, record(there.schema, 3L, "c"), record(there.schema, 4L, "d"))
    there.refresh()
    there.newRewrite().deleteFile(first).deleteFile(second).addFile(together).commit()
    append(there, Seq(6L, "f"))
    assert(streamed(table, checkpoint) == Seq(6))
    // Two snapshots in one commit are one version.
    val transaction = there.newTransaction()
    Seq(7L, 8L).foreach { i =>
      val made = file(there, None, record(there.schema, i, "x"))
      transaction.newAppend().appendFile(made).commit()
    }
    transaction.commitTransaction()
    assert(streamed(table, checkpoint) == Seq(7, 8))
    // A row that is gone stops a stream, whoever removed it, unless it is to go on.
    there.newDelete().deleteFile(together).commit()
    val error = intercept[StreamingQueryException](streamed(table, checkpoint))
    assert(error.getMessage.contains("DELTA_SOURCE_IGNORE_DELETE"), error.getMessage)
    append(there, Seq(9L, "i"))
    assert(streamed(table, checkpoint, "skipChangeCommits" -> "true") == Seq(9))
    assertSame(table)
  }

  test("an incremental read of Iceberg goes across commits of Delta") {
    val table = filled()
    val there = client(table)
    val from = there.currentSnapshot.snapshotId
    append(there, Seq(3L, "c"))
    sql(s"INSERT INTO ${table.name} VALUES (4, 'd')")
    sql(s"OPTIMIZE ${table.name}")
    append(client(table), Seq(5L, "e"))
    sql(s"INSERT INTO ${table.name} VALUES (6, 'f')")
    def appended(at: Table): Set[String] =
      Using.resource(at.newIncrementalAppendScan().fromSnapshotExclusive(from).planFiles()) {
        _.asScala.map(_.file.location).toSet
      }
    val versions = Seq(2L, 3L, 5L, 6L).flatMap { version =>
      table.log.actions(version).collect { case ("add", add) => add.get("path").asText }
    }
    val found = appended(client(table))
    assert(found == appended(iceberg(table)))
    assert(found.map(_.split('/').last) == versions.map(_.split('/').last).toSet)
    assertSame(table)
  }
}
