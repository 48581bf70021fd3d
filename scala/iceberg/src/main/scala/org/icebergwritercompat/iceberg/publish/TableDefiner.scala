package org.icebergwritercompat.iceberg.publish

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.iceberg._
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.{ClientProperties, MetadataTimes}
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata.{
  metricsPrefix,
  DeltaTableProperty
}
import org.icebergwritercompat.iceberg.source.TableDefinition
import org.icebergwritercompat.iceberg.target.PublishTarget
import org.icebergwritercompat.iceberg.translate.{IcebergMetrics, IcebergSchemas}
import org.icebergwritercompat.model.SupportedTypes

import scala.jdk.CollectionConverters._

/** Puts the columns and the partitioning of a Delta table into Iceberg metadata. */
private[publish] final class TableDefiner(name: String, root: Path, target: PublishTarget) {

  import TableDefiner._

  /**
   * Metadata with this definition, and without a new snapshot.
   *
   * @param base
   *   what it begins with; `None` for new metadata
   */
  def define(base: Option[TableMetadata], definition: TableDefinition): TableMetadata = {
    refuseLossyPartitions(definition)
    val schema = IcebergSchemas.schema(definition.schema)
    val known = base.map(withFreeNames(_, schema))
    val spec = IcebergSchemas.spec(
      schema,
      definition.partitionColumns,
      known.fold(Seq.empty[PartitionSpec])(_.specs.asScala.toSeq),
      known.fold(0)(_.lastAssignedPartitionId)
    )
    val lastColumnId = math.max(
      math.max(definition.maxColumnId, schema.highestFieldId),
      known.fold(0)(_.lastColumnId)
    )
    val loose = IcebergMetrics.looselyBounded(schema).map(metricsPrefix + _)
    val stale = known.fold(Set.empty[String])(_.properties.asScala.keySet.toSet)
    val ofClients = ClientProperties.published(definition.properties)
    val listed = known.fold(Set.empty[String])(ClientProperties.listed)
    val noted = Option.when(ofClients.nonEmpty || listed.nonEmpty) {
      ClientProperties.ListProperty -> ClientProperties.list(ofClients.keys)
    }
    val builder = known
      .map(TableMetadata.buildFrom)
      .getOrElse(begun(definition))
      .setCurrentSchema(schema, lastColumnId)
      .setDefaultPartitionSpec(spec)
      .removeProperties(
        (stale.filter(_.startsWith(metricsPrefix)).diff(loose.toSet) ++
          (listed -- ofClients.keySet)).asJava
      )
      .setProperties(
        (ofClients ++ noted ++ loose.map(_ -> "counts") +
          (DeltaTableProperty -> definition.id)).asJava
      )
    if (base.isEmpty) builder.setDefaultSortOrder(SortOrder.unsorted)
    MetadataTimes.build(builder, base)
  }

  private def begun(definition: TableDefinition): TableMetadata.Builder =
    TableMetadata
      .buildFromEmpty(definition.formatVersion)
      .assignUUID(target.lineId(definition.id))
      .setLocation(target.spelled(root).toString)

  private def refuseLossyPartitions(definition: TableDefinition): Unit =
    SupportedTypes.lossyPartitionColumn(definition.schema, definition.partitionColumns).foreach {
      column =>
        throw IcebergWriterCompatException.notPublishable(
          "PARTITION_TYPE",
          Map("table" -> name, "column" -> column)
        )
    }

  // An old partition spec may have a field with the name that another column has now. Iceberg
  // refuses such a schema, so the field gets another name.
  private def withFreeNames(base: TableMetadata, schema: Schema): TableMetadata = {
    val columns = schema.columns.asScala.map(column => column.name -> column.fieldId).toMap
    def taken(field: PartitionField): Boolean = columns.get(field.name).exists(_ != field.sourceId)
    if (!base.specs.asScala.exists(_.fields.asScala.exists(taken))) base
    else {
      val json = mapper.readTree(TableMetadataParser.toJson(base))
      for {
        spec <- json.get("partition-specs").asScala
        field <- spec.get("fields").asScala
        source = field.get("source-id").asInt
        if columns.get(field.get("name").asText).exists(_ != source)
      } field.asInstanceOf[ObjectNode].put("name", s"${field.get("name").asText}-$source")
      TableMetadataParser.fromJson(base.metadataFileLocation, json.toString)
    }
  }
}

private object TableDefiner {

  private val mapper = new ObjectMapper
}
