package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg._
import org.apache.iceberg.data.parquet.GenericParquetWriter
import org.apache.iceberg.data.{GenericRecord, Record}
import org.apache.iceberg.deletes.{EqualityDeleteWriter, PositionDelete, PositionDeleteWriter}
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.parquet.Parquet
import org.apache.parquet.schema.MessageType
import org.icebergwritercompat.DeltaIcebergCatalog
import org.icebergwritercompat.testing.{FolderListing, TestTable}

import java.util.UUID
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Delete files of clients, by a catalog that takes them. */
class RowDeletesSuite extends ClientSuite {

  override protected def newCatalog(): DeltaIcebergCatalog = {
    val made = new DeltaIcebergCatalog
    made.initialize("ice", java.util.Map.of("row-level-deletes", "rewrite"))
    made
  }

  private def filled(rows: String = "(1, 'a'), (2, 'b'), (3, NULL), (4, 'd')"): TestTable = {
    val table = numbers()
    // In one file.
    sql(s"INSERT INTO ${table.name} SELECT /*+ COALESCE(1) */ * FROM VALUES $rows")
    table
  }

  private def made(columns: String, more: String): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} ($columns) USING delta $more TBLPROPERTIES ($on)")
    table
  }

  private def live(table: Table): Seq[DataFile] =
    Using.resource(table.newScan().planFiles())(_.asScala.map(_.file).toSeq)

  /** A file of position deletes, as Iceberg's library writes it. */
  private def positions(
      table: Table,
      partition: Option[StructLike],
      rows: (String, Long)*
  ): DeleteFile = {
    val location = table.locationProvider.newDataLocation(s"${UUID.randomUUID}-deletes.parquet")
    val writer: PositionDeleteWriter[Record] = Parquet
      .writeDeletes(table.io.newOutputFile(location))
      .withSpec(table.spec)
      .withPartition(partition.orNull)
      .overwrite()
      .buildPositionWriter()
    Using.resource(writer) { w =>
      rows.foreach { case (path, row) => w.write(PositionDelete.create[Record]().set(path, row)) }
    }
    writer.toDeleteFile
  }

  /** A file of equality deletes on some columns, as Iceberg's library writes it. */
  private def values(
      table: Table,
      partition: Option[StructLike],
      columns: Seq[String],
      rows: Seq[Any]*
  ): DeleteFile = {
    val schema = table.schema.select(columns.asJava)
    val ids = columns.map(table.schema.findField(_).fieldId)
    val location = table.locationProvider.newDataLocation(s"${UUID.randomUUID}-deletes.parquet")
    val writer: EqualityDeleteWriter[Record] = Parquet
      .writeDeletes(table.io.newOutputFile(location))
      .rowSchema(schema)
      .withSpec(table.spec)
      .withPartition(partition.orNull)
      .equalityFieldIds(ids: _*)
      .createWriterFunc((s: Schema, t: MessageType) => GenericParquetWriter.create(s, t))
      .overwrite()
      .buildEqualityWriter()
    Using.resource(writer) { w =>
      rows.foreach { row =>
        val made = GenericRecord.create(schema)
        row.zipWithIndex.foreach { case (value, i) => made.set(i, value) }
        w.write(made: Record)
      }
    }
    writer.toDeleteFile
  }

  private def metric(table: TestTable, name: String): String = table.log
    .actions(table.log.version)
    .collectFirst { case ("commitInfo", info) => info.get("operationMetrics").get(name).asText }
    .get

  private def paths(table: TestTable, kind: String): Set[String] =
    table.log.actions(table.log.version).collect { case (`kind`, a) => a.get("path").asText }.toSet

  /** What the snapshot is, for a reader that has never seen delete files. */
  private def assertWhole(table: TestTable, made: Snapshot): Unit = {
    val published = iceberg(table)
    val snapshot = published.currentSnapshot
    assert(snapshot.snapshotId == made.snapshotId)
    assert(snapshot.deleteManifests(published.io).isEmpty)
    val summary = snapshot.summary.asScala
    assert(summary.get("delta-version").contains(table.log.version.toString))
    def number(key: String) = summary.get(key).fold(0)(_.toInt)
    assert(number("added-data-files") == paths(table, "add").size)
    assert(number("deleted-data-files") == paths(table, "remove").size)
    assert(
      summary.keys.forall(key => !key.contains("delete-files")) ||
        number("total-delete-files") == 0
    )
    assert(number("total-records") == count(table))
  }

  test("position deletes take rows out of the files that they name, in one commit of Delta") {
    val table = filled()
    sql(s"INSERT INTO ${table.name} VALUES (5, 'e')")
    val there = client(table)
    val files = live(there).sortBy(-_.recordCount)
    val (one, other) = (files.head, files.last)
    val deletes = positions(there, None, one.location -> 0L, one.location -> 2L)
    there.newRowDelta().addDeletes(deletes).set("engine-name", "by hand").commit()
    assert(table.log.version == 3 && operation(table) == "ICEBERG DELETE")
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[2,b]", "[4,d]", "[5,e]"))
    assert(metric(table, "numDeletedRows") == "2")
    assert(paths(table, "remove").size == 1 && paths(table, "add").size == 1)
    assert(live(client(table)).map(_.location).contains(other.location))
    assertWhole(table, there.currentSnapshot)
    assert(iceberg(table).currentSnapshot.operation == DataOperations.OVERWRITE)
    assert(iceberg(table).currentSnapshot.summary.get("engine-name") == "by hand")
    assertSame(table)
    // And on from there, by both.
    append(there, Seq(6L, "f"))
    sql(s"DELETE FROM ${table.name} WHERE id = 2")
    assertSame(table)
  }

  test(
    "a file without a row left goes, one without a deleted row stays, and a place twice is one"
  ) {
    val table = filled("(1, 'a'), (2, 'b')")
    val there = client(table)
    val one = live(there).head
    append(there, Seq(3L, "c"))
    val nowhere = s"${one.location}.parquet"
    val first = positions(there, None, one.location -> 0L, one.location -> 7L, nowhere -> 0L)
    val second = positions(there, None, one.location -> 0L, one.location -> 1L)
    there.newRowDelta().addDeletes(first).addDeletes(second).commit()
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[3,c]"))
    assert(paths(table, "remove").size == 1 && paths(table, "add").isEmpty)
    assert(iceberg(table).currentSnapshot.operation == DataOperations.DELETE)
    assertWhole(table, there.currentSnapshot)
    assertSame(table)
    // What names no row changes no file, and is the client's snapshot nevertheless.
    there.newRowDelta().addDeletes(positions(there, None, nowhere -> 0L)).commit()
    assert(paths(table, "remove").isEmpty && paths(table, "add").isEmpty)
    assertWhole(table, there.currentSnapshot)
    assertSame(table)
  }

  test("equality deletes compare null with null, and spare the rows of their own commit") {
    val table = filled()
    val there = client(table)
    val again = file(there, None, record(there.schema, 1L, "new"), record(there.schema, 9L, null))
    val deletes = values(there, None, Seq("id"), Seq(1L), Seq(77L))
    val nulls = values(there, None, Seq("name"), Seq(null))
    there.newRowDelta().addRows(again).addDeletes(deletes).addDeletes(nulls).commit()
    assert(operation(table) == "ICEBERG OVERWRITE" && metric(table, "numDeletedRows") == "2")
    val expected = Set("[2,b]", "[4,d]", "[1,new]", "[9,null]")
    assert(rows(s"SELECT * FROM ${table.name}") == expected)
    // The file of the client is in the table as it is.
    assert(paths(table, "add").exists(path => again.location.endsWith(path)))
    assertWhole(table, there.currentSnapshot)
    assertSame(table)
    val both = values(there, None, Seq("id", "name"), Seq(2L, "b"), Seq(4L, "b"), Seq(9L, null))
    there.newRowDelta().addDeletes(both).commit()
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[4,d]", "[1,new]"))
    assertWhole(table, there.currentSnapshot)
    assertSame(table)
  }

  test("several snapshots in one commit follow each other, and each id is there afterwards") {
    val table = filled()
    val there = client(table)
    val before = snapshots(table).map(_.snapshotId)
    val transaction = there.newTransaction()
    val one = file(there, None, record(there.schema, 7L, "x"), record(there.schema, 8L, "y"))
    transaction.newAppend().appendFile(one).commit()
    // The rows of the commit before it are older.
    val gone = values(there, None, Seq("id"), Seq(7L), Seq(2L))
    val two = file(there, None, record(there.schema, 7L, "z"))
    transaction.newRowDelta().addDeletes(gone).addRows(two).commit()
    val last = positions(there, None, one.location -> 1L)
    transaction.newRowDelta().addDeletes(last).commit()
    transaction.commitTransaction()
    assert(table.log.version == 2)
    val expected = Set("[1,a]", "[3,null]", "[4,d]", "[7,z]")
    assert(rows(s"SELECT * FROM ${table.name}") == expected)
    val made = there.snapshots.asScala.toSeq.filterNot(s => before.contains(s.snapshotId))
    assert(made.size == 3)
    val published = snapshots(table)
    assert(published.map(_.snapshotId) == before ++ made.map(_.snapshotId))
    assert(published.map(_.sequenceNumber) == published.indices.map(_ + 1L))
    assert(published.tail.map(_.parentId) == published.init.map(_.snapshotId))
    // Those before the last show the rows that the table had.
    val io = iceberg(table).io
    assert(published.slice(1, 3).forall { snapshot =>
      snapshot.allManifests(io).asScala.forall(_.snapshotId != snapshot.snapshotId) &&
      snapshot.summary.get("total-records") == "4"
    })
    assert(paths(table, "add").forall(path => !one.location.endsWith(path)))
    assertWhole(table, made.last)
    assertSame(table)
  }

  test("partitions with nulls and odd characters, and columns that were changed") {
    val table = made("id INT, p STRING, t TIMESTAMP", "PARTITIONED BY (p, t)")
    val time = "TIMESTAMP '1969-12-31 23:59:59.999999'"
    sql(
      s"""INSERT INTO ${table.name} VALUES (1, 'a b/%20=ü', $time), (2, 'a b/%20=ü', $time),
         | (1, NULL, NULL), (2, NULL, NULL), (3, NULL, $time)""".stripMargin
    )
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    val there = client(table)
    there
      .updateSchema()
      .updateColumn("id", types.Types.LongType.get)
      .renameColumn("id", "key")
      .commit()
    there.updateSchema().addColumn("n", types.Types.StringType.get).commit()
    val files = live(there)
    val odd = files.find(f => f.partition.get(0, classOf[CharSequence]) != null).get
    val none = files.find(f => f.recordCount == 2 && f.location != odd.location).get
    val far = values(there, Some(odd.partition), Seq("key"), Seq(1L), Seq(3L))
    val near = positions(there, Some(none.partition), none.location -> 0L)
    there.newRowDelta().addDeletes(far).addDeletes(near).commit()
    assert(metric(table, "numDeletedRows") == "2" && count(table) == 3)
    assert(rows(s"SELECT key FROM ${table.name} WHERE p IS NOT NULL") == Set("[2]"))
    assertWhole(table, there.currentSnapshot)
    assertSame(table)
    // A column that old files do not have is null there, and a partition column is a column too.
    val column = values(there, Some(odd.partition), Seq("p", "n"), Seq("a b/%20=ü", null))
    there.newRowDelta().addDeletes(column).commit()
    assert(rows(s"SELECT DISTINCT p FROM ${table.name}") == Set("[null]"))
    assertWhole(table, there.currentSnapshot)
    assertSame(table)
  }

  test(
    "a commit that comes too late leaves nothing behind, and one that comes again does nothing"
  ) {
    val table = filled()
    val there = client(table)
    val operations = there.asInstanceOf[BaseTable].operations
    val base = operations.current
    val one = live(there).head
    val delta = there.newRowDelta().addDeletes(positions(there, None, one.location -> 0L))
    val made = delta.apply()
    val wanted = TableMetadata.buildFrom(base).setBranchSnapshot(made, "main").build()
    append(client(table), Seq(9L, "i"))
    val before = FolderListing.of(table.folder)
    intercept[CommitFailedException](operations.commit(base, wanted))
    assert(FolderListing.of(table.folder) == before)
    delta.commit()
    val version = table.log.version
    // As a client does that got no answer.
    operations.commit(base, wanted)
    assert(table.log.version == version && count(table) == 4)
    assertSame(table)
  }

  test("what cannot be applied is refused, and nothing is changed") {
    val table = made("id BIGINT, d DOUBLE, s STRUCT<x: INT>", "")
    val two = "(1L, 0.0D, struct(1)), (2L, -0.0D, NULL)"
    sql(s"INSERT INTO ${table.name} SELECT /*+ COALESCE(1) */ * FROM VALUES $two")
    val there = client(table)
    def delta(file: DeleteFile): Unit = there.newRowDelta().addDeletes(file).commit()
    val real = values(there, None, Seq("d"), Seq(0.0))
    assert(refused(table, "ROW_DELETES")(delta(real)).contains("column d"))
    val inner = there.schema.select("s.x").findType("s").asStructType().asSchema()
    val nested = values(there, None, Seq("s.x"), Seq(record(inner, 1)))
    assert(refused(table, "ROW_DELETES")(delta(nested)).contains("s.x"))
    val one = live(there).head
    val good = positions(there, None, one.location -> 0L)
    def said(change: FileMetadata.Builder => FileMetadata.Builder): DeleteFile =
      change(FileMetadata.deleteFileBuilder(there.spec).copy(good)).build()
    val short = refused(table, "ROW_DELETES")(delta(said(_.withRecordCount(5))))
    assert(short.contains("it has 1 rows, and is said to have 5"))
    refused(table, "ROW_DELETES")(delta(said(_.withPath(s"${good.location}.gone"))))
    refused(table, "ROW_DELETES")(delta(said(_.withFormat(FileFormat.AVRO))))
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    refused(table, "BY_DELTA")(client(table).newRowDelta().addDeletes(good).commit())
    sql(s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('delta.appendOnly')")
    client(table).newRowDelta().addDeletes(good).commit()
    assert(count(table) == 1)
    assertSame(table)
  }

  test("a client chooses how it deletes, and readers of the published table do not see that") {
    val table = filled()
    val there = client(table)
    assert(!there.properties.containsKey("write.delete.mode"))
    there.updateProperties().set("write.delete.mode", "merge-on-read").commit()
    assert(client(table).properties.get("write.delete.mode") == "merge-on-read")
    assert(iceberg(table).properties.get("write.delete.mode") == "copy-on-write")
    val refusing = new DeltaIcebergCatalog
    refusing.initialize("other", java.util.Map.of())
    val seen = refusing.loadTable(id(table)).properties
    assert(seen.get("write.delete.mode") == "copy-on-write")
    client(table).updateProperties().remove("write.delete.mode").commit()
    assert(!client(table).properties.containsKey("write.delete.mode"))
    assertSame(table)
    val error = intercept[IllegalArgumentException] {
      new DeltaIcebergCatalog().initialize("x", java.util.Map.of("row-level-deletes", "yes"))
    }
    assert(error.getMessage == "row-level-deletes is refuse or rewrite, but not 'yes'")
  }
}
