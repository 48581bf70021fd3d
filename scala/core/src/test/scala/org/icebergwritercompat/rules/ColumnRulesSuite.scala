package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{Lifecycle, ProtocolState, Rule, TableRule}
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.rules.CompliantTable.{features, shapes, Shape}
import org.icebergwritercompat.rules.SchemaRules._
import org.icebergwritercompat.rules.Schemas._

class ColumnRulesSuite extends StepSuite {

  acceptsCompliantTables(
    TimestampNtzIsSupported,
    NoInvariants,
    NoIdentityColumns,
    NoGeneratedColumns,
    NoColumnDefaults,
    RecordedTypeChangesArePromotions,
    PartitionColumnsAreTopLevel,
    NoDecimalPartitions
  )

  private val copy = "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
    "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
  private def partitionedCopy(columns: String) =
    copy.replace("USING delta", s"USING delta PARTITIONED BY ($columns)")

  // C8
  for (shape <- shapes) {
    val table = CompliantTable.of(
      CompliantTable.changed(shape.schema, shape.path)(_.copy(dataType = TimestampNTZType))
    )
    refuses(TimestampNtzIsSupported, s"the type in ${shape.name} without the feature")(table) {
      expect(
        "MISSING_REQUIRED_TABLE_FEATURE",
        shape.location,
        "ALTER TABLE db.t SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')"
      )("feature" -> "timestampNtz", "neededBy" -> s"column ${shape.sqlPath}")
    }
    passes(TimestampNtzIsSupported, s"the type in ${shape.name} with the feature") {
      val protocol = ProtocolState(
        3,
        7,
        Some(Set("columnMapping", "timestampNtz")),
        Some(features + "timestampNtz")
      )
      table.copy(protocol = protocol)
    }
  }
  refuses(TimestampNtzIsSupported, "an element, named by itself") {
    CompliantTable.of("l ARRAY<TIMESTAMP_NTZ>, m MAP<INT, TIMESTAMP_NTZ>")
  } {
    expect(
      "MISSING_REQUIRED_TABLE_FEATURE",
      Location.Column(Seq("l", "element"), Some(2), None),
      "ALTER TABLE db.t SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')"
    )("feature" -> "timestampNtz", "neededBy" -> "column l.element")
  }

