package org.icebergwritercompat.rules

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.contract.{Fix, Lifecycle, TableRule, TableState}
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.rules.CompliantTable.shapes
import org.icebergwritercompat.rules.PropertyRules._

class PropertyRulesSuite extends RuleSuite {

  acceptsCompliantTables(
    WriterCompatEnabled,
    IcebergCompatV2Enabled,
    ColumnMappingById,
    MaxColumnIdCoversAllIds,
    IcebergCompatV1Off,
    DeletionVectorsOff,
    UniFormOff
  )

  private val nested = CompliantTable.of("s STRUCT<l: ARRAY<MAP<STRING, STRUCT<x: INT>>>>")

  private def having(key: String, value: Option[String]): TableState =
    nested.copy(properties = nested.properties.removed(key) ++ value.map(key -> _))

  private val off =
    "the feature requires IcebergCompatV2, and a table can have only one version of " +
      "IcebergCompat"
  private val deletionVectors =
    "Iceberg readers ignore Delta's deletion vectors and would return deleted rows"

  private val required: Seq[(TableRule, String, String, String, Seq[String], Seq[String])] = Seq(
    (
      WriterCompatEnabled,
      "delta.enableIcebergWriterCompatV1",
      "true",
      "it is the property that switches the feature on",
      Seq("true", "TRUE"),
      Seq("false", "", "yes", "1", " true ")
    ),
    (
      IcebergCompatV2Enabled,
      "delta.enableIcebergCompatV2",
      "true",
      "the feature includes all requirements of IcebergCompatV2",
      Seq("true", "True"),
      Seq("false", "supported", "true ")
    ),
    (
      ColumnMappingById,
      "delta.columnMapping.mode",
      "id",
      "only in this mode do Delta readers find columns by id in files that Iceberg engines " +
        "wrote",
      Seq("id", "ID"),
      Seq("name", "none", "i d", " id")
    )
  )

  private val switchedOff: Seq[(TableRule, String, String)] = Seq(
    (IcebergCompatV1Off, "delta.enableIcebergCompatV1", off),
    (DeletionVectorsOff, "delta.enableDeletionVectors", deletionVectors)
  )

  private def wrong(key: String, value: Option[String], required: String, reason: String) =
    expect(
      "WRONG_REQUIRED_TABLE_PROPERTY",
      Location.Property(key, value),
      // Delta does not change the mapping mode of a table that is there.
      if (key == "delta.columnMapping.mode")
        "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
          "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
      else s"ALTER TABLE db.t SET TBLPROPERTIES ('$key' = '$required')"
    )(
      "property" -> key,
      "value" -> value.getOrElse("not set"),
      "required" -> required,
      "reason" -> reason
    )

  for ((rule, key, needed, reason, good, bad) <- required) {
    good.foreach(value => passes(rule, s"$key = '$value'")(having(key, Some(value))))
    bad.foreach { value =>
      refuses(rule, s"$key = '$value'")(having(key, Some(value)))(
        wrong(key, Some(value), needed, reason)
      )
    }
    for (shape <- shapes)
      refuses(rule, s"a table with ${shape.name} without $key") {
        val table = CompliantTable.of(shape.schema)
        table.copy(properties = table.properties - key)
      }(wrong(key, None, needed, reason))
  }

  for ((rule, key, reason) <- switchedOff) {
    passes(rule, s"a table without $key")(having(key, None))
    Seq("false", "FALSE").foreach { value =>
      passes(rule, s"$key = '$value'")(having(key, Some(value)))
    }
    // A value that is no boolean is not known to be off.
    Seq("true", "True", "yes", "").foreach { value =>
      refuses(rule, s"$key = '$value'")(having(key, Some(value)))(
        wrong(key, Some(value), "false", reason)
      )
    }
    for (shape <- shapes)
      refuses(rule, s"a table with ${shape.name} and $key = 'true'") {
        val table = CompliantTable.of(shape.schema)
        table.copy(properties = table.properties + (key -> "true"))
      }(wrong(key, Some("true"), "false", reason))
  }

  private val feed = "delta.enableChangeDataFeed"
  private val capture = "delta.enableChangeDataCapture"

  for ((own, other) <- Seq(None -> "false", Some("false") -> "true"))
    passes(ChangeDataFeedOff, s"$feed $own beside $capture = '$other'") {
      nested.copy(properties = nested.properties ++ own.map(feed -> _) + (capture -> other))
    }

  for ((own, other, key) <- Seq((None, "true", capture), (Some("true"), "false", feed)))
    refuses(ChangeDataFeedOff, s"$feed $own beside $capture = '$other'") {
      nested.copy(properties = nested.properties ++ own.map(feed -> _) + (capture -> other))
    }(wrong(key, Some("true"), "false", "Iceberg writers do not write change data files"))

  private val formats = "delta.universalFormat.enabledFormats"

