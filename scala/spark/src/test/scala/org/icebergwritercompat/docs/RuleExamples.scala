package org.icebergwritercompat.docs

import org.icebergwritercompat.contract.{FooterRule, Rule}
import org.icebergwritercompat.model.Condition
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

/**
 * An example for each rule: statements where one can break the rule, lines of the log elsewhere.
 */
object RuleExamples {

  private val enabled = "'delta.enableIcebergWriterCompatV1' = 'true'"
  private val on = s"USING delta TBLPROPERTIES ($enabled)"

  private def onWith(properties: String) = s"USING delta\n  TBLPROPERTIES ($enabled, $properties)"

  private val sales = s"CREATE TABLE sales (id INT, amount INT) $on"

  /**
   * Statements that pass and fail; then the parameters of the condition, besides table and rule,
   * and the remedy.
   */
  private def sql(rule: Rule, condition: String, setUp: Seq[String] = Nil)(passes: String*)(
      fails: String*
  )(parameters: (String, String)*)(fix: String*): SqlExample =
    SqlExample(rule, setUp, passes, fails, condition, parameters.toMap, fix.mkString("\n"))

  private def log(rule: Rule, setUp: String*)(passes: String*)(fails: String*): LogExample =
    LogExample(rule, setUp, passes, fails)

  private def footer(rule: FooterRule, setUp: String*)(passes: String*)(
      fails: String*
  ): FooterExample =
    FooterExample(rule, setUp, passes, fails)

  /** The footer of a file with these fields, as Parquet's own tools write it. */
  private def message(fields: String*): String =
    s"message file {\n${fields.map("  " + _.replace("\n", "\n  ")).mkString("\n")}\n}"

  private def metaData(parts: String*): String = s"""{"metaData": {${parts.mkString(",\n  ")}}}"""

  private def schema(fields: String*): String =
    s""""schemaString": {"type": "struct", "fields": [\n    ${fields.mkString(",\n    ")}]}"""

  private def configuration(key: String, value: String): String =
    s""""configuration": {"$key": "$value"}"""

  private def maxColumnId(id: Int): String =
    configuration("delta.columnMapping.maxColumnId", id.toString)

  /** A field as the log has it; `more` is further metadata. */
  private def field(
      name: String,
      dataType: String,
      id: Int,
      more: String = "",
      nullable: Boolean = true
  ): String =
    s"""{"name": "$name", "type": $dataType, "nullable": $nullable, "metadata": {""" +
      s"""\n      "delta.columnMapping.id": $id, "delta.columnMapping.physicalName": "col-$id"""" +
      (if (more.isEmpty) "" else s",\n      $more") + "}}"

  private val int = "\"integer\""

  private def struct(fields: String*): String =
    s"""{"type": "struct", "fields": [\n      ${fields
        .map(_.replace("\n", "\n  "))
        .mkString(",\n      ")}]}"""

  private val list =
    """{"type": "array", "elementType": "string", "containsNull": true}"""

  private def nestedId(key: String, id: Int): String =
    s""""delta.columnMapping.nested.ids": {"$key": $id}"""

