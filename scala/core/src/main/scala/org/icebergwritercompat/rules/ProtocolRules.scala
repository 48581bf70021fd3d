package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{
  Clause,
  FeatureLists,
  Fix,
  FixedByActivation,
  Obstacle,
  Profile,
  ProtocolState,
  TableRule,
  TableState,
  Violation
}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{Condition, Location}
import org.icebergwritercompat.model.WriterCompat._

/** Requirements on the protocol action. */
object ProtocolRules {

  private val readerVersionOfMapping = 2
  private val readerVersionOfFeatures = 3

  /** Feature names that are misspelt in the text of the protocol, each with the right name. */
  private val misspelt: Map[String, String] =
    Map("inCommitTimestamps" -> "the feature is called inCommitTimestamp")

  /** Reader-writer features, which must also be listed in `readerFeatures`. */
  private val readerWriterFeatures: Set[String] =
    Set("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening") ++
      Set("typeWidening-preview", "catalogManaged")

  /** Features that other features require; what the contract's own feature requires is rule A3. */
  private val requiredFeatures: Seq[(String, String)] = Seq(
    "clustering" -> "domainMetadata",
    "rowTracking" -> "domainMetadata",
    "catalogManaged" -> "inCommitTimestamp"
  )

  private val mappingClause = Clause(Rfc, "IcebergWriterCompatV1")

  /** A rule about the protocol action. */
  sealed abstract class ProtocolRule(id: String, statement: String, why: String, clauses: Clause*)
      extends TableRule(id, statement, why, clauses: _*) {

    final protected def wrongProtocol(table: TableState, found: String): Violation =
      violation(
        Condition.UnsupportedProtocol,
        Location.Protocol,
        Fix.enable(table),
        "found" -> found,
        "required" -> statement
      )

    final protected def missing(table: TableState, feature: String, neededBy: String): Violation =
      violation(
        Condition.MissingRequiredTableFeature,
        Location.Feature(feature),
        Fix.setProperty(table, s"delta.feature.$feature", "supported"),
        "feature" -> feature,
        "neededBy" -> neededBy
      )
  }

  object ReaderKnowsColumnMapping
      extends ProtocolRule(
        "A1",
        "The reader version is 2, or at least 3 with `columnMapping` in `readerFeatures`.",
        "Otherwise a reader that does not support column mapping could open the table and read " +
          "wrong or null values.",
        mappingClause
      ) {

    // Delta raises the version with the feature, and leaves a protocol that lists the feature.
    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      if (table.protocol.listedFeatures(ColumnMappingFeature)) Obstacle.Blocker else Obstacle.None

    override def check(table: TableState): Seq[Violation] = {
      val protocol = table.protocol
      val version = protocol.minReaderVersion
      val listed = protocol.readerFeatures.exists(_.contains(ColumnMappingFeature))
      if (version == readerVersionOfMapping || version >= readerVersionOfFeatures && listed) Nil
      else if (version < readerVersionOfMapping)
        Seq(wrongProtocol(table, s"reader version $version"))
      else Seq(missing(table, ColumnMappingFeature, s"reader version $version"))
    }
  }

  object WriterVersionIsSeven
      extends ProtocolRule(
        "A2",
        "The writer version is 7.",
        "Only writer version 7 has `writerFeatures`, by which writers learn that they must " +
          "support the feature.",
        mappingClause
      ) {

    // Delta raises a version, and lowers none.
    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      if (!table.protocol.isWritable) Obstacle.Blocker
      else Obstacle.None

    override def check(table: TableState): Seq[Violation] =
      if (
        table.protocol.minWriterVersion == ProtocolState.WriterVersionOfFeatures &&
        table.protocol.writerFeatures.isDefined
      ) Nil
      else Seq(wrongProtocol(table, s"writer version ${table.protocol.minWriterVersion}"))
  }

  object WriterFeaturesListed
      extends ProtocolRule(
        "A3",
        "`writerFeatures` lists the contract's feature and those it requires.",
        "A writer that does not support an unlisted feature does not refuse the table, and could " +
          "break its rules.",
        mappingClause,
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )
      with FixedByActivation {

    override def check(table: TableState): Seq[Violation] = {
      val listed = table.protocol.writerFeatures.getOrElse(Set.empty)
      (table.contract.feature +: table.contract.requiredFeatures)
        .filterNot(listed)
        .map(missing(table, _, table.contract.property))
    }
  }

