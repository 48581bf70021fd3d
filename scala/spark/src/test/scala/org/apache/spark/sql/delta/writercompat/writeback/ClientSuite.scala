package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.catalog.{Namespace, TableIdentifier}
import org.apache.iceberg.data.parquet.GenericParquetWriter
import org.apache.iceberg.data.{GenericRecord, IcebergGenerics, Record}
import org.apache.iceberg.exceptions.ValidationException
import org.apache.iceberg.parquet.Parquet
import org.apache.iceberg.{BaseTable, DataFile, PartitionData, Schema, Table, TableMetadata}
import org.apache.parquet.schema.MessageType
import org.apache.spark.sql.Row
import org.apache.spark.sql.delta.writercompat.publish.PublishedSuite
import org.icebergwritercompat.DeltaIcebergCatalog
import org.icebergwritercompat.kernel.{KernelTable, Record => KernelRecord}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{FolderListing, TestTable}

import java.util.UUID
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What the suites on Iceberg clients have in common. */
abstract class ClientSuite extends PublishedSuite {

  protected lazy val catalog: DeltaIcebergCatalog = {
    // It has none of its own.
    val _ = spark
    newCatalog()
  }

  protected def newCatalog(): DeltaIcebergCatalog = {
    val made = new DeltaIcebergCatalog
    made.initialize("ice", java.util.Map.of())
    made
  }

  protected val namespace: Namespace = Namespace.of("default")

  protected def id(table: TestTable): TableIdentifier = TableIdentifier.of(namespace, table.name)

  protected def client(table: TestTable): Table = catalog.loadTable(id(table))

  protected def metadataOf(table: Table): TableMetadata =
    table.asInstanceOf[BaseTable].operations.current

  protected def record(schema: Schema, values: Any*): Record = {
    val made = GenericRecord.create(schema)
    values.zipWithIndex.foreach { case (value, i) => made.set(i, value) }
    made
  }

  /** A file with these rows as Iceberg's own library writes it. */
  protected def file(table: Table, partition: Option[PartitionData], rows: Record*): DataFile = {
    val name = s"${UUID.randomUUID}.parquet"
    val location = partition.fold(table.locationProvider.newDataLocation(name)) { p =>
      table.locationProvider.newDataLocation(table.spec, p, name)
    }
    written(table, location, partition, rows: _*)
  }

  protected def written(
      table: Table,
      location: String,
      partition: Option[PartitionData],
      rows: Record*
  ): DataFile = {
    val writer = Parquet
      .writeData(table.io.newOutputFile(location))
      .schema(table.schema)
      .withSpec(table.spec)
      .withPartition(partition.orNull)
      .createWriterFunc((s: Schema, t: MessageType) => GenericParquetWriter.create(s, t))
      .overwrite()
      .build[Record]()
    Using.resource(writer)(w => rows.foreach(w.write(_: Record)))
    writer.toDataFile
  }

  protected def append(table: Table, rows: Seq[Any]*): DataFile = {
    val made = file(table, None, rows.map(record(table.schema, _: _*)): _*)
    table.newAppend().appendFile(made).commit()
    made
  }

  /** The rows as Iceberg's library reads them by the catalog. */
  protected def byClient(table: TestTable): Seq[String] =
    Using.resource(IcebergGenerics.read(newCatalog().loadTable(id(table))).build()) {
      _.asScala.map(plain).toSeq.sorted
    }

  /** The rows as Delta Kernel reads them. */
  protected def byKernel(table: TestTable): Seq[String] =
    new KernelTable(table.folder).rows().map(record => plain(ofSpark(record))).sorted

  private def ofSpark(value: Any): Any = value match {
    case KernelRecord(values @ _*) => Row(values.map(ofSpark): _*)
    case list: Seq[_]              => list.map(ofSpark)
    case map: Map[_, _]            => map.map { case (k, v) => ofSpark(k) -> ofSpark(v) }
    case other                     => other
  }

  /** Delta, Kernel and each reader of Iceberg see the same rows, and all rules hold. */
  protected def assertSame(table: TestTable): Unit = {
    val rows = inDelta(spark.table(table.name))
    assert(byKernel(table) == rows)
    assert(byClient(table) == rows)
    assert(inIceberg(table) == rows)
    assertSameTable(table)
    val found = Reports.verify(spark, table.name, None, None).findings
    assert(found.map(finding => finding.rule -> finding.found) == Nil)
    val times = snapshots(table).map(_.timestampMillis)
    assert(times.zip(times.drop(1)).forall { case (before, after) => before <= after })
  }

  protected def operation(table: TestTable): String = table.log
    .actions(table.log.version)
    .collectFirst { case ("commitInfo", info) => info.get("operation").asText }
    .get

  /** What an observer finds who looks everywhere; data files are the client's own to remove. */
  private def looks(table: TestTable): Any = (
    table.log.versions,
    FolderListing.of(table.folder).filterNot(_.startsWith("data/")),
    rows("SHOW TABLES"),
    metadataOf(newCatalog().loadTable(id(table))).metadataFileLocation,
    inDelta(spark.table(table.name))
  )

  /** The refusal of `body`, after which log, folder, metadata and catalog are as before. */
  protected def refusal(table: TestTable, condition: String)(body: => Any): String = {
    // Published, so that looking changes nothing.
    publish(table)
    val before = looks(table)
    val error = intercept[ValidationException](body)
    assert(error.getMessage.startsWith(s"[$condition"), error.getMessage)
    assert(looks(table) == before)
    error.getMessage
  }

  /** The same for what Delta cannot have. */
  protected def refused(table: TestTable, reason: String)(body: => Any): String =
    refusal(table, s"ICEBERG_WRITER_COMPAT_COMMIT_REFUSED.$reason]")(body)
}