  private def protocol(reader: Int, readers: Seq[String], writers: Seq[String], writer: Int = 7) = {
    def quoted(names: Seq[String]) = names.map(name => s""""$name"""").mkString("[", ", ", "]")
    val readerFeatures =
      if (readers.isEmpty) "" else s"""\n  "readerFeatures": ${quoted(readers)},"""
    s"""{"protocol": {"minReaderVersion": $reader, "minWriterVersion": $writer,""" +
      s"""$readerFeatures\n  "writerFeatures": ${quoted(writers)}}}"""
  }

  private val three = Seq("columnMapping", "icebergCompatV2", "icebergWriterCompatV1")

  private def add(path: String, values: String, stats: String, more: String = ""): String =
    s"""{"add": {"path": "$path", "partitionValues": {$values}, "size": 742,\n  """ +
      s""""modificationTime": 0, "dataChange": true, "stats": {$stats}$more}}"""

  private val rows = "\"numRecords\": 3"

  private def remove(path: String, dataChange: Boolean): String =
    s"""{"remove": {"path": "$path", "deletionTimestamp": 0, "dataChange": $dataChange}}"""

  private def clustering(column: String): String =
    """{"domainMetadata": {"domain": "delta.clustering", "removed": false,""" +
      s"""\n  "configuration": {"clusteringColumns": [["$column"]]}}}"""

  private val widening = "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"

  private val promoted = metaData(
    schema(
      field(
        "amount",
        "\"long\"",
        1,
        "\"delta.typeChanges\": [{\"fromType\": \"integer\", \"toType\": \"long\"}]"
      )
    )
  )

  private val wrongProperty = "WRONG_REQUIRED_TABLE_PROPERTY"
  private val incompatibleFeature = "INCOMPATIBLE_TABLE_FEATURE"

  private val properties: Seq[RuleExample] = Seq(
    log(PropertyRules.WriterCompatEnabled)(
      metaData(configuration("delta.enableIcebergWriterCompatV1", "true"))
    )(metaData(configuration("delta.enableIcebergWriterCompatV1", "false"))),
    sql(PropertyRules.IcebergCompatV2Enabled, wrongProperty)(sales)(
      "CREATE TABLE sales (id INT, amount INT) " + onWith("'delta.enableIcebergCompatV2' = 'false'")
    )(
      "property" -> "delta.enableIcebergCompatV2",
      "value" -> "false",
      "required" -> "true",
      "reason" -> "the feature includes all requirements of IcebergCompatV2"
    )(
      "CREATE TABLE sales (id INT, amount INT) USING delta",
      "  TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true', " +
        "'delta.enableIcebergCompatV2' = 'true')"
    ),
    sql(PropertyRules.ColumnMappingById, wrongProperty)(
      "CREATE TABLE sales (id INT, amount INT) " + onWith("'delta.columnMapping.mode' = 'id'")
    )("CREATE TABLE sales (id INT, amount INT) " + onWith("'delta.columnMapping.mode' = 'name'"))(
      "property" -> "delta.columnMapping.mode",
      "value" -> "name",
      "required" -> "id",
      "reason" -> ("only in this mode do Delta readers find columns by id in files that Iceberg " +
        "engines wrote")
    )(
      "CREATE TABLE sales (id INT, amount INT) USING delta",
      "  TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true', " +
        "'delta.columnMapping.mode' = 'id')"
    ),
    sql(PropertyRules.IcebergCompatV1Off, wrongProperty, Seq(sales))(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergCompatV1' = 'false')"
    )("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergCompatV1' = 'true')")(
      "property" -> "delta.enableIcebergCompatV1",
      "value" -> "true",
      "required" -> "false",
      "reason" -> ("the feature requires IcebergCompatV2, and a table can have only one version " +
        "of IcebergCompat")
    )(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergCompatV1' = " +
        "'false')"
    ),
    sql(PropertyRules.IcebergCompatV3Off, wrongProperty, Seq(sales))(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergCompatV3' = 'false')"
    )("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergCompatV3' = 'true')")(
      "property" -> "delta.enableIcebergCompatV3",
      "value" -> "true",
      "required" -> "false",
      "reason" -> ("the feature requires IcebergCompatV2, and a table can have only one version " +
        "of IcebergCompat")
    )(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergCompatV3' = " +
        "'false')"
    ),
    sql(PropertyRules.DeletionVectorsOff, wrongProperty, Seq(sales))(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
    )("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")(
      "property" -> "delta.enableDeletionVectors",
      "value" -> "true",
      "required" -> "false",
      "reason" -> ("Iceberg readers ignore Delta's deletion vectors and would return deleted " +
        "rows")
    )(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableDeletionVectors' = " +
        "'false')"
    ),
    sql(PropertyRules.ChangeDataFeedOff, wrongProperty, Seq(sales))(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')"
    )("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")(
      "property" -> "delta.enableChangeDataFeed",
      "value" -> "true",
      "required" -> "false",
      "reason" -> "Iceberg writers do not write change data files"
    )(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'false')"
    ),
    sql(PropertyRules.NoCheckConstraints, incompatibleFeature, Seq(sales))(
      "INSERT INTO sales SELECT * FROM VALUES (1, 10) AS rows(id, amount) WHERE amount > 0"
    )("ALTER TABLE sales ADD CONSTRAINT positive CHECK (amount > 0)")(
      "feature" -> "checkConstraints",
      "reason" -> ("the constraint positive uses it, and Iceberg writers do not check " +
        "constraints; if the table needs it, drop the feature icebergWriterCompatV1")
    )(
      "ALTER TABLE shop.sales DROP FEATURE icebergWriterCompatV1"
    ),
    sql(PropertyRules.RowTrackingOff, wrongProperty, Seq(sales))(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')"
    )("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")(
      "property" -> "delta.enableRowTracking",
      "value" -> "true",
      "required" -> "false",
      "reason" -> "Iceberg writers do not keep row ids"
    )(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')"
    ),
    log(PropertyRules.NoProtocolVersions)(metaData(configuration("owner", "shop")))(
      metaData(configuration("delta.minWriterVersion", "7"))
    ),
    log(PropertyRules.FormatIsParquet)(
      metaData("\"format\": {\"provider\": \"parquet\", \"options\": {}}")
    )(metaData("\"format\": {\"provider\": \"orc\", \"options\": {}}")),
    sql(PropertyRules.UniFormOff, wrongProperty)(
      "CREATE TABLE sales (id INT) USING delta TBLPROPERTIES (\n" +
        "  'delta.enableIcebergWriterCompatV1' = 'true', 'icebergWriterCompat.publish' = 'true')"
    )(
      "CREATE TABLE sales (id INT) USING delta TBLPROPERTIES (\n" +
        "  'delta.enableIcebergWriterCompatV1' = 'true',\n" +
        "  'delta.universalFormat.enabledFormats' = 'iceberg')"
    )(
      "property" -> "delta.universalFormat.enabledFormats",
      "value" -> "iceberg",
      "required" -> "a list without iceberg",
      "reason" -> ("UniForm and this project would both write Iceberg metadata of the table; to " +
        "publish each commit, use icebergWriterCompat.publish")
    )(
      "CREATE TABLE sales (id INT) USING delta TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true', 'icebergWriterCompat.publish' " +
        "= 'true')"
    )
  )

