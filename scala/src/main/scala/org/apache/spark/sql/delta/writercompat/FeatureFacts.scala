package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.report.FeatureFact
import org.icebergwritercompat.rules.{Profile, ProtocolRules}

import scala.util.Try

/** What a table makes of each of its features. */
object FeatureFacts {

  // Where a feature has a switch of its own, and which values mean that it is on.
  private val switches: Map[String, (String, String => Boolean)] = {
    def flag(key: String) = key -> ((value: String) => value.trim.equalsIgnoreCase("true"))
    Map(
      WriterCompat.Feature -> flag(WriterCompat.Enabled),
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
  }

  /** Every feature the protocol lists or implies, by name. */
  def of(
      spark: SparkSession,
      protocol: Protocol,
      metadata: Metadata,
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
      val enabled = switches.get(name).map { case (key, isOn) =>
        val properties = metadata.configuration
        properties.get(WriterCompat.keyOf(key, properties)).exists(isOn)
      }
      FeatureFact(name, supported = true, active, enabled, isAllowed(name, active, profile))
    }
  }

  private def isAllowed(feature: String, active: Boolean, profile: Profile): Boolean =
    ProtocolRules.Allowed(feature) || profile.alsoAllowed(feature) ||
      ProtocolRules.AllowedIfInactive(feature) && !active
}
