package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{Lifecycle, Profile, ProtocolState, TableRule, TableState}
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.rules.CompliantTable.{features, shapes}
import org.icebergwritercompat.rules.ProtocolRules._

class ProtocolRulesSuite extends RuleSuite {

  acceptsCompliantTables(
    ReaderKnowsColumnMapping,
    WriterVersionIsSeven,
    WriterFeaturesListed,
    FeatureListsAreConsistent,
    FeaturesAreAllowed,
    FeaturesAreNotForbidden,
    ReaderVersionFitsFeatures,
    RequiredFeaturesAreThere
  )

  private val table = CompliantTable.of("s STRUCT<l: ARRAY<MAP<STRING, STRUCT<x: INT>>>>")

  private def protocol(
      reader: Int,
      writer: Int,
      readers: Option[Set[String]],
      writers: Option[Set[String]]
  ): TableState =
    table.copy(protocol = ProtocolState(reader, writer, readers, writers))

  /** Reader version 2 and the three features, and these. */
  private def two(more: String*): TableState = protocol(2, 7, None, Some(features ++ more))

  /** Reader version 3 and the three features, and these for readers too. */
  private def three(more: String*): TableState =
    protocol(3, 7, Some(Set("columnMapping") ++ more), Some(features ++ more))

  /** The same table under the later texts of the RFC. */
  private def later(table: TableState): TableState = table.copy(profile = Profile.RfcCurrent)

  private def unsupported(rule: TableRule, found: String) =
    expect(
      "UNSUPPORTED_PROTOCOL",
      Location.Protocol,
      "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
    )("found" -> found, "required" -> rule.statement)

  private def missing(feature: String, neededBy: String) =
    expect(
      "MISSING_REQUIRED_TABLE_FEATURE",
      Location.Feature(feature),
      s"ALTER TABLE db.t SET TBLPROPERTIES ('delta.feature.$feature' = 'supported')"
    )("feature" -> feature, "neededBy" -> neededBy)

  private val forLaterRfc = "; the profile rfc-current accepts it: " +
    "SET spark.icebergWriterCompat.profile=rfc-current"
  private val noRowIds = s"Iceberg writers do not keep row ids$forLaterRfc"
  private val notListed = "it is not in the RFC's list of allowed features"

  private def incompatible(feature: String, reason: String) =
    expect(
      "INCOMPATIBLE_TABLE_FEATURE",
      Location.Feature(feature),
      s"ALTER TABLE db.t DROP FEATURE $feature"
    )("feature" -> feature, "reason" -> reason)

  // A rule on the protocol must find the same in a table of any shape.
  for (shape <- shapes) {
    def of(state: ProtocolState) = CompliantTable.of(shape.schema).copy(protocol = state)
    val old = ProtocolState(1, 2, None, None)

    refuses(ReaderKnowsColumnMapping, s"reader version 1 with ${shape.name}")(of(old))(
      unsupported(ReaderKnowsColumnMapping, "reader version 1")
    )
    refuses(WriterVersionIsSeven, s"writer version 2 with ${shape.name}")(of(old))(
      unsupported(WriterVersionIsSeven, "writer version 2")
    )
    refuses(WriterFeaturesListed, s"a protocol without features with ${shape.name}")(of(old))(
      Seq("icebergWriterCompatV1", "icebergCompatV2", "columnMapping")
        .map(missing(_, "delta.enableIcebergWriterCompatV1")): _*
    )
    refuses(FeatureListsAreConsistent, s"a writer-only feature for readers with ${shape.name}")(
      of(ProtocolState(3, 7, Some(Set("columnMapping", "icebergCompatV2")), Some(features)))
    )(unsupported(FeatureListsAreConsistent, "icebergCompatV2 in readerFeatures"))
    refuses(FeaturesAreAllowed, s"a feature nobody knows with ${shape.name}")(
      of(ProtocolState(2, 7, None, Some(features + "antigravity")))
    )(incompatible("antigravity", notListed))
    refuses(FeaturesAreNotForbidden, s"row tracking with ${shape.name}")(
      of(ProtocolState(2, 7, None, Some(features + "rowTracking")))
    )(incompatible("rowTracking", noRowIds))
    refuses(ReaderVersionFitsFeatures, s"timestampNtz at reader version 2 with ${shape.name}")(
      of(ProtocolState(2, 7, None, Some(features + "timestampNtz")))
    )(unsupported(ReaderVersionFitsFeatures, "timestampNtz with reader version 2"))
    refuses(RequiredFeaturesAreThere, s"clustering without its domain with ${shape.name}")(
      of(ProtocolState(2, 7, None, Some(features + "clustering")))
    )(missing("domainMetadata", "clustering"))
    refuses(RequiredFeaturesAreThere, s"row tracking without its domain with ${shape.name}")(
      later(of(ProtocolState(2, 7, None, Some(features + "rowTracking"))))
    )(missing("domainMetadata", "rowTracking"))
    refuses(RequiredFeaturesAreThere, s"a catalog's table without its times with ${shape.name}") {
      val readers = Set("columnMapping", "catalogManaged")
      later(of(ProtocolState(3, 7, Some(readers), Some(features + "catalogManaged"))))
    }(missing("inCommitTimestamp", "catalogManaged"))
  }