  // C9 to C12
  private type Mark = MetadataBuilder => MetadataBuilder
  private val marks: Seq[(TableRule, String, String, String, Mark, Boolean)] =
    Seq[(TableRule, String, String, String, Mark, Boolean)](
      (
        NoInvariants,
        "invariants",
        "delta.invariants",
        "Iceberg writers do not check invariants",
        _.putString("delta.invariants", """{"expression":{"expression":"a > 0"}}"""),
        false
      ),
      (
        NoGeneratedColumns,
        "generatedColumns",
        "delta.generationExpression",
        "Iceberg writers do not compute generated columns",
        _.putString("delta.generationExpression", "a + 1"),
        false
      ),
      (
        NoColumnDefaults,
        "allowColumnDefaults",
        "CURRENT_DEFAULT",
        "Iceberg format version 2 has no column defaults",
        _.putString("CURRENT_DEFAULT", "5"),
        true
      )
    ) ++ Seq[(String, Mark)](
      "start" -> (_.putLong("delta.identity.start", 1)),
      "step" -> (_.putLong("delta.identity.step", 1)),
      "highWaterMark" -> (_.putLong("delta.identity.highWaterMark", 1)),
      "allowExplicitInsert" -> (_.putBoolean("delta.identity.allowExplicitInsert", true))
    ).map { case (key, mark) =>
      (
        NoIdentityColumns,
        "identityColumns",
        s"delta.identity.$key",
        "Iceberg writers do not generate identity values",
        mark,
        false
      )
    }
  for {
    shape <- shapes
    (rule, feature, key, reason, mark, isDefault) <- marks
  } {
    val table = CompliantTable.of(marked(shape.schema, shape.path)(mark))
    val created = "CREATE TABLE db.t (" +
      shape.ddl + ") USING delta TBLPROPERTIES " +
      "('delta.enableIcebergWriterCompatV1' = 'true')"
    def inactive(fix: String, price: String = "") =
      expect("INCOMPATIBLE_TABLE_FEATURE", shape.location, fix)(
        "feature" -> feature,
        "reason" -> s"column ${shape.sqlPath} uses it by its metadata $key, and $reason$price"
      )
    def asked(rule: Rule) = Map[Rule, String](
      NoInvariants -> "invariants",
      NoIdentityColumns -> "identity-columns",
      NoGeneratedColumns -> "generated-columns"
    )(rule)
    val dropped = s"ALTER TABLE db.t ALTER COLUMN ${shape.sqlPath} DROP DEFAULT"

    // A query would hand the invariant on to the copy.
    val kept = table.nodesByPath(shape.path.toVector).dataType.sql
    val copied = if (rule == NoInvariants) shape.copyWith(kept) else copy

    refuses(rule, s"$key in ${shape.name}")(table)(inactive(if (isDefault) dropped else copied))
    refuses(rule, s"$key in ${shape.name} on enabling")(table.copy(lifecycle = Lifecycle.Enabling))(
      inactive(
        if (isDefault) dropped
        else
          "CALL iceberg_writer_compat.system.enable(" +
            s"table => 'db.t', drop => array('${asked(rule)}'))"
      )
    )
    refuses(rule, s"$key in ${shape.name} of a new table") {
      table.copy(lifecycle = Lifecycle.Creating(replacing = false))
    }(inactive(created))
    refuses(rule, s"$key put on a column in ${shape.name}") {
      table.copy(previous = Some(CompliantTable.of(shape.schema)))
    } {
      if (isDefault)
        inactive(
          "ALTER TABLE db.t DROP FEATURE icebergWriterCompatV1",
          "; if the table needs it, drop the feature icebergWriterCompatV1"
        )
      else inactive(copied)
    }
    refuses(rule, s"$key on a new column in ${shape.name}") {
      table.copy(previous = Some(CompliantTable.of(minus(shape.schema, shape.path))))
    } {
      val dataType = table.nodesByPath(shape.path.toVector).dataType
      inactive(s"ALTER TABLE db.t ADD COLUMNS (${shape.sqlPath} ${dataType.sql})")
    }
    passes(rule, s"a comment and metadata like $key in ${shape.name}") {
      CompliantTable.of(
        marked(shape.schema, shape.path)(_.putString("comment", key).putString(s"x.$key", "1"))
      )
    }
  }

  // C13
  private def change(from: String, to: String, way: String = ""): Metadata = {
    val builder = new MetadataBuilder().putString("fromType", from).putString("toType", to)
    (if (way.isEmpty) builder else builder.putString("fieldPath", way)).build()
  }
  private def changes(all: Metadata*): Mark = _.putMetadataArray("delta.typeChanges", all.toArray)
  private def unreadable(location: Location, column: String, what: String, reason: String) =
    expect("INCOMPATIBLE_SCHEMA_CHANGE", location, copy)(
      "column" -> column,
      "change" -> what,
      "reason" -> reason
    )
  private val promotion = "Iceberg cannot read the older files with the newer type"
  private val inKey = "Iceberg does not allow changes inside a map key"
  private val unknown = "it is unknown whether Iceberg can read the older files"
  private val garbled = "has a record of type changes that cannot be read"

