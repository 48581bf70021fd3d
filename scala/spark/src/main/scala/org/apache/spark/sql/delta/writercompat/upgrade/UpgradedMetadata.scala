package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.types.{
  ArrayType,
  DataType,
  IntegerType,
  MapType,
  MetadataBuilder,
  StructType
}
import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.model.{SupportedTypes, TypePromotion, WriterCompat}
import org.icebergwritercompat.rules.SchemaRules
import org.apache.spark.sql.delta.writercompat.read.PhysicalNames

/** What the metadata and protocol of an existing table become when it gets the feature. */
object UpgradedMetadata {

  /**
   * The metadata with the feature: column mapping by id. Fields keep the ids that they have;
   * fields, elements, keys and values without an id get one above the highest that was ever given
   * out. Bytes and shorts become ints.
   *
   * @param hasFiles
   *   whether the table has data files, which records of type changes are kept for
   * @param dropped
   *   the keys that are removed from the metadata of fields
   */
  def of(
      metadata: Metadata,
      contract: Contract,
      hasFiles: Boolean,
      dropped: Set[String] = Set.empty
  ): Metadata = {
    // Without column mapping, ids that are left in the schema have no effect, and are not kept.
    val known =
      if (metadata.columnMappingMode != NoMapping) metadata.schema
      else DeltaColumnMapping.dropColumnMappingMetadata(metadata.schema)
    val schema = SchemaMergingUtils.transformColumns(known) { (_, field, _) =>
      val plain = dropped.foldLeft(new MetadataBuilder().withMetadata(field.metadata))(_.remove(_))
      // A file that needs such a type change to be read cannot stay.
      val recorded =
        if (hasFiles) TypePromotion.withoutUnreadable(plain.build())
        else plain.remove(TypeWideningMetadata.TYPE_CHANGES_METADATA_KEY).build()
      field.copy(metadata = recorded)
    }
    val configured = metadata.copy(
      schemaString = (if (supportsNarrow(contract)) schema else widened(schema)).json,
      // Delta's own update of metadata leaves the versions out too.
      configuration =
        metadata.configuration -- contract.superseded -- WriterCompat.ProtocolVersions ++
          contract.requiredProperties + (contract.property -> "true")
    )
    PhysicalNames.assigned(configured)
  }

  /** The protocol for that metadata, without forbidden features that nothing uses any more. */
  def protocol(
      spark: SparkSession,
      before: Protocol,
      contract: Contract,
      metadata: Metadata
  ): Protocol = {
    val upgraded =
      Protocol
        .upgradeProtocolFromMetadataForExistingTable(spark, metadata, before)
        .getOrElse(before)
    upgraded.copy(writerFeatures = upgraded.writerFeatures.map(_ -- contract.features.leftOut))
  }

  private def supportsNarrow(contract: Contract): Boolean =
    !contract.rules.table.contains(SchemaRules.TypesAreSupported)

  // All files with such a field are rewritten, so none is older than the new type.
  private def widened(schema: StructType): StructType = StructType(schema.fields.map { field =>
    val dataType = widened(field.dataType)
    if (dataType == field.dataType) field
    else {
      val metadata = new MetadataBuilder()
        .withMetadata(field.metadata)
        .remove(TypeWideningMetadata.TYPE_CHANGES_METADATA_KEY)
        .build()
      field.copy(dataType = dataType, metadata = metadata)
    }
  })

  private def widened(dataType: DataType): DataType = dataType match {
    case narrow if SupportedTypes.widensToInt(narrow) => IntegerType
    case s: StructType                                => widened(s)
    case a: ArrayType => a.copy(elementType = widened(a.elementType))
    case m: MapType   => m.copy(keyType = widened(m.keyType), valueType = widened(m.valueType))
    case other        => other
  }
}
