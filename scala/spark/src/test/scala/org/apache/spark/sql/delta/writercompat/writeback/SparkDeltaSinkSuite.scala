package org.apache.spark.sql.delta.writercompat.writeback

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.parquet.example.data.Group
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.delta.writercompat.read.DeltaTables
import org.apache.spark.sql.types._
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.testing.{FolderListing, ForeignFiles, TestTable}

import java.nio.file.{Files, Path}
import java.util.UUID

class SparkDeltaSinkSuite extends TableSuite {

  private def log(table: TestTable): DeltaLog = DeltaTables.find(spark, table.name).deltaLog

  private def sink(table: TestTable): DeltaSink =
    new SparkDeltaSink(
      spark,
      table.name,
      log(table),
      DeltaTables.find(spark, table.name).catalogTable
    )

  private def table(columns: String = "id BIGINT, name STRING, n INT, d DOUBLE"): TestTable = {
    val made = managed()
    sql(
      s"CREATE TABLE ${made.name} ($columns) USING delta " +
        s"TBLPROPERTIES ($on, 'delta.enableTypeWidening' = 'true')"
    )
    made
  }

  private val append = ClientOperation("append", Map("engine-name" -> "tester"))

  // A file as another writer of the table would put there, with the rows of one of its own.
  private def copied(table: TestTable): AddedFile = {
    val (from, add) = table.log.liveFiles.head
    val path = s"data/${UUID.randomUUID}.parquet"
    val to = table.folder.resolve(path)
    Files.createDirectories(to.getParent)
    Files.copy(from, to)
    val rows = new ObjectMapper().readTree(add.get("stats").asText).get("numRecords").asLong
    AddedFile(path, Map.empty, Files.size(to), s"""{"numRecords":$rows}""", dataChange = true)
  }

  private def definition(table: TestTable): (StructType, Int) = {
    val metadata = log(table).update().metadata
    (metadata.schema, metadata.configuration("delta.columnMapping.maxColumnId").toInt)
  }

  private def tableId(table: TestTable): String = table.log.metadata.get("id").asText

  private def column(id: Int, name: String, of: DataType): StructField = StructField(
    name,
    of,
    nullable = true,
    new MetadataBuilder()
      .putLong("delta.columnMapping.id", id.toLong)
      .putString("delta.columnMapping.physicalName", s"col-$id")
      .build()
  )

  private def committed(outcome: CommitOutcome): Long = outcome match {
    case CommitOutcome.Committed(version) => version
    case CommitOutcome.Refused(why)       => throw why
    case CommitOutcome.Unknown(why)       => throw why
    case other                            => fail(s"$other")
  }

  private def refusal(outcome: CommitOutcome): String = outcome match {
    case CommitOutcome.Refused(why) => why.getMessage
    case other                      => fail(s"$other")
  }

  /** Nothing is in the table's folder after what did not become a commit. */
  private def nothingCommitted(table: TestTable)(outcome: => CommitOutcome): CommitOutcome = {
    val before = FolderListing.of(table.folder)
    val result = outcome
    assert(FolderListing.of(table.folder) == before)
    result
  }

  private def commitInfo(table: TestTable): JsonNode =
    table.log.actions(table.log.version).collectFirst { case ("commitInfo", info) => info }.get

  test("a file becomes a commit with statistics from its footer, and a note of the client") {
    val to = table()
    sql(
      s"INSERT INTO ${to.name} SELECT /*+ COALESCE(1) */ * FROM VALUES " +
        "(1, 'a', 7, 1.5), (9007199254740993, 'b', null, -0.0)"
    )
    val file = copied(to)
    val note = ClientSnapshots("some-id", Some(7L), Seq("""{"snapshot-id":8}"""))
    val proposed = ProposedCommit(append, added = Seq(file), client = Some(note))
    assert(committed(sink(to).commit(proposed, 1)) == 2)
    assert(count(to) == 4)
    assert(rows(s"SELECT * FROM ${to.name} WHERE id = 9007199254740993").size == 1)
    val add = to.log.actions(2).collectFirst { case ("add", added) => added }.get
    assert(add.get("path").asText == file.path && add.get("dataChange").asBoolean)
    val stats = new ObjectMapper().readTree(add.get("stats").asText)
    assert(stats.get("numRecords").asLong == 2)
    assert(stats.get("minValues").get("col-1").asLong == 1)
    assert(stats.get("maxValues").get("col-1").asLong == 9007199254740993L)
    assert(stats.get("maxValues").get("col-2").asText == "b")
    assert(stats.get("nullCount").get("col-3").asLong == 1)
    assert(stats.get("maxValues").get("col-4").asDouble == 1.5)
    val info = commitInfo(to)
    assert(info.get("operation").asText == "ICEBERG APPEND")
    assert(info.get("operationParameters").get("engine-name").asText == "tester")
    assert(info.get("operationMetrics").get("numAddedFiles").asText == "1")
    assert(
      ClientSnapshots.parse(info.get("tags").get(ClientSnapshots.Tag).asText).contains(note)
    )
    assertCompliant(to)
  }

