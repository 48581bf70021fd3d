package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.delta.{DeltaConfigs, TypeWideningMetadata}
import org.apache.spark.sql.delta.actions.{Metadata, Protocol, TableFeatureProtocolUtils}
import org.icebergwritercompat.contract.{Contract, Profile}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.model.WriterCompat
import org.slf4j.LoggerFactory

import java.util.Locale

/** Completes the properties of a table that is created or replaced with the feature. */
object NewTable {

  private val log = LoggerFactory.getLogger(getClass)

  // Added only if a session default switches it on.
  private def incompatible(contract: Contract): Seq[String] =
    contract.excludedProperties.flatMap(key => key +: alternatesOf(key))

  private def alternatesOf(key: String): Seq[String] =
    WriterCompat.AlternateKeys.getOrElse(key, Nil)

  /**
   * `proposed` with the required properties, if it has the feature by its own property or by a
   * session default.
   *
   * Properties that the user set are kept, and checked by the rules. A session default that
   * contradicts the feature is ignored, with a warning.
   */
  def complete(spark: SparkSession, proposed: Metadata): Metadata = {
    val explicit = proposed.configuration
    val defaults = DeltaConfigs.mergeGlobalConfigs(spark.sessionState.conf, Map.empty)
    Contracts.of(defaults ++ explicit).fold(proposed) { contract =>
      // A property that the user set under an alternate key has precedence over a session default.
      def wish(key: String) = alternatesOf(key).flatMap(explicit.get).headOption
      val required = contract.requiredProperties ++
        incompatible(contract)
          .filter(defaults.contains)
          .map(key => key -> wish(key).getOrElse("false"))
      val published = Option.when(WriterCompat.isUniFormIceberg(defaults)) {
        WriterCompat.UniversalFormats -> WriterCompat.otherUniversalFormats(defaults)
      }
      val added = (required ++ published).filterNot { case (key, _) => explicit.contains(key) }
      added.foreach { case (key, value) => warnIfOverruled(contract, defaults, key, value) }
      val features = withoutIncompatibleFeatures(contract, defaults)
      proposed.copy(configuration =
        features ++ explicit ++ added + (contract.property -> explicit
          .getOrElse(contract.property, "true"))
      )
    }
  }

  /**
   * `proposed` with the property values in the case of the protocol, because other engines may not
   * accept `TRUE` or `ID`.
   */
  def normalized(proposed: Metadata): Metadata = {
    val ours =
      Contracts.all.flatMap(contract => contract.property +: contract.requiredProperties.map(_._1))
    val spelt = ours.flatMap { key =>
      proposed.configuration.get(key).map(value => key -> value.trim.toLowerCase(Locale.ROOT))
    }
    val configuration = proposed.configuration ++ spelt
    if (configuration == proposed.configuration) proposed
    else proposed.copy(configuration = configuration)
  }

  /**
   * `declared` as Delta stores it: properties with versions and features of the protocol are moved
   * to the protocol, and CHAR and VARCHAR become strings with the declared type in the metadata of
   * the column.
   */
  def asStored(declared: Metadata): Metadata = {
    val configuration = Protocol.filterProtocolPropsFromTableProps(declared.configuration)
    val stored =
      if (configuration == declared.configuration) declared
      else declared.copy(configuration = configuration)
    if (declared.schemaString == null || !CharVarcharUtils.hasCharVarchar(declared.schema)) stored
    else {
      val schema = CharVarcharUtils.replaceCharVarcharWithStringInSchema(declared.schema)
      stored.copy(schemaString = schema.json)
    }
  }

  /**
   * `declared` without records of type changes, which a schema copied from another table may have:
   * a table without files has none from before a change. Unchanged for a table without the feature.
   */
  def withoutPast(declared: Metadata): Metadata =
    if (!Contracts.isEnabled(declared.configuration) || declared.schemaString == null) declared
    else {
      val (schema, changed) = TypeWideningMetadata.removeTypeWideningMetadata(declared.schema)
      if (changed.isEmpty) declared else declared.copy(schemaString = schema.json)
    }

  /**
   * `protocol` without the features that a table with the feature cannot have. If the metadata uses
   * one of them, a rule on the metadata is broken.
   */
  def withoutUnusable(protocol: Protocol, contract: Contract, profile: Profile): Protocol = {
    val allowed = usable(contract) ++ profile.alsoAllowed
    protocol.copy(
      readerFeatures = protocol.readerFeatures.map(_.intersect(allowed)),
      writerFeatures = protocol.writerFeatures.map(_.intersect(allowed))
    )
  }

  // Delta adds the features in session defaults to every new table. It can be told to leave out all
  // protocol defaults, and then takes the harmless ones from the table's own.
  private def withoutIncompatibleFeatures(
      contract: Contract,
      defaults: Map[String, String]
  ): Map[String, String] = {
    val prefix = TableFeatureProtocolUtils.FEATURE_PROP_PREFIX
    val allowed = usable(contract).map(_.toLowerCase(Locale.ROOT))
    val (harmless, harmful) = defaults
      .filter { case (key, _) => key.startsWith(prefix) }
      .partition { case (key, _) => allowed(key.stripPrefix(prefix).toLowerCase(Locale.ROOT)) }
    if (harmful.isEmpty) Map.empty
    else {
      harmful.keys.toSeq.sorted.foreach { key =>
        log.warn(
          "The session default of {} is ignored, because the table has {}.",
          key: Any,
          contract.property: Any
        )
      }
      harmless + (DeltaConfigs.CREATE_TABLE_IGNORE_PROTOCOL_DEFAULTS.key -> "true")
    }
  }

  private def usable(contract: Contract): Set[String] =
    contract.features.allowed ++ contract.features.allowedIfInactive

  private def warnIfOverruled(
      contract: Contract,
      defaults: Map[String, String],
      key: String,
      value: String
  ): Unit =
    defaults.get(key).filterNot(_.equalsIgnoreCase(value)).foreach { default =>
      log.warn(
        "The session default {} = {} is replaced by {}, because the table has " +
          contract.property + ".",
        key,
        default,
        value
      )
    }
}
