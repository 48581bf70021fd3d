package org.apache.spark.sql.delta.writercompat.publish

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.iceberg.{
  BaseTable,
  DataFiles,
  FileFormat,
  Schema,
  Snapshot,
  Table,
  TableMetadata,
  TableScan
}
import org.apache.iceberg.data.{IcebergGenerics, Record}
import org.apache.iceberg.hadoop.HadoopTables
import org.apache.iceberg.types.Types
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.testing.TestTable
import org.apache.spark.sql.delta.writercompat.read.DeltaTables

import java.net.URI
import java.nio.ByteBuffer
import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path}
import java.time.{Duration, Instant, LocalDateTime, OffsetDateTime}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What the suites on published tables have in common. */
abstract class PublishedSuite extends TableSuite {

  protected def publish(table: TestTable): JsonNode =
    mapper.readTree(IcebergWriterCompat.publish(spark, table.name))

  protected def status(table: TestTable): JsonNode =
    mapper.readTree(IcebergWriterCompat.publishStatus(spark, table.name))

  private val mapper = new ObjectMapper

  /** The table as a reader of Iceberg finds it. */
  protected def iceberg(table: TestTable): Table =
    new HadoopTables(spark.sessionState.newHadoopConf())
      .load(DeltaTables.find(spark, table.name).deltaLog.dataPath.toString)

  protected def metadata(table: TestTable): TableMetadata =
    iceberg(table).asInstanceOf[BaseTable].operations.current

  protected def snapshots(table: TestTable): Seq[Snapshot] = iceberg(table).snapshots.asScala.toSeq

  protected def operations(table: TestTable): Seq[String] = snapshots(table).map(_.operation)

  // One text for values that Spark and Iceberg hold in different classes.
  protected def plain(value: Any): String = value match {
    case null           => "null"
    case row: Row       => row.toSeq.map(plain).mkString("{", ", ", "}")
    case record: Record =>
      (0 until record.size).map(i => plain(record.get(i))).mkString("{", ", ", "}")
    case bytes: Array[Byte] => bytes.map("%02x".format(_)).mkString
    case buffer: ByteBuffer =>
      plain { val b = new Array[Byte](buffer.remaining); buffer.duplicate.get(b); b }
    case list: java.util.List[_]         => list.asScala.map(plain).mkString("[", ", ", "]")
    case seq: scala.collection.Seq[_]    => seq.map(plain).mkString("[", ", ", "]")
    case map: java.util.Map[_, _]        => plain(map.asScala)
    case map: scala.collection.Map[_, _] =>
      map.toSeq.map { case (k, v) => s"${plain(k)}: ${plain(v)}" }.sorted.mkString("(", ", ", ")")
    case time: java.sql.Timestamp     => time.toInstant.toString
    case time: OffsetDateTime         => time.toInstant.toString
    case time: LocalDateTime          => time.toString
    case date: java.sql.Date          => date.toLocalDate.toString
    case number: java.math.BigDecimal => number.toPlainString
    case other                        => other.toString
  }

  protected def inIceberg(table: TestTable, snapshot: Option[Long] = None): Seq[String] = {
    val scan = IcebergGenerics.read(iceberg(table))
    Using.resource(snapshot.fold(scan)(scan.useSnapshot).build()) { records =>
      records.asScala.map(plain).toSeq.sorted
    }
  }

  protected def inDelta(frame: DataFrame): Seq[String] = frame.collect().map(plain).toSeq.sorted

  // The same for all files, so that none is a millisecond older than another.
  private val started = Instant.now

  /** Makes a file seem to be written so many days ago. */
  protected def age(file: Path, days: Long): Unit = {
    Files.setLastModifiedTime(file, FileTime.from(started.minus(Duration.ofDays(days))))
    ()
  }

  /** The published rows, schema and ids are those of the table, in the line that it began. */
  protected def assertPublished(table: TestTable): Unit = {
    assertSameTable(table)
    // A table that was replaced has another id, but is the same to readers.
    val first = table.log.actions(0).collectFirst { case ("metaData", fields) => fields }
    assert(metadata(table).uuid == first.get.get("id").asText)
    ()
  }

  /** The published rows, schema and ids are those of the table, in whichever line. */
  protected def assertSameTable(table: TestTable): Unit = {
    val rows = inDelta(spark.table(table.name))
    assert(inIceberg(table) == rows)
    val current = metadata(table)
    assert(current.schema.columns.asScala.map(_.name) == spark.table(table.name).columns.toSeq)
    assert(
      current.schema.columns.asScala.map(c => Some(c.fieldId.toLong)) == table.log.columns.map(_.id)
    )
    assert(current.lastColumnId == maxColumnId(table))
    assert(current.property("delta-version", "") == table.log.version.toString)
    assert(status(table).get("lag").asLong == 0)
    assert(filesOf(iceberg(table).newScan()) == sorted(table.log.liveFiles))
    assertSnapshots(table)
  }