  for (shape <- shapes) {
    def having(mark: Mark) = CompliantTable.of(marked(shape.schema, shape.path)(mark))
    val isKey = shape.path.contains("key")
    Seq(("byte", "short"), ("byte", "integer"), ("short", "integer")).foreach { case (from, to) =>
      passes(RecordedTypeChangesArePromotions, s"$from to $to in ${shape.name}") {
        having(changes(change(from, to)))
      }
    }
    Seq(
      ("byte", "long", "TINYINT", "BIGINT"),
      ("integer", "long", "INT", "BIGINT"),
      ("float", "double", "FLOAT", "DOUBLE"),
      ("decimal(5,2)", "decimal(9,2)", "DECIMAL(5,2)", "DECIMAL(9,2)")
    ).foreach { case (from, to, fromSql, toSql) =>
      val table = having(changes(change(from, to)))
      if (isKey)
        refuses(RecordedTypeChangesArePromotions, s"$from to $to in ${shape.name}")(table) {
          unreadable(
            shape.location,
            shape.sqlPath,
            s"was changed from $fromSql to $toSql while the table held rows",
            inKey
          )
        }
      else
        passes(RecordedTypeChangesArePromotions, s"$from to $to in ${shape.name}")(table)
    }
    Seq(
      ("integer", "double", "INT", "DOUBLE"),
      ("date", "timestamp_ntz", "DATE", "TIMESTAMP_NTZ"),
      ("byte", "decimal(10,0)", "TINYINT", "DECIMAL(10,0)"),
      ("decimal(5,2)", "decimal(9,4)", "DECIMAL(5,2)", "DECIMAL(9,4)"),
      ("long", "integer", "BIGINT", "INT")
    ).foreach { case (from, to, fromSql, toSql) =>
      refuses(RecordedTypeChangesArePromotions, s"$from to $to in ${shape.name}") {
        having(changes(change("byte", "integer"), change(from, to)))
      } {
        unreadable(
          shape.location,
          shape.sqlPath,
          s"was changed from $fromSql to $toSql while the table held rows",
          promotion
        )
      }
    }
    Seq[(String, Mark)](
      "types nobody knows" -> changes(change("tiny", "huge")),
      "no types" -> changes(Metadata.empty),
      "one type" -> changes(new MetadataBuilder().putString("toType", "long").build()),
      "numbers for types" ->
        changes(new MetadataBuilder().putLong("fromType", 1).putLong("toType", 1).build()),
      "text" -> (_.putString("delta.typeChanges", "integer to long")),
      "null" -> (_.putNull("delta.typeChanges"))
    ).foreach { case (what, mark) =>
      refuses(RecordedTypeChangesArePromotions, s"a record with $what in ${shape.name}")(
        having(mark)
      )(unreadable(shape.location, shape.sqlPath, garbled, unknown))
    }
    passes(RecordedTypeChangesArePromotions, s"an empty record in ${shape.name}")(having(changes()))
  }
  refuses(RecordedTypeChangesArePromotions, "a change of an element, under its own path") {
    val table = CompliantTable.of("l ARRAY<ARRAY<DOUBLE>>")
    table.copy(schema =
      marked(table.schema, Seq("l"))(changes(change("integer", "double", "element.element")))
    )
  } {
    unreadable(
      Location.Column(Seq("l"), Some(1), Some("col-1")),
      "l.element.element",
      "was changed from INT to DOUBLE while the table held rows",
      promotion
    )
  }
  refuses(RecordedTypeChangesArePromotions, "a change that the commit itself records") {
    val before = CompliantTable.of("a INT")
    val record = changes(change("integer", "double"))
    before.copy(
      schema =
        StructType(marked(before.schema, Seq("a"))(record).map(_.copy(dataType = DoubleType))),
      previous = Some(before)
    )
  } {
    expect(
      "INCOMPATIBLE_SCHEMA_CHANGE",
      Location.Column(Seq("a"), Some(1), Some("col-1")),
      "ALTER TABLE db.t ADD COLUMNS (a_2 DOUBLE)"
    )("column" -> "a", "change" -> "changes from INT to DOUBLE", "reason" -> promotion)
  }
  Seq("key", "value.key", "key.element").foreach { way =>
    refuses(RecordedTypeChangesArePromotions, s"a promotion of $way") {
      val table = CompliantTable.of("m MAP<ARRAY<BIGINT>, MAP<BIGINT, INT>>")
      table.copy(schema = marked(table.schema, Seq("m"))(changes(change("integer", "long", way))))
    } {
      unreadable(
        Location.Column(Seq("m"), Some(1), Some("col-1")),
        s"m.$way",
        "was changed from INT to BIGINT while the table held rows",
        inKey
      )
    }
    passes(RecordedTypeChangesArePromotions, s"a short in $way that became an int") {
      val table = CompliantTable.of("m MAP<ARRAY<BIGINT>, MAP<BIGINT, INT>>")
      table.copy(schema = marked(table.schema, Seq("m"))(changes(change("short", "integer", way))))
    }
  }

