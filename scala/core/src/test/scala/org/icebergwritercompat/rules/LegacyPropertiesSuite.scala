package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{FileFormat, Profile, TableRule, TableState}
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.rules.CompliantTable.shapes
import org.icebergwritercompat.rules.PropertyRules._

class LegacyPropertiesSuite extends StepSuite {

  acceptsCompliantTables(
    IcebergCompatV3Off,
    ChangeDataFeedOff,
    NoCheckConstraints,
    RowTrackingOff,
    NoProtocolVersions,
    FormatIsParquet
  )

  private def having(table: TableState, properties: (String, String)*): TableState =
    table.copy(properties = table.properties ++ properties)

  private def wrong(key: String, value: String, required: String, reason: String, fix: String) =
    expect("WRONG_REQUIRED_TABLE_PROPERTY", Location.Property(key, Some(value)), fix)(
      "property" -> key,
      "value" -> value,
      "required" -> required,
      "reason" -> reason
    )

  for {
    shape <- shapes
    table = CompliantTable.of(shape.schema)
    (rule, key, reason) <- Seq[(TableRule, String, String)](
      (
        IcebergCompatV3Off,
        "delta.enableIcebergCompatV3",
        "the feature requires IcebergCompatV2, and a table can have only one version of " +
          "IcebergCompat"
      ),
      (
        ChangeDataFeedOff,
        "delta.enableChangeDataFeed",
        "Iceberg writers do not write change data files"
      ),
      (RowTrackingOff, "delta.enableRowTracking", "Iceberg writers do not keep row ids")
    )
  } {
    Seq("false", "FALSE", " false ").foreach { value =>
      passes(rule, s"$key = '$value' with ${shape.name}")(having(table, key -> value))
    }
    // A value that is no boolean is not known to be off.
    Seq("true", "TRUE", "yes", "0", "", "null").foreach { value =>
      refuses(rule, s"$key = '$value' with ${shape.name}")(having(table, key -> value)) {
        val fix = s"ALTER TABLE db.t SET TBLPROPERTIES ('$key' = 'false')"
        wrong(key, value, "false", reason, fix)
      }
    }
    // `rfc-current` accepts row tracking that is supported, not row tracking that is on.
    refuses(rule, s"$key = 'true' under rfc-current with ${shape.name}") {
      having(table, key -> "true").copy(profile = Profile.RfcCurrent)
    } {
      val fix = s"ALTER TABLE db.t SET TBLPROPERTIES ('$key' = 'false')"
      wrong(key, "true", "false", reason, fix)
    }
  }

  // B8
  private def constraint(key: String, name: String, fix: String, price: String = "") =
    expect("INCOMPATIBLE_TABLE_FEATURE", Location.Property(key, Some("a > 0")), fix)(
      "feature" -> "checkConstraints",
      "reason" -> (s"the constraint $name uses it, and Iceberg writers do not check " +
        s"constraints$price")
    )

  for (shape <- shapes) {
    val table = CompliantTable.of(shape.schema)
    Seq("delta.constraints.pos", "DELTA.Constraints.pos").foreach { key =>
      refuses(NoCheckConstraints, s"$key with ${shape.name}")(having(table, key -> "a > 0")) {
        constraint(key, "pos", "ALTER TABLE db.t DROP CONSTRAINT pos")
      }
    }
    refuses(NoCheckConstraints, s"a constraint that is new, with ${shape.name}") {
      having(table, "delta.constraints.pos" -> "a > 0").copy(previous = Some(table))
    } {
      constraint(
        "delta.constraints.pos",
        "pos",
        "ALTER TABLE db.t DROP FEATURE icebergWriterCompatV1",
        "; if the table needs it, drop the feature icebergWriterCompatV1"
      )
    }
    passes(NoCheckConstraints, s"a property that begins likewise, with ${shape.name}") {
      having(table, "delta.constraint" -> "a > 0", "constraints.pos" -> "a > 0")
    }
  }
  refuses(NoCheckConstraints, "each of two, in order of names, quoted where needed") {
    having(
      CompliantTable.of("a INT"),
      "delta.constraints.z" -> "a > 0",
      "delta.constraints.my rule" -> "a > 0"
    )
  }(
    constraint(
      "delta.constraints.my rule",
      "my rule",
      "ALTER TABLE db.t DROP CONSTRAINT `my rule`"
    ),
    constraint("delta.constraints.z", "z", "ALTER TABLE db.t DROP CONSTRAINT z")
  )

  // B10
  for (shape <- shapes; key <- Seq("delta.minReaderVersion", "delta.minWriterVersion"))
    refuses(NoProtocolVersions, s"$key as a property, with ${shape.name}") {
      having(CompliantTable.of(shape.schema), key -> "7")
    } {
      val fix = s"ALTER TABLE db.t UNSET TBLPROPERTIES ('$key')"
      wrong(key, "7", "not set", "the versions are in the protocol action", fix)
    }

  // B12
  for (shape <- shapes) {
    val table = CompliantTable.of(shape.schema)
    Seq(
      FileFormat("orc", Map.empty) -> "orc",
      FileFormat("Parquet", Map.empty) -> "Parquet",
      FileFormat("parquet", Map("b" -> "2", "a" -> "1")) -> "parquet a=1 b=2",
      FileFormat("", Map.empty) -> ""
    ).foreach { case (format, value) =>
      refuses(FormatIsParquet, s"$format with ${shape.name}")(table.copy(format = format)) {
        expect(
          "WRONG_REQUIRED_TABLE_PROPERTY",
          Location.Property("format", Some(format.provider)),
          "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
            "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
        )(
          "property" -> "format",
          "value" -> value,
          "required" -> "parquet without options",
          "reason" -> "all data files of the feature are Parquet"
        )
      }
    }
  }
}
