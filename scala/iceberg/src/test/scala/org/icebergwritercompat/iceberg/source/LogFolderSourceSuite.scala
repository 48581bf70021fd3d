package org.icebergwritercompat.iceberg.source

import org.apache.hadoop.conf.Configuration
import org.apache.iceberg.hadoop.HadoopTables
import org.apache.iceberg.types.Conversions
import org.apache.iceberg.{BaseTable, FileScanTask, Table}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{LogFolderSource, TestFolders}
import org.scalatest.funsuite.AnyFunSuite

import java.nio.file.{Files, Path, Paths}
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * A table that Delta has written is published without a session and without Delta's library.
 *
 * `tables/orders` was made by Delta with: CREATE TABLE (id BIGINT, region STRING, price
 * DECIMAL(10,2)) PARTITIONED BY (region); two inserts; a delete of one row; ADD COLUMN; one more
 * insert.
 */
class LogFolderSourceSuite extends AnyFunSuite {

  private val stored = Paths.get(getClass.getResource("/tables/orders").toURI)

  private val lastVersion = 5

  private def file(version: Int): String = f"_delta_log/$version%020d.json"

  /** The table with the commits up to a version. */
  private def copied(upTo: Int = lastVersion): Path = {
    val folder = TestFolders.freshFolder()
    Using.resource(Files.walk(stored)) { paths =>
      paths.iterator.asScala.filter(Files.isRegularFile(_)).foreach { path =>
        val name = stored.relativize(path).toString
        val isLater = (upTo + 1 to lastVersion).exists(version => name == file(version))
        if (!isLater) copy(folder, name)
      }
    }
    folder
  }

  private def copy(folder: Path, name: String): Unit = {
    Files.createDirectories(folder.resolve(name).getParent)
    Files.copy(stored.resolve(name), folder.resolve(name))
    ()
  }

  private def iceberg(folder: Path): Table =
    new HadoopTables(new Configuration).load(folder.toUri.toString)

  private def tasks(table: Table): Seq[FileScanTask] =
    Using.resource(table.newScan.includeColumnStats.planFiles)(_.asScala.toVector)

  /** Path, rows, size and partition of each file that a scan reads. */
  private def files(folder: Path): Set[(String, Long, Long, String)] = {
    val home = folder.toUri.getPath.stripSuffix("/")
    tasks(iceberg(folder)).map { task =>
      val location = new org.apache.hadoop.fs.Path(task.file.location).toUri.getPath
      (
        location.stripPrefix(s"$home/"),
        task.file.recordCount,
        task.file.fileSizeInBytes,
        s"${task.file.partition.get(0, classOf[Object])}"
      )
    }.toSet
  }

  /** The same as Delta's log has it, and as the disk has the size. */
  private def logged(folder: Path): Set[(String, Long, Long, String)] =
    new LogFolderSource(folder)
      .newest()
      .live
      .map(_())
      .map { file =>
        val rows = "\"numRecords\":(\\d+)".r.findFirstMatchIn(file.statistics).get.group(1).toLong
        val path = java.net.URI.create(file.path).getPath
        (path, rows, Files.size(folder.resolve(path)), s"${file.partitionValues.values.head}")
      }
      .toSet

  test("a first publish has the newest version: its columns, files, rows and partitions") {
    val folder = copied()
    val result = new LogFolderSource(folder).publishing.publish()
    assert(result.deltaVersion == lastVersion && result.snapshots == 1)
    val table = iceberg(folder)
    assert(
      table.schema.columns.asScala.map(c => s"${c.fieldId} ${c.name} ${c.`type`}") ==
        Seq("1 id long", "2 region string", "3 price decimal(10, 2)", "4 note string")
    )
    assert(
      table.spec.fields.asScala.map(f => s"${f.name} ${f.transform}") == Seq("region identity")
    )
    assert(files(folder) == logged(folder) && files(folder).nonEmpty)
    assert(tasks(table).map(_.file.recordCount).sum == 5)
    val bounds = tasks(table).map(_.file.lowerBounds.get(1)).map { bytes =>
      Conversions.fromByteBuffer[java.lang.Long](table.schema.findType(1), bytes).longValue
    }
    assert(bounds.min == 1)
  }

  test("each further commit becomes one snapshot, and ends at the same files") {
    val folder = copied(upTo = 1)
    def publish() = new LogFolderSource(folder).publishing.publish()
    assert(publish().deltaVersion == 1)
    (2 to lastVersion).foreach(version => copy(folder, file(version)))
    val result = publish()
    // Version 4 adds a column and no file.
    assert(result.previousVersion.contains(1L) && result.deltaVersion == lastVersion)
    assert(result.snapshots == 3)
    val versions = iceberg(folder).snapshots.asScala.map(_.summary.get("delta-version")).toSeq
    assert(versions == Seq("1", "2", "3", "5"))
    assert(files(folder) == logged(folder))
    val again = publish()
    assert(again.snapshots == 0 && again.metadataLocation == result.metadataLocation)
  }

  test("a log that was put back and written again is noticed by the ids of its commits") {
    val folder = copied()
    def publish() = new LogFolderSource(folder).publishing.publish()
    publish()
    val last = folder.resolve(file(lastVersion))
    Files.writeString(
      last,
      Files.readString(last).replaceFirst("\"txnId\":\"[^\"]*\"", "\"txnId\":\"another\"")
    )
    val result = publish()
    assert(result.mended.exists(_.contains("is the commit another in Delta's log")))
    assert(files(folder) == logged(folder))
  }

  test("rules are checked: a version that breaks one is refused with its id") {
    val folder = copied()
    val first = folder.resolve(file(1))
    Files.writeString(first, Files.readString(first).replace("\\\"numRecords\\\"", "\\\"rows\\\""))
    val error = intercept[IcebergWriterCompatException] {
      new LogFolderSource(folder).publishing.publish()
    }
    assert(error.getMessage.contains("D1"))
    assert(Option(folder.resolve("metadata").toFile.list).toSeq.flatten == Nil)
  }

  test("the metadata names the commit and the table it was published from") {
    val folder = copied()
    new LogFolderSource(folder).publishing.publish()
    val properties = iceberg(folder).asInstanceOf[BaseTable].operations.current.properties.asScala
    val log = Files.readString(folder.resolve(file(lastVersion)))
    val id = "\"txnId\":\"([^\"]*)\"".r.findFirstMatchIn(log).get.group(1)
    assert(properties("delta-commit") == s"$lastVersion:$id")
  }
}
