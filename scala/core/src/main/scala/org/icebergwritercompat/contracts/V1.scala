package org.icebergwritercompat.contracts

import org.icebergwritercompat.contract.{Contract, FeatureLists, Profile, RuleSet}
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.rules.{
  ActionRules,
  ChangeRules,
  FileRules,
  FooterRules,
  NameRules,
  PropertyRules,
  ProtocolRules,
  SchemaRules
}

/** The contract `icebergWriterCompatV1`. */
object V1 {

  /** The rules, in the order they are checked. */
  val rules: RuleSet = RuleSet(
    declaration = Seq(
      PropertyRules.WriterCompatEnabled,
      PropertyRules.IcebergCompatV2Enabled,
      PropertyRules.ColumnMappingById,
      PropertyRules.IcebergCompatV1Off,
      PropertyRules.IcebergCompatV3Off,
      PropertyRules.DeletionVectorsOff,
      PropertyRules.ChangeDataFeedOff,
      PropertyRules.NoCheckConstraints,
      PropertyRules.RowTrackingOff,
      PropertyRules.NoProtocolVersions,
      PropertyRules.FormatIsParquet,
      PropertyRules.UniFormOff,
      SchemaRules.TypesAreSupported,
      NameRules.NoEmptyStructs,
      NameRules.NamesAreDistinct,
      NameRules.NoReservedNames,
      SchemaRules.NoInvariants,
      SchemaRules.NoIdentityColumns,
      SchemaRules.NoGeneratedColumns,
      SchemaRules.NoColumnDefaults,
      SchemaRules.RecordedTypeChangesArePromotions,
      SchemaRules.PartitionColumnsAreTopLevel,
      SchemaRules.NoDecimalPartitions
    ),
    layout = Seq(
      SchemaRules.FieldsHaveIdAndPhysicalName,
      SchemaRules.PhysicalNameIsColId,
      SchemaRules.CollectionsHaveNestedIds,
      SchemaRules.IdsAreUnique,
      PropertyRules.MaxColumnIdCoversAllIds,
      ProtocolRules.ReaderKnowsColumnMapping,
      ProtocolRules.WriterVersionIsSeven,
      ProtocolRules.WriterFeaturesListed,
      ProtocolRules.FeatureListsAreConsistent,
      ProtocolRules.FeaturesAreNotForbidden,
      ProtocolRules.FeaturesAreAllowed,
      ProtocolRules.ReaderVersionFitsFeatures,
      ProtocolRules.RequiredFeaturesAreThere,
      SchemaRules.TimestampNtzIsSupported,
      FileRules.LiveFilesWereWrittenById
    ),
    change = Seq(
      ChangeRules.SwitchedOffWithTheFeatureOnly,
      ChangeRules.UniFormStaysOff,
      ChangeRules.FeaturesStay,
      ChangeRules.PartitioningStays,
      ChangeRules.MapKeysStay,
      ChangeRules.ParentsStay,
      ChangeRules.TypesAreKeptOrPromoted,
      ChangeRules.PromotionsAreRecorded,
      ChangeRules.NullableStaysNullable,
      ChangeRules.NewColumnsAreNullable,
      ChangeRules.NewColumnsHaveNewIds,
      ChangeRules.NestedIdsStay,
      ChangeRules.MaxColumnIdNeverFalls,
      NameRules.NoNewReservedNames
    ),
    action = Seq(
      ActionRules.FilesHaveRowCount,
      ActionRules.SizesArePossible,
      ActionRules.PartitionValuesByPhysicalName,
      ActionRules.StatisticsByPhysicalName,
      ActionRules.TimestampPartitionsInUtc,
      ActionRules.NoMarkersOfNull,
      ActionRules.NoDeletionVectors,
      ActionRules.PathsOnce,
      ActionRules.PathsAreWithinReach,
      ActionRules.NoChangeData,
      ActionRules.AppendOnlyKeepsRows,
      ActionRules.ClusteringByPhysicalName,
      ActionRules.ClusteredOrPartitioned
    ),
    footer = Seq(
      FooterRules.FootersAreReadable,
      FooterRules.SizesAreThoseOfTheLog,
      FooterRules.FieldsHaveTheirIds,
      FooterRules.PartsHaveTheirIds,
      FooterRules.TimestampsAreMicroseconds,
      FooterRules.PartitionColumnsAreStored,
      FooterRules.CollectionsHaveThreeLevels,
      FooterRules.DecimalsFitTheirPrecision,
      FooterRules.ValuesHaveTheirForm,
      FooterRules.NoOtherColumns,
      FooterRules.RequiredColumnsHaveNoNulls,
      FooterRules.DaysAreGregorian
    )
  )

  private val features = FeatureLists(
    // Features that the RFC allows.
    allowed = Set(
      "appendOnly",
      WriterCompat.ColumnMappingFeature,
      WriterCompat.Feature,
      WriterCompat.IcebergCompatV2Feature,
      "domainMetadata",
      "vacuumProtocolCheck",
      "v2Checkpoint",
      "inCommitTimestamp",
      "clustering",
      "timestampNtz",
      "typeWidening"
    ),
    // Features from before writer version 7, which the protocol may list although they are not
    // used.
    allowedIfInactive = Set(
      "invariants",
      "changeDataFeed",
      "checkConstraints",
      "identityColumns",
      "generatedColumns"
    ),
    // Features that the RFC, or IcebergCompatV2, forbids by name.
    forbidden = Map(
      "deletionVectors" -> "Iceberg readers ignore Delta's deletion vectors",
      "rowTracking" -> "Iceberg writers do not keep row ids",
      "allowColumnDefaults" -> "Iceberg format version 2 has no column defaults",
      "icebergCompatV1" -> "the feature requires IcebergCompatV2",
      "icebergCompatV3" -> "the feature requires IcebergCompatV2",
      "variantType" -> "Iceberg format version 2 has no variant type",
      "variantType-preview" -> "Iceberg format version 2 has no variant type",
      "variantShredding" -> "Iceberg format version 2 has no variant type",
      "variantShredding-preview" -> "Iceberg format version 2 has no variant type",
      "collations" -> "Iceberg has no collations",
      "collations-preview" -> "Iceberg has no collations"
    ),
    leftOut = Set("icebergCompatV1", "icebergCompatV3", "allowColumnDefaults")
  )

  /** The contract, with two readings: the RFC as first accepted, and with its later revisions. */
  val contract: Contract = Contract(
    feature = WriterCompat.Feature,
    property = WriterCompat.Enabled,
    formatVersion = 2,
    requiredFeatures = Seq(WriterCompat.IcebergCompatV2Feature, WriterCompat.ColumnMappingFeature),
    requiredProperties = Seq(
      WriterCompat.ColumnMappingMode -> WriterCompat.IdMode,
      WriterCompat.IcebergCompatV2Enabled -> "true"
    ),
    excludedProperties = Seq(
      WriterCompat.IcebergCompatV1Enabled,
      WriterCompat.IcebergCompatV3Enabled,
      WriterCompat.DeletionVectorsEnabled,
      WriterCompat.ChangeDataFeedEnabled,
      WriterCompat.RowTrackingEnabled
    ),
    superseded = Set(WriterCompat.IcebergCompatV1Enabled, WriterCompat.IcebergCompatV3Enabled),
    features = features,
    readings = Seq(Profile.Rfc, Profile.RfcCurrent),
    rules = rules
  )
}
