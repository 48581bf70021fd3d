package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.spark.sql.execution.metric.SQLMetric
import org.icebergwritercompat.iceberg.source.ClientOperation

import java.util.Locale

/** What DESCRIBE HISTORY says of a commit that an Iceberg client has made. */
private[writercompat] final class IcebergOperation(
    operation: ClientOperation,
    metrics: Map[String, String]
) extends OpenedOperation(s"ICEBERG ${operation.name.toUpperCase(Locale.ROOT)}") {

  override def parameters: Map[String, Any] = operation.parameters

  override def transformMetrics(counted: Map[String, SQLMetric]): Map[String, String] = metrics

  override def changesData: Boolean = true

  // It adds no deletion vector.
  override def checkAddFileWithDeletionVectorStatsAreNotTightBounds: Boolean = true

  override def isInPlaceFileMetadataUpdate: Option[Boolean] = Some(false)

  override def canChangePartitionColumns: Boolean = false
}
