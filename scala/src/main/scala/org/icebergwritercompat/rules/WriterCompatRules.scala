package org.icebergwritercompat.rules

/** Every rule of `icebergWriterCompatV1`, in the order they are checked. */
object WriterCompatRules {

  /**
   * What the declared properties, columns and partitioning of a table must meet; it can be told
   * before Delta gives out ids and derives the protocol.
   */
  val declarationRules: Seq[TableRule] = Seq(
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
  )

  /** What Delta derives from the declaration must meet. */
  val layoutRules: Seq[TableRule] = Seq(
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
  )

  /**
   * What each version of a table must meet. Declarations come first, because most other violations
   * follow from a wrong one.
   */
  val tableRules: Seq[TableRule] = declarationRules ++ layoutRules

  /** What each step from one version to the next must meet, once the table has the feature. */
  val changeRules: Seq[ChangeRule] = Seq(
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
  )

  /** What each action must meet that is committed to a table with the feature. */
  val actionRules: Seq[ActionRule] = Seq(
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
  )

  /** What each live data file must meet; all of these need its footer. */
  val footerRules: Seq[FooterRule] = Seq(
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

  /** Every rule there is. */
  val all: Seq[Rule] = tableRules ++ changeRules ++ actionRules ++ footerRules

  /** All violations of `table`, in rule order; lazily, so that a caller may stop at the first. */
  def check(table: TableState): Iterator[Violation] = tableRules.iterator.flatMap(_.check(table))

  /** All violations of a step from one version to the next, likewise. */
  def check(change: TableChange): Iterator[Violation] =
    changeRules.iterator.flatMap(_.check(change))

  /** All violations of an action on `table`, likewise. */
  def check(table: TableState, action: DataAction): Iterator[Violation] =
    actionRules.iterator.flatMap(_.check(table, action))

  /** All violations of a live data file of `table`, likewise. */
  def check(table: TableState, file: DataFile): Iterator[Violation] = {
    val columns = FileColumns.of(table, file)
    footerRules.iterator.flatMap(_.check(columns))
  }
}