  for {
    shape <- shapes
    (value, others) <- Seq("iceberg" -> "", "hudi,iceberg" -> "hudi", "Iceberg" -> "")
    creating = Lifecycle.Creating(replacing = false)
    lifecycle <- Seq(creating, Lifecycle.Enabling, Lifecycle.Changing)
  } {
    val table = CompliantTable.of(shape.schema)
    def naming =
      table.copy(properties = table.properties + (formats -> value), lifecycle = lifecycle)
    val what = s"$formats = '$value', $lifecycle, with ${shape.name}"
    if (lifecycle == Lifecycle.Changing) passes(UniFormOff, what)(naming)
    else
      refuses(UniFormOff, what)(naming) {
        val fix =
          if (lifecycle == Lifecycle.Enabling)
            s"ALTER TABLE db.t SET TBLPROPERTIES ('$formats' = '$others')"
          else Fix.publishInstead(naming).text
        expect("WRONG_REQUIRED_TABLE_PROPERTY", Location.Property(formats, Some(value)), fix)(
          "property" -> formats,
          "value" -> value,
          "required" -> "a list without iceberg",
          "reason" -> ("UniForm and this project would both write Iceberg metadata of the " +
            "table; to publish each commit, use icebergWriterCompat.publish")
        )
      }
  }
  for (value <- Seq("", "hudi"))
    passes(UniFormOff, s"$formats = '$value'") {
      having(formats, Some(value)).copy(lifecycle = Lifecycle.Enabling)
    }

  private val maxColumnId = "delta.columnMapping.maxColumnId"

  private def givenTwice(highest: Long) =
    s"ids up to $highest are already assigned, so an id could be assigned twice"
  private val noMaximum =
    "it must be a whole number from 0 to 2147483447: Iceberg reserves higher ids for its " +
      "metadata columns"

  private def wrongMaximum(value: Option[String], reason: String) =
    expect(
      "WRONG_MAX_COLUMN_ID",
      Location.Property(maxColumnId, value),
      "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
    )(
      "property" -> maxColumnId,
      "value" -> value.getOrElse("not set"),
      "reason" -> reason
    )

  for (shape <- shapes) {
    val table = CompliantTable.of(shape.schema)
    def having(value: Option[String]) =
      table.copy(properties = table.properties.removed(maxColumnId) ++ value.map(maxColumnId -> _))

    passes(MaxColumnIdCoversAllIds, s"ids given out and taken back, with ${shape.name}") {
      having(Some((shape.highest + 5).toString))
    }
    passes(MaxColumnIdCoversAllIds, s"the highest id there can be, with ${shape.name}") {
      having(Some("2147483447"))
    }
    Seq(None, Some("0"), Some((shape.highest - 1).toString)).foreach { value =>
      refuses(MaxColumnIdCoversAllIds, s"${shape.name} with maxColumnId $value")(having(value))(
        wrongMaximum(value, givenTwice(shape.highest))
      )
    }
    // Each violation contains the text of the value, not a number parsed from it.
    Seq(s" ${shape.highest}", "2147483448", "2147483648", "9223372036854775808", "-1", "abc", "")
      .foreach { value =>
        refuses(MaxColumnIdCoversAllIds, s"${shape.name} with maxColumnId '$value'") {
          having(Some(value))
        }(wrongMaximum(Some(value), noMaximum))
      }
  }

  refuses(MaxColumnIdCoversAllIds, "neither a maximum nor any id") {
    val table = CompliantTable.of("a INT")
    table.copy(schema = StructType.fromDDL("a INT"), properties = table.properties - maxColumnId)
  }(wrongMaximum(None, "it must record the highest id that was ever assigned"))

  // The field itself has id 1: only its element has a higher one.
  refuses(MaxColumnIdCoversAllIds, "a nested id above the maximum") {
    val table = CompliantTable.of("l ARRAY<INT>")
    table.copy(properties = table.properties + (maxColumnId -> "1"))
  }(wrongMaximum(Some("1"), givenTwice(2)))

  private val created =
    "(s STRUCT<l: ARRAY<MAP<STRING, STRUCT<x: INT>>>>) USING delta TBLPROPERTIES "

  for {
    (lifecycle, verb) <- Seq(
      Lifecycle.Creating(replacing = false) -> "CREATE TABLE",
      Lifecycle.Creating(replacing = true) -> "CREATE OR REPLACE TABLE"
    )
  } refuses(DeletionVectorsOff, s"deletion vectors, naming the $verb that would do") {
    having("delta.enableDeletionVectors", Some("true")).copy(lifecycle = lifecycle)
  } {
    wrong("delta.enableDeletionVectors", Some("true"), "false", deletionVectors).copy(fix =
      s"$verb db.t $created('delta.enableDeletionVectors' = 'false', " +
        "'delta.enableIcebergWriterCompatV1' = 'true')"
    )
  }
}
