package org.apache.spark.sql.delta.writercompat.report

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.icebergwritercompat.contract.{Contract, Profile, TableState}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.report.FeatureFact
import org.icebergwritercompat.rules.SchemaRules

import scala.util.Try

/** The facts about each feature of a table. */
object FeatureFacts {

  private def flag(key: String): (String, String => Boolean) =
    (key, WriterCompat.isTrue)

  // The property that switches a feature on, and the values that mean on.
  private val switches: Map[String, (String, String => Boolean)] =
    Map(
      "appendOnly" -> flag("delta.appendOnly"),
      "changeDataFeed" -> flag("delta.enableChangeDataFeed"),
      "columnMapping" -> (WriterCompat.ColumnMappingMode -> ((mode: String) => mode != "none")),
      "deletionVectors" -> flag("delta.enableDeletionVectors"),
      "icebergCompatV1" -> flag("delta.enableIcebergCompatV1"),
      "icebergCompatV2" -> flag("delta.enableIcebergCompatV2"),
      "icebergCompatV3" -> flag("delta.enableIcebergCompatV3"),
      "inCommitTimestamp" -> flag("delta.enableInCommitTimestamps"),
      "rowTracking" -> flag("delta.enableRowTracking"),
      "typeWidening" -> flag("delta.enableTypeWidening"),
      "v2Checkpoint" -> ("delta.checkpointPolicy" -> ((policy: String) => policy == "v2"))
    )

  /** The features that the protocol lists or implies, by name. */
  def of(
      spark: SparkSession,
      protocol: Protocol,
      metadata: Metadata,
      state: TableState,
      profile: Profile
  ): Seq[FeatureFact] = {
    val known = protocol.implicitlyAndExplicitlySupportedFeatures.map(f => f.name -> f).toMap
    val listed = protocol.readerAndWriterFeatureNames ++ known.keySet
    listed.toSeq.sorted.map { name =>
      val active = known.get(name) match {
        case Some(feature: FeatureAutomaticallyEnabledByMetadata) =>
          Try(feature.metadataRequiresFeatureToBeEnabled(protocol, metadata, spark)).getOrElse(true)
        case _ => true
      }
      val enabled = switchOf(name).map { case (key, isOn) =>
        val properties = metadata.configuration
        properties.get(WriterCompat.keyOf(key, properties)).exists(isOn)
      }
      FeatureFact(
        name,
        supported = true,
        active,
        enabled,
        isAllowed(name, active && isUse(name, state), state.contract, profile)
      )
    }
  }

  private def switchOf(feature: String): Option[(String, String => Boolean)] =
    Contracts.all
      .find(_.feature == feature)
      .map(contract => flag(contract.property))
      .orElse(switches.get(feature))

  // Delta takes NOT NULL for an invariant, and Iceberg has required columns.
  private def isUse(feature: String, state: TableState): Boolean =
    feature != "invariants" ||
      state.nodes.exists(node => SchemaRules.NoInvariants.keys.exists(node.metadata.contains))

  private def isAllowed(
      feature: String,
      used: Boolean,
      contract: Contract,
      profile: Profile
  ): Boolean =
    contract.features.allowed(feature) || profile.alsoAllowed(feature) ||
      contract.features.allowedIfInactive(feature) && !used
}