  test("rows are found by filters on what the footers tell") {
    val to = table(
      "id BIGINT, name STRING, d DOUBLE, f FLOAT, t TIMESTAMP, u TIMESTAMP_NTZ, p DECIMAL(12, 3), e DATE"
    )
    sql(
      s"INSERT INTO ${to.name} SELECT id, repeat(char(97 + id), 40), " +
        "CASE WHEN id = 3 THEN double('NaN') ELSE id / 2 END, " +
        "CASE WHEN id = 3 THEN float('NaN') ELSE id / 2 END, " +
        "timestamp_micros(id * 1000001 - 1), cast(timestamp_micros(id * 999999) AS TIMESTAMP_NTZ), " +
        "id / 8, date_add(DATE'1969-12-30', cast(id AS INT)) FROM range(0, 6, 1, 1)"
    )
    committed(sink(to).commit(ProposedCommit(append, added = Seq(copied(to))), 1))
    val added = to.log.actions(2).collectFirst { case ("add", add) => add.get("path").asText }.get
    // The same rows are in a file with Delta's own statistics.
    Seq(
      "d > 5",
      "f > 5",
      "name = repeat('f', 40)",
      "name > repeat('e', 40)",
      "t = TIMESTAMP'1970-01-01 00:00:05.000004Z'",
      "t < TIMESTAMP'1970-01-01 00:00:00Z'",
      "u = TIMESTAMP_NTZ'1970-01-01 00:00:04.999995'",
      "p = 0.625",
      "p <= 0",
      "e = DATE'1970-01-04'",
      "e < DATE'1970-01-01'"
    ).foreach { filter =>
      val found = spark.sql(s"SELECT * FROM ${to.name} WHERE $filter").collect()
      assert(found.nonEmpty && found.length % 2 == 0, filter)
    }
    // What no row has is not read at all.
    Seq("p > 100", "t > TIMESTAMP'2026-01-01 00:00:00Z'", "e > DATE'2026-01-01'", "name > 'zz'")
      .foreach { filter =>
        val condition = spark
          .sql(s"SELECT * FROM ${to.name} WHERE $filter")
          .queryExecution
          .optimizedPlan
          .collectFirst { case found: Filter => found.condition }
          .get
        val kept = log(to).update().filesForScan(Seq(condition))
        assert(!kept.files.exists(_.path == added), filter)
      }
  }

  test("files are removed and added in one commit") {
    val to = table()
    sql(s"INSERT INTO ${to.name} SELECT id, 'x', 1, 1.0 FROM range(0, 3, 1, 1)")
    val old = to.log.actions(1).collectFirst { case ("add", add) => add.get("path").asText }.get
    val file = copied(to).copy(dataChange = false)
    val rewrite = ProposedCommit(
      ClientOperation("replace"),
      added = Seq(file),
      removed = Seq(RemovedFile(old, dataChange = false))
    )
    committed(sink(to).commit(rewrite, 1))
    assert(count(to) == 3 && to.log.liveFiles.size == 1)
    val kinds = to.log.actions(2).filter { case (kind, _) => kind == "add" || kind == "remove" }
    assert(kinds.forall(!_._2.get("dataChange").asBoolean))
    val again = sink(to).commit(rewrite.copy(added = Nil), 2)
    assert(refusal(nothingCommitted(to)(again)).contains("the Delta table does not have it"))
  }