  passes(ReaderKnowsColumnMapping, "reader version 3 with columnMapping listed")(three())
  passes(ReaderKnowsColumnMapping, "a later reader version with columnMapping listed") {
    protocol(4, 7, Some(Set("columnMapping")), Some(features))
  }
  Seq(None, Some(Set.empty[String]), Some(Set("v2Checkpoint"))).foreach { readers =>
    refuses(ReaderKnowsColumnMapping, s"reader version 3 with readerFeatures $readers") {
      protocol(3, 7, readers, Some(features))
    }(missing("columnMapping", "reader version 3"))
  }

  Seq(5, 6, 8).foreach { version =>
    refuses(WriterVersionIsSeven, s"writer version $version") {
      protocol(2, version, None, Some(features))
    }(unsupported(WriterVersionIsSeven, s"writer version $version"))
  }
  refuses(WriterVersionIsSeven, "writer version 7 without a list of features") {
    protocol(2, 7, None, None)
  }(unsupported(WriterVersionIsSeven, "writer version 7"))

  features.foreach { feature =>
    refuses(WriterFeaturesListed, s"a protocol without $feature") {
      protocol(2, 7, None, Some(features - feature))
    }(missing(feature, "delta.enableIcebergWriterCompatV1"))
    // Names of features are compared as they are: another engine would not know `ColumnMapping`.
    refuses(WriterFeaturesListed, s"$feature in other letters") {
      protocol(2, 7, None, Some(features - feature + feature.toUpperCase))
    }(missing(feature, "delta.enableIcebergWriterCompatV1"))
  }

  passes(FeatureListsAreConsistent, "reader-writer features in both lists") {
    three("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening")
  }
  refuses(FeatureListsAreConsistent, "our feature for readers") {
    protocol(3, 7, Some(Set("columnMapping", "icebergWriterCompatV1")), Some(features))
  }(unsupported(FeatureListsAreConsistent, "icebergWriterCompatV1 in readerFeatures"))
  refuses(FeatureListsAreConsistent, "a list for readers at reader version 2") {
    protocol(2, 7, Some(Set("columnMapping")), Some(features))
  }(unsupported(FeatureListsAreConsistent, "readerFeatures with reader version 2"))
  refuses(FeatureListsAreConsistent, "a feature for readers only") {
    protocol(3, 7, Some(Set("columnMapping", "timestampNtz")), Some(features))
  }(unsupported(FeatureListsAreConsistent, "timestampNtz only in readerFeatures"))
  Seq("timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening").foreach { feature =>
    refuses(FeatureListsAreConsistent, s"$feature for writers only at reader version 3") {
      protocol(3, 7, Some(Set("columnMapping")), Some(features + feature))
    }(unsupported(FeatureListsAreConsistent, s"$feature only in writerFeatures"))
    refuses(ReaderVersionFitsFeatures, s"$feature at reader version 2")(two(feature))(
      unsupported(ReaderVersionFitsFeatures, s"$feature with reader version 2")
    )
    passes(ReaderVersionFitsFeatures, s"$feature at reader version 3")(three(feature))
  }
  refuses(FeatureListsAreConsistent, "several faults, one violation each") {
    protocol(2, 7, Some(Set("icebergCompatV2", "timestampNtz")), Some(features))
  }(
    unsupported(FeatureListsAreConsistent, "readerFeatures with reader version 2"),
    unsupported(FeatureListsAreConsistent, "icebergCompatV2 in readerFeatures"),
    unsupported(FeatureListsAreConsistent, "timestampNtz only in readerFeatures")
  )

