package org.apache.spark.sql.delta.writercompat.publish

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres
import org.apache.hadoop.conf.Configuration
import org.apache.iceberg.{BaseTable, CatalogUtil, Table, TableMetadata}
import org.apache.iceberg.catalog.{Catalog, TableIdentifier}
import org.apache.iceberg.hadoop.{HadoopCatalog, HadoopTables}
import org.apache.iceberg.jdbc.JdbcCatalog
import org.apache.iceberg.types.Types
import org.apache.spark.sql.delta.DeltaLog
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{
  ElsewhereFileSystem,
  RestCatalogServer,
  SharedSpark,
  TestTable
}
import org.scalatest.BeforeAndAfterAll

import java.nio.file.Files
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Tables published to Iceberg catalogs, which other processes than this one could ask. */
class PublishCatalogSuite extends PublishedSuite with BeforeAndAfterAll {

  private type Settings = Map[String, String]

  private val root = SharedSpark.freshFolder()

  private def sqlite(file: String): Settings =
    Map("type" -> "jdbc", "uri" -> s"jdbc:sqlite:$root/$file.db", "warehouse" -> s"$root")

  private lazy val postgres = EmbeddedPostgres.builder().start()

  private lazy val behindRest: JdbcCatalog = reader(sqlite("rest")).asInstanceOf[JdbcCatalog]

  private lazy val rest = new RestCatalogServer(behindRest)

  private val kinds = Seq[(String, () => Settings)](
    "SQLite" -> (() => sqlite("iceberg")),
    "PostgreSQL" -> (() =>
      Map(
        "type" -> "jdbc",
        "uri" -> postgres.getJdbcUrl("postgres", "postgres"),
        "warehouse" -> s"$root",
        "jdbc.schema-version" -> "V1"
      )
    ),
    "REST" -> (() => Map("type" -> "rest", "uri" -> rest.uri, "rest.client.max-retries" -> "1"))
  )

  override def beforeAll(): Unit = { Files.createDirectories(root); () }

  override def afterAll(): Unit = {
    rest.close()
    postgres.close()
  }

  /** A catalog as a reader opens it, who has nothing of this project. */
  private def reader(settings: Settings): Catalog =
    CatalogUtil.buildIcebergCatalog("iceberg", settings.asJava, new Configuration)

  private var asked: Option[Settings] = None

  /** Runs `body` while tables are published to this catalog, and read from there. */
  private def in[T](settings: Settings)(body: => T): T = {
    val before = asked
    asked = Some(settings)
    val confs = settings.toSeq.map { case (key, value) =>
      s"spark.icebergWriterCompat.catalog.$key" -> value
    }
    try withConf(confs: _*)(body)
    finally asked = before
  }

  private def identifier(table: TestTable): TableIdentifier =
    TableIdentifier.of("default", table.name)

  override protected def iceberg(table: TestTable): Table = asked match {
    case Some(settings) => reader(settings).loadTable(identifier(table))
    case None           => super.iceberg(table)
  }

  private def inFolder(table: TestTable): TableMetadata =
    new HadoopTables(new Configuration)
      .load(table.folder.toUri.toString)
      .asInstanceOf[BaseTable]
      .operations
      .current

