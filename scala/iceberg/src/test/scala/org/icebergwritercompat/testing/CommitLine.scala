package org.icebergwritercompat.testing

import org.apache.hadoop.fs.Path
import org.apache.iceberg.TableMetadata
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.spark.sql.types.{LongType, MetadataBuilder, StringType, StructType}
import org.icebergwritercompat.iceberg.publish.IcebergPublisher
import org.icebergwritercompat.iceberg.source.{
  AddedFile,
  DeltaCommit,
  DeltaVersion,
  FileTotals,
  RemovedFile,
  TableDefinition
}
import org.icebergwritercompat.iceberg.target.{Found, PublishTarget}

/**
 * Publishes commits that no log has, of files that are not there: metadata alone.
 *
 * @param columns
 *   how many columns the table has, all with statistics
 */
final class CommitLine(root: Path, target: PublishTarget, columns: Int) {

  private val publisher = new IcebergPublisher("a line of commits", root, target, Long.MaxValue / 4)

  private val random = new scala.util.Random(42)

  /** A table of that many columns. */
  def definition: TableDefinition = {
    val schema = (1 to columns).foldLeft(new StructType) { (schema, id) =>
      val metadata = new MetadataBuilder()
        .putLong("delta.columnMapping.id", id.toLong)
        .putString("delta.columnMapping.physicalName", s"col-$id")
        .build()
      val dataType = if (id % 2 == 0) StringType else LongType
      schema.add(s"column_$id", dataType, nullable = true, metadata)
    }
    TableDefinition(java.util.UUID.randomUUID.toString, schema, Nil, columns)
  }

  private def file(name: String): AddedFile =
    AddedFile(
      s"part-00000-$name-4c1f-4f8e-9d55-c000.snappy.parquet",
      Map.empty,
      1048576,
      CommitLine.statistics(columns, random),
      dataChange = true
    )

  /** The first version, which is empty. */
  def begin(): Unit = {
    publisher.create(DeltaVersion(0, 0, None), definition, Iterator.empty)
    ()
  }

  /**
   * A commit of one file.
   *
   * @param removed
   *   the names of files that leave with it
   */
  def append(version: Long, name: String, removed: String*): Unit = {
    val gone = removed.map(n => RemovedFile(file(n).path, dataChange = true))
    val at = DeltaVersion(version, System.currentTimeMillis(), None)
    val commit = DeltaCommit(at, None, Seq(file(name)), gone)
    if (publisher.append(commit, None, FileTotals(None, None)).isEmpty)
      sys.error(s"commit $version does not fit")
  }
}

object CommitLine {

  /** Of columns in turns of numbers and strings; no two files have the same bounds. */
  def statistics(columns: Int, random: scala.util.Random): String = {
    def values(of: Int => String): String =
      Iterator
        .range(0, columns)
        .map(i => "\"col-" + (i + 1) + "\":" + of(i))
        .mkString("{", ",", "}")
    def bound(i: Int): String = {
      val number = random.nextLong()
      if (i % 2 == 0) number.toString else "\"" + java.lang.Long.toString(number, 36) + "\""
    }
    s"""{"numRecords":100000,"minValues":${values(bound)},"maxValues":${values(bound)},""" +
      s""""nullCount":${values(_ => "0")}}"""
  }
}

/** Goes on from what is published elsewhere, in memory. */
final class MemoryTarget(real: PublishTarget) extends PublishTarget {

  private var metadata = real.current()

  override def found(): Found = Found.Line(metadata)

  override def refresh(): TableMetadata = metadata

  override def abandon(lost: Found.Lost): Unit = ()

  override def putAside(file: String): Unit = ()

  override def setAside: Seq[String] = Nil

  override def misleading: Option[String] = None

  override def commit(base: TableMetadata, changed: TableMetadata): Unit =
    metadata = TableMetadata.buildFrom(changed).discardChanges().build()

  override def io(): FileIO = real.io()

  override def metadataFileLocation(fileName: String): String = real.metadataFileLocation(fileName)

  override def locationProvider(): LocationProvider = real.locationProvider()

  override def check(metadata: TableMetadata): Unit = ()

  override def continueHere(): Unit = ()

  override def repair(): Unit = ()

  override def properties: Map[String, String] = Map.empty

  override def catalogTable: Option[String] = None
}