  // The RFC's two lists, spelled out once more.
  Seq(
    "appendOnly",
    "columnMapping",
    "icebergWriterCompatV1",
    "icebergCompatV2",
    "domainMetadata",
    "vacuumProtocolCheck",
    "v2Checkpoint",
    "inCommitTimestamp",
    "clustering",
    "timestampNtz",
    "typeWidening",
    "invariants",
    "changeDataFeed",
    "checkConstraints",
    "identityColumns",
    "generatedColumns"
  ).foreach { feature =>
    passes(FeaturesAreAllowed, s"the supported feature $feature")(three(feature))
    passes(FeaturesAreNotForbidden, s"the supported feature $feature")(three(feature))
  }
  Seq(
    "inCommitTimestamps" -> "the feature is called inCommitTimestamp",
    "typeWidening-preview" -> (notListed + forLaterRfc),
    "checkpointProtection" -> (notListed + forLaterRfc),
    "catalogManaged" -> (notListed + forLaterRfc),
    "materializePartitionColumns" -> notListed,
    "AppendOnly" -> notListed
  ).foreach { case (feature, reason) =>
    refuses(FeaturesAreAllowed, s"$feature for writers")(two(feature))(
      incompatible(feature, reason)
    )
    refuses(FeaturesAreAllowed, s"$feature for readers and writers")(three(feature))(
      incompatible(feature, reason)
    )
  }

  private val variant = "Iceberg format version 2 has no variant type"
  private val version = "the feature requires IcebergCompatV2"
  Seq(
    "deletionVectors" -> "Iceberg readers ignore Delta's deletion vectors",
    "rowTracking" -> noRowIds,
    "allowColumnDefaults" -> "Iceberg format version 2 has no column defaults",
    "icebergCompatV1" -> version,
    "icebergCompatV3" -> version,
    "variantType" -> variant,
    "variantType-preview" -> variant,
    "variantShredding" -> variant,
    "variantShredding-preview" -> variant,
    "collations" -> "Iceberg has no collations",
    "collations-preview" -> "Iceberg has no collations"
  ).foreach { case (feature, reason) =>
    refuses(FeaturesAreNotForbidden, s"the supported feature $feature")(three(feature))(
      incompatible(feature, reason)
    )
    // One fault is one violation.
    passes(FeaturesAreAllowed, s"$feature, which is A6's business")(three(feature))
  }
  refuses(FeaturesAreNotForbidden, "each of two, in order of names") {
    three("rowTracking", "deletionVectors")
  }(
    incompatible(
      "deletionVectors",
      "Iceberg readers ignore Delta's deletion vectors"
    ),
    incompatible("rowTracking", noRowIds)
  )

  passes(RequiredFeaturesAreThere, "clustering with domainMetadata")(
    two("clustering", "domainMetadata")
  )
  passes(RequiredFeaturesAreThere, "domainMetadata alone")(two("domainMetadata"))
  passes(RequiredFeaturesAreThere, "row tracking with domainMetadata") {
    later(two("rowTracking", "domainMetadata"))
  }
  // Delta Spark adds vacuumProtocolCheck as well; the protocol and Kernel do not ask for it.
  passes(RequiredFeaturesAreThere, "a catalog's table with inCommitTimestamp") {
    val readers = Some(Set("columnMapping", "catalogManaged"))
    later(protocol(3, 7, readers, Some(features ++ Set("catalogManaged", "inCommitTimestamp"))))
  }
  refuses(RequiredFeaturesAreThere, "two that lack one feature, each by its name") {
    later(two("clustering", "rowTracking"))
  }(missing("domainMetadata", "clustering"), missing("domainMetadata", "rowTracking"))
  passes(RequiredFeaturesAreThere, "row tracking by default, which is A6's business") {
    two("rowTracking")
  }
  passes(RequiredFeaturesAreThere, "a catalog's table by default, which is A5's business") {
    three("catalogManaged")
  }

  test("A6: a new table is created without the feature, not altered") {
    val creating = two("rowTracking").copy(lifecycle = Lifecycle.Creating(replacing = false))
    assert(
      FeaturesAreNotForbidden.check(creating).map(_.remedy.text) == Seq(
        "CREATE TABLE db.t (s STRUCT<l: ARRAY<MAP<STRING, STRUCT<x: INT>>>>) USING delta " +
          "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
      )
    )
  }

  test("A6: a replaced table keeps its protocol, so the feature is dropped") {
    val replacing = two("rowTracking").copy(lifecycle = Lifecycle.Creating(replacing = true))
    assert(
      FeaturesAreNotForbidden.check(replacing).map(_.remedy.text) == Seq(
        "ALTER TABLE db.t DROP FEATURE rowTracking"
      )
    )
  }
}
