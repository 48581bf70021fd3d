package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.exceptions.{AlreadyExistsException, CommitFailedException}
import org.apache.iceberg.types.Types
import org.apache.iceberg.types.Types.NestedField
import org.apache.iceberg.{BaseTable, Schema, TableMetadata, Transaction}
import org.icebergwritercompat.testing.TestTable

import java.nio.file.Files
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What was begun and not answered: the next request finds it, and doubles nothing. */
class RepeatedRequestSuite extends ClientSuite {

  private val schema = new Schema(
    NestedField.required(1, "id", Types.LongType.get),
    NestedField.optional(2, "l", Types.ListType.ofOptional(3, Types.StringType.get))
  )

  private def transactions(table: TestTable): Seq[String] = table.log.versions.flatMap { version =>
    table.log.actions(version).collect { case ("txn", found) => found.get("appId").asText }
  }

  test("a commit for a request notes its key, and is made once") {
    val table = numbers()
    val request = ClientRequest("0e1f-7")
    assert(!catalog.isCommitted(id(table), request))
    val there = client(table)
    ClientRequest.during(request)(append(there, Seq(1L, "a")))
    assert(transactions(table) == Seq("iceberg.request.0e1f-7"))
    assert(newCatalog().isCommitted(id(table), request))
    assert(!newCatalog().isCommitted(id(table), ClientRequest("another")))
    // By this client, by another, and on metadata that nobody knows any more.
    val before = table.log.version
    ClientRequest.during(request)(append(there, Seq(1L, "a")))
    ClientRequest.during(request)(append(client(table), Seq(1L, "a")))
    sql(s"INSERT INTO ${table.name} VALUES (2, 'b')")
    val operations = there.asInstanceOf[BaseTable].operations
    val base = operations.current
    val wanted = TableMetadata.buildFrom(base).setProperties(java.util.Map.of("k", "v")).build()
    operations.refresh()
    ClientRequest.during(request)(operations.commit(base, wanted))
    assert(table.log.version == before + 1 && count(table) == 2)
    // What was not made for it is another request.
    intercept[CommitFailedException] {
      sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
      operations.commit(base, wanted)
    }
    ClientRequest.during(ClientRequest("next"))(append(client(table), Seq(4L, "d")))
    append(client(table), Seq(5L, "e"))
    assert(transactions(table) == Seq("iceberg.request.0e1f-7", "iceberg.request.next"))
    assert(count(table) == 5)
    assertSame(table)
  }

  test("a create for a request is made once") {
    val table = managed()
    val request = ClientRequest("create")
    assert(!catalog.isCommitted(id(table), request))
    def create() = ClientRequest.during(request)(catalog.createTable(id(table), schema))
    val made = create()
    assert(transactions(table) == Seq("iceberg.request.create"))
    assert(create().uuid == made.uuid)
    // The name was not given yet.
    new SessionTables().drop(id(table), purge = false)
    assert(create().uuid == made.uuid && table.log.version == 0)
    intercept[AlreadyExistsException](catalog.createTable(id(table), schema))
    assertSame(table)
  }

  /** A create with one row that is not committed yet. */
  private def begun(table: TestTable, value: Long, more: (String, String)*): Transaction = {
    val transaction = catalog
      .buildTable(id(table), schema)
      .withProperties(more.toMap.asJava)
      .createTransaction()
    val there = transaction.table
    val made = file(there, None, record(there.schema, value, java.util.List.of("x")))
    transaction.newAppend().appendFile(made).commit()
    transaction
  }

  private def metadataFiles(table: TestTable): Seq[String] =
    Using.resource(Files.list(table.folder.resolve("metadata"))) {
      _.iterator.asScala.map(_.getFileName.toString).toSeq
    }

