package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg._
import org.apache.iceberg.catalog.{Catalog, Namespace, TableIdentifier}
import org.apache.iceberg.exceptions._
import org.apache.iceberg.expressions.Expressions
import org.apache.iceberg.types.Types
import org.apache.iceberg.types.Types.NestedField
import org.apache.spark.sql.catalyst.catalog.CatalogTableType
import org.apache.spark.sql.functions.col
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{ElsewhereFileSystem, SharedSpark, TestTable}

import java.nio.file.Files
import java.time.{LocalDate, LocalDateTime, OffsetDateTime}
import scala.jdk.CollectionConverters._

class DeltaIcebergCatalogSuite extends ClientSuite {

  private def filled(): TestTable = {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b')")
    table
  }

  private def ids(table: TestTable): Set[Long] = snapshots(table).map(_.snapshotId).toSet

  test("an append is one commit of Delta, and the client's own snapshot") {
    val table = filled()
    val there = client(table)
    append(there, Seq(3L, "c"), Seq(4L, null))
    assert(operation(table) == "ICEBERG APPEND" && table.log.version == 2)
    val made = there.currentSnapshot
    val published = iceberg(table).currentSnapshot
    assert(published.snapshotId == made.snapshotId)
    assert(published.manifestListLocation == made.manifestListLocation)
    assert(published.sequenceNumber == made.sequenceNumber)
    assert(published.summary.get("delta-version") == "2")
    assertSame(table)
    // And on from there, by both.
    sql(s"INSERT INTO ${table.name} VALUES (5, 'e')")
    append(there, Seq(6L, "f"))
    sql(s"DELETE FROM ${table.name} WHERE id = 3")
    assert(count(table) == 5)
    assertSame(table)
    assert(ids(table).size == snapshots(table).size && snapshots(table).size == 5)
  }

  test("the metadata is the same object as long as nothing has changed") {
    val table = filled()
    val operations = client(table).asInstanceOf[BaseTable].operations
    val first = operations.current
    assert((operations.refresh() eq first) && (operations.current eq first))
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    // A commit of this process is seen without being asked for.
    assert(operations.current ne first)
    assert(operations.current.currentSnapshot.summary.get("delta-version") == "2")
  }

  test("whoever publishes next goes on with the client's snapshots") {
    val table = filled()
    append(client(table), Seq(3L, "c"))
    val before = iceberg(table).currentSnapshot
    val metadata = table.folder.resolve("metadata")
    // As if the process had died between Delta's commit and the publishing.
    val newest = Files
      .list(metadata)
      .iterator
      .asScala
      .filter(_.getFileName.toString.matches("v\\d+\\.metadata\\.json"))
      .maxBy(_.getFileName.toString.drop(1).takeWhile(_.isDigit).toInt)
    Files.delete(newest)
    Files.deleteIfExists(newest.resolveSibling(s".${newest.getFileName}.crc"))
    Files.deleteIfExists(metadata.resolve("version-hint.text"))
    publish(table)
    val after = iceberg(table).currentSnapshot
    assert(after.snapshotId == before.snapshotId && after.summary == before.summary)
    assert(after.manifestListLocation == before.manifestListLocation)
    assertSame(table)
  }

  test("overwrite, delete and rewrite are what they are in Delta's history too") {
    val table = numbers()
    val there = client(table)
    val first = append(there, Seq(1L, "a"), Seq(2L, "b"))
    val second = append(there, Seq(3L, "c"))
    there.newDelete().deleteFile(second).commit()
    assert(operation(table) == "ICEBERG DELETE")
    assertSame(table)
    val other = file(there, None, record(there.schema, 7L, "x"))
    there.newOverwrite().deleteFile(first).addFile(other).commit()
    assert(operation(table) == "ICEBERG OVERWRITE")
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[7,x]"))
    assertSame(table)
    val again = file(there, None, record(there.schema, 7L, "x"))
    there.newRewrite().deleteFile(other).addFile(again).commit()
    assert(operation(table) == "ICEBERG REPLACE")
    val changes = table.log.actions(table.log.version).filter { case (kind, _) =>
      kind == "add" || kind == "remove"
    }
    assert(changes.size == 2 && changes.forall(!_._2.get("dataChange").asBoolean))
    assertSame(table)
    there.newDelete().deleteFromRowFilter(Expressions.alwaysTrue).commit()
    assert(count(table) == 0)
    assertSame(table)
  }

  test("several snapshots in one transaction are one commit, and all of them live on") {
    val table = filled()
    val there = client(table)
    val before = ids(table)
    val transaction = there.newTransaction()
    val one = file(there, None, record(there.schema, 3L, "c"))
    val two = file(there, None, record(there.schema, 4L, "d"))
    transaction.newAppend().appendFile(one).commit()
    transaction.newAppend().appendFile(two).commit()
    transaction.newDelete().deleteFile(one).commit()
    transaction.updateProperties().set("k", "v").commit()
    transaction.commitTransaction()
    assert(table.log.version == 2)
    assert((ids(table) -- before).size == 3)
    assert(iceberg(table).properties.get("k") == "v" && table.log.properties("iceberg.k") == "v")
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[1,a]", "[2,b]", "[4,d]"))
    assertSame(table)
  }

