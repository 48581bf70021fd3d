package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, Metadata, Protocol}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.icebergwritercompat.WriterCompat

/** The writer feature `icebergWriterCompatV1`, as Delta's protocol code sees it. */
object WriterCompatTableFeature extends OpenedFeature(WriterCompat.Feature) {

  override def requiredFeatures: Set[TableFeature] =
    Set(IcebergCompatV2TableFeature, ColumnMappingTableFeature)

  /** Setting the property on an existing table is an explicit wish. */
  override def automaticallyUpdateProtocolOfExistingTables: Boolean = true

  override def metadataRequiresFeatureToBeEnabled(
      protocol: Protocol,
      metadata: Metadata,
      spark: SparkSession
  ): Boolean = WriterCompat.isEnabled(metadata.configuration)

  /** Nothing but the property tells of the feature, and the downgrade commit removes that. */
  override def preDowngradeCommand(table: DeltaTableV2): PreDowngradeTableFeatureCommand =
    NothingToDo

  override def validateDropInvariants(table: DeltaTableV2, snapshot: Snapshot): Boolean = true

  override def tablePropertiesToRemoveAtDowngradeCommit: Seq[String] =
    Seq(WriterCompat.Enabled, WriterCompat.Publish)

  /** Asked only of features that protect history; this one does not. */
  override def actionUsesFeature(action: Action): Boolean = false

  private object NothingToDo extends OpenedFeature.OpenedPreDowngradeCommand {
    override def removeFeatureTracesIfNeeded(spark: SparkSession): PreDowngradeStatus =
      PreDowngradeStatus.DID_NOT_PERFORM_CHANGES
  }
}