  private def created(properties: String = on): TestTable = {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id INT, name STRING, p DATE) USING delta " +
        s"PARTITIONED BY (p) TBLPROPERTIES ($properties)"
    )
    table
  }

  private def insert(table: TestTable, id: Int): Unit =
    sql(s"INSERT INTO ${table.name} VALUES ($id, 'n$id', DATE'2026-01-0${id % 3 + 1}')")

  private def condition(body: => Any): String =
    intercept[IcebergWriterCompatException](body).getCondition
      .stripPrefix("ICEBERG_WRITER_COMPAT_")

  kinds.foreach { case (kind, settings) =>
    test(s"$kind: VACUUM leaves what readers of the catalog need, and asks for the catalog") {
      val table = in(settings()) {
        val table = created()
        insert(table, 1)
        publish(table)
        sql(s"UPDATE ${table.name} SET name = 'u'")
        publish(table)
        table
      }
      def vacuum(): Unit = withConf(
        "spark.databricks.delta.retentionDurationCheck.enabled" -> "false",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism" -> "2"
      )(sql(s"VACUUM ${table.name} RETAIN 0 HOURS"))
      assert(condition(vacuum()) == "VACUUM_REFUSED")
      in(settings()) {
        assert(snapshots(table).size == 2)
        vacuum()
        assert(snapshots(table).size == 1)
        publish(table)
        assertPublished(table)
      }
    }
  }

  test("a publisher that is overtaken right after its commit publishes nothing twice") {
    in(kinds.toMap.apply("REST")()) {
      val table = created()
      insert(table, 0)
      publish(table)
      (1 to 4).foreach(insert(table, _))
      var other = 0
      rest.afterCommit { other = publish(table).get("snapshots").asInt }
      val own = publish(table).get("snapshots").asInt
      assert((own, other) == ((1, 3)))
      assertPublished(table)
      assert(snapshots(table).map(_.summary.get("delta-version").toLong) == (1L to 5L))
      assert(snapshots(table).map(_.summary.get("added-data-files").toInt) == Seq.fill(5)(1))
    }
  }

  kinds.foreach { case (kind, settings) =>
    test(s"$kind: the catalog's table is what each commit made, in one line of metadata") {
      in(settings()) {
        val table = created(s"$on, 'icebergWriterCompat.publish' = 'true'")
        assertPublished(table)
        (1 to 4).foreach(insert(table, _))
        Seq(
          s"UPDATE ${table.name} SET name = 'u' WHERE id = 1",
          s"ALTER TABLE ${table.name} ADD COLUMN more STRUCT<x: INT>",
          s"ALTER TABLE ${table.name} RENAME COLUMN name TO title",
          s"DELETE FROM ${table.name} WHERE id = 2",
          s"OPTIMIZE ${table.name}",
          s"ALTER TABLE ${table.name} DROP COLUMN title",
          s"RESTORE TABLE ${table.name} TO VERSION AS OF 4"
        ).foreach { statement =>
          sql(statement)
          assert(metadata(table).property("delta-version", "").toLong == table.log.version)
        }
        assertPublished(table)
        val result = publish(table)
        assert(result.get("snapshots").asInt == 0)
        assert(result.get("catalog_table").asText == s"default.${table.name}")
        assert(result.get("metadata_location").asText == metadata(table).metadataFileLocation)
        // The folder has the beginning of the line only, which says where it goes on.
        assert(inFolder(table).uuid == metadata(table).uuid)
        assert(inFolder(table).property("delta-version", "") == "0")
        assert(inFolder(table).property("delta-catalog-table", "") == s"default.${table.name}")
        val names = Using.resource(Files.list(table.folder.resolve("metadata"))) { files =>
          files.iterator.asScala.map(_.getFileName.toString).toSeq
        }
        assert(names.filter(_.matches("v\\d+\\.metadata\\.json")) == Seq("v1.metadata.json"))
      }
    }

    if (kind != "PostgreSQL")
      test(
        s"$kind: commits that are published late have their times, as far as the catalog allows"
      ) {
        in(settings()) {
          val table = created(s"$on, 'delta.enableInCommitTimestamps' = 'true'")
          publish(table)
          (1 to 3).foreach(insert(table, _))
          // As if they were made an hour ago.
          val ago = java.time.Duration.ofHours(1).toMillis
          val began = System.currentTimeMillis()
          table.log.versions.foreach { version =>
            val commit = table.folder.resolve(f"_delta_log/$version%020d.json")
            val checksum = table.folder.resolve(f"_delta_log/$version%020d.crc")
            Seq(commit, checksum).foreach { file =>
              Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
            }
            Files.deleteIfExists(checksum)
            val aged = "\"inCommitTimestamp\":(\\d+)".r.replaceAllIn(
              Files.readString(commit),
              found => s""""inCommitTimestamp":${found.group(1).toLong - ago}"""
            )
            Files.writeString(commit, aged)
          }
          DeltaLog.clearCache()
          publish(table)
          val committed = (1L to 3L).map { version =>
            table.log.actions(version).head._2.get("inCommitTimestamp").asLong
          }
          assert(committed == committed.sorted && committed.last < began - ago / 2)
          val published = snapshots(table)
          assert(published.map(_.summary.get("delta-version").toLong) == (1L to 3L))
          val times = published.map(_.timestampMillis)
          // A server may refuse a snapshot that is older than a minute.
          if (kind == "REST") assert(times == times.sorted && times.head > began - 60000)
          else assert(times == committed)
        }
      }

    test(s"$kind: publishers that race publish each commit once") {
      in(settings()) {
        val table = created()
        insert(table, 0)
        val first = Using.resource(new Threads(3))(_.all(3)(publish(table)))
        assert(first.map(_.get("snapshots").asInt).sum == 1)
        (1 to 5).foreach(insert(table, _))
        sql(s"ALTER TABLE ${table.name} ADD COLUMN more INT")
        val results = Using.resource(new Threads(4))(_.all(4)(publish(table)))
        assert(results.map(_.get("snapshots").asInt).sum == 5)
        assert(results.forall(_.get("delta_version").asLong == table.log.version))
        assertPublished(table)
        assert(snapshots(table).map(_.summary.get("delta-version").toLong) == (1L to 6L))
      }
    }

    test(s"$kind: what was published in the folder goes on in the catalog, and there only") {
      val table = created()
      (1 to 2).foreach(insert(table, _))
      publish(table)
      val before = metadata(table)
      in(settings()) {
        assert(status(table).get("published_version").isNull)
        publish(table)
        assertPublished(table)
        assert(metadata(table).uuid == before.uuid)
        insert(table, 3)
        publish(table)
        assertPublished(table)
        assert(
          snapshots(table).map(_.snapshotId).take(1) ==
            before.snapshots.asScala.map(_.snapshotId)
        )
        assert(snapshots(table).size == 2)
      }
      insert(table, 4)
      val error = intercept[IcebergWriterCompatException](publish(table))
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.ELSEWHERE")
      assert(error.getMessageParameters.get("catalogTable") == s"default.${table.name}")
      assert(status(table).get("problems").get(0).get("text").asText.contains("ELSEWHERE"))
      in(settings()) {
        publish(table)
        assertPublished(table)
      }
    }
  }

  kinds.foreach { case (kind, settings) =>
    test(s"$kind: a partition column replaced by one of the same name is another one") {
      in(settings()) {
        val table = created()
        insert(table, 1)
        publish(table)
        sql(
          s"CREATE OR REPLACE TABLE ${table.name} (id INT, p BIGINT) USING delta " +
            s"PARTITIONED BY (p) TBLPROPERTIES ($on)"
        )
        sql(s"INSERT INTO ${table.name} VALUES (2, 5000000000)")
        publish(table)
        assertPublished(table)
      }
    }
  }

  test("old versions leave a catalog by number, and the sign in the folder stays") {
    in(sqlite("numbers")) {
      val table = created()
      (1 to 11).foreach { id => insert(table, id); publish(table) }
      assertPublished(table)
      assert(snapshots(table).size == 11)
      val names = Using.resource(Files.list(table.folder.resolve("metadata"))) { files =>
        files.iterator.asScala.map(_.getFileName.toString).toSeq
      }
      val versions = names.filter(_.endsWith(".metadata.json")).filterNot(_.startsWith("."))
      assert(versions.count(_.matches("\\d{5}-.*")) == 9)
      assert(versions.filter(_.startsWith("v")) == Seq("v1.metadata.json"))
      assert(metadata(table).previousFiles.size == 8)
    }
  }

  test("a catalog is published to when the clock is back, and times do not go back") {
    in(sqlite("clock")) {
      val table = created()
      insert(table, 1)
      publish(table)
      shift(table, java.time.Duration.ofDays(3))
      insert(table, 2)
      sql(s"UPDATE ${table.name} SET name = 'u' WHERE id = 1")
      publish(table)
      sql(s"DELETE FROM ${table.name} WHERE id = 2")
      publish(table)
      assert(snapshots(table).size == 4)
      assertTimesGoOn(table)
      assertPublished(table)
    }
  }

  test("a table from the future is taken over by a catalog") {
    val table = created()
    insert(table, 1)
    publish(table)
    shift(table, java.time.Duration.ofMinutes(10))
    in(sqlite("clock")) {
      insert(table, 2)
      publish(table)
      assertTimesGoOn(table)
      assertPublished(table)
    }
  }

  private def local(location: String): java.nio.file.Path =
    java.nio.file.Path.of(new org.apache.hadoop.fs.Path(location).toUri.getPath)

  private def remove(file: java.nio.file.Path): Unit = {
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    Files.delete(file)
  }

  kinds.foreach { case (kind, settings) =>
    test(s"$kind: a log that was put back is followed from the last common commit") {
      in(settings()) {
        val table = created()
        (1 to 3).foreach { id => insert(table, id); publish(table) }
        val before = metadata(table)
        remove(table.folder.resolve(f"_delta_log/${3}%020d.json"))
        remove(table.folder.resolve(f"_delta_log/${3}%020d.crc"))
        org.apache.spark.sql.delta.DeltaLog.clearCache()
        (4 to 5).foreach(insert(table, _))
        assert(status(table).get("problems").size == 1)
        assert(publish(table).get("mended").size == 1)
        assertPublished(table)
        assert(status(table).get("problems").isEmpty)
        assert(snapshots(table).map(_.summary.get("delta-version")) == Seq("1", "2", "4"))
        assert(metadata(table).uuid == before.uuid)
      }
    }

    test(s"$kind: damaged metadata goes on in a new line, under the same name") {
      in(settings()) {
        val table = created()
        insert(table, 1)
        publish(table)
        insert(table, 2)
        publish(table)
        def mended(): Unit = {
          assert(status(table).get("problems").size == 1)
          val before = metadataFiles(table)
          assert(publish(table).get("mended").size == 1)
          assertSameTable(table)
          assert(status(table).get("problems").isEmpty)
          insert(table, before)
          publish(table)
          assertSameTable(table)
        }
        remove(local(metadata(table).currentSnapshot.manifestListLocation))
        mended()
        // A REST server reads the file by itself, and its answer does not tell what is the matter.
        if (kind != "REST") {
          val broken = local(metadata(table).metadataFileLocation)
          Files.deleteIfExists(broken.resolveSibling(s".${broken.getFileName}.crc"))
          Files.write(broken, Files.readAllBytes(broken).take(200))
          mended()
          assert(Files.exists(broken.resolveSibling(s"${broken.getFileName}.unreadable")))
        }
        remove(local(metadata(table).metadataFileLocation))
        if (kind == "REST") assertBegunAnew(table) else mended()
      }
    }

    test(s"$kind: an entry whose metadata is missing is reported, and replaced on request") {
      in(settings()) {
        val table = created(s"$on, 'icebergWriterCompat.publish' = 'true'")
        insert(table, 1)
        val renamed = managed()
        sql(s"ALTER TABLE ${table.name} RENAME TO ${renamed.name}")
        insert(renamed, 2)
        assertSameTable(renamed)
        // Another table under the old name, and one that is dropped and made again.
        Seq("1", "2").foreach { id =>
          sql(s"CREATE TABLE ${table.name} (other STRING) USING delta TBLPROPERTIES ($on)")
          sql(s"INSERT INTO ${table.name} VALUES ('$id')")
          assertBegunAnew(table)
          sql(s"DROP TABLE ${table.name}")
        }
        assertSameTable(renamed)
      }
    }

    test(s"$kind: what Iceberg writers committed before a table was renamed is not lost") {
      in(settings()) {
        val table = numbers()
        sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
        publish(table)
        val snapshot = foreignAppend(table)
        val renamed = managed()
        sql(s"ALTER TABLE ${table.name} RENAME TO ${renamed.name}")
        val problems = status(renamed).get("problems")
        assert(problems.size == 1)
        Seq("NOT_TAKEN", s"$snapshot", "1 rows added", s"${renamed.folder}/metadata/").foreach {
          told =>
            assert(problems.toString.contains(told), told)
        }
        assert(condition(publish(renamed)) == "NOT_PUBLISHABLE.NOT_TAKEN")
        assert(
          condition(IcebergWriterCompat.takeSnapshot(spark, renamed.name, snapshot)) ==
            "NOT_PUBLISHABLE.NOT_TAKEN"
        )
        // Back under the old name, it can be taken over.
        sql(s"ALTER TABLE ${renamed.name} RENAME TO ${table.name}")
        IcebergWriterCompat.takeSnapshot(spark, table.name, snapshot)
        assert(count(table) == 2)
        assertSameTable(table)
        // Or dropped by name, under the new one.
        val last = foreignAppend(table)
        sql(s"ALTER TABLE ${table.name} RENAME TO ${renamed.name}")
        IcebergWriterCompat.discardSnapshot(spark, renamed.name, last)
        assertSameTable(renamed)
        assert(count(renamed) == 2)
        assert(status(renamed).get("problems").isEmpty)
      }
    }

    test(s"$kind: what Iceberg writers committed before the name was dropped is not lost") {
      in(settings()) {
        val table = numbers()
        sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
        publish(table)
        for (keep <- Seq(true, false)) {
          val snapshot = foreignAppend(table)
          val rows = count(table)
          reader(settings()).dropTable(identifier(table), false)
          val problems = status(table).get("problems").toString
          Seq("FOREIGN_COMMIT", s"$snapshot").foreach(told => assert(problems.contains(told), told))
          sql(s"INSERT INTO ${table.name} VALUES (2, 'b')")
          assert(condition(publish(table)) == "NOT_PUBLISHABLE.FOREIGN_COMMIT")
          assert(condition(sql(s"VACUUM ${table.name}")) == "VACUUM_REFUSED")
          assert(!reader(settings()).tableExists(identifier(table)))
          if (keep) IcebergWriterCompat.takeSnapshot(spark, table.name, snapshot)
          else IcebergWriterCompat.discardSnapshot(spark, table.name, snapshot)
          // The writer's file has as many rows as the first file of the table.
          assert(count(table) == rows + 1 + (if (keep) 1 else 0))
          assertSameTable(table)
          assert(metadata(table).snapshot(snapshot) != null)
          assert(status(table).get("problems").isEmpty)
        }
        // Without anything of others, the table goes on.
        reader(settings()).dropTable(identifier(table), false)
        sql(s"INSERT INTO ${table.name} VALUES (3, 'c')")
        publish(table)
        assertSameTable(table)
      }
    }

    test(s"$kind: a location that an Iceberg writer has changed is not that of another table") {
      in(settings()) {
        val table = numbers()
        sql(s"INSERT INTO ${table.name} VALUES (1, 'a')")
        publish(table)
        val elsewhere = SharedSpark.freshFolder().toUri.toString
        iceberg(table).updateLocation().setLocation(elsewhere).commit()
        val problems = status(table).get("problems").toString
        Seq("an Iceberg writer has changed its location", elsewhere).foreach { told =>
          assert(problems.contains(told), told)
        }
        publish(table)
        assertSameTable(table)
        assert(file(metadata(table).location) == table.folder)
        // What he has committed as well is not lost.
        val snapshot = foreignAppend(table)
        iceberg(table).updateLocation().setLocation(elsewhere).commit()
        sql(s"INSERT INTO ${table.name} VALUES (2, 'b')")
        assert(condition(publish(table)) == "NOT_PUBLISHABLE.NOT_TAKEN")
        assert(status(table).get("problems").toString.contains(s"$snapshot"))
        IcebergWriterCompat.discardSnapshot(spark, table.name, snapshot)
        assertSameTable(table)
        assert(status(table).get("problems").isEmpty)
      }
    }

    test(
      s"$kind: what an Iceberg writer changes without a snapshot is noticed, and dropped by name"
    ) {
      in(settings()) {
        val table = created(s"$on, 'icebergWriterCompat.publish' = 'true'")
        insert(table, 1)
        iceberg(table).updateSchema().addColumn("theirs", Types.IntegerType.get).commit()
        val theirs = metadata(table).metadataFileLocation
        assert(status(table).get("problems").toString.contains("column theirs int is added"))
        assert(condition(publish(table)) == "NOT_PUBLISHABLE.FOREIGN_CHANGE")
        insert(table, 2)
        assert(metadata(table).metadataFileLocation == theirs)
        IcebergWriterCompat.discardChanges(spark, table.name, local(theirs).getFileName.toString)
        assert(inIceberg(table) == inDelta(spark.table(table.name)))
        assert(metadata(table).schema.columns.size == 3)
        assert(status(table).get("problems").isEmpty)
        insert(table, 3)
        assert(inIceberg(table) == inDelta(spark.table(table.name)))
      }
    }
  }

  /** The entry of the catalog cannot be read; the remedy fixes it. */
  private def assertBegunAnew(table: TestTable): Unit = {
    val problems = status(table).get("problems")
    assert(problems.size == 1)
    assert(problems.get(0).get("text").asText.contains("ENTRY_UNREADABLE"))
    assert(problems.get(0).at("/remedy/command/0").asText.endsWith(s"'${quoted(table)}' --anew"))
    assert(condition(publish(table)) == "NOT_PUBLISHABLE.ENTRY_UNREADABLE")
    IcebergWriterCompat.publishAnew(spark, table.name)
    assertSameTable(table)
    assert(status(table).get("problems").isEmpty)
    assert(publish(table).get("snapshots").asInt == 0)
    ()
  }

  private def quoted(table: TestTable): String = status(table).get("table").asText

  test("an external table that is renamed is told where it is published") {
    in(sqlite("external")) {
      val table = TestTable(s"external_${System.nanoTime}", SharedSpark.freshFolder())
      sql(
        s"CREATE TABLE ${table.name} (id INT) USING delta LOCATION '${table.folder}' " +
          s"TBLPROPERTIES ($on)"
      )
      sql(s"INSERT INTO ${table.name} VALUES (1)")
      publish(table)
      val renamed = TestTable(s"${table.name}_renamed", table.folder)
      sql(s"ALTER TABLE ${table.name} RENAME TO ${renamed.name}")
      assert(status(renamed).get("problems").toString.contains(s"default.${table.name}"))
      assert(condition(publish(renamed)) == "NOT_PUBLISHABLE.ELSEWHERE")
    }
  }

  private def metadataFiles(table: TestTable): Int =
    Using.resource(Files.list(table.folder.resolve("metadata")))(_.iterator.asScala.size)

  test("a table that is renamed or copied has an entry of its own, and leaves the other alone") {
    in(sqlite("moved")) {
      val table = created()
      insert(table, 1)
      publish(table)
      val copy = byPath()
      Files.createDirectories(copy.folder.getParent)
      Using.resource(Files.walk(table.folder)) { paths =>
        paths.iterator.asScala.foreach { path =>
          Files.copy(path, copy.folder.resolve(table.folder.relativize(path).toString))
        }
      }
      assert(condition(publish(copy)) == "NOT_PUBLISHABLE.NAME_TAKEN")
      val was = identifier(table)
      val renamed = managed()
      sql(s"ALTER TABLE ${table.name} RENAME TO ${renamed.name}")
      insert(renamed, 2)
      assert(publish(renamed).get("catalog_table").asText == s"default.${renamed.name}")
      assertSameTable(renamed)
      assert(reader(sqlite("moved")).listTables(was.namespace).asScala.count(_ == was) == 1)
      // Back in its folder, the line that it left there goes on.
      sql(s"ALTER TABLE ${renamed.name} RENAME TO ${table.name}")
      insert(table, 3)
      publish(table)
      assertSameTable(table)
    }
  }

  test("what a crash left unregistered is registered by the next run") {
    in(sqlite("crash")) {
      val table = created()
      insert(table, 1)
      publish(table)
      val first = metadata(table)
      // As if the process had ended between the two.
      reader(sqlite("crash")).dropTable(identifier(table), false)
      insert(table, 2)
      publish(table)
      assertPublished(table)
      assert(metadata(table).uuid == first.uuid)
      assert(snapshots(table).map(_.snapshotId).head == first.currentSnapshot.snapshotId)
    }
  }

  test("a table that a person moves to another catalog goes on there, and there only") {
    val table = created()
    insert(table, 1)
    in(sqlite("from"))(publish(table))
    insert(table, 2)
    in(sqlite("to"))(assert(condition(publish(table)) == "NOT_PUBLISHABLE.ELSEWHERE"))
    val newest = in(sqlite("from"))(publish(table)).get("metadata_location").asText
    reader(sqlite("from")).dropTable(identifier(table), false)
    reader(sqlite("to")).registerTable(identifier(table), newest)
    insert(table, 3)
    in(sqlite("to")) {
      publish(table)
      assertPublished(table)
      assert(snapshots(table).size == 3)
    }
    in(sqlite("from"))(assert(condition(publish(table)) == "NOT_PUBLISHABLE.ELSEWHERE"))
  }

  test("a table by path is known by the name that it is given, and by that only") {
    val table = byPath()
    sql(s"CREATE TABLE ${table.name} (id INT) USING delta TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES (1)")
    in(sqlite("named")) {
      val error = refused(table)(publish(table))
      assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.NO_NAME")
      assert(error.remedy.sql.nonEmpty)
      error.remedy.sql.foreach(sql(_))
      val result = publish(table)
      assert(result.get("catalog_table").asText == "namespace.name")
      val name = TableIdentifier.of("namespace", "name")
      val snapshot = reader(sqlite("named")).loadTable(name).currentSnapshot
      assert(snapshot.summary.get("total-records") == "1")
      val other = byPath()
      sql(
        s"CREATE TABLE ${other.name} (id INT) USING delta TBLPROPERTIES ($on, " +
          "'icebergWriterCompat.publish.table' = 'namespace.name')"
      )
      assert(
        refused(other)(publish(other)).getCondition ==
          "ICEBERG_WRITER_COMPAT_NOT_PUBLISHABLE.NAME_TAKEN"
      )
    }
  }

  test("a table without a name in the catalog is published in its folder") {
    val table = created(s"$on, 'icebergWriterCompat.publish.table' = 'none'")
    insert(table, 1)
    in(sqlite("none")) {
      val result = publish(table)
      assert(result.get("catalog_table").isNull)
      assert(inFolder(table).currentSnapshot.summary.get("delta-version") == "1")
      assert(!reader(sqlite("none")).tableExists(identifier(table)))
    }
    // One that is registered stays in its catalog.
    sql(s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('icebergWriterCompat.publish.table')")
    in(sqlite("none"))(publish(table))
    sql(
      s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('icebergWriterCompat.publish.table' = 'None')"
    )
    in(sqlite("none"))(assert(condition(publish(table)) == "NOT_PUBLISHABLE.ELSEWHERE"))
    assert(condition(publish(table)) == "NOT_PUBLISHABLE.ELSEWHERE")
  }

  test("a catalog without settings of its own is a file in the warehouse") {
    in(Map("type" -> "jdbc")) {
      val table = created()
      insert(table, 1)
      publish(table)
      val file = SharedSpark.warehouse.resolve("iceberg-catalog.db")
      val same = Map("type" -> "jdbc", "uri" -> s"jdbc:sqlite:$file", "warehouse" -> "/unused")
      assert(reader(same).loadTable(identifier(table)).currentSnapshot != null)
    }
  }

  test("a Hadoop catalog reads the folder") {
    val table = created()
    insert(table, 1)
    publish(table)
    in(Map("type" -> "hadoop")) {
      insert(table, 2)
      val result = publish(table)
      assert(result.get("catalog_table").asText == table.name)
      val catalog = new HadoopCatalog(new Configuration, SharedSpark.warehouse.toString)
      val found = catalog.loadTable(TableIdentifier.of(table.name))
      assert(found.snapshots.asScala.size == 2)
      assert(result.get("metadata_location").asText == inFolder(table).metadataFileLocation)
    }
    in(Map("type" -> "hadoop", "warehouse" -> s"$root/nowhere")) {
      assert(condition(publish(table)) == "NOT_PUBLISHABLE.NOT_IN_WAREHOUSE")
    }
  }

  test("a catalog that cannot be used is named, with what to do, and its secrets are not") {
    val table = created()
    insert(table, 1)
    def message(settings: (String, String)*): (String, String) = {
      val error = intercept[IcebergWriterCompatException](in(settings.toMap)(publish(table)))
      error.getCondition.stripPrefix("ICEBERG_WRITER_COMPAT_") -> error.getMessage
    }
    val (mysql, driver) =
      message("type" -> "jdbc", "uri" -> "jdbc:mysql://me:secret@host/db?password=secret")
    assert(mysql == "DRIVER_MISSING")
    assert(driver.contains("spark.jars.packages=com.mysql:mysql-connector-j:"))
    val (rest, address) = message("type" -> "rest", "uri" -> "http://me:secret@127.0.0.1:1")
    assert(rest == "CATALOG_UNAVAILABLE")
    assert(address.contains("http://127.0.0.1:1"))
    assert(!driver.contains("secret") && !address.contains("secret"))
    assert(message("type" -> "jdbz")._1 == "CATALOG_UNAVAILABLE")
    assert(message("uri" -> "http://127.0.0.1:1")._1.endsWith("INVALID_PROPERTY_VALUE"))
    assert(!Files.exists(table.folder.resolve("metadata")))
  }

  test("a catalog that wants another class to write files is published to without that class") {
    val wanted = Map("io-impl" -> "org.apache.iceberg.aws.s3.S3FileIO")
    // Iceberg's own client loads the class that the server names with each table, whatever it is
    // told by its settings.
    Using.resource(new RestCatalogServer(behindRest, wanted, wanted)) { server =>
      val table = created()
      val settings = Map("type" -> "rest", "uri" -> server.uri)
      val identifier = TableIdentifier.of("default", table.name)
      for (version <- 1 to 2) {
        insert(table, version)
        in(settings)(publish(table))
        val found = behindRest.loadTable(identifier)
        assert(found.currentSnapshot.summary.get("delta-version") == version.toString)
      }
      val own = settings + ("io-impl" -> "org.apache.iceberg.hadoop.HadoopFileIO")
      assert(
        intercept[Exception](reader(own).loadTable(identifier)).getMessage.contains("S3FileIO")
      )
    }
  }

  test("a catalog whose class is not there is named with the jars of that") {
    val table = created()
    insert(table, 1)
    val settings = Map("type" -> "glue", "warehouse" -> s"$root")
    val error = intercept[IcebergWriterCompatException](in(settings)(publish(table)))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_CATALOG_CLASS_MISSING")
    assert(error.getMessage.contains("needs the class org.apache.iceberg.aws.glue.GlueCatalog,"))
    assert(error.getMessage.contains("spark.jars.packages=org.apache.iceberg:iceberg-aws:"))
    assert(error.getMessage.contains(",software.amazon.awssdk:bundle:"))
  }

  test("a file system that cannot create a file only once needs a catalog") {
    val confs = ElsewhereFileSystem.confs.filterNot(_._1.contains("exclusive"))
    withConf(confs: _*) {
      val folder = SharedSpark.freshFolder()
      val table = TestTable(s"delta.`elsewhere:$folder`", folder)
      sql(
        s"CREATE TABLE ${table.name} (id INT) USING delta TBLPROPERTIES ($on, " +
          "'icebergWriterCompat.publish.table' = 'db.elsewhere')"
      )
      sql(s"INSERT INTO ${table.name} VALUES (1)")
      assert(condition(publish(table)) == "NOT_PUBLISHABLE.NOT_EXCLUSIVE")
      assert(condition(IcebergWriterCompat.publishAnew(spark, table.name)).endsWith("EXCLUSIVE"))
      assert(!Files.exists(folder.resolve("metadata")))
      in(sqlite("elsewhere")) {
        publish(table)
        sql(s"INSERT INTO ${table.name} VALUES (2)")
        publish(table)
      }
      val catalog = CatalogUtil
        .buildIcebergCatalog(
          "iceberg",
          sqlite("elsewhere").asJava,
          spark.sessionState.newHadoopConf()
        )
      val published = catalog.loadTable(TableIdentifier.of("db", "elsewhere"))
      assert(published.snapshots.asScala.map(_.summary.get("delta-version")).toSeq == Seq("1", "2"))
      assert(published.currentSnapshot.summary.get("total-records") == "2")
    }
  }

  test("a catalog that fails leaves the commit, and is caught up with") {
    val folder = SharedSpark.freshFolder()
    val settings = Map(
      "type" -> "jdbc",
      "uri" -> s"jdbc:sqlite:$folder/iceberg.db",
      "warehouse" -> folder.toString
    )
    in(settings) {
      val table = created(s"$on, 'icebergWriterCompat.publish' = 'true'")
      insert(table, 1)
      Using.resource(java.sql.DriverManager.getConnection(settings("uri"))) { connection =>
        def run(statement: String): Unit =
          Using.resource(connection.createStatement()) { s => s.execute(statement); () }
        run("ALTER TABLE iceberg_tables RENAME TO gone")
        insert(table, 2)
        assert(table.log.version == 2)
        run("ALTER TABLE gone RENAME TO iceberg_tables")
      }
      assert(metadata(table).property("delta-version", "") == "1")
      insert(table, 3)
      assertPublished(table)
      assert(snapshots(table).size == 3)
    }
  }
}