  /** Each snapshot has the files of its version, once, as far as the log still has the version. */
  private def assertSnapshots(table: TestTable): Unit = {
    val published = iceberg(table)
    val snapshots = published.snapshots.asScala.toSeq.groupBy(_.summary.get("delta-version"))
    table.log.filesAt.zipWithIndex.foreach { case (files, version) =>
      snapshots.getOrElse(version.toString, Nil).foreach { snapshot =>
        val found = filesOf(published.newScan().useSnapshot(snapshot.snapshotId))
        assert(found == sorted(files), s"(version $version)")
      }
    }
  }

  private def filesOf(scan: TableScan): Seq[String] = Using.resource(scan.planFiles()) { tasks =>
    tasks.asScala.map(task => URI.create(encoded(task.file.location)).getPath).toSeq.sorted
  }

  private def sorted(files: Map[Path, JsonNode]): Seq[String] =
    files.keys.map(_.toString).toSeq.sorted

  /**
   * Makes all that is published older, or of the future, as a writer with another clock leaves it.
   */
  protected def shift(table: TestTable, by: Duration): Unit = {
    val file = Path.of(URI.create(encoded(metadata(table).metadataFileLocation)).getPath)
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    val moved = "\"(timestamp-ms|last-updated-ms)\"\\s*:\\s*(\\d+)".r.replaceAllIn(
      Files.readString(file),
      found => s""""${found.group(1)}":${found.group(2).toLong + by.toMillis}"""
    )
    Files.writeString(file, moved)
    ()
  }

  /** Each snapshot is later than the one before, and so is each change of the metadata. */
  protected def assertTimesGoOn(table: TestTable): Unit = {
    def sorted(times: Iterable[Long]): Boolean = times.zip(times.drop(1)).forall { case (a, b) =>
      a <= b
    }
    val current = metadata(table)
    val times = current.snapshots.asScala.map(_.timestampMillis)
    assert(sorted(times) && times.toSet.size == times.size)
    assert(current.snapshotLog.asScala.map(_.timestampMillis) == times)
    assert(
      sorted(
        current.previousFiles.asScala.map(_.timestampMillis) ++ Seq(current.lastUpdatedMillis)
      )
    )
    ()
  }

  protected def encoded(location: String): String =
    new org.apache.hadoop.fs.Path(location).toUri.toString

  protected def file(location: String): Path =
    Path.of(new URI(encoded(location)).getPath)

  /** An Iceberg writer appends a file that has the rows of another. */
  protected def foreignAppend(table: TestTable): Long = {
    val target = iceberg(table)
    val from = Using.resource(target.newScan().planFiles())(_.iterator.asScala.toSeq.head.file)
    val to = table.folder.resolve(s"data/${java.util.UUID.randomUUID}.parquet")
    Files.createDirectories(to.getParent)
    Files.copy(file(from.location), to)
    target
      .newAppend()
      .set("engine-name", "tester")
      .appendFile(
        DataFiles
          .builder(target.spec)
          .withPath(s"file:$to")
          .withFormat(FileFormat.PARQUET)
          .withFileSizeInBytes(Files.size(to))
          .withRecordCount(from.recordCount)
          .build()
      )
      .commit()
    iceberg(table).currentSnapshot.snapshotId
  }

  /** Another writer makes an Iceberg table in the folder of a table. */
  protected def madeByOthers(table: TestTable): Unit = {
    val column = Types.NestedField.optional(1, "x", Types.IntegerType.get)
    new HadoopTables(spark.sessionState.newHadoopConf())
      .create(new Schema(column), table.folder.toUri.toString)
    ()
  }

  protected def numbers(table: TestTable = managed(), more: String = ""): TestTable = {
    sql(
      s"CREATE TABLE ${table.name} (id BIGINT, name STRING) USING delta $more TBLPROPERTIES ($on)"
    )
    table
  }
}

/** Some threads that do the same at the same time. */
private final class Threads(count: Int) extends AutoCloseable {
  private val pool = java.util.concurrent.Executors.newFixedThreadPool(count)
  private val start = new java.util.concurrent.CyclicBarrier(count)

  def all[T](times: Int)(body: => T): Seq[T] =
    Seq.fill(times)(pool.submit { () => start.await(); body }).map { running =>
      running.get(2, java.util.concurrent.TimeUnit.MINUTES)
    }

  override def close(): Unit = pool.shutdown()
}
