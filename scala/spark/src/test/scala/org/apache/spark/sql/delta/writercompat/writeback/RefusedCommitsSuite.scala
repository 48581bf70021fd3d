package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.exceptions.ValidationException
import org.apache.iceberg.types.Types
import org.apache.iceberg.types.Types.NestedField
import org.apache.iceberg.{DataFile, DataFiles, PartitionData, PartitionSpec, Schema}
import org.icebergwritercompat.testing.{SharedSpark, TestTable}

import java.nio.file.Files
import scala.jdk.CollectionConverters._

/** What `DeltaIcebergCatalogSuite` does not refuse already. */
class RefusedCommitsSuite extends ClientSuite {

  private def filled(more: String = ""): TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, name STRING) USING delta $more TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b')")
    table
  }

  private val one = new Schema(NestedField.optional(1, "id", Types.LongType.get))

  test("a property that steers has the same answer at create and later") {
    val table = filled()
    val there = client(table)
    def answer(error: ValidationException): String =
      error.getMessage.replaceAll("table default\\.[^ ]+", "table t")
    val refusals = Seq(
      "write.format.default" -> "orc",
      "write.delete.mode" -> "merge-on-read",
      "write.update.mode" -> "merge-on-read",
      "write.merge.mode" -> "merge-on-read",
      "gc.enabled" -> "true",
      "write.data.path" -> "file:/elsewhere",
      "write.metadata.path" -> "file:/elsewhere",
      "write.object-storage.enabled" -> "true",
      "write.object-storage.path" -> "file:/elsewhere",
      "write.location-provider.impl" -> "x.Y",
      "write.metadata.metrics.column.id" -> "none"
    )
    refusals.foreach { case (key, value) =>
      val other = managed()
      val later = refused(table, "PROPERTY")(there.updateProperties().set(key, value).commit())
      val atCreate = intercept[ValidationException] {
        catalog.buildTable(id(other), one).withProperty(key, value).create()
      }
      assert(!catalog.tableExists(id(other)) && !Files.exists(other.folder))
      assert(answer(atCreate) == later.replaceAll("table default\\.[^ ]+", "table t"), key)
      assert(
        later.contains(s"the property $key to '$value'") && later.contains("leave the property")
      )
    }
    // What is so anyway may be said, at both.
    val same = Map("write.delete.mode" -> "copy-on-write", "gc.enabled" -> "false")
    val update = there.updateProperties()
    same.foreach { case (key, value) => update.set(key, value) }
    update.commit()
    val other = managed()
    catalog.buildTable(id(other), one).withProperties(same.asJava).create()
    Seq(table, other).foreach { of =>
      same.foreach { case (key, value) => assert(iceberg(of).properties.get(key) == value) }
      assert(!same.keys.exists(key => of.log.properties.contains(s"iceberg.$key")))
      assertSame(of)
    }
    // Nor may it be taken away.
    refused(table, "PROPERTY")(there.updateProperties().remove("gc.enabled").commit())
  }

  test("the session's defaults are those of a table that a client makes") {
    val table = managed()
    val prefix = "spark.databricks.delta.properties.defaults"
    // As for a table that Delta makes.
    withConf(s"$prefix.enableDeletionVectors" -> "true") {
      Seq[() => Any](
        () => catalog.createTable(id(table), one),
        () => catalog.buildTable(id(table), one).createTransaction()
      ).foreach { make =>
        val error = intercept[ValidationException](make())
        assert(error.getMessage.contains(s"Table default.${table.name}, rule B6"), error.getMessage)
        assert(!catalog.tableExists(id(table)) && !Files.exists(table.folder))
      }
    }
    withConf(s"$prefix.logRetentionDuration" -> "interval 99 days") {
      catalog.createTable(id(table), one)
    }
    assert(table.log.properties("delta.logRetentionDuration") == "interval 99 days")
    assert(table.log.properties("delta.enableTypeWidening") == "true")
    append(client(table), Seq(1L))
    assertSame(table)
  }

  test("a table that is published in a catalog is written by Delta alone") {
    val table = filled()
    val root = SharedSpark.freshFolder()
    Files.createDirectories(root)
    withConf(
      "spark.icebergWriterCompat.catalog.type" -> "jdbc",
      "spark.icebergWriterCompat.catalog.uri" -> s"jdbc:sqlite:$root/elsewhere.db",
      "spark.icebergWriterCompat.catalog.warehouse" -> root.toString
    ) {
      val there = client(table)
      val before = table.log.version
      val error = intercept[ValidationException](append(there, Seq(3L, "c")))
      assert(error.getMessage.startsWith("[ICEBERG_WRITER_COMPAT_COMMIT_REFUSED.ELSEWHERE]"))
      assert(error.getMessage.contains("Write by Delta"))
      assert(table.log.version == before && count(table) == 2)
      assert(byClient(table) == inDelta(spark.table(table.name)))
    }
  }

  test("a table is not made where no reader of Iceberg can open it") {
    Seq("a#b", "a?b", "a\"b").foreach { name =>
      val table = TestTable(managed().name, SharedSpark.freshFolder().resolve(name))
      val error = intercept[ValidationException] {
        catalog.buildTable(id(table), one).withLocation(s"file:${table.folder}").create()
      }
      assert(error.getMessage.contains("COMMIT_REFUSED.FOLDER]"), error.getMessage)
      assert(error.getMessage.contains("Give it another location"))
      assert(!catalog.tableExists(id(table)) && !Files.exists(table.folder))
    }
  }

  test("rows are not removed from a table that is for appending only") {
    val table = filled()
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    val there = client(table)
    val said = refused(table, "BY_DELTA") {
      there
        .newDelete()
        .deleteFromRowFilter(org.apache.iceberg.expressions.Expressions.alwaysTrue)
        .commit()
    }
    assert(said.contains("appendOnly"), said)
    val added = append(there, Seq(3L, "c"))
    val again = file(there, None, record(there.schema, 3L, "c"))
    there.newRewrite().deleteFile(added).addFile(again).commit()
    assert(count(table) == 3)
    assertSame(table)
  }

  test("a column that the table is partitioned by stays") {
    val table = filled("PARTITIONED BY (name)")
    val before = table.log.version
    // Iceberg's own library refuses to drop it.
    intercept[Exception](client(table).updateSchema().deleteColumn("name").commit())
    assert(table.log.version == before)
    val rule = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION."
    refusal(table, rule)(client(table).updateSchema().renameColumn("name", "other").commit())
    assertSame(table)
  }

  test("what breaks a rule is refused when the table is staged") {
    val decimal = new Schema(NestedField.optional(1, "p", Types.DecimalType.of(9, 2)))
    val binary = new Schema(NestedField.optional(1, "p", Types.BinaryType.get))
    def byP(schema: Schema) = Some(PartitionSpec.builderFor(schema).identity("p").build())
    val alike = new Schema(
      NestedField.optional(1, "a", Types.LongType.get),
      NestedField.optional(2, "A", Types.LongType.get)
    )
    val reserved = new Schema(NestedField.optional(1, "_file", Types.LongType.get))
    Seq(
      (decimal, byP(decimal), "C18d"),
      (binary, byP(binary), "COMMIT_REFUSED.PARTITION_TYPE]"),
      (alike, None, "column"),
      (reserved, None, "_file")
    ).foreach { case (schema, spec, expected) =>
      val table = managed()
      def build = {
        val builder = catalog.buildTable(id(table), schema)
        spec.fold(builder)(builder.withPartitionSpec(_))
      }
      Seq[() => Any](
        () => build.create(),
        () => build.createTransaction(),
        () => build.createOrReplaceTransaction()
      ).foreach { make =>
        val error = intercept[ValidationException](make())
        assert(error.getMessage.contains(expected), error.getMessage)
        assert(!catalog.tableExists(id(table)) && !Files.exists(table.folder))
      }
    }
    // A table that is replaced has the ids of the columns of the same names.
    val table = filled()
    val other = new Schema(NestedField.optional(1, "name", Types.LongType.get))
    val said = refusal(table, "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.") {
      catalog.buildTable(id(table), other).replaceTransaction()
    }
    assert(said.contains("C14"), said)
  }

  test("a file that was written for other partitions is refused") {
    val table = filled("PARTITIONED BY (name)")
    val there = client(table)
    def partition(of: String): PartitionData = {
      val data = new PartitionData(there.spec.partitionType)
      data.set(0, of)
      data
    }
    val made = file(there, Some(partition("c")), record(there.schema, 3L, "c"))
    def claiming(name: String): DataFile =
      DataFiles.builder(there.spec).copy(made).withPartition(partition(name)).build()
    val said =
      refused(table, "FILE_RULES")(there.newAppend().appendFile(claiming("other")).commit())
    assert(said.contains("E5"), said)
    there.newAppend().appendFile(claiming("c")).commit()
    assert(rows(s"SELECT id FROM ${table.name} WHERE name = 'c'") == Set("[3]"))
    assertSame(table)
  }
}
