package org.apache.spark.sql.delta.writercompat.publish

import org.apache.hadoop.conf.Configuration
import org.apache.iceberg.Table
import org.apache.iceberg.data.IcebergGenerics
import org.apache.iceberg.hadoop.HadoopTables
import org.icebergwritercompat.iceberg.publish.IcebergPublisher
import org.icebergwritercompat.kernel.{KernelTable, Record}
import org.icebergwritercompat.testing._

import java.nio.file.{Files, Path}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What is published does not depend on how Delta's log is read. */
class PublishSourcesSuite extends PublishedSuite {

  private def copied(folder: Path): Path = {
    val copy = SharedSpark.freshFolder()
    FolderListing.of(folder).foreach { name =>
      Files.createDirectories(copy.resolve(name).getParent)
      Files.copy(folder.resolve(name), copy.resolve(name))
    }
    copy
  }

  private def iceberg(folder: Path): Table = {
    val configuration = new Configuration
    OpenedFiles.confs.foreach { case (key, value) => configuration.set(key, value) }
    new HadoopTables(configuration).load(folder.toUri.toString)
  }

  private def rowsOf(folder: Path): Seq[String] =
    Using.resource(IcebergGenerics.read(iceberg(folder)).build())(_.asScala.map(plain).toSeq.sorted)

  /** All that a scan has of each file, without the folder of the table. */
  private def filesOf(folder: Path): Set[Seq[String]] =
    Using.resource(iceberg(folder).newScan.includeColumnStats.planFiles()) { tasks =>
      tasks.asScala.map { task =>
        val data = task.file
        Seq[Any](
          folder.relativize(file(data.location)).toString,
          data.partition,
          data.fileSizeInBytes,
          data.recordCount,
          plain(data.valueCounts),
          plain(data.nullValueCounts),
          plain(data.lowerBounds),
          plain(data.upperBounds)
        ).map(_.toString)
      }.toSet
    }

  test("a source without a session publishes the same rows, files and metrics as Spark's") {
    val table = byPath()
    sql(
      s"CREATE TABLE ${table.name} (id INT NOT NULL, day DATE, name STRING, at TIMESTAMP, " +
        "price DECIMAL(20, 3), inner STRUCT<x: DOUBLE, y: STRING>, list ARRAY<INT>) USING delta " +
        s"PARTITIONED BY (day, name) TBLPROPERTIES ($on)"
    )
    def insert(ids: String, price: String = "price"): Unit = sql(
      s"INSERT INTO ${table.name} (id, day, name, at, $price, inner, list) SELECT CAST(id AS INT), " +
        "IF(id % 3 = 0, NULL, date_add(DATE'1999-12-30', CAST(id AS INT))), " +
        "IF(id % 4 = 0, NULL, concat('a b/ü=%', id % 2)), timestamp_seconds(id * 1000.5), " +
        "CAST(id * -1.5 AS DECIMAL(20, 3)), named_struct('x', id / 3, 'y', repeat('long ', 20)), " +
        s"array(1, NULL, CAST(id AS INT)) FROM range($ids)"
    )
    insert("0, 6")
    insert("6, 9")
    val early = copied(table.folder)
    new LogFolderSource(early).publishing.publish()
    publish(table)
    sql(s"DELETE FROM ${table.name} WHERE id = 2")
    sql(s"ALTER TABLE ${table.name} RENAME COLUMN price TO cost")
    insert("9, 11", price = "cost")
    // The copy gets the commits that were made since, one by one.
    FolderListing.of(table.folder).filterNot(_.startsWith("metadata/")).foreach { name =>
      if (!Files.exists(early.resolve(name))) {
        Files.createDirectories(early.resolve(name).getParent)
        Files.copy(table.folder.resolve(name), early.resolve(name))
      }
    }
    publish(table)
    new LogFolderSource(early).publishing.publish()
    val whole = copied(early)
    Using.resource(Files.list(whole.resolve("metadata")))(_.forEach(Files.delete(_)))
    new LogFolderSource(whole).publishing.publish()
    val expected = inDelta(spark.table(table.name))
    assert(expected.size == 10 && inIceberg(table) == expected)
    Seq(early, whole).foreach { folder =>
      assert(rowsOf(folder) == expected)
      assert(filesOf(folder) == filesOf(table.folder))
      assert(iceberg(folder).schema.sameSchema(iceberg(table).schema))
    }
    val versions = (t: Table) => t.snapshots.asScala.map(_.summary.get("delta-commit")).toSeq
    assert(versions(iceberg(early)) == versions(iceberg(table)))
  }

  private def commitFile(table: TestTable, version: Long): Path =
    table.folder.resolve("_delta_log").resolve(f"$version%020d.json")

  /** How often publishing opened the file of a commit, by the hook or in a thread of its own. */
  private def opensToPublish(table: TestTable, version: Long): Int =
    OpenedFiles.count(commitFile(table, version), publishing)

  // What Delta opens for its own state differs from run to run.
  private def publishing(name: String): Boolean =
    Seq[String](
      PublishHook.getClass.getName,
      classOf[SparkDeltaSource].getName,
      classOf[SparkPublishing].getName,
      classOf[IcebergPublisher].getPackageName
    ).exists(name.startsWith)

  private def counted(): TestTable = {
    val folder = SharedSpark.freshFolder()
    val table = TestTable(s"delta.`counting://$folder`", folder)
    sql(
      s"CREATE TABLE ${table.name} (id INT, name STRING) USING delta " +
        s"TBLPROPERTIES ($on, 'icebergWriterCompat.publish' = 'true')"
    )
    table
  }

  private def publishedVersion(table: TestTable): Long =
    iceberg(table.folder).properties.get("delta-version").toLong

  test("the hook publishes what the transaction holds, and does not read the commit from the log") {
    withConf(OpenedFiles.confs: _*) {
      val table = counted()
      Seq(
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO t VALUES (3, 'c')",
        "UPDATE t SET name = 'd' WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
        "ALTER TABLE t ADD COLUMN (more INT)",
        "INSERT INTO t VALUES (4, 'e', 5)"
      ).zipWithIndex.foreach { case (statement, i) =>
        withClue(statement) {
          sql(statement.replace(" t ", s" ${table.name} "))
          val version = i + 1L
          assert(opensToPublish(table, version) == 0)
          assert(publishedVersion(table) == version)
        }
      }
      assert(rowsOf(table.folder) == inDelta(spark.table(table.name)))
      assert(publishedVersion(table) == table.log.version)
      // A first publish of the same version has the same files and metrics. It also counts the values
      // of the new column in files from before, which were published without it.
      def withoutCounts(folder: Path) = filesOf(folder).map(_.patch(4, Nil, 1))
      val files = withoutCounts(table.folder)
      val again = copied(table.folder)
      Using.resource(Files.list(again.resolve("metadata")))(_.forEach(Files.delete(_)))
      new LogFolderSource(again).publishing.publish()
      assert(withoutCounts(again) == files)
    }
  }

  test("a commit of another writer and a large commit are read from the log") {
    withConf(OpenedFiles.confs: _*) {
      val table = counted()
      new KernelTable(table.folder).append(Record(1, "kernel"))
      sql(s"INSERT INTO ${table.name} VALUES (2, 'spark')")
      assert(opensToPublish(table, 1) > 0)
      sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF 1")
      assert(table.log.version == 3 && opensToPublish(table, 3) > 0)
      assert(publishedVersion(table) == 3)
      assert(rowsOf(table.folder) == Seq("{1, kernel}"))
    }
  }
}
