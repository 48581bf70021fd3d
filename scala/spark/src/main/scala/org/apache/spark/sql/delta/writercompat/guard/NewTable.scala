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

/** Completes the properties of a table that is created, or replaced, with the feature on. */
object NewTable {

  private val log = LoggerFactory.getLogger(getClass)

  // Written out only where a session default says that it is on.
  private def incompatible(contract: Contract): Seq[String] =
    contract.excludedProperties.flatMap(key => key +: alternatesOf(key))

  private def alternatesOf(key: String): Seq[String] =
    WriterCompat.AlternateKeys.getOrElse(key, Nil)

  /**
   * `proposed` with the dependent properties, if it has the feature on by itself or by a session
   * default.
   *
   * What the user wrote stays, for the rules to judge; a session default that contradicts the
   * feature gives way, with a warning.
   */
  def complete(spark: SparkSession, proposed: Metadata): Metadata = {
    val explicit = proposed.configuration
    val defaults = DeltaConfigs.mergeGlobalConfigs(spark.sessionState.conf, Map.empty)
    Contracts.of(defaults ++ explicit).fold(proposed) { contract =>
      // What the user wrote under another key counts before a session default, not after it.
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
   * `proposed` with the values of our properties as the protocol spells them: other engines may not
   * read `TRUE` or `ID`.
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
   * `declared` as far as Delta stores it: the versions and features of the protocol are taken from
   * properties but not kept as such, and CHAR and VARCHAR become strings whose length is noted in
   * the metadata of the column.
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
   * `declared` without the type changes that its schema may have been copied with: a table without
   * files has none that is older than its types. A table without the feature is left to Delta.
   */
  def withoutPast(declared: Metadata): Metadata =
    if (!Contracts.isEnabled(declared.configuration) || declared.schemaString == null) declared
    else {
      val (schema, changed) = TypeWideningMetadata.removeTypeWideningMetadata(declared.schema)
      if (changed.isEmpty) declared else declared.copy(schemaString = schema.json)
    }

  /**
   * `protocol` without the features that no table with the feature may have: where the metadata
   * uses one of them, a rule on the metadata says so.
   */
  def withoutUnusable(protocol: Protocol, contract: Contract, profile: Profile): Protocol = {
    val allowed = usable(contract) ++ profile.alsoAllowed
    protocol.copy(
      readerFeatures = protocol.readerFeatures.map(_.intersect(allowed)),
      writerFeatures = protocol.writerFeatures.map(_.intersect(allowed))
    )
  }

  // Delta adds the features that session defaults name to every new table. It can be told to
  // leave out all protocol defaults, and then takes the harmless ones from the table's own.
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
          "The session default of {} gives way, because the table has {}.",
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
        "The session default {} = {} gives way to {}, because the table has " +
          contract.property + ".",
        key,
        default,
        value
      )
    }
}