  test("a commit on another version than the newest is not made, nor one that loses a race") {
    val to = table()
    sql(s"INSERT INTO ${to.name} VALUES (1, 'a', 1, 1.0)")
    val proposed = ProposedCommit(append, added = Seq(copied(to)))
    assert(nothingCommitted(to)(sink(to).commit(proposed, 0)) == CommitOutcome.Overtaken(1))
    var outcome: Option[CommitOutcome] = None
    val late = race { outcome = Some(sink(to).commit(proposed, 1)) } {
      sql(s"ALTER TABLE ${to.name} SET TBLPROPERTIES ('some' = 'thing')")
    }
    assert(late.isSuccess && outcome.contains(CommitOutcome.Overtaken(2)))
    assert(to.log.version == 2 && count(to) == 1)
    // The same on the version that won.
    assert(committed(sink(to).commit(proposed, 2)) == 3)
  }

  test("a request is committed once") {
    val to = table()
    sql(s"INSERT INTO ${to.name} VALUES (1, 'a', 1, 1.0)")
    val proposed =
      ProposedCommit(
        append,
        added = Seq(copied(to)),
        request = Some(RequestMark("iceberg.request.1", 1))
      )
    assert(committed(sink(to).commit(proposed, 1)) == 2)
    assert(sink(to).commit(proposed, 1) == CommitOutcome.Repeated)
    assert(sink(to).commit(proposed, 2) == CommitOutcome.Repeated)
    assert(to.log.version == 2 && count(to) == 2)
  }

  test("columns keep their ids: added, dropped, renamed and widened in one commit") {
    val to = table()
    sql(s"INSERT INTO ${to.name} VALUES (1, 'a', 7, 1.5)")
    val (schema, highest) = definition(to)
    val renamed = schema("n").copy(name = "wide", dataType = LongType)
    val added = column(highest + 1, "n", StringType)
    val changed =
      StructType(
        Seq(schema("name"), schema("id"), renamed, added, column(highest + 2, "x", DateType))
      )
    val proposed = ProposedCommit(
      ClientOperation("alter"),
      definition = Some(ProposedDefinition(tableId(to), changed, Nil, highest + 5)),
      set = Map("iceberg.k" -> "v")
    )
    committed(sink(to).commit(proposed, 1))
    assert(maxColumnId(to) == highest + 5)
    assert(to.log.columns.map(_.name) == Seq("name", "id", "wide", "n", "x"))
    assert(
      to.log.columns.map(_.id) == Seq(2, 1, 3, highest + 1, highest + 2).map(id => Some(id.toLong))
    )
    assert(to.log.properties("iceberg.k") == "v")
    sql(s"INSERT INTO ${to.name} VALUES ('b', 2, 5000000000, 'new', DATE'2026-01-01')")
    assert(
      rows(s"SELECT * FROM ${to.name}") ==
        Set("[a,1,7,null,null]", "[b,2,5000000000,new,2026-01-01]")
    )
    assertCompliant(to)
  }

  test("what breaks a rule is refused, and nothing is committed") {
    val to = table()
    sql(s"INSERT INTO ${to.name} VALUES (1, 'a', 7, 1.5)")
    val (schema, highest) = definition(to)
    def alter(fields: StructField*): String = {
      val changed = StructType(fields)
      val what = ProposedDefinition(tableId(to), changed, Nil, highest + 1)
      refusal(
        nothingCommitted(to)(
          sink(to).commit(ProposedCommit(ClientOperation("alter"), Some(what)), 1)
        )
      )
    }
    val others = schema.fields.filterNot(_.name == "n").toSeq
    assert(alter(others :+ schema("n").copy(dataType = StringType): _*).contains("C14"))
    assert(alter(others :+ schema("n").copy(nullable = false): _*).contains("C14"))
    // The id of a column is no other's.
    assert(alter(others :+ column(1, "n", LongType): _*).contains("duplicated column id"))
    val dropFeature = ProposedCommit(
      ClientOperation("set properties"),
      set = Map("delta.enableDeletionVectors" -> "true")
    )
    assert(refusal(nothingCommitted(to)(sink(to).commit(dropFeature, 1))).contains("B6"))
    assert(to.log.version == 1)
  }

  private def file(to: TestTable, fields: String*)(rows: (Group => Any)*): AddedFile = {
    val path: Path = to.folder.resolve(s"${UUID.randomUUID}.parquet")
    ForeignFiles.write(path, fields: _*)(rows: _*)
    AddedFile(
      path.getFileName.toString,
      Map.empty,
      Files.size(path),
      s"""{"numRecords":${rows.size}}""",
      dataChange = true
    )
  }

