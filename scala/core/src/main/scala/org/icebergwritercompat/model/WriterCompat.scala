package org.icebergwritercompat.model

/** The names in the Delta protocol of the feature and of what it depends on. */
object WriterCompat {

  /** The table feature that this project adds to Delta. */
  val Feature = "icebergWriterCompatV1"

  /** The feature that `icebergWriterCompatV1` requires. */
  val IcebergCompatV2Feature = "icebergCompatV2"

  /** The feature that assigns an id and a physical name to every column. */
  val ColumnMappingFeature = "columnMapping"

  /** The property that switches the feature on. */
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

  /** The formats whose metadata Delta's UniForm writes after each commit. */
  val UniversalFormats = "delta.universalFormat.enabledFormats"

  /** The alternate keys of properties, which Delta uses if the main key is not set. */
  val AlternateKeys: Map[String, Seq[String]] =
    Map(ChangeDataFeedEnabled -> Seq("delta.enableChangeDataCapture"))

  /** The key under which `properties` has a property; like Delta, the main key first. */
  def keyOf(key: String, properties: Map[String, String]): String =
    (key +: AlternateKeys.getOrElse(key, Nil)).find(properties.contains).getOrElse(key)

  /** Publishes the table after each commit; a property of this project, not of Delta. */
  val Publish = "icebergWriterCompat.publish"

  /** The name of the table in an Iceberg catalog; a property of this project, not of Delta. */
  val PublishTable = "icebergWriterCompat.publish.table"

  /** The value of [[PublishTable]] for a table that is published in its folder only. */
  val NoName = "none"

  /** Whether a value of [[PublishTable]] says that the table is in no catalog. */
  def isNoName(value: String): Boolean = value.trim.equalsIgnoreCase(NoName)

  /** The scheme of S3 in the locations that published metadata contains. */
  val PublishScheme = "icebergWriterCompat.publish.scheme"

  /** The required column mapping mode: columns are found by id, whatever their names are. */
  val IdMode = "id"

  /** Keys of column metadata in the Delta log. */
  val ColumnId = "delta.columnMapping.id"
  val PhysicalName = "delta.columnMapping.physicalName"
  val NestedIds = "delta.columnMapping.nested.ids"

  /** The older spelling of [[NestedIds]], which some writers put into the log. */
  val ParquetNestedIds = "parquet.field.nested.ids"

  /**
   * Options of statements that create tables. As properties in the log they could differ from the
   * versions in the protocol.
   */
  val ProtocolVersions: Seq[String] = Seq("delta.minReaderVersion", "delta.minWriterVersion")

  /** What physical names begin with; the id follows. */
  final val PhysicalNamePrefix = "col-"

  /** The physical name a column with this id must have. */
  def physicalName(id: Long): String = PhysicalNamePrefix + id

  /** The session setting from which Delta gives new tables a property. */
  def sessionDefaultKey(property: String): String =
    "spark.databricks.delta.properties.defaults." + property.stripPrefix("delta.")

  /** Whether the text of a property or setting means true; Delta ignores case and spaces around. */
  def isTrue(value: String): Boolean = value != null && value.trim.equalsIgnoreCase("true")

  /** Whether table properties request publishing after each commit. */
  def isPublished(properties: Map[String, String]): Boolean = properties.get(Publish).exists(isTrue)

  /** Whether UniForm writes Iceberg metadata of a table with these properties. */
  def isUniFormIceberg(properties: Map[String, String]): Boolean =
    universalFormats(properties).exists(_.equalsIgnoreCase("iceberg"))

  /** The other formats of UniForm, as in the property. */
  def otherUniversalFormats(properties: Map[String, String]): String =
    universalFormats(properties).filterNot(_.equalsIgnoreCase("iceberg")).mkString(",")

  private def universalFormats(properties: Map[String, String]): Seq[String] =
    properties.get(UniversalFormats).toSeq.filter(_ != null).flatMap(_.split(",")).map(_.trim)
}