  // C18: Delta cannot read such a table, so that nothing can be copied.
  private val look = "DESCRIBE HISTORY db.t"
  private val mixed = CompliantTable.of(
    "a INT, s STRUCT<x: INT>, l ARRAY<INT>, m MAP<INT, INT>, d DECIMAL(10,2), e DECIMAL(5,0)"
  )
  private def partitioned(columns: String*) = mixed.copy(partitionColumns = columns)
  private def badPartition(location: Location, columns: String, reason: String, fix: String) =
    expect("INCOMPATIBLE_PARTITIONING", location, fix)("columns" -> columns, "reason" -> reason)
  private def at(name: String): Location = mixed.nodesByPath(Vector(name)).location

  passes(PartitionColumnsAreTopLevel, "a column")(partitioned("a"))
  refuses(PartitionColumnsAreTopLevel, "a column in other letters")(partitioned("A"))(
    badPartition(at("a"), "A", "A is spelled a in the schema", look)
  )
  passes(PartitionColumnsAreTopLevel, "a decimal, which is C18d's business")(partitioned("d"))
  Seq("s" -> "struct", "l" -> "array", "m" -> "map").foreach { case (name, typeName) =>
    refuses(PartitionColumnsAreTopLevel, s"the $typeName $name")(partitioned(name, "a"))(
      badPartition(at(name), name, s"$name has the type $typeName", look)
    )
  }
  Seq("s.x", "x", "nowhere", "").foreach { name =>
    refuses(PartitionColumnsAreTopLevel, s"'$name', which is no column")(partitioned(name)) {
      badPartition(
        Location.Column(Seq(name), None, None),
        name,
        s"$name is not a column of the table",
        look
      )
    }
  }
  refuses(PartitionColumnsAreTopLevel, "each of two, neither of which is in the statement") {
    partitioned("s", "a", "gone")
  }(
    badPartition(at("s"), "s", "s has the type struct", look),
    badPartition(
      Location.Column(Seq("gone"), None, None),
      "gone",
      "gone is not a column of the table",
      look
    )
  )
  refuses(PartitionColumnsAreTopLevel, "a struct in a table that is created without it") {
    partitioned("s").copy(
      schema = CompliantTable.of("s STRUCT<x: INT>").schema,
      lifecycle = Lifecycle.Creating(replacing = false)
    )
  } {
    badPartition(
      Location.Column(Seq("s"), Some(1), Some("col-1")),
      "s",
      "s has the type struct",
      "CREATE TABLE db.t (s STRUCT<x: INT>) USING delta TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true')"
    )
  }
  for (shape: Shape <- shapes if shape.path.length > 1)
    refuses(PartitionColumnsAreTopLevel, s"a nested column of ${shape.name}") {
      CompliantTable.of(shape.schema).copy(partitionColumns = Seq(shape.sqlPath))
    } {
      badPartition(
        Location.Column(Seq(shape.sqlPath), None, None),
        shape.sqlPath,
        s"${shape.sqlPath} is not a column of the table",
        look
      )
    }

  // C18d
  private val byMistake = "Iceberg and the protocol allow it, but a bug of Delta Spark 4.4.0 " +
    "refuses it with IcebergCompatV2"
  passes(NoDecimalPartitions, "other columns, beside decimals")(partitioned("a"))
  refuses(NoDecimalPartitions, "a decimal, in other letters")(partitioned("a", "D"))(
    badPartition(at("d"), "d", s"d is a decimal: $byMistake", partitionedCopy("a"))
  )
  refuses(NoDecimalPartitions, "each of two, neither of which is in the statement") {
    partitioned("d", "e")
  }(
    badPartition(at("d"), "d", s"d is a decimal: $byMistake", copy),
    badPartition(at("e"), "e", s"e is a decimal: $byMistake", copy)
  )
}
