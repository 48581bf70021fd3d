package org.apache.spark.sql.delta.writercompat.prove

import org.apache.iceberg.TableMetadataParser
import org.apache.iceberg.hadoop.HadoopFileIO
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.writercompat.publish.SparkPublishing
import org.apache.spark.sql.delta.writercompat.report.TableInspector
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.report.{ColumnFact, PublishedSnapshot, PublishedTable}
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, TableStates}

import scala.jdk.CollectionConverters._
import scala.util.Try

/** The values of Delta that readers of a published table are compared with. */
final class ProofSource(spark: SparkSession, tableName: String) {

  /**
   * The versions in Iceberg metadata.
   *
   * @param location
   *   the metadata file; `None` for the one that was published last
   */
  def published(location: Option[String]): PublishedTable = {
    val table = DeltaTables.find(spark, tableName)
    val name = TableStates.nameOf(table)
    val file = location
      .orElse(SparkPublishing.of(spark, tableName).metadataLocation())
      .getOrElse(throw IcebergWriterCompatException.notPublished(name))
    val metadata =
      TableMetadataParser.read(new HadoopFileIO(table.deltaLog.newDeltaHadoopConf()), file)
    val current = versionIn(metadata.properties.asScala.toMap).getOrElse {
      throw IcebergWriterCompatException.notPublishable(
        "NOT_OURS",
        Map("table" -> name, "metadata" -> file)
      )
    }
    val snapshots = metadata.snapshots.asScala.toSeq.flatMap { snapshot =>
      versionIn(snapshot.summary.asScala.toMap).map(PublishedSnapshot(snapshot.snapshotId, _))
    }
    PublishedTable(
      name,
      table.update().version,
      metadata.metadataFileLocation,
      current,
      snapshots.sortBy(_.deltaVersion)
    )
  }

  /** The columns of a version in Delta, with their ids. */
  def columns(version: Long): Seq[ColumnFact] = {
    val table = DeltaTables.find(spark, tableName)
    val inspector = new TableInspector(spark)
    TableInspector.columns(inspector.stateOf(table, inspector.snapshotOf(table, Some(version))))
  }

  private def versionIn(properties: Map[String, String]): Option[Long] =
    properties.get(PublishedMetadata.DeltaVersionProperty).flatMap(v => Try(v.toLong).toOption)
}