  object FeatureListsAreConsistent
      extends ProtocolRule(
        "A4",
        "Writer-only features are never in `readerFeatures`, reader-writer features are in both " +
          "lists once the reader version is 3, and a reader version below 3 has no " +
          "`readerFeatures`.",
        "Engines refuse to open a table with contradictory feature lists.",
        Clause(DeltaProtocol, "Table Features for New and Existing Tables")
      ) {

    override def check(table: TableState): Seq[Violation] = {
      val protocol = table.protocol
      val readers = protocol.readerFeatures.getOrElse(Set.empty[String])
      val writers = protocol.writerFeatures.getOrElse(Set.empty[String])
      val hasReaderList = protocol.readerFeatures.isDefined
      val writerOnly = Seq(table.contract.feature, IcebergCompatV2Feature).filter(readers)
      val readerOnly = (readers -- writers).toSeq.sorted
      val unlisted =
        if (protocol.minReaderVersion < readerVersionOfFeatures) Nil
        else (writers.intersect(readerWriterFeatures) -- readers).toSeq.sorted
      val found = Seq(
        Option.when(hasReaderList && protocol.minReaderVersion < readerVersionOfFeatures)(
          s"readerFeatures with reader version ${protocol.minReaderVersion}"
        ),
        Option.when(writerOnly.nonEmpty)(s"${writerOnly.mkString(", ")} in readerFeatures"),
        Option.when(readerOnly.nonEmpty)(s"${readerOnly.mkString(", ")} only in readerFeatures"),
        Option.when(unlisted.nonEmpty)(s"${unlisted.mkString(", ")} only in writerFeatures")
      ).flatten
      found.map(wrongProtocol(table, _))
    }
  }

  object FeaturesAreAllowed
      extends ProtocolRule(
        "A5",
        "Every supported feature is in the RFC's list of allowed features.",
        "It is not known whether Iceberg writers meet the requirements of other features.",
        Clause(Rfc, "Allowed Supported list of features")
      ) {

    override def check(table: TableState): Seq[Violation] =
      (table.protocol.listedFeatures -- lists(table).allowed -- lists(table).allowedIfInactive --
        lists(table).forbidden.keySet -- table.profile.alsoAllowed).toSeq.sorted.map { feature =>
        val reason = misspelt.getOrElse(feature, "it is not in the RFC's list of allowed features")
        incompatible(this, table, feature, reason)
      }
  }

  object FeaturesAreNotForbidden
      extends ProtocolRule(
        "A6",
        "No feature that the contract forbids is supported, even if it is not active.",
        "Iceberg readers and writers ignore what such a feature stores, so rows or values " +
          "would be lost or wrong.",
        Clause(Rfc, "Disallowed Features"),
        Clause(Rfc, "Allowed Supported list of features")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      violation.location match {
        case Location.Feature(feature) if table.contract.features.leftOut(feature) => Obstacle.None
        case _ => Obstacle.Blocker
      }

    override def check(table: TableState): Seq[Violation] =
      (table.protocol.listedFeatures.intersect(lists(table).forbidden.keySet) --
        table.profile.alsoAllowed).toSeq.sorted
        .map(feature => incompatible(this, table, feature, lists(table).forbidden(feature)))
  }

  object ReaderVersionFitsFeatures
      extends ProtocolRule(
        "A7",
        s"The reader version is 3 if one of the features ${readerWriterFeatures.toSeq.sorted
            .map(f => s"`$f`")
            .mkString(", ")} is supported.",
        "Only reader version 3 has `readerFeatures`, by which readers learn that they must " +
          "support these features.",
        Clause(DeltaProtocol, "Table Features for New and Existing Tables")
      ) {

    override def check(table: TableState): Seq[Violation] = {
      val needThree = table.protocol.listedFeatures.intersect(readerWriterFeatures).toSeq.sorted
      val version = table.protocol.minReaderVersion
      if (needThree.isEmpty || version >= readerVersionOfFeatures) Nil
      else Seq(wrongProtocol(table, s"${needThree.mkString(", ")} with reader version $version"))
    }
  }

  object RequiredFeaturesAreThere
      extends ProtocolRule(
        "A8",
        s"If a feature is supported, the feature that it requires is supported too: ${requiredFeatures
            .map { case (feature, needed) => s"`$feature` requires `$needed`" }
            .mkString(", ")}.",
        "A feature does not work without the feature that it requires.",
        Clause(DeltaProtocol, "Clustered Table"),
        Clause(DeltaProtocol, "Row Tracking"),
        Clause(DeltaProtocol, "Catalog-managed tables")
      ) {

    // A feature that the profile does not allow breaks rule A5 or A6 instead.
    override def check(table: TableState): Seq[Violation] = {
      val listed = table.protocol.listedFeatures
      val allowed = lists(table).allowed ++ table.profile.alsoAllowed
      requiredFeatures.collect {
        case (feature, needed) if allowed(feature) && listed(feature) && !listed(needed) =>
          missing(table, needed, feature)
      }
    }
  }

  private def lists(table: TableState): FeatureLists = table.contract.features

  private def incompatible(
      rule: TableRule,
      table: TableState,
      feature: String,
      reason: String
  ): Violation = {
    val otherProfile = Profile
      .accepting(feature, table.profile)
      .fold("")(p => s"; the profile ${p.name} accepts it: SET ${Profile.Conf}=${p.name}")
    val remedy = Fix.dropFeature(table, feature)
    Violation(
      rule,
      Condition.IncompatibleTableFeature,
      Location.Feature(feature),
      remedy,
      Map("feature" -> feature, "reason" -> (reason + otherProfile + Fix.price(table, remedy)))
    )
  }
}