  private val columns: Seq[RuleExample] = Seq(
    sql(SchemaRules.TypesAreSupported, "UNSUPPORTED_DATA_TYPE", Seq(sales))(
      "ALTER TABLE sales ADD COLUMNS (quantity INT)"
    )("ALTER TABLE sales ADD COLUMNS (quantity SMALLINT)")(
      "column" -> "quantity",
      "type" -> "SMALLINT",
      "nearest" -> "INT"
    )(
      "ALTER TABLE sales ADD COLUMNS (quantity INT)"
    ),
    sql(NameRules.NoEmptyStructs, "UNSUPPORTED_DATA_TYPE", Seq(sales))(
      "ALTER TABLE sales ADD COLUMNS (details STRUCT<note: STRING>)"
    )("ALTER TABLE sales ADD COLUMNS (details STRUCT<>)")(
      "column" -> "details",
      "type" -> "STRUCT<>",
      "nearest" -> "STRING"
    )(
      "ALTER TABLE sales ADD COLUMNS (details STRING)"
    ),
    sql(NameRules.NamesAreDistinct, "INCOMPATIBLE_COLUMN_NAME")(
      s"CREATE TABLE sales (`store.city` STRING, store STRUCT<name: STRING>)\n  $on"
    )(s"CREATE TABLE sales (`store.city` STRING, store STRUCT<city: STRING>)\n  $on")(
      "column" -> "`store.city`",
      "reason" -> "Iceberg's index of names cannot distinguish it from store.city"
    )(
      "CREATE TABLE sales (store_city STRING, store STRUCT<city: STRING>)",
      "  USING delta TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    ),
    sql(NameRules.NoReservedNames, "INCOMPATIBLE_COLUMN_NAME")(
      s"CREATE TABLE sales (id INT, file STRING) $on"
    )(s"CREATE TABLE sales (id INT, _file STRING) $on")(
      "column" -> "_file",
      "reason" -> "Iceberg has a metadata column of this name"
    )(
      "CREATE TABLE sales (id INT, file STRING) USING delta TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true')"
    ),
    log(SchemaRules.NoInvariants)(metaData(schema(field("id", int, 1))))(
      metaData(
        schema(
          field(
            "id",
            int,
            1,
            "\"delta.invariants\": \"{\\\"expression\\\":{\\\"expression\\\":\\\"id > 0\\\"}}\""
          )
        )
      )
    ),
    sql(SchemaRules.NoIdentityColumns, incompatibleFeature)(
      s"CREATE TABLE sales (id BIGINT, amount INT) $on"
    )(s"CREATE TABLE sales (id BIGINT GENERATED ALWAYS AS IDENTITY, amount INT)\n  $on")(
      "feature" -> "identityColumns",
      "reason" -> ("column id uses it by its metadata delta.identity.start, and Iceberg writers " +
        "do not generate identity values")
    )(
      "CREATE TABLE sales (id BIGINT, amount INT)",
      "  USING delta TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    ),
    sql(SchemaRules.NoGeneratedColumns, incompatibleFeature)(
      s"CREATE TABLE sales (at TIMESTAMP, day DATE) $on"
    )(s"CREATE TABLE sales (at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))\n  $on")(
      "feature" -> "generatedColumns",
      "reason" -> ("column day uses it by its metadata delta.generationExpression, and Iceberg " +
        "writers do not compute generated columns")
    )(
      "CREATE TABLE sales (at TIMESTAMP, day DATE)",
      "  USING delta TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    ),
    sql(SchemaRules.NoColumnDefaults, incompatibleFeature)(sales)(
      "CREATE TABLE sales (id INT, amount INT DEFAULT 0) " +
        onWith("'delta.feature.allowColumnDefaults' = 'supported'")
    )(
      "feature" -> "allowColumnDefaults",
      "reason" -> ("column amount uses it by its metadata CURRENT_DEFAULT, and Iceberg format " +
        "version 2 has no column defaults")
    )(
      "CREATE TABLE sales (id INT, amount INT) USING delta",
      "  TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    ).and("A6", Condition.IncompatibleTableFeature)(
      "feature" -> "allowColumnDefaults",
      "reason" -> "Iceberg format version 2 has no column defaults"
    ),
    sql(
      SchemaRules.RecordedTypeChangesArePromotions,
      "INCOMPATIBLE_SCHEMA_CHANGE",
      Seq(sales, widening)
    )("ALTER TABLE sales ALTER COLUMN amount TYPE BIGINT")(
      "ALTER TABLE sales ALTER COLUMN amount TYPE DOUBLE"
    )(
      "column" -> "amount",
      "change" -> "changes from INT to DOUBLE",
      "reason" -> "Iceberg cannot read the older files with the newer type"
    )(
      "ALTER TABLE shop.sales ADD COLUMNS (amount_2 DOUBLE)"
    ).and("C14", Condition.IncompatibleSchemaChange)(
      "column" -> "amount",
      "change" -> "changes from INT to DOUBLE",
      "reason" -> "Iceberg format version 2 has no such type promotion"
    ),
    log(SchemaRules.PartitionColumnsAreTopLevel)(
      metaData(
        schema(field("id", int, 1), field("day", "\"date\"", 2)),
        "\"partitionColumns\": [\"day\"]"
      )
    )(
      metaData(
        schema(field("id", int, 1), field("store", struct(field("city", "\"string\"", 3)), 2)),
        "\"partitionColumns\": [\"store\"]"
      )
    ),
    sql(SchemaRules.NoDecimalPartitions, "INCOMPATIBLE_PARTITIONING")(
      s"CREATE TABLE sales (id INT, price BIGINT) USING delta PARTITIONED BY (price)\n" +
        s"  TBLPROPERTIES ($enabled)"
    )(
      s"CREATE TABLE sales (id INT, price DECIMAL(9,2)) USING delta PARTITIONED BY (price)\n" +
        s"  TBLPROPERTIES ($enabled)"
    )(
      "columns" -> "price",
      "reason" -> ("price is a decimal: Iceberg and the protocol allow it, but a bug of Delta " +
        "Spark 4.4.0 refuses it with IcebergCompatV2")
    )(
      "CREATE TABLE sales (id INT, price DECIMAL(9,2)) USING delta ",
      "  TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    ),
    log(SchemaRules.FieldsHaveIdAndPhysicalName)(metaData(schema(field("id", int, 1))))(
      metaData(schema("""{"name": "id", "type": "integer", "nullable": true, "metadata": {
            |      "delta.columnMapping.id": 1}}""".stripMargin))
    ),
    log(SchemaRules.PhysicalNameIsColId)(metaData(schema(field("id", int, 1))))(
      metaData(
        schema(
          """{"name": "id", "type": "integer", "nullable": true, "metadata": {
            |      "delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}}""".stripMargin
        )
      )
    ),
    log(SchemaRules.CollectionsHaveNestedIds)(
      metaData(schema(field("tags", list, 1, nestedId("col-1.element", 2))))
    )(metaData(schema(field("tags", list, 1)))),
    log(SchemaRules.IdsAreUnique)(metaData(schema(field("id", int, 1), field("amount", int, 2))))(
      metaData(schema(field("id", int, 1), field("amount", int, 1)))
    ),
    log(PropertyRules.MaxColumnIdCoversAllIds)(
      metaData(schema(field("id", int, 1), field("amount", int, 2)), maxColumnId(2))
    )(metaData(schema(field("id", int, 1), field("amount", int, 2)), maxColumnId(1)))
  )

  private val protocols: Seq[RuleExample] = Seq(
    log(ProtocolRules.ReaderKnowsColumnMapping)(protocol(2, Nil, three))(protocol(1, Nil, three)),
    log(ProtocolRules.WriterVersionIsSeven)(protocol(2, Nil, three))(
      protocol(2, Nil, three, writer = 8)
    ),
    log(ProtocolRules.WriterFeaturesListed)(protocol(2, Nil, three))(
      protocol(2, Nil, three.filterNot(_ == "icebergCompatV2"))
    ),
    log(ProtocolRules.FeatureListsAreConsistent)(protocol(3, Seq("columnMapping"), three))(
      protocol(3, Seq("columnMapping", "icebergCompatV2"), three)
    ),
    sql(ProtocolRules.FeaturesAreNotForbidden, incompatibleFeature)(
      "CREATE TABLE sales (id INT) " + onWith("'delta.feature.v2Checkpoint' = 'supported'")
    )("CREATE TABLE sales (id INT) " + onWith("'delta.feature.deletionVectors' = 'supported'"))(
      "feature" -> "deletionVectors",
      "reason" -> "Iceberg readers ignore Delta's deletion vectors"
    )(
      "CREATE TABLE sales (id INT) USING delta",
      "  TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    ),
    sql(ProtocolRules.FeaturesAreAllowed, incompatibleFeature)(
      "CREATE TABLE sales (id INT) " + onWith("'delta.feature.inCommitTimestamp' = 'supported'")
    )(
      "CREATE TABLE sales (id INT) " + onWith("'delta.feature.checkpointProtection' = 'supported'")
    )(
      "feature" -> "checkpointProtection",
      "reason" -> ("it is not in the RFC's list of allowed features; the profile rfc-current " +
        "accepts it: SET spark.icebergWriterCompat.profile=rfc-current")
    )(
      "CREATE TABLE sales (id INT) USING delta",
      "  TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    ),
    log(ProtocolRules.ReaderVersionFitsFeatures)(
      protocol(3, Seq("columnMapping", "v2Checkpoint"), three :+ "v2Checkpoint")
    )(protocol(2, Nil, three :+ "v2Checkpoint")),
    log(ProtocolRules.RequiredFeaturesAreThere)(
      protocol(2, Nil, three ++ Seq("clustering", "domainMetadata"))
    )(protocol(2, Nil, three :+ "clustering")),
    log(SchemaRules.TimestampNtzIsSupported)(
      protocol(3, Seq("columnMapping", "timestampNtz"), three :+ "timestampNtz"),
      metaData(schema(field("at", "\"timestamp_ntz\"", 1)))
    )(protocol(2, Nil, three), metaData(schema(field("at", "\"timestamp_ntz\"", 1)))),
    sql(
      FileRules.LiveFilesWereWrittenById,
      "TABLE_NOT_COMPLIANT",
      Seq(sales, "ALTER TABLE sales DROP FEATURE icebergWriterCompatV1")
    )("INSERT INTO sales VALUES (1, 10)", s"ALTER TABLE sales SET TBLPROPERTIES ($enabled)")(
      "ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'false')",
      "INSERT INTO sales VALUES (1, 10)",
      "ALTER TABLE sales SET TBLPROPERTIES\n" +
        s"  ('delta.enableIcebergCompatV2' = 'true', $enabled)"
    )(
      "count" -> "1",
      "findings" -> ("\n- E1, 1 data file(s), such as part-00000.parquet. Required: Every live data " +
        "file was written with field ids for all columns, elements, keys and values."),
      "way" -> ("The feature can be switched on for the table in place; data files that " +
        "cannot be kept are rewritten.")
    )(
      "CALL iceberg_writer_compat.system.enable(table => 'shop.sales', rewrite => true)"
    )
  )

  private val changes: Seq[RuleExample] = Seq(
    sql(ChangeRules.SwitchedOffWithTheFeatureOnly, "DISABLING_REQUIRED_TABLE_FEATURE", Seq(sales))(
      "ALTER TABLE sales DROP FEATURE icebergWriterCompatV1"
    )("ALTER TABLE sales SET TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'false')")(
      "property" -> "delta.enableIcebergWriterCompatV1",
      "change" -> "set to 'false'"
    )(
      "ALTER TABLE shop.sales DROP FEATURE icebergWriterCompatV1"
    ),
    sql(ChangeRules.UniFormStaysOff, wrongProperty, Seq(sales))(
      "ALTER TABLE sales SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')"
    )("ALTER TABLE sales SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = 'iceberg')")(
      "property" -> "delta.universalFormat.enabledFormats",
      "value" -> "iceberg",
      "required" -> "a list without iceberg",
      "reason" -> ("UniForm and this project would both write Iceberg metadata of the table; to " +
        "publish each commit, use icebergWriterCompat.publish")
    )(
      "ALTER TABLE sales SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')"
    ),
    log(ChangeRules.FeaturesStay, protocol(2, Nil, three :+ "appendOnly"))(
      protocol(2, Nil, three ++ Seq("appendOnly", "domainMetadata"))
    )(protocol(2, Nil, three)),
    sql(
      ChangeRules.PartitioningStays,
      "INCOMPATIBLE_PARTITIONING",
      Seq(
        "CREATE TABLE sales (id INT, day DATE) USING delta PARTITIONED BY (day)\n" +
          s"  TBLPROPERTIES ($enabled)"
      )
    )(
      "CREATE OR REPLACE TABLE sales (id INT, day DATE, city STRING) USING delta\n" +
        s"  PARTITIONED BY (day) TBLPROPERTIES ($enabled)"
    )(
      "CREATE OR REPLACE TABLE sales (id INT, day DATE, city STRING) USING delta\n" +
        s"  PARTITIONED BY (city) TBLPROPERTIES ($enabled)"
    )(
      "columns" -> "city",
      "reason" -> ("the table was partitioned by day, and IcebergCompatV2 does not allow this to " +
        "change")
    )(
      "CREATE OR REPLACE TABLE sales (id INT, day DATE, city STRING) USING delta",
      "  PARTITIONED BY (day) TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = " +
        "'true')"
    ),
    sql(
      ChangeRules.MapKeysStay,
      "CANNOT_CHANGE_MAP_STRUCT_KEY",
      Seq("CREATE TABLE sales (prices MAP<STRUCT<day: DATE>, STRUCT<amount: INT>>)\n" + s"  $on")
    )("ALTER TABLE sales ADD COLUMNS (prices.value.currency STRING)")(
      "ALTER TABLE sales ADD COLUMNS (prices.key.currency STRING)"
    )(
      "column" -> "prices.key",
      "before" -> "STRUCT<day: DATE>",
      "after" -> "STRUCT<day: DATE, currency: STRING>"
    )(
      "ALTER TABLE shop.sales ADD COLUMNS (prices_2 MAP<STRUCT<day: DATE, currency: " +
        "STRING>, STRUCT<amount: INT>>)"
    ),
    log(
      ChangeRules.ParentsStay,
      metaData(
        schema(
          field("id", int, 1),
          field("store", struct(field("city", "\"string\"", 3), field("name", "\"string\"", 4)), 2)
        )
      )
    )(
      metaData(
        schema(
          field("id", int, 1),
          field("store", struct(field("name", "\"string\"", 4), field("town", "\"string\"", 3)), 2)
        )
      )
    )(
      metaData(
        schema(
          field("id", int, 1),
          field("store", struct(field("name", "\"string\"", 4)), 2),
          field("city", "\"string\"", 3)
        )
      )
    ),
    log(
      ChangeRules.TypesAreKeptOrPromoted,
      protocol(3, Seq("columnMapping", "typeWidening"), three :+ "typeWidening"),
      metaData(schema(field("amount", int, 1)))
    )(promoted)(metaData(schema(field("amount", "\"string\"", 1)))),
    log(
      ChangeRules.PromotionsAreRecorded,
      protocol(3, Seq("columnMapping", "typeWidening"), three :+ "typeWidening"),
      metaData(schema(field("amount", int, 1)))
    )(promoted)(metaData(schema(field("amount", "\"long\"", 1)))),
    log(
      ChangeRules.NullableStaysNullable,
      metaData(schema(field("id", int, 1), field("amount", int, 2, nullable = false)))
    )(metaData(schema(field("id", int, 1), field("amount", int, 2))))(
      metaData(
        schema(field("id", int, 1, nullable = false), field("amount", int, 2, nullable = false))
      )
    ),
    log(ChangeRules.NewColumnsAreNullable, metaData(schema(field("id", int, 1))))(
      metaData(schema(field("id", int, 1), field("amount", int, 2)))
    )(metaData(schema(field("id", int, 1), field("amount", int, 2, nullable = false)))),
    log(ChangeRules.NewColumnsHaveNewIds, metaData(schema(field("id", int, 1)), maxColumnId(2)))(
      metaData(schema(field("id", int, 1), field("amount", int, 3)))
    )(metaData(schema(field("id", int, 1), field("amount", int, 2)))),
    log(
      ChangeRules.NestedIdsStay,
      metaData(schema(field("tags", list, 1, nestedId("col-1.element", 2))))
    )(metaData(schema(field("labels", list, 1, nestedId("col-1.element", 2)))))(
      metaData(schema(field("tags", list, 1, nestedId("col-1.element", 3))))
    ),
    log(ChangeRules.MaxColumnIdNeverFalls, metaData(maxColumnId(7)))(metaData(maxColumnId(8)))(
      metaData(maxColumnId(6))
    ),
    sql(NameRules.NoNewReservedNames, "INCOMPATIBLE_COLUMN_NAME", Seq(sales))(
      "ALTER TABLE sales RENAME COLUMN amount TO file"
    )("ALTER TABLE sales RENAME COLUMN amount TO _file")(
      "column" -> "_file",
      "reason" -> "Iceberg has a metadata column of this name"
    )(
      "ALTER TABLE shop.sales RENAME COLUMN amount TO file"
    )
  )

  private val actions: Seq[RuleExample] = Seq(
    log(ActionRules.FilesHaveRowCount)(add("part-0.parquet", "", "\"numRecords\": 3"))(
      add("part-0.parquet", "", "\"tightBounds\": true")
    ),
    log(ActionRules.SizesArePossible)(add("part-0.parquet", "", rows))(
      add("part-0.parquet", "", "\"numRecords\": 9223372036854775807")
    ),
    log(
      ActionRules.PartitionValuesByPhysicalName,
      metaData(
        schema(field("id", int, 1), field("city", "\"string\"", 2)),
        "\"partitionColumns\": [\"city\"]"
      )
    )(add("col-2=Bern/part-0.parquet", "\"col-2\": \"Bern\"", rows))(
      add("city=Bern/part-0.parquet", "\"city\": \"Bern\"", rows)
    ),
    log(ActionRules.StatisticsByPhysicalName)(
      add("part-0.parquet", "", rows + ", \"nullCount\": {\"col-1\": 0}")
    )(add("part-0.parquet", "", rows + ", \"nullCount\": {\"id\": 0}")),
    sql(
      ActionRules.TimestampPartitionsInUtc,
      "INCOMPATIBLE_FILE_ACTION",
      Seq(
        "CREATE TABLE sales (id INT, at TIMESTAMP) USING delta PARTITIONED BY (at)\n" +
          s"  TBLPROPERTIES ($enabled)"
      )
    )("INSERT INTO sales VALUES (1, TIMESTAMP '2026-01-01 12:00:00Z')")(
      "SET spark.databricks.delta.write.utcTimestampPartitionValues=false",
      "INSERT INTO sales VALUES (1, TIMESTAMP '2026-01-01 12:00:00Z')"
    )(
      "file" -> "part-00000.parquet",
      "found" -> "the partition value of at is 2026-01-01 12:00:00",
      "required" -> ("The partition value of a timestamp is in UTC, in the form " +
        "1970-01-01T00:00:00.000000Z.")
    )(
      "SET spark.databricks.delta.write.utcTimestampPartitionValues=true"
    ),
    log(
      ActionRules.NoMarkersOfNull,
      metaData(
        schema(field("id", int, 1), field("city", "\"string\"", 2)),
        "\"partitionColumns\": [\"city\"]"
      )
    )(add("part-0.parquet", "\"col-2\": \"\"", rows))(
      add("part-0.parquet", "\"col-2\": \"__HIVE_DEFAULT_PARTITION__\"", rows)
    ),
    log(ActionRules.NoDeletionVectors)(add("part-0.parquet", "", rows))(
      add(
        "part-0.parquet",
        "",
        rows,
        ",\n  \"deletionVector\": {\"storageType\": \"i\", \"pathOrInlineDv\": " +
          "\"wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L\", \"sizeInBytes\": 40, " +
          "\"cardinality\": 1}"
      )
    ),
    log(ActionRules.PathsOnce)(add("part-0.parquet", "", rows), add("part-1.parquet", "", rows))(
      add("part-0.parquet", "", rows),
      add("part-0.parquet", "", rows)
    ),
    log(ActionRules.PathsAreWithinReach)(
      add("a%20b/part-0.parquet", "", rows),
      add("file:///lake/cloned/part-0.parquet", "", rows)
    )(add("%2e%2e/part-0.parquet", "", rows)),
    log(ActionRules.NoChangeData)(remove("part-0.parquet", dataChange = true))(
      """{"cdc": {"path": "_change_data/cdc-0.parquet", "partitionValues": {}, "size": 742,
        |  "dataChange": false}}""".stripMargin
    ),
    log(ActionRules.AppendOnlyKeepsRows, metaData(configuration("delta.appendOnly", "true")))(
      remove("part-0.parquet", dataChange = false)
    )(remove("part-0.parquet", dataChange = true)),
    log(ActionRules.ClusteringByPhysicalName)(clustering("col-1"))(clustering("id")),
    log(ActionRules.ClusteredOrPartitioned)(clustering("col-1"))(
      metaData(
        schema(field("id", int, 1), field("city", "\"string\"", 2)),
        "\"partitionColumns\": [\"city\"]"
      ),
      clustering("col-1")
    )
  )

  private val idOfFile = "optional int32 col-1 = 1;"
  private val idColumn = metaData(schema(field("id", int, 1)))
  private def oneColumn(dataType: String) = metaData(schema(field("amount", s"\"$dataType\"", 1)))
  private val tags =
    metaData(schema(field("tags", list, 1, nestedId("col-1.element", 2))))

  private def listOf(element: String) =
    s"optional group col-1 (LIST) = 1 {\n  repeated group list {\n    $element\n  }\n}"

  private val footers: Seq[RuleExample] = Seq(
    footer(FooterRules.FootersAreReadable, idColumn)(
      add("part-0.parquet", "", rows),
      message(idOfFile)
    )(add("part-0.parquet", "", rows)),
    footer(FooterRules.SizesAreThoseOfTheLog, idColumn)(
      add("part-0.parquet", "", rows),
      message(idOfFile),
      "row count: 3"
    )(add("part-0.parquet", "", rows), message(idOfFile), "row count: 4"),
    footer(
      FooterRules.FieldsHaveTheirIds,
      metaData(schema(field("id", int, 1), field("amount", int, 2)))
    )(message(idOfFile, "optional int32 col-2 = 2;"))(message(idOfFile, "optional int32 col-2;")),
    footer(FooterRules.PartsHaveTheirIds, tags)(
      message(listOf("optional binary element (STRING) = 2;"))
    )(message(listOf("optional binary element (STRING);"))),
    footer(FooterRules.TimestampsAreMicroseconds, oneColumn("timestamp"))(
      message("optional int64 col-1 (TIMESTAMP(MICROS,true)) = 1;")
    )(message("optional int96 col-1 = 1;")),
    footer(
      FooterRules.PartitionColumnsAreStored,
      metaData(
        schema(field("id", int, 1), field("city", "\"string\"", 2)),
        "\"partitionColumns\": [\"city\"]"
      )
    )(
      add("col-2=Bern/part-0.parquet", "\"col-2\": \"Bern\"", rows),
      message(idOfFile, "optional binary col-2 (STRING) = 2;")
    )(add("col-2=Bern/part-0.parquet", "\"col-2\": \"Bern\"", rows), message(idOfFile)),
    footer(FooterRules.CollectionsHaveThreeLevels, tags)(
      message(listOf("optional binary element (STRING) = 2;"))
    )(message("optional group col-1 (LIST) = 1 {\n  repeated binary array (STRING) = 2;\n}")),
    footer(FooterRules.DecimalsFitTheirPrecision, oneColumn("decimal(9,2)"))(
      message("optional int32 col-1 (DECIMAL(9,2)) = 1;")
    )(message("optional fixed_len_byte_array(4) col-1 (DECIMAL(9,2)) = 1;")),
    footer(FooterRules.ValuesHaveTheirForm, oneColumn("date"))(
      message("optional int32 col-1 (DATE) = 1;")
    )(message("optional int32 col-1 = 1;")),
    footer(FooterRules.NoOtherColumns, idColumn)(message(idOfFile))(
      message(idOfFile, "optional binary _change_type (STRING);")
    ),
    footer(
      FooterRules.RequiredColumnsHaveNoNulls,
      metaData(schema(field("id", int, 1), field("amount", int, 2, nullable = false)))
    )(message(idOfFile, "required int32 col-2 = 2;"))(message(idOfFile)),
    footer(FooterRules.DaysAreGregorian, oneColumn("date"))(
      message("optional int32 col-1 (DATE) = 1;"),
      "key org.apache.spark.version: 2.4.8",
      "values of col-1: from 0 to 20000"
    )(
      message("optional int32 col-1 (DATE) = 1;"),
      "key org.apache.spark.version: 2.4.8",
      "values of col-1: from -171000 to 20000"
    )
  )

  /** All of them. */
  val all: Seq[RuleExample] =
    properties ++ columns ++ protocols ++ changes ++ actions ++ footers

  /** The example for a rule. */
  def of(rule: Rule): RuleExample =
    all
      .find(_.rule eq rule)
      .getOrElse(throw new NoSuchElementException(s"${rule.id} has no example"))
}
