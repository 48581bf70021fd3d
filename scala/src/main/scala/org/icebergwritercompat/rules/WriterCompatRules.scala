package org.icebergwritercompat.rules

/** Every rule of `icebergWriterCompatV1`, in the order they are checked.
  *
  * Properties come first because most other violations follow from a wrong one; the protocol comes
  * last because Delta derives it from properties and schema.
  */
object WriterCompatRules {

  val tableRules: Seq[TableRule] = Seq(
    PropertyRules.WriterCompatEnabled,
    PropertyRules.IcebergCompatV2Enabled,
    PropertyRules.ColumnMappingById,
    PropertyRules.IcebergCompatV1Off,
    PropertyRules.DeletionVectorsOff,
    SchemaRules.TypesAreSupported,
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
    ProtocolRules.RequiredFeaturesAreThere)

  /** Every rule there is. */
  val all: Seq[Rule] = tableRules

  /** All violations of `table`, in rule order; lazily, so that a caller may stop at the first. */
  def check(table: TableState): Iterator[Violation] = tableRules.iterator.flatMap(_.check(table))
}
