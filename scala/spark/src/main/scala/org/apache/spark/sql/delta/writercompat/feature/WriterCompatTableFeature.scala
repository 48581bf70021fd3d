package org.apache.spark.sql.delta.writercompat.feature

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Action, Metadata, Protocol}
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.model.WriterCompat

import java.util.concurrent.ConcurrentHashMap

/** The writer feature of a contract, as a feature of Delta's protocol code. */
final class WriterCompatTableFeature private (contract: Contract)
    extends OpenedFeature(contract.feature) {

  override def requiredFeatures: Set[TableFeature] =
    contract.requiredFeatures.flatMap(TableFeature.featureNameToFeature).toSet

  /** Setting the property on an existing table adds the feature to its protocol. */
  override def automaticallyUpdateProtocolOfExistingTables: Boolean = true

  override def metadataRequiresFeatureToBeEnabled(
      protocol: Protocol,
      metadata: Metadata,
      spark: SparkSession
  ): Boolean = contract.isEnabled(metadata.configuration)

  /** Only the property is a trace of the feature, and the downgrade commit removes it. */
  override def preDowngradeCommand(table: DeltaTableV2): PreDowngradeTableFeatureCommand =
    WriterCompatTableFeature.NothingToDo

  override def validateDropInvariants(table: DeltaTableV2, snapshot: Snapshot): Boolean = true

  override def tablePropertiesToRemoveAtDowngradeCommit: Seq[String] =
    Seq(contract.property, WriterCompat.Publish)

  private def readResolve(): AnyRef = WriterCompatTableFeature.of(contract)

  /** Used only for features that protect history; this one does not. */
  override def actionUsesFeature(action: Action): Boolean = false
}

object WriterCompatTableFeature {

  private val features = new ConcurrentHashMap[String, WriterCompatTableFeature]

  /** The feature of a contract; always the same object, because Delta compares by identity. */
  def of(contract: Contract): WriterCompatTableFeature =
    features.computeIfAbsent(contract.feature, _ => new WriterCompatTableFeature(contract))

  /** The features of all contracts. */
  def all: Seq[WriterCompatTableFeature] = Contracts.all.map(of)

  private object NothingToDo extends OpenedFeature.OpenedPreDowngradeCommand {
    override def removeFeatureTracesIfNeeded(spark: SparkSession): PreDowngradeStatus =
      PreDowngradeStatus.DID_NOT_PERFORM_CHANGES
  }
}