  /** Leaves a table as a process does that dies before it gives it its name. */
  private def withoutName(table: TestTable): Unit = {
    new SessionTables().drop(id(table), purge = false)
    metadataFiles(table)
      .filter(name => name.contains(".metadata.json") || name.contains("version-hint"))
      .foreach(name => Files.delete(table.folder.resolve("metadata").resolve(name)))
  }

  test("a create with rows that died is completed by the same request, with its own id") {
    val table = managed()
    val transaction = begun(table, 1L)
    transaction.commitTransaction()
    val made = transaction.table
    val wanted = metadataOf(client(table))
    withoutName(table)
    // The client sends the metadata again that it has staged.
    val staged = TableMetadata.buildFromEmpty(2).assignUUID(wanted.uuid)
    val again = staged
      .setLocation(wanted.location)
      .setCurrentSchema(wanted.schema, wanted.lastColumnId)
      .addPartitionSpec(wanted.spec)
      .setDefaultPartitionSpec(-1)
      .addSortOrder(wanted.sortOrder)
      .setDefaultSortOrder(-1)
      .setBranchSnapshot(made.currentSnapshot, "main")
      .build()
    new DeltaTableOperations(new SessionTables, id(table)).commit(null, again)
    assert(table.log.version == 0 && count(table) == 1)
    assert(metadataOf(client(table)).uuid == wanted.uuid)
    assert(client(table).currentSnapshot.snapshotId == made.currentSnapshot.snapshotId)
    assertSame(table)
  }

  test("a create with rows that died is completed by the next one, with the rows of the next") {
    val table = managed()
    begun(table, 1L, "first" -> "x", "both" -> "x").commitTransaction()
    withoutName(table)
    val transaction = begun(table, 2L, "both" -> "y")
    transaction.commitTransaction()
    assert(rows(s"SELECT id FROM ${table.name}") == Set("[2]"))
    assert(table.log.version == 1)
    val now = metadataOf(client(table))
    // What the client was told is what the table is.
    assert(now.uuid == table.log.metadata.get("id").asText)
    assert(now.currentSnapshot.snapshotId == transaction.table.currentSnapshot.snapshotId)
    assert(snapshots(table).size == 1)
    assert(now.properties.get("both") == "y" && !now.properties.containsKey("first"))
    append(client(table), Seq(3L, null))
    assertSame(table)
  }

  test("a create without rows takes over one with rows that died, and has none") {
    val table = managed()
    begun(table, 1L).commitTransaction()
    withoutName(table)
    val made = catalog.createTable(id(table), schema)
    assert(count(table) == 0)
    assert(made.uuid.toString == table.log.metadata.get("id").asText)
    append(made, Seq(3L, null))
    assertSame(table)
  }

  test("a create takes over nothing that somebody may have") {
    val table = managed()
    begun(table, 1L).commitTransaction()
    // It was published, so somebody was told of it.
    new SessionTables().drop(id(table), purge = false)
    def refused(): Unit = {
      val before = table.log.version
      val error = intercept[AlreadyExistsException](begun(table, 2L).commitTransaction())
      assert(error.getMessage.contains("which has no name in the catalog"), error.getMessage)
      assert(table.log.version == before && !catalog.tableExists(id(table)))
      ()
    }
    refused()
    sql(s"CREATE TABLE ${table.name} USING delta LOCATION '${table.folder}'")
    assert(rows(s"SELECT id FROM ${table.name}") == Set("[1]"))
    // Delta has written to it.
    sql(s"INSERT INTO ${table.name} VALUES (5, null)")
    withoutName(table)
    refused()
    // Delta has made it.
    val ofDelta = managed()
    sql(
      s"CREATE TABLE ${ofDelta.name} (id BIGINT, l ARRAY<STRING>) USING delta TBLPROPERTIES ($on)"
    )
    new SessionTables().drop(id(ofDelta), purge = false)
    intercept[AlreadyExistsException](begun(ofDelta, 2L).commitTransaction())
    assert(spark.read.format("delta").load(ofDelta.folder.toString).count() == 0)
  }
}
