package org.icebergwritercompat.model

/** The names that the Delta protocol gives to the feature and to what it depends on. */
object WriterCompat {

  /** The table feature this project teaches Delta. */
  val Feature = "icebergWriterCompatV1"

  /** The feature that `icebergWriterCompatV1` builds on. */
  val IcebergCompatV2Feature = "icebergCompatV2"

  /** The feature that gives every column an id and a physical name. */
  val ColumnMappingFeature = "columnMapping"

  /** The one property that switches the feature on. */
  val Enabled = "delta.enableIcebergWriterCompatV1"

  val IcebergCompatV1Enabled = "delta.enableIcebergCompatV1"
  val IcebergCompatV2Enabled = "delta.enableIcebergCompatV2"
  val IcebergCompatV3Enabled = "delta.enableIcebergCompatV3"
  val ColumnMappingMode = "delta.columnMapping.mode"
  val MaxColumnId = "delta.columnMapping.maxColumnId"
  val DeletionVectorsEnabled = "delta.enableDeletionVectors"
  val ChangeDataFeedEnabled = "delta.enableChangeDataFeed"
  val RowTrackingEnabled = "delta.enableRowTracking"
  val AppendOnly = "delta.appendOnly"
  val ConstraintPrefix = "delta.constraints."
  val TypeWideningEnabled = "delta.enableTypeWidening"

  /** The formats whose metadata Delta's UniForm writes beside each commit. */
  val UniversalFormats = "delta.universalFormat.enabledFormats"

  /** The other keys under which Delta finds a property that is not set under its own. */
  val AlternateKeys: Map[String, Seq[String]] =
    Map(ChangeDataFeedEnabled -> Seq("delta.enableChangeDataCapture"))

  /** The key that holds a property in `properties`, as Delta looks for it: its own first. */
  def keyOf(key: String, properties: Map[String, String]): String =
    (key +: AlternateKeys.getOrElse(key, Nil)).find(properties.contains).getOrElse(key)

  /** Publishes the table as Iceberg after each commit; of this project, not of Delta. */
  val Publish = "icebergWriterCompat.publish"

  /** What the table is called in an Iceberg catalog; of this project, not of Delta. */
  val PublishTable = "icebergWriterCompat.publish.table"

  /** The only column mapping mode in which a file may be written by any engine. */
  val IdMode = "id"

  /** Column metadata keys, as the Delta log spells them. */
  val ColumnId = "delta.columnMapping.id"
  val PhysicalName = "delta.columnMapping.physicalName"
  val NestedIds = "delta.columnMapping.nested.ids"

  /** The older spelling of [[NestedIds]], which some writers put into the log. */
  val ParquetNestedIds = "parquet.field.nested.ids"

  /** What physical names begin with; the id follows. */
  final val PhysicalNamePrefix = "col-"

  /** The physical name a column with this id must have. */
  def physicalName(id: Long): String = PhysicalNamePrefix + id

  /** The session setting from which Delta gives new tables a property. */
  def sessionDefaultKey(property: String): String =
    "spark.databricks.delta.properties.defaults." + property.stripPrefix("delta.")

  /** Whether the text of a property or setting means true; Delta ignores case and spaces around. */
  def isTrue(value: String): Boolean = value != null && value.trim.equalsIgnoreCase("true")

  /** Whether a set of table properties asks for publishing after each commit. */
  def isPublished(properties: Map[String, String]): Boolean = properties.get(Publish).exists(isTrue)

  /** Whether UniForm is to write Iceberg metadata of a table with these properties. */
  def isUniFormIceberg(properties: Map[String, String]): Boolean =
    universalFormats(properties).exists(_.equalsIgnoreCase("iceberg"))

  /** The other formats that UniForm is to write, as the property spells them. */
  def otherUniversalFormats(properties: Map[String, String]): String =
    universalFormats(properties).filterNot(_.equalsIgnoreCase("iceberg")).mkString(",")

  private def universalFormats(properties: Map[String, String]): Seq[String] =
    properties.get(UniversalFormats).toSeq.filter(_ != null).flatMap(_.split(",")).map(_.trim)
}