  test("a file whose footer breaks a rule is refused, by the rule") {
    val to = table("id BIGINT, name STRING NOT NULL")
    def refused(file: AddedFile): String =
      refusal(nothingCommitted(to)(sink(to).commit(ProposedCommit(append, added = Seq(file)), 0)))
    val good = Seq("optional int64 a = 1;", "optional binary b (STRING) = 2;")
    val written = file(to, good: _*)(
      row => row.append("a", 1L).append("b", "x"),
      row => row.append("a", 2L).append("b", "y")
    )
    assert(
      refused(file(to, "optional int64 id;", "optional binary name (STRING);")(_.append("id", 1L)))
        .contains("E1f")
    )
    assert(refused(written.copy(size = written.size + 1)).contains("D1f"))
    assert(refused(written.copy(statistics = """{"numRecords":3}""")).contains("D1f"))
    val missing = "no-such-file.parquet"
    assert(refused(written.copy(path = missing)).contains(s"$missing breaks the rule E0"))
    assert(refused(file(to, good: _*)(_.append("a", 1L))).contains("E10"))
    assert(committed(sink(to).commit(ProposedCommit(append, added = Seq(written)), 0)) == 1)
    assert(rows(s"SELECT * FROM ${to.name}") == Set("[1,x]", "[2,y]"))
  }

  test("many files are looked at by tasks, and one that breaks a rule refuses all") {
    val to = table()
    sql(s"INSERT INTO ${to.name} VALUES (1, 'a', 7, 1.5)")
    val files = Seq.fill(20)(copied(to))
    val proposed = ProposedCommit(append, added = files)
    val wrong = files.updated(11, files(11).copy(size = 1))
    val refused = refusal(sink(to).commit(proposed.copy(added = wrong), 1))
    assert(refused.contains(files(11).path) && refused.contains("D1f"))
    assert(committed(sink(to).commit(proposed, 1)) == 2)
    assert(count(to) == 21)
  }

  test("a table is made with the ids that it is given") {
    val to = byPath()
    val at = DeltaLog.forTable(spark, to.folder.toString)
    val element = new MetadataBuilder().putLong("col-7.element", 9).build()
    val list = column(7, "l", ArrayType(IntegerType))
    val schema = StructType(
      Seq(
        column(3, "a", LongType),
        list.copy(metadata =
          new MetadataBuilder()
            .withMetadata(list.metadata)
            .putMetadata("delta.columnMapping.nested.ids", element)
            .build()
        )
      )
    )
    val id = UUID.randomUUID.toString
    val create = ProposedCommit(
      ClientOperation("create"),
      definition = Some(ProposedDefinition(id, schema, Seq("a"), 12)),
      set = Map("delta.enableIcebergWriterCompatV1" -> "true", "iceberg.k" -> "v")
    )
    val sink = new SparkDeltaSink(spark, to.name, at, None)
    assert(committed(sink.commit(create, -1)) == 0)
    assert(to.log.metadata.get("id").asText == id)
    assert(to.log.columns.map(_.id) == Seq(Some(3L), Some(7L)))
    assert(to.log.columns.flatMap(_.nestedIds) == Seq(Some(9L)))
    assert(to.log.columns.map(_.physicalName) == Seq(Some("col-3"), Some("col-7")))
    assert(maxColumnId(to) == 12 && to.log.partitionColumns == Seq("a"))
    assertCompliant(to)
    assert(sink.commit(create, -1) == CommitOutcome.Overtaken(0))
    sql(s"INSERT INTO ${to.name} VALUES (1, array(1, 2))")
    assertCompliant(to)
    assert(count(to) == 1)
  }

  test("a clustering column is not dropped") {
    val to = managed()
    sql(s"CREATE TABLE ${to.name} (a INT, b INT) USING delta CLUSTER BY (b) TBLPROPERTIES ($on)")
    val (schema, highest) = definition(to)
    val what = ProposedDefinition(tableId(to), StructType(schema.take(1)), Nil, highest)
    val refused = nothingCommitted(to)(
      sink(to).commit(ProposedCommit(ClientOperation("alter"), Some(what)), 0)
    )
    assert(refusal(refused).contains("CLUSTER BY"))
  }
}
