package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.fs.Path
import org.apache.iceberg.catalog.{TableIdentifier => IcebergIdentifier}
import org.apache.iceberg.exceptions.{AlreadyExistsException, ValidationException}
import org.apache.iceberg.hadoop.HadoopFileIO
import org.apache.iceberg.{TableMetadata, TableMetadataParser}
import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIdentifier
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.writercompat.read.Sessions
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata

import scala.util.Try

/**
 * A Delta table that is found by a metadata file which was published of it.
 *
 * The file says which table it is, and no more: what the table has is in Delta's log.
 */
final class PublishedTable(tables: SessionTables, metadataFile: String) {

  /** Gives the table a name, if it is a table with the feature, and the file is of it. */
  def register(name: IcebergIdentifier): Unit = Sessions.active(tables.session) {
    if (tables.exists(name)) throw new AlreadyExistsException("Table already exists: %s", name)
    val published = metadata(name)
    val snapshot = deltaTable(name)
    if (published.property(PublishedMetadata.DeltaTableProperty, "") != snapshot.metadata.id)
      throw refused(name, s"is of another table than the Delta table in $folder")
    tables.register(name, new Path(snapshot.deltaLog.dataPath.toString))
    ()
  }

  private val file = new Path(metadataFile)

  // Published metadata is in the folder `metadata` of the table.
  private def folder: Path = file.getParent.getParent

  private def isInPlace: Boolean = file.getName.endsWith(".metadata.json") &&
    Option(file.getParent).exists(p => p.getName == "metadata" && p.getParent != null)

  private def deltaTable(name: IcebergIdentifier): Snapshot = {
    val snapshot = tables.log(folder).update()
    if (snapshot.version < 0) throw refused(name, notPublished)
    if (!Contracts.isEnabled(snapshot.metadata.configuration))
      throw refused(
        name,
        s"is of a Delta table without ${Contracts.default.feature}. To offer it, run " +
          s"ALTER TABLE delta.${quoteIdentifier(s"$folder")} SET TBLPROPERTIES ('${Contracts.default.property}' = 'true')"
      )
    snapshot
  }

  private def metadata(name: IcebergIdentifier): TableMetadata =
    if (!isInPlace) throw refused(name, notPublished)
    else {
      val io = new HadoopFileIO(tables.session.sessionState.newHadoopConf())
      Try(TableMetadataParser.read(io, metadataFile))
        .getOrElse(throw refused(name, "is not there, or is no metadata of Iceberg"))
    }

  private def notPublished: String =
    "was not published of a Delta table, and no other Iceberg table can be registered. Copy its rows: " +
      "CREATE TABLE … AS SELECT from the catalog that it is in"

  private def refused(name: IcebergIdentifier, why: String): ValidationException =
    new ValidationException("Table %s is not registered: %s %s", name, metadataFile, why)
}