  test("columns are changed by their ids, at every depth") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id INT, s STRUCT<x: INT, y: STRING>, l ARRAY<STRUCT<k: INT>>, " +
        s"m MAP<STRING, INT>, f FLOAT, d DECIMAL(5, 2) NOT NULL) USING delta " +
        s"TBLPROPERTIES ($on, 'delta.enableTypeWidening' = 'true')"
    )
    sql(
      s"INSERT INTO ${table.name} VALUES (1, struct(2, 'y'), array(struct(3)), map('k', 4), 1.5, 1.25)"
    )
    val there = client(table)
    there
      .updateSchema()
      .updateColumn("id", Types.LongType.get)
      .renameColumn("id", "key")
      .addColumn("s", "z", Types.ListType.ofOptional(1, Types.DateType.get), "a doc")
      .renameColumn("s.x", "xx")
      .updateColumn("s.x", Types.LongType.get)
      .addColumn("l", "t", Types.TimestampType.withZone)
      .deleteColumn("m")
      .updateColumn("f", Types.DoubleType.get)
      .updateColumn("d", Types.DecimalType.of(9, 2))
      .makeColumnOptional("d")
      .moveFirst("f")
      .commit()
    // Its name is free again, for another column.
    there.updateSchema().addColumn("m", Types.StringType.get).commit()
    val (was, is) = (metadataOf(there).schema, iceberg(table).schema)
    assert(is.sameSchema(was))
    sql(
      s"INSERT INTO ${table.name} (f, key, s, l, d, m) VALUES (2.5, 5000000000, " +
        "struct(6000000000, 'n', array(DATE'2026-01-01')), " +
        "array(struct(7, TIMESTAMP'2026-01-01 00:00:00Z')), null, 'new')"
    )
    val schema = client(table).schema
    assert(schema.findField("s.z").doc == "a doc")
    assert(
      rows(s"SELECT f, key, s.xx, s.z, l[0].k, l[0].t IS NULL, d, m FROM ${table.name}") ==
        Set(
          "[1.5,1,2,null,3,true,1.25,null]",
          "[2.5,5000000000,6000000000,ArraySeq(2026-01-01),7,false,null,new]"
        )
    )
    assertSame(table)
  }

  test("columns whose bounds are not published are renamed and dropped as all others") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id INT, t TIMESTAMP, u TIMESTAMP, s STRUCT<v: TIMESTAMP>) " +
        s"USING delta TBLPROPERTIES ($on)"
    )
    val there = client(table)
    def metrics = there.properties.asScala.keySet
      .filter(_.startsWith("write.metadata.metrics.column."))
      .map(_.stripPrefix("write.metadata.metrics.column."))
    assert(metrics == Set("t", "u", "s.v"))
    there.updateSchema().renameColumn("t", "t2").deleteColumn("u").renameColumn("s", "s2").commit()
    there.updateSchema().renameColumn("s2.v", "v2").commit()
    assert(metrics == Set("t2", "s2.v2"))
    assertSame(table)
    refused(table, "PROPERTY")(
      there.updateProperties().set("write.metadata.metrics.column.t2", "full").commit()
    )
  }

  test("the first timestamp without zone is added as any other column") {
    val table = filled()
    assert(!table.log.writerFeatures("timestampNtz"))
    val there = client(table)
    val list = Types.ListType.ofOptional(100, Types.TimestampType.withoutZone)
    there.updateSchema().addColumn("times", list).commit()
    assert(table.log.writerFeatures("timestampNtz") && table.log.readerFeatures("timestampNtz"))
    assert(!table.log.properties.keys.exists(_.startsWith("delta.feature.")))
    append(there, Seq(3L, "c", java.util.List.of(LocalDateTime.parse("2026-03-29T02:30:00"))))
    withConf("spark.sql.datetime.java8API.enabled" -> "true")(assertSame(table))
  }

  test("properties of clients are kept and given back, those that steer are not theirs") {
    val table = filled()
    val there = client(table)
    there
      .updateProperties()
      .set("owner.name", "me")
      .set("write.parquet.row-group-limit", "5")
      .commit()
    assert(table.log.properties("iceberg.owner.name") == "me")
    assert(iceberg(table).properties.get("owner.name") == "me")
    there.updateProperties().remove("owner.name").commit()
    assert(!table.log.properties.contains("iceberg.owner.name"))
    assert(!iceberg(table).properties.containsKey("owner.name"))
    assert(iceberg(table).properties.get("write.parquet.row-group-limit") == "5")
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('iceberg.by' = 'delta')")
    there.refresh()
    assert(there.properties.get("by") == "delta")
    // The one that keeps others from writing past Delta is there for them alone.
    assert(!there.properties.containsKey("write.location-provider.impl"))
    publish(table)
    assert(iceberg(table).properties.containsKey("write.location-provider.impl"))
    Seq("write.delete.mode" -> "merge-on-read", "gc.enabled" -> "true", "delta-version" -> "7")
      .foreach { case (key, value) =>
        val refusal =
          intercept[ValidationException](there.updateProperties().set(key, value).commit())
        assert(refusal.getMessage.contains(s"the property $key to '$value'"), refusal.getMessage)
        assert(refusal.getMessage.contains("COMMIT_REFUSED.PROPERTY"))
      }
    there.updateProperties().set("write.delete.mode", "copy-on-write").commit()
    assertSame(table)
  }

  test("what Delta cannot have is refused, and nothing is changed") {
    val table = filled()
    val there = client(table)
    refused(table, "PARTITION_EVOLUTION")(there.updateSpec().addField("name").commit())
    refused(table, "PARTITION_TRANSFORM")(
      there.updateSpec().addField(Expressions.bucket("id", 4)).commit()
    )
    refused(table, "SORT_ORDER")(there.replaceSortOrder().asc("id").commit())
    refused(table, "COLUMN_TYPE")(
      there.updateSchema().addColumn("t", Types.TimeType.get).commit()
    )
    refused(table, "COLUMN_TYPE")(
      there.updateSchema().addColumn("u", Types.UUIDType.get).commit()
    )
    refused(table, "FORMAT_VERSION")(
      there.asInstanceOf[BaseTable].operations match {
        case o => o.commit(o.current, o.current.upgradeToFormatVersion(3))
      }
    )
    val current = there.currentSnapshot.snapshotId
    refused(table, "BRANCH_OR_TAG")(there.manageSnapshots().createTag("t", current).commit())
    refused(table, "BRANCH_OR_TAG")(there.manageSnapshots().createBranch("b", current).commit())
    def added: DataFile = file(there, None, record(there.schema, 9L, "x"))
    refused(table, "BRANCH_OR_TAG")(there.newAppend().appendFile(added).toBranch("b").commit())
    refused(table, "STAGED_SNAPSHOT")(there.newAppend().appendFile(added).stageOnly().commit())
    refused(table, "LOCATION")(there.updateLocation().setLocation("file:/elsewhere").commit())
    refused(table, "PROPERTY")(
      there.updateProperties().set("write.data.path", "file:/elsewhere").commit()
    )
    refused(table, "DELETE_FILES") {
      val deletes = FileMetadata
        .deleteFileBuilder(there.spec)
        .ofPositionDeletes()
        .withPath(there.locationProvider.newDataLocation("deletes.parquet"))
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(10)
        .withRecordCount(1)
        .build()
      there.newRowDelta().addDeletes(deletes).commit()
    }
    refused(table, "DATA_FILE") {
      val avro = DataFiles
        .builder(there.spec)
        .withPath(there.locationProvider.newDataLocation("x.avro"))
        .withFormat(FileFormat.AVRO)
        .withFileSizeInBytes(10)
        .withRecordCount(1)
        .build()
      there.newAppend().appendFile(avro).commit()
    }
    // Iceberg would have its rows twice, and Delta once.
    refused(table, "DATA_FILE") {
      val live = scala.util.Using.resource(there.newScan().planFiles())(_.iterator.next().file)
      there.newFastAppend().appendFile(live).commit()
    }
    refused(table, "STATISTICS_FILES") {
      there
        .updateStatistics()
        .setStatistics(
          new GenericStatisticsFile(current, "file:/stats.puffin", 4, 4, java.util.List.of())
        )
        .commit()
    }
    refused(table, "IDENTIFIER_FIELDS") {
      there
        .updateSchema()
        .allowIncompatibleChanges()
        .requireColumn("id")
        .setIdentifierFields("id")
        .commit()
    }
    append(there, Seq(3L, "c"))
    refused(table, "HISTORY") {
      val operations = there.asInstanceOf[BaseTable].operations
      val without = TableMetadata
        .buildFrom(operations.current)
        .removeSnapshots(java.util.Set.of[java.lang.Long](current))
      operations.commit(operations.current, without.build())
    }
    // It is as usable as before.
    append(client(table), Seq(4L, "d"))
    assertSame(table)
  }

  test("what breaks a rule is refused by the rule's own error") {
    val table = filled()
    val there = client(table)
    val violation = "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION."
    refusal(table, violation)(
      there.updateSchema().allowIncompatibleChanges().requireColumn("id").commit()
    )
    refusal(table, violation)(
      there.updateSchema().addColumn("_file", Types.LongType.get).commit()
    )
    val foreign = DataFiles
      .builder(there.spec)
      .withPath(
        "file:" + org.icebergwritercompat.testing.ForeignFiles
          .write(table.folder.resolve("data/foreign.parquet"), "optional int64 id;")(
            _.append("id", 1L)
          )
      )
      .withFormat(FileFormat.PARQUET)
      .withFileSizeInBytes(Files.size(table.folder.resolve("data/foreign.parquet")))
      .withRecordCount(1)
      .build()
    val error = intercept[ValidationException](there.newAppend().appendFile(foreign).commit())
    assert(error.getMessage.contains("breaks the rule E1f"), error.getMessage)
    assert(error.getMessage.startsWith("[ICEBERG_WRITER_COMPAT_COMMIT_REFUSED.FILE_RULES]"))
    assertSame(table)
  }

  test("what Delta itself refuses is refused") {
    val table = managed()
    val required = Types.StructType.of(NestedField.required(3, "x", Types.LongType.get))
    val list = NestedField.optional(1, "l", Types.ListType.ofOptional(2, required))
    val error = intercept[ValidationException](catalog.createTable(id(table), new Schema(list)))
    assert(error.getMessage.contains("COMMIT_REFUSED.BY_DELTA]"), error.getMessage)
    assert(error.getMessage.contains("NESTED_NOT_NULL"), error.getMessage)
    assert(!Files.exists(table.folder) && !catalog.tableExists(id(table)))
  }

  test("a file outside of the folder is taken with its whole path, and VACUUM leaves it") {
    val table = filled()
    val there = client(table)
    val folder = org.icebergwritercompat.testing.SharedSpark.freshFolder()
    Files.createDirectories(folder)
    val path = folder.resolve("a b%20.parquet")
    val made = written(there, s"file:$path", None, record(there.schema, 3L, "c"))
    there.newAppend().appendFile(made).commit()
    assert(count(table) == 3)
    assert(byClient(table) == inDelta(spark.table(table.name)))
    // It is told, and no fault.
    assert(Reports.verify(spark, table.name, None, None).compliant)
    there.newDelete().deleteFile(made).commit()
    withConf("spark.databricks.delta.retentionDurationCheck.enabled" -> "false") {
      sql(s"VACUUM ${table.name} RETAIN 0 HOURS")
    }
    assert(Files.exists(path) && count(table) == 2)
  }

  test("a file that says to have other rows than it has is refused") {
    val table = filled()
    val there = client(table)
    val honest = file(there, None, record(there.schema, 3L, "c"))
    val lying = DataFiles.builder(there.spec).copy(honest).withRecordCount(5).build()
    val error = intercept[ValidationException](there.newAppend().appendFile(lying).commit())
    assert(error.getMessage.contains("FILE_RULES"), error.getMessage)
    there.newAppend().appendFile(honest).commit()
    assertSame(table)
  }

  test("partitions by every type, with nulls and odd characters") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (v INT, ps STRING, pi INT, pl BIGINT, pb BOOLEAN, pd DATE, " +
        "pt TIMESTAMP, pn TIMESTAMP_NTZ) USING delta " +
        s"PARTITIONED BY (ps, pi, pl, pb, pd, pt, pn) TBLPROPERTIES ($on)"
    )
    val there = client(table)
    val odd = Seq("a b/c%20=ü&?#:+'\"\\é", "null", " ", "日本", "x=y")
    val times = Seq(
      OffsetDateTime.parse("0001-01-01T00:00:00Z"),
      OffsetDateTime.parse("9999-12-31T23:59:59.999999Z"),
      OffsetDateTime.parse("1969-12-31T23:59:59.999999Z")
    )
    val values: Seq[Seq[Any]] = odd.zipWithIndex.map { case (text, i) =>
      val at = times(i % 3)
      Seq[Any](
        i,
        text,
        Int.MinValue + i,
        Long.MaxValue - i,
        i % 2 == 0,
        LocalDate.of(1 + i * 1999, 1, 1),
        at,
        at.toLocalDateTime
      )
    } :+ (Seq[Any](99) ++ Seq.fill[Any](7)(null))
    val append = there.newAppend()
    values.foreach { row =>
      val made = record(there.schema, row: _*)
      val key = new PartitionKey(there.spec, there.schema)
      key.partition(
        new org.apache.iceberg.data.InternalRecordWrapper(there.schema.asStruct).wrap(made)
      )
      val data = new PartitionData(there.spec.partitionType)
      (0 until data.size).foreach(i => data.set(i, key.get(i, classOf[Any])))
      append.appendFile(file(there, Some(data), made))
    }
    append.commit()
    assert(count(table) == values.size)
    withConf("spark.sql.datetime.java8API.enabled" -> "true")(assertSame(table))
    odd.foreach { text =>
      val found = spark.table(table.name).where(col("ps") === text)
      assert(found.count() == 1, text)
    }
    assert(rows(s"SELECT v FROM ${table.name} WHERE ps IS NULL AND pt IS NULL") == Set("[99]"))
    withConf("spark.sql.datetime.java8API.enabled" -> "true") {
      // Delta's reader takes it for null.
      val marked = new PartitionData(there.spec.partitionType)
      val marker = "__HIVE_DEFAULT_PARTITION__"
      marked.set(0, marker)
      val hive = file(
        there,
        Some(marked),
        record(there.schema, Seq[Any](1, marker) ++ Seq.fill[Any](6)(null): _*)
      )
      refusal(table, "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.")(
        there.newAppend().appendFile(hive).commit()
      )
      // The log cannot tell it from null.
      val data = new PartitionData(there.spec.partitionType)
      data.set(0, "")
      val empty =
        file(there, Some(data), record(there.schema, Seq[Any](1, "") ++ Seq.fill[Any](6)(null): _*))
      refused(table, "DATA_FILE")(there.newAppend().appendFile(empty).commit())
      refusal(table, "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.")(
        there.updateSchema().renameColumn("ps", "other").commit()
      )
    }
  }

  test("a rollback is what Delta restores") {
    val table = filled()
    val there = client(table)
    val first = there.currentSnapshot.snapshotId
    append(there, Seq(3L, "c"))
    sql(s"DELETE FROM ${table.name} WHERE id = 1")
    there.refresh()
    there.manageSnapshots().rollbackTo(first).commit()
    assert(operation(table) == "ICEBERG ROLLBACK")
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[1,a]", "[2,b]"))
    assertSame(table)
  }

  test("a commit on metadata that has changed is refused, and a repeated one is not made twice") {
    val table = filled()
    val operations = client(table).asInstanceOf[BaseTable].operations
    val base = operations.current
    val there = client(table)
    val made = file(there, None, record(there.schema, 3L, "c"))
    there.newAppend().appendFile(made).commit()
    // What the client wanted to commit, once more and by another.
    val wanted = metadataOf(there)
    operations.commit(base, wanted)
    newCatalog().loadTable(id(table)).asInstanceOf[BaseTable].operations match {
      case other => other.commit(base, wanted)
    }
    assert(table.log.version == 2 && count(table) == 3)
    val stale = TableMetadata.buildFrom(base).setProperties(java.util.Map.of("a", "b")).build()
    intercept[CommitFailedException](operations.commit(base, stale))
    assert(table.log.version == 2)
    assertSame(table)
  }

  private val schema = new Schema(
    NestedField.required(1, "id", Types.LongType.get),
    NestedField.optional(
      2,
      "s",
      Types.StructType.of(
        NestedField.optional(3, "l", Types.ListType.ofOptional(4, Types.StringType.get))
      )
    ),
    NestedField.optional(5, "p", Types.StringType.get, "a doc")
  )

  private val timed = new Schema(
    schema.columns.asScala
      .concat(
        Seq(
          NestedField.optional(6, "at", Types.TimestampType.withZone),
          NestedField.optional(
            7,
            "x",
            Types.StructType.of(NestedField.optional(8, "x", Types.LongType.get))
          )
        )
      )
      .asJava
  )

  test("a table that a client makes is a Delta table with the feature") {
    val table = managed()
    val spec = PartitionSpec.builderFor(schema).identity("p").build()
    val there = catalog.createTable(id(table), schema, spec, java.util.Map.of("k", "v"))
    assert(table.log.version == 0)
    assertCompliant(table)
    assert(
      table.log.metadata.get("id").asText == there.asInstanceOf[BaseTable].operations.current.uuid
    )
    assert(
      table.log.columns.map(_.id) == there.schema.columns.asScala.map(c => Some(c.fieldId.toLong))
    )
    assert(table.log.partitionColumns == Seq("p"))
    assert(table.log.properties("iceberg.k") == "v")
    assert(table.log.properties("delta.enableTypeWidening") == "true")
    assert(Seq("data", "metadata").forall(name => Files.isDirectory(table.folder.resolve(name))))
    val data = new PartitionData(there.spec.partitionType)
    data.set(0, "x")
    val inner =
      org.apache.iceberg.data.GenericRecord.create(there.schema.findType("s").asStructType)
    inner.setField("l", java.util.List.of("y"))
    there
      .newAppend()
      .appendFile(file(there, Some(data), record(there.schema, 1L, inner, "x")))
      .commit()
    sql(s"INSERT INTO ${table.name} VALUES (2, null, 'x')")
    there.updateSchema().addColumn("more", Types.IntegerType.get).commit()
    assert(count(table) == 2)
    assertSame(table)
    intercept[AlreadyExistsException](catalog.createTable(id(table), schema))
    assert(catalog.listTables(namespace).contains(id(table)))
  }

  test("a table with rows from the start is one commit, by the client's snapshot") {
    val table = managed()
    val transaction = catalog.buildTable(id(table), schema).createTransaction()
    val there = transaction.table
    val made = file(there, None, record(there.schema, 1L, null, "x"))
    transaction.newAppend().appendFile(made).commit()
    transaction.commitTransaction()
    assert(table.log.version == 0 && count(table) == 1)
    assert(
      operations(table) == Seq("append") && snapshots(
        table
      ).head.snapshotId == there.currentSnapshot.snapshotId
    )
    assertSame(table)
  }

  test("a table is replaced by another, whose columns have ids of their own") {
    val table = managed()
    catalog.createTable(id(table), schema)
    sql(s"INSERT INTO ${table.name} VALUES (1, null, 'x')")
    val other = new Schema(
      NestedField.optional(1, "p", Types.StringType.get),
      NestedField.optional(2, "n", Types.IntegerType.get)
    )
    val transaction = catalog.buildTable(id(table), other).replaceTransaction()
    val there = transaction.table
    transaction.newAppend().appendFile(file(there, None, record(there.schema, "y", 7))).commit()
    transaction.commitTransaction()
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[y,7]"))
    assert(iceberg(table).currentSnapshot.snapshotId == there.currentSnapshot.snapshotId)
    assert(spark.sql(s"SELECT * FROM ${table.name} VERSION AS OF 1").collect().length == 1)
    assertSame(table)
  }

  test("a required column is added to a table of which no row stays, and to no other") {
    val table = managed()
    catalog.createTable(id(table), schema)
    sql(s"INSERT INTO ${table.name} VALUES (1, null, 'x')")
    val required = new Schema(NestedField.required(1, "n", Types.IntegerType.get))
    // What a client does that replaces a table: no row of before stays.
    val transaction = catalog.buildTable(id(table), required).replaceTransaction()
    val there = transaction.table
    transaction.newAppend().appendFile(file(there, None, record(there.schema, 7))).commit()
    transaction.commitTransaction()
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[7]"))
    assert(!spark.table(table.name).schema("n").nullable)
    assert(spark.sql(s"SELECT * FROM ${table.name} VERSION AS OF 1").collect().length == 1)
    assertSame(table)
    val error = intercept[ValidationException] {
      val update = catalog.loadTable(id(table)).updateSchema().allowIncompatibleChanges()
      update.addRequiredColumn("m", Types.IntegerType.get).commit()
    }
    assert(error.getMessage.contains("rule C14r"))
    assertSame(table)
  }

  test("what no Delta table can be is refused when it is staged") {
    val table = managed()
    def by(spec: PartitionSpec.Builder => PartitionSpec.Builder): PartitionSpec =
      spec(PartitionSpec.builderFor(timed)).build()
    val transforms = Seq(
      by(_.bucket("id", 4)),
      by(_.truncate("p", 2)),
      by(_.year("at")),
      by(_.month("at")),
      by(_.day("at")),
      by(_.hour("at")),
      by(_.alwaysNull("p")),
      by(_.identity("x.x"))
    )
    val sorted = SortOrder.builderFor(schema).asc("id").build()
    val identified = new Schema(schema.columns, java.util.Set.of(Integer.valueOf(1)))
    def refused(reason: String)(build: => Catalog.TableBuilder): Unit = {
      Seq[() => Any](
        () => build.create(),
        () => build.createTransaction(),
        () => build.createOrReplaceTransaction()
      ).foreach { make =>
        val error = intercept[ValidationException](make())
        assert(error.getMessage.contains(s"COMMIT_REFUSED.$reason]"), error.getMessage)
      }
      assert(!Files.exists(table.folder) && !catalog.tableExists(id(table)))
    }
    def plainly = catalog.buildTable(id(table), schema)
    transforms.foreach { spec =>
      refused("PARTITION_TRANSFORM")(catalog.buildTable(id(table), timed).withPartitionSpec(spec))
    }
    refused("SORT_ORDER")(plainly.withSortOrder(sorted))
    refused("IDENTIFIER_FIELDS")(catalog.buildTable(id(table), identified))
    refused("FORMAT_VERSION")(plainly.withProperty("format-version", "3"))
    refused("PROPERTY")(plainly.withProperty("write.delete.mode", "merge-on-read"))
    Seq(Types.TimeType.get, Types.UUIDType.get, Types.FixedType.ofLength(3)).foreach { found =>
      val below = Types.ListType.ofOptional(2, found)
      Seq(NestedField.optional(1, "t", found), NestedField.optional(1, "t", below)).foreach { t =>
        refused("COLUMN_TYPE")(catalog.buildTable(id(table), new Schema(t)))
      }
    }
  }

  test("a table is not made where its metadata could not be published") {
    val table = TestTable(managed().name, SharedSpark.freshFolder())
    val (known, unknown) = ElsewhereFileSystem.confs.partition(_._1.contains("exclusive"))
    def plainly =
      catalog.buildTable(id(table), schema).withLocation(s"elsewhere:${table.folder}")
    withConf(unknown: _*) {
      val staged = withConf(known: _*)(plainly.createTransaction())
      Seq[() => Any](
        () => plainly.create(),
        () => plainly.createTransaction(),
        () => staged.commitTransaction()
      ).foreach { make =>
        val error = intercept[ValidationException](make())
        assert(error.getMessage.contains("NOT_PUBLISHABLE.NOT_EXCLUSIVE]"), error.getMessage)
        assert(error.getMessage.contains(known.head._1))
        assert(!Files.exists(table.folder) && !catalog.tableExists(id(table)))
      }
      // What the error offers.
      withConf(known: _*) {
        plainly.create()
        append(client(table), Seq(1L, null, "x"))
        assert(count(table) == 1 && byClient(table) == inDelta(spark.table(table.name)))
      }
    }
    new SessionTables().drop(id(table), purge = false)
  }

  test("a create that died half-way is completed by the next one") {
    val table = managed()
    catalog.createTable(id(table), schema)
    // As if the process had died before the name was given.
    new SessionTables().drop(id(table), purge = false)
    assert(!catalog.tableExists(id(table)))
    val there = catalog.createTable(id(table), schema)
    append(there, Seq(1L, null, "x"))
    assertSame(table)
    // With rows it may be anybody's.
    new SessionTables().drop(id(table), purge = false)
    val error = intercept[AlreadyExistsException](catalog.createTable(id(table), schema))
    assert(error.getMessage.contains(s"CREATE TABLE default.${table.name} USING delta LOCATION"))
    sql(error.getMessage.split("run ")(1).split(";").head)
    assert(count(table) == 1)
    assertSame(table)
  }

  test("only tables with the feature are tables of the catalog") {
    val guarded = filled()
    val without = plain()
    val listed = catalog.listTables(namespace)
    assert(listed.contains(id(guarded)) && !listed.contains(id(without)))
    assert(!catalog.tableExists(id(without)))
    intercept[NoSuchTableException](client(without))
    intercept[NoSuchTableException](
      catalog.loadTable(TableIdentifier.of(namespace, "no_such_table"))
    )
    intercept[AlreadyExistsException](catalog.createTable(id(without), schema))
    assert(count(without) == 2)
  }

  test("a table is dropped with its files, or without") {
    val kept = filled()
    assert(catalog.dropTable(id(kept), false))
    assert(!catalog.dropTable(id(kept), false))
    assert(Files.exists(kept.folder) && !spark.catalog.tableExists(kept.name))
    assert(spark.read.format("delta").load(kept.folder.toString).count() == 2)
    val gone = filled()
    assert(catalog.dropTable(id(gone), true))
    assert(!Files.exists(gone.folder) && !spark.catalog.tableExists(gone.name))
  }

  test("a table whose name was dropped is registered by its metadata, and no other") {
    val table = filled()
    val older = metadataOf(client(table)).metadataFileLocation
    sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
    intercept[AlreadyExistsException](catalog.registerTable(id(table), older))
    assert(catalog.dropTable(id(table), false))
    sql(s"INSERT INTO delta.`${table.folder}` VALUES (4, 'd')")
    // An older file says which table it is; its rows are those of Delta's log.
    val again = catalog.registerTable(id(table), older)
    val asked = catalog.loadTable(id(table))
    assert(again.currentSnapshot.snapshotId == asked.currentSnapshot.snapshotId)
    assert(count(table) == 4)
    assertSame(table)
    append(again, Seq(5L, "e"))
    assert(count(table) == 5)
    assertSame(table)
    val other = managed()
    def refused(file: String, why: String): Unit = {
      val error = intercept[ValidationException](catalog.registerTable(id(other), file))
      assert(error.getMessage.contains(why), error.getMessage)
      assert(!catalog.tableExists(id(other)) && !new SessionTables().exists(id(other)))
    }
    val newest = metadataOf(client(table)).metadataFileLocation
    val overwrite = intercept[ValidationException](
      catalog.registerTable(id(table), newest, true)
    )
    assert(overwrite.getMessage.contains("RESTORE") && count(table) == 5)
    val bytes = Files.readAllBytes(java.nio.file.Path.of(java.net.URI.create(newest)))
    def copied(name: String, to: java.nio.file.Path): String = {
      Files.createDirectories(to.getParent)
      Files.write(to, if (name == "broken") "{".getBytes else bytes)
      to.toString
    }
    val nowhere = managed().folder
    refused(copied("x", nowhere.resolve("metadata/v1.metadata.json")), "CREATE TABLE … AS SELECT")
    refused(copied("x", nowhere.resolve("v1.metadata.json")), "CREATE TABLE … AS SELECT")
    val (another, without) = (filled(), plain())
    refused(copied("x", another.folder.resolve("metadata/v1.metadata.json")), "of another table")
    refused(copied("x", without.folder.resolve("metadata/v1.metadata.json")), "SET TBLPROPERTIES")
    refused(copied("broken", table.folder.resolve("metadata/b.metadata.json")), "no metadata")
    refused(s"${table.folder}/metadata/none.metadata.json", "is not there")
  }

  test("a table gets another name, and its files stay where they are") {
    val taken = filled()
    val made = managed()
    append(catalog.createTable(id(made), schema), Seq(1L, null, "x"))
    def entry(table: TableIdentifier) = new SessionTables().entry(table).get
    val before = entry(id(made))
    assert(before.tableType == CatalogTableType.MANAGED)
    intercept[AlreadyExistsException](catalog.renameTable(id(made), id(taken)))
    val elsewhere = TableIdentifier.of("no_such_database", "t")
    val refused = intercept[ValidationException](catalog.renameTable(id(made), elsewhere))
    assert(refused.getMessage.contains("within its database alone"))
    assert(entry(id(made)).tableType == CatalogTableType.MANAGED)
    val other = TableIdentifier.of(namespace, s"${made.name}_renamed")
    catalog.renameTable(id(made), other)
    assert(!catalog.tableExists(id(made)) && entry(other).location == before.location)
    // Both write to it by its new name, and whoever had it under the old one sees nothing.
    append(catalog.loadTable(other), Seq(2L, null, "y"))
    sql(s"INSERT INTO ${other.name} VALUES (3, null, 'z')")
    assert(spark.table(other.name).count() == 3)
    intercept[NoSuchTableException](catalog.renameTable(id(made), other))
    // As before, the files go with the name.
    assert(entry(other).tableType == CatalogTableType.MANAGED)
    sql(s"DROP TABLE ${other.name}")
    assert(!Files.exists(made.folder))
  }

  test("databases are namespaces") {
    val name = s"db_${System.nanoTime}"
    val made = Namespace.of(name)
    catalog.createNamespace(made, java.util.Map.of("comment", "c", "k", "v"))
    intercept[AlreadyExistsException](catalog.createNamespace(made, java.util.Map.of()))
    assert(catalog.listNamespaces(Namespace.empty).contains(made))
    assert(catalog.loadNamespaceMetadata(made).get("k") == "v")
    catalog.setProperties(made, java.util.Map.of("k", "w"))
    catalog.removeProperties(made, java.util.Set.of("comment"))
    assert(catalog.loadNamespaceMetadata(made).get("k") == "w")
    assert(!catalog.loadNamespaceMetadata(made).containsKey("comment"))
    val table = TableIdentifier.of(made, "t")
    append(
      catalog.createTable(table, new Schema(NestedField.optional(1, "a", Types.LongType.get))),
      Seq(1L)
    )
    assert(spark.table(s"$name.t").count() == 1)
    intercept[NamespaceNotEmptyException](catalog.dropNamespace(made))
    assert(catalog.dropTable(table, true))
    assert(catalog.dropNamespace(made) && !catalog.dropNamespace(made))
    intercept[NoSuchNamespaceException](catalog.loadNamespaceMetadata(made))
    intercept[NoSuchNamespaceException](catalog.listTables(made))
    intercept[IllegalArgumentException](
      catalog.createNamespace(Namespace.of("a", "b"), java.util.Map.of())
    )
  }

  test("every type at its ends, and nested ones, are read alike") {
    val table = managed()
    val inner = Types.StructType.of(NestedField.optional(21, "z", Types.TimestampType.withZone))
    val all = new Schema(
      NestedField.optional(1, "a", Types.BooleanType.get),
      NestedField.optional(2, "b", Types.IntegerType.get),
      NestedField.optional(3, "c", Types.LongType.get),
      NestedField.optional(4, "d", Types.FloatType.get),
      NestedField.optional(5, "e", Types.DoubleType.get),
      NestedField.optional(6, "f", Types.DecimalType.of(9, 3)),
      NestedField.optional(7, "g", Types.DecimalType.of(38, 9)),
      NestedField.optional(8, "h", Types.StringType.get),
      NestedField.optional(9, "i", Types.BinaryType.get),
      NestedField.optional(10, "j", Types.DateType.get),
      NestedField.optional(11, "k", Types.TimestampType.withZone),
      NestedField.optional(12, "l", Types.TimestampType.withoutZone),
      NestedField.optional(
        13,
        "m",
        Types.MapType.ofOptional(14, 15, Types.StringType.get, Types.ListType.ofOptional(16, inner))
      )
    )
    val there = catalog.createTable(id(table), all)
    val nested = {
      val of = there.schema.findType("m").asMapType.valueType.asListType.elementType.asStructType
      val value = org.apache.iceberg.data.GenericRecord.create(of)
      value.setField("z", OffsetDateTime.parse("1500-01-01T00:00:00Z"))
      java.util.Map.of("k", java.util.List.of(value))
    }
    def bytes(values: Byte*) = java.nio.ByteBuffer.wrap(values.toArray)
    append(
      there,
      Seq[Any](
        true,
        Int.MinValue,
        Long.MinValue,
        Float.MinValue,
        Double.NegativeInfinity,
        new java.math.BigDecimal("-999999.999"),
        new java.math.BigDecimal("-" + "9" * 29 + "." + "9" * 9),
        "",
        bytes(),
        LocalDate.of(1, 1, 1),
        OffsetDateTime.parse("0001-01-01T00:00:00Z"),
        LocalDateTime.parse("0001-01-01T00:00:00"),
        nested
      ),
      Seq[Any](
        false,
        Int.MaxValue,
        Long.MaxValue,
        Float.NaN,
        Double.NaN,
        new java.math.BigDecimal("999999.999"),
        new java.math.BigDecimal("9" * 29 + "." + "9" * 9),
        "\uD83D\uDE00" * 40,
        bytes(0, -1),
        LocalDate.of(9999, 12, 31),
        OffsetDateTime.parse("9999-12-31T23:59:59.999999Z"),
        LocalDateTime.parse("9999-12-31T23:59:59.999999"),
        java.util.Map.of()
      ),
      Seq.fill[Any](13)(null)
    )
    // The classes of java.sql have another calendar for the first of these.
    withConf("spark.sql.datetime.java8API.enabled" -> "true")(assertSame(table))
    Seq(
      "b = 2147483647",
      "c < 0",
      "d > 0",
      "e > 0",
      "f = 999999.999",
      "h = ''",
      "j < DATE'0002-01-01'",
      "k > TIMESTAMP'9999-01-01 00:00:00Z'",
      "l < TIMESTAMP_NTZ'0002-01-01 00:00:00'"
    ).foreach { filter =>
      assert(spark.sql(s"SELECT * FROM ${table.name} WHERE $filter").count() == 1, filter)
    }
  }
}
