package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.expressions.Expressions
import org.apache.iceberg.types.Types
import org.apache.iceberg.types.Types.NestedField
import org.apache.iceberg.{DataFile, PartitionData, PartitionKey, Schema, Table}
import org.apache.iceberg.data.{InternalRecordWrapper, Record}
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.icebergwritercompat.kernel.KernelTable
import org.icebergwritercompat.report.PlanMode
import org.icebergwritercompat.testing.{SharedSpark, TestTable}

import java.nio.file.Files
import scala.jdk.CollectionConverters._

/** Wherever a table comes from, Iceberg clients write to it as to any other. */
class TablesOfEveryOriginSuite extends ClientSuite {

  private val three = "id BIGINT, p STRING, v INT"

  private val twoRows = "(1, 'a', 10), (2, null, 20)"

  private def created(more: String = "", table: TestTable = managed()): TestTable = {
    sql(s"CREATE TABLE ${table.name} ($three) USING delta $more TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES $twoRows")
    table
  }

  private def withoutFeature(more: String, properties: String = ""): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} ($three) USING delta $more $properties")
    sql(s"INSERT INTO ${table.name} VALUES $twoRows")
    table
  }

  private def upgraded(table: TestTable, mode: PlanMode, rewrite: Boolean): TestTable = {
    val result = TableUpgrade.of(spark, table.name, "auto", rewrite, Nil).run()
    assert(result.mode == mode)
    table
  }

  private def partitionOf(table: Table, row: Record): Option[PartitionData] =
    Option.unless(table.spec.isUnpartitioned) {
      val key = new PartitionKey(table.spec, table.schema)
      key.partition(new InternalRecordWrapper(table.schema.asStruct).wrap(row))
      val data = new PartitionData(table.spec.partitionType)
      (0 until data.size).foreach(i => data.set(i, key.get(i, classOf[Any])))
      data
    }

  private def fileOf(table: Table, id: Long, p: String, v: Int): DataFile = {
    val row = record(table.schema)
    Seq("id" -> id, "p" -> p, "v" -> v).foreach { case (name, value) => row.setField(name, value) }
    file(table, partitionOf(table, row), row)
  }

  /** A table with the ids 1 and 2 is written by a client, by Delta, and by the client again. */
  private def assertWritable(table: TestTable): Unit = {
    val there = client(table)
    val added = fileOf(there, 3L, "c d/%", 30)
    there.newAppend().appendFile(added).commit()
    sql(s"INSERT INTO ${table.name} (id, p, v) VALUES (4, 'd', 40)")
    there.refresh()
    there.newOverwrite().deleteFile(added).addFile(fileOf(there, 5L, "c d/%", 50)).commit()
    assertSame(table)
    there
      .updateSchema()
      .renameColumn("v", "w")
      .addColumn("more", Types.ListType.ofOptional(1, Types.DateType.get))
      .commit()
    sql(s"DELETE FROM ${table.name} WHERE id = 1")
    sql(s"INSERT INTO ${table.name} (id, p, w, more) VALUES (6, 'a', 60, array(DATE'2026-01-01'))")
    assert(
      rows(s"SELECT id, p, w, more IS NULL FROM ${table.name} WHERE id <> 3") ==
        Set("[2,null,20,true]", "[4,d,40,true]", "[5,c d/%,50,true]", "[6,a,60,false]")
    )
    assertSame(table)
    there.refresh()
    there.newDelete().deleteFromRowFilter(Expressions.alwaysTrue).commit()
    assert(count(table) == 0 && byClient(table) == Nil && byKernel(table) == Nil)
  }

  test("made by Delta, partitioned")(assertWritable(created("PARTITIONED BY (p)")))

  test("made by Delta, clustered: it stays clustered") {
    val table = created("CLUSTER BY (p)")
    assertWritable(table)
    sql(s"INSERT INTO ${table.name} (id, p, w) VALUES (7, 'x', 1), (8, 'y', 2)")
    append(client(table), Seq(9L, "z", 3, null))
    sql(s"OPTIMIZE ${table.name} FULL")
    val clustered = table.log.liveFiles.values
    assert(clustered.nonEmpty && clustered.forall(_.get("clusteringProvider").asText == "liquid"))
    val described = spark.sql(s"DESCRIBE DETAIL ${table.name}").select("clusteringColumns").head()
    assert(described.getSeq[String](0) == Seq("p"))
    // No file of a client says that it is clustered.
    append(client(table), Seq(10L, "z", 3, null))
    val added = table.log.actions(table.log.version).collect { case ("add", add) => add }
    assert(added.size == 1 && !added.head.has("clusteringProvider"))
    assertSame(table)
  }

  test("made by Kernel") {
    import io.delta.kernel.types._
    val table = managed()
    val schema = new StructType()
      .add("id", LongType.LONG)
      .add("p", StringType.STRING)
      .add("v", IntegerType.INTEGER)
    val kernel = new KernelTable(table.folder)
    kernel.create(schema, Seq("p"), Map("delta.enableIcebergWriterCompatV1" -> "true"), Nil)
    sql(s"CREATE TABLE ${table.name} USING delta LOCATION '${table.folder}'")
    sql(s"INSERT INTO ${table.name} VALUES $twoRows")
    assertWritable(table)
  }

  test("upgraded by one commit") {
    val mapped = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    assertWritable(
      upgraded(withoutFeature("PARTITIONED BY (p)", mapped), PlanMode.Metadata, rewrite = false)
    )
  }

  test("upgraded by a rewrite")(
    assertWritable(upgraded(withoutFeature(""), PlanMode.Rewrite, rewrite = true))
  )

  test("published to its folder before") {
    val table = created("PARTITIONED BY (p)")
    publish(table)
    sql(s"INSERT INTO ${table.name} VALUES (3, 'a', 30)")
    publish(table)
    val before = snapshots(table).map(_.snapshotId)
    sql(s"DELETE FROM ${table.name} WHERE id = 3")
    assertWritable(table)
    // The line goes on.
    assert(snapshots(table).map(_.snapshotId).startsWith(before))
  }

  test("renamed") {
    val table = created()
    append(client(table), Seq(3L, "c", 30))
    val renamed = managed()
    sql(s"ALTER TABLE ${table.name} RENAME TO ${renamed.name}")
    assertWritable(renamed)
    assert(!catalog.tableExists(id(table)))
  }

  test("in another folder than before") {
    val table = created()
    append(client(table), Seq(3L, "c", 30))
    new SessionTables().drop(id(table), purge = false)
    val moved = TestTable(managed().name, SharedSpark.freshFolder())
    Files.move(table.folder, moved.folder)
    sql(s"CREATE TABLE ${moved.name} USING delta LOCATION '${moved.folder}'")
    assertWritable(moved)
  }

  test("in a folder with an odd name") {
    val name = managed().name
    val odd = TestTable(name, SharedSpark.freshFolder().resolve("a b%20c+=ü&'(d)"))
    sql(
      s"""CREATE TABLE ${odd.name} ($three) USING delta LOCATION "${odd.folder}" TBLPROPERTIES ($on)"""
    )
    sql(s"INSERT INTO ${odd.name} VALUES $twoRows")
    assertWritable(odd)
  }

  test("made by a client in a folder of its choice, with an odd name") {
    val table = TestTable(managed().name, SharedSpark.freshFolder().resolve("ö ä/%41 1"))
    val schema = new Schema(
      NestedField.optional(1, "id", Types.LongType.get),
      NestedField.optional(2, "p", Types.StringType.get),
      NestedField.optional(3, "v", Types.IntegerType.get)
    )
    catalog.buildTable(id(table), schema).withLocation(s"file:${table.folder}").create()
    assert(Files.isDirectory(table.folder.resolve("_delta_log")))
    sql(s"INSERT INTO ${table.name} VALUES $twoRows")
    assertWritable(table)
  }

  test("with 10 000 columns") {
    val table = managed()
    val columns = (1 to 10000).map(i => NestedField.optional(i, s"c$i", Types.IntegerType.get))
    val there = catalog.createTable(id(table), new Schema(columns.asJava))
    val row = record(there.schema)
    row.setField("c1", 1)
    row.setField("c10000", 2)
    there.newAppend().appendFile(file(there, None, row)).commit()
    there.updateSchema().renameColumn("c10000", "last").commit()
    val names = Seq("c1", "c9999", "last")
    assert(
      spark.table(table.name).select(names.head, names.tail: _*).collect().map(_.toString).toSeq ==
        Seq("[1,null,2]")
    )
    val read = org.apache.iceberg.data.IcebergGenerics.read(client(table)).select(names: _*).build()
    assert(scala.util.Using.resource(read)(_.asScala.map(plain).toSeq) == Seq("{1, null, 2}"))
    assert(table.log.version == 2 && operation(table) == "ICEBERG ALTER")
  }
}
