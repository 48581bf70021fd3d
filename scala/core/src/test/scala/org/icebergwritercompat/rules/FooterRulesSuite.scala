package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{
  FooterRule,
  Lifecycle,
  ProtocolState,
  TableState,
  Violation
}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.{Condition, DataFile, Location, SchemaNode}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.DataFiles._
import org.icebergwritercompat.rules.FooterRules._

class FooterRulesSuite extends RuleSuite {

  private val copy = "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
    "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"

  private def accepts(rule: FooterRule, what: String)(table: => TableState)(
      file: => DataFile
  ): Unit =
    test(s"${rule.id} accepts $what") {
      assert(rule.check(table, file) == Nil)
    }

  /** Expects violations at columns, or at the file where the path is empty. */
  private def refuses(rule: FooterRule, what: String)(table: => TableState)(file: => DataFile)(
      expected: (String, String, String)*
  ): Unit =
    test(s"${rule.id} refuses $what") {
      val found = rule.check(table, file)
      assert(found.map { v =>
        val place = v.location match {
          case Location.Column(path, _, _) => path.mkString(".")
          case Location.File(path)         => assert(path == "part-0.parquet"); ""
          case other                       => fail(other.toString)
        }
        (place, v.parameters("found"), v.parameters("detail"))
      } == expected.map {
        case ("", found, detail)   => ("", found, detail)
        case (path, found, detail) => (path, s"column $path $found", detail)
      })
      found.foreach { v =>
        assert(v.rule eq rule)
        assert(v.condition == Condition.IncompatibleDataFile)
        assert(v.parameters.keySet == Set("file", "found", "detail", "required"))
        assert(v.parameters("file") == "part-0.parquet")
        assert(v.parameters("required") == rule.statement)
        assert(v.remedy == rule.remedy(table))
        Statements.assertParsed(v.remedy.text)
      }
    }

  private val contentRules =
    V1.rules.footer.filterNot(_ eq FootersAreReadable)

  /** For each shape, the fields that a writer of the feature gives a file. */
  private val filesOfShapes: Map[String, Seq[String]] = Map(
    "a flat schema" -> Seq("optional int32 col-1 = 1;", "optional binary col-2 (STRING) = 2;"),
    "a nested struct" -> Seq(
      "optional group col-1 = 1 { optional int32 col-2 = 2;",
      "optional group col-3 = 3 { optional int32 col-4 (DATE) = 4; } }"
    ),
    "an array" -> Seq(
      "optional group col-1 (LIST) = 1 { repeated group list {",
      "optional group element = 2 { optional int32 col-3 = 3; } } }"
    ),
    "a map value" -> Seq(
      "optional group col-1 (MAP) = 1 { repeated group key_value {",
      "required binary key (STRING) = 2; optional group value = 3 { optional int32 col-4 = 4; } } }"
    ),
    "a map key" -> Seq(
      "optional group col-1 (MAP) = 1 { repeated group key_value {",
      "required group key = 2 { optional int32 col-3 = 3; } optional int32 value = 4; } }"
    ),
    "collections in collections" -> Seq(
      "optional group col-1 (MAP) = 1 { repeated group key_value { required int32 key = 2;",
      "optional group value (LIST) = 3 { repeated group list {",
      "optional group element (LIST) = 4 { repeated group list {",
      "optional group element = 5 { optional int32 col-6 = 6; } } } } } } }"
    )
  )

  for (shape <- CompliantTable.shapes) {
    val table = CompliantTable.of(shape.schema)
    val fields = filesOfShapes(shape.name)
    val whole = fields.mkString(" ")
    val leaf = s" = ${shape.id};"

    V1.rules.footer.foreach { rule =>
      accepts(rule, s"a right file, with ${shape.name}")(table)(file(fields: _*))
    }

    // Nothing goes by the names that a writer gives fields.
    contentRules.foreach { rule =>
      accepts(rule, s"a file of an Iceberg writer, with ${shape.name}")(table) {
        file(whole.replaceAll("col-(\\d)", "my_$1"))
      }
    }

    accepts(NoOtherColumns, s"a file with a column dropped later, with ${shape.name}") {
      val dropped = Schemas.minus(shape.schema, shape.path)
      table.copy(schema = dropped)
    }(file(fields: _*))

    test(s"E1f refuses a field without its id, with ${shape.name}") {
      val found = FieldsHaveTheirIds.check(table, file(whole.replace(leaf, ";")))
      assert(found.map(_.location) == Seq(shape.location))
      assert(found.map(_.parameters("found")) == Seq(s"column ${shape.sqlPath} has no field id"))
    }

    test(s"E1f refuses a field with another id, with ${shape.name}") {
      val found = FieldsHaveTheirIds.check(table, file(whole.replace(leaf, " = 77;")))
      assert(found.map(_.location) == Seq(shape.location))
      assert(
        found.map(_.parameters("found")) == Seq(
          s"column ${shape.sqlPath} has the field id 77, not ${shape.id}"
        )
      )
    }

    test(s"E9 refuses another field beside the last, with ${shape.name}") {
      val more = whole.replace(leaf, s"$leaf optional int32 more = 99; optional int32 other;")
      assert(NoOtherColumns.check(table, file(more)).map(_.parameters("found").takeRight(42)) == {
        val way = file(more).footer.toOption.get.schema.getPaths.toArray
          .map(_.asInstanceOf[Array[String]].toSeq)
          .filter(p => p.last == "more" || p.last == "other")
          .map(SchemaNode.sqlPath(_))
          .toSeq
        Seq(
          s"it has the column ${way(0)} with the field id 99, which the table never assigned",
          s"it has the column ${way(1)}, which is not a column of the table"
        ).map(_.takeRight(42))
      })
    }

    test(s"E10 refuses a file without a field that cannot be null, with ${shape.name}") {
      val required =
        table.copy(schema =
          CompliantTable.changed(shape.schema, shape.path)(_.copy(nullable = false))
        )
      val without =
        file(whole.replaceAll("optional [^;{]* = " + shape.id + ";", "optional int32 x = 1000;"))
      val found = RequiredColumnsHaveNoNulls.check(required, without)
      assert(found.map(_.location) == Seq(shape.location))
      assert(
        found.map(_.parameters("found")) == Seq(
          s"column ${shape.sqlPath} is required, but is not in the file"
        )
      )
      assert(RequiredColumnsHaveNoNulls.check(required, file(whole)) == Nil)
    }
  }

  // E0

  test("E0 refuses a file whose footer cannot be read, and no other rule says more") {
    val table = CompliantTable.of("a INT NOT NULL").copy(partitionColumns = Seq("a"))
    val file = unreadable("it is not there", "no such file")
    assert(
      V1.rules.check(table, file).toSeq == Seq(
        Violation(
          FootersAreReadable,
          Condition.UnreadableDataFile,
          Location.File("part-0.parquet"),
          Remedy.History("db.t"),
          Map(
            "file" -> "part-0.parquet",
            "found" -> "it is not there",
            "detail" -> "no such file",
            "required" -> FootersAreReadable.statement
          )
        )
      )
    )
    Statements.assertParsed("DESCRIBE HISTORY db.t")
  }

  // D1f

  private val flat = CompliantTable.of("a INT")
  private val flatFile = file("optional int32 col-1 = 1;")

  accepts(SizesAreThoseOfTheLog, "a file whose rows the log does not count")(flat) {
    flatFile.copy(rowCount = None)
  }
  refuses(SizesAreThoseOfTheLog, "a file with fewer rows than the log says")(flat) {
    flatFile.copy(rowCount = Some(5))
  }(("", "the log has another number of rows", "3 rows, 5 in the log"))
  refuses(SizesAreThoseOfTheLog, "a file with more bytes than the log says")(flat) {
    flatFile.copy(size = 700)
  }(("", "the log has another number of bytes", "742 bytes, 700 in the log"))

  // E1f

  private val two = CompliantTable.of("a INT, b INT, s STRUCT<x: INT>")

  refuses(FieldsHaveTheirIds, "a file without any ids, once")(two) {
    file("optional int32 a;", "optional int32 b;", "optional group s { optional int32 x; }")
  }(("", "none of its columns has a field id", "3 columns"))
  accepts(PartsHaveTheirIds, "a file without any ids, which E1f tells of")(
    CompliantTable.of("l ARRAY<INT>")
  )(file("optional group l (LIST) { repeated group list { optional int32 element; } }"))
  refuses(FieldsHaveTheirIds, "ids that are swapped")(two) {
    file("optional int32 col-1 = 2;", "optional int32 col-2 = 1;")
  }(
    (
      "a",
      "has its field id on the field with the name of b, col-2",
      "col-2 is int32 with the field id 1"
    ),
    (
      "b",
      "has its field id on the field with the name of a, col-1",
      "col-1 is int32 with the field id 2"
    )
  )
  refuses(FieldsHaveTheirIds, "an id that stands twice")(two) {
    file("optional int32 col-1 = 1;", "optional int32 more = 1;")
  }(("a", "has its field id on another field as well", "more is int32 with the field id 1"))
  refuses(FieldsHaveTheirIds, "an id that stands in another struct")(two) {
    file("optional int32 col-1 = 1;", "optional int32 more = 4;")
  }(("s.x", "has its field id on another field as well", "more is int32 with the field id 4"))
  refuses(FieldsHaveTheirIds, "the id -1, which stands for none")(two) {
    file("optional int32 col-1 = 1;", "optional int32 col-2 = -1;")
  }(("b", "has no field id", "col-2 is int32"))
  refuses(FieldsHaveTheirIds, "a column by its logical name")(two) {
    file("optional int32 a;", "optional int32 col-2 = 2;")
  }(("a", "has no field id", "a is int32"))
  refuses(FieldsHaveTheirIds, "the id of a dropped column under the name of another")(
    two.copy(properties = two.properties + ("delta.columnMapping.maxColumnId" -> "9"))
  ) {
    file("optional int32 col-1 = 9;", "optional int32 col-2 = 2;")
  }(("a", "has the field id 9, not 1", "col-1 is int32 with the field id 9"))
  accepts(FieldsHaveTheirIds, "a file from before columns were added")(two) {
    file("optional int32 col-2 = 2;")
  }
  accepts(FieldsHaveTheirIds, "a dropped column with the logical name of a new one") {
    val schema = StructType(Seq(Schemas.field("a", IntegerType, 2)))
    CompliantTable.of(schema)
  }(file("optional int32 a = 1;"))
  accepts(NoOtherColumns, "a dropped column with the logical name of a new one") {
    CompliantTable.of(StructType(Seq(Schemas.field("a", IntegerType, 2))))
  }(file("optional int32 a = 1;"))

  // Names that were there before column mapping became physical names, and those may repeat below.
  accepts(FieldsHaveTheirIds, "a renamed column whose physical name a nested field has too") {
    val old = CompliantTable.of("ident INT, s STRUCT<id: INT>")
    val named = Seq(Seq("ident"), Seq("s", "id")).foldLeft(old.schema) { (schema, path) =>
      CompliantTable.changed(schema, path)(CompliantTable.named("id"))
    }
    old.copy(schema = named)
  }(file("optional int32 id = 1;", "optional group s = 2 { optional int32 id = 3; }"))

  // E2

  private val parts = CompliantTable.of("l ARRAY<INT>, m MAP<STRING, ARRAY<INT>>")
  private def partsFile(element: String, key: String, value: String, inner: String) = file(
    s"optional group col-1 (LIST) = 1 { repeated group list { optional int32 element$element; } }",
    "optional group col-3 (MAP) = 3 { repeated group key_value {",
    s"required binary key (STRING)$key; optional group value (LIST)$value {",
    s"repeated group list { optional int32 element$inner; } } } }"
  )

  accepts(PartsHaveTheirIds, "the ids of the schema")(parts)(
    partsFile(" = 2", " = 4", " = 5", " = 6")
  )
  refuses(PartsHaveTheirIds, "elements, keys and values without ids")(parts) {
    partsFile("", "", "", "")
  }(
    ("l.element", "has no field id", "col-1.list.element is int32"),
    ("m.key", "has no field id", "col-3.key_value.key is binary (STRING)"),
    ("m.value", "has no field id", "col-3.key_value.value is group (LIST)"),
    ("m.value.element", "has no field id", "col-3.key_value.value.list.element is int32")
  )
  refuses(PartsHaveTheirIds, "a key and a value whose ids are swapped")(parts) {
    partsFile(" = 2", " = 5", " = 4", " = 6")
  }(
    (
      "m.key",
      "has the field id 5, not 4",
      "col-3.key_value.key is binary (STRING) with the field id 5"
    ),
    (
      "m.value",
      "has the field id 4, not 5",
      "col-3.key_value.value is group (LIST) with the field id 4"
    )
  )

  // E4, E7, E8

  private def stored(dataType: String, form: String) =
    (CompliantTable.of(s"a $dataType"), file(s"optional ${form.replace("@", "col-1")} = 1;"))

  private def acceptsForms(rule: FooterRule, dataType: String)(forms: String*): Unit =
    forms.foreach { form =>
      val (table, file) = stored(dataType, form)
      accepts(rule, s"$dataType as ${form.replace(" @", "")}")(table)(file)
    }

  private def refusesForms(rule: FooterRule, dataType: String, required: String)(
      forms: (String, String)*
  ): Unit =
    forms.foreach { case (form, description) =>
      val (table, file) = stored(dataType, form)
      refuses(rule, s"$dataType as ${form.replace(" @", "")}")(table)(file)(
        (
          "a",
          s"is stored as $description, not as $required",
          s"col-1 is $description with the field id 1"
        )
      )
    }

  acceptsForms(TimestampsAreMicroseconds, "TIMESTAMP")("int64 @ (TIMESTAMP(MICROS,true))")
  refusesForms(TimestampsAreMicroseconds, "TIMESTAMP", "int64 (TIMESTAMP(MICROS,true))")(
    "int96 @" -> "int96",
    "int64 @" -> "int64",
    "int64 @ (TIMESTAMP(MILLIS,true))" -> "int64 (TIMESTAMP(MILLIS,true))",
    "int64 @ (TIMESTAMP(NANOS,true))" -> "int64 (TIMESTAMP(NANOS,true))",
    "int64 @ (TIMESTAMP(MICROS,false))" -> "int64 (TIMESTAMP(MICROS,false))",
    "int32 @ (DATE)" -> "int32 (DATE)"
  )
  acceptsForms(TimestampsAreMicroseconds, "TIMESTAMP_NTZ")("int64 @ (TIMESTAMP(MICROS,false))")
  refusesForms(TimestampsAreMicroseconds, "TIMESTAMP_NTZ", "int64 (TIMESTAMP(MICROS,false))")(
    "int96 @" -> "int96",
    "int64 @ (TIMESTAMP(MICROS,true))" -> "int64 (TIMESTAMP(MICROS,true))",
    "int64 @ (TIMESTAMP(NANOS,false))" -> "int64 (TIMESTAMP(NANOS,false))",
    // Iceberg v2 does not promote a date.
    "int32 @ (DATE)" -> "int32 (DATE)"
  )

  acceptsForms(DecimalsFitTheirPrecision, "DECIMAL(9, 2)")(
    "int32 @ (DECIMAL(9,2))",
    "int32 @ (DECIMAL(5,2))"
  )
  refusesForms(DecimalsFitTheirPrecision, "DECIMAL(9, 2)", "int32 (DECIMAL(9,2))")(
    "int64 @ (DECIMAL(9,2))" -> "int64 (DECIMAL(9,2))",
    "fixed_len_byte_array(4) @ (DECIMAL(9,2))" -> "fixed_len_byte_array(4) (DECIMAL(9,2))",
    "binary @ (DECIMAL(9,2))" -> "binary (DECIMAL(9,2))",
    "int32 @ (DECIMAL(9,3))" -> "int32 (DECIMAL(9,3))",
    "int64 @ (DECIMAL(10,2))" -> "int64 (DECIMAL(10,2))",
    "int32 @" -> "int32"
  )
  acceptsForms(DecimalsFitTheirPrecision, "DECIMAL(18, 4)")(
    "int64 @ (DECIMAL(18,4))",
    "int64 @ (DECIMAL(10,4))",
    "int32 @ (DECIMAL(9,4))"
  )
  refusesForms(DecimalsFitTheirPrecision, "DECIMAL(18, 4)", "int64 (DECIMAL(18,4))")(
    "fixed_len_byte_array(8) @ (DECIMAL(18,4))" -> "fixed_len_byte_array(8) (DECIMAL(18,4))",
    // Before it was widened it had this precision, but in int32.
    "int64 @ (DECIMAL(9,4))" -> "int64 (DECIMAL(9,4))"
  )
  acceptsForms(DecimalsFitTheirPrecision, "DECIMAL(38, 10)")(
    "fixed_len_byte_array(16) @ (DECIMAL(38,10))",
    "fixed_len_byte_array(9) @ (DECIMAL(19,10))",
    "int64 @ (DECIMAL(18,10))"
  )
  refusesForms(
    DecimalsFitTheirPrecision,
    "DECIMAL(38, 10)",
    "fixed_len_byte_array(16) (DECIMAL(38,10))"
  )(
    "fixed_len_byte_array(16) @ (DECIMAL(19,10))" -> "fixed_len_byte_array(16) (DECIMAL(19,10))",
    "binary @ (DECIMAL(38,10))" -> "binary (DECIMAL(38,10))"
  )

  acceptsForms(ValuesHaveTheirForm, "BOOLEAN")("boolean @")
  acceptsForms(ValuesHaveTheirForm, "INT")(
    "int32 @",
    "int32 @ (INTEGER(32,true))",
    "int32 @ (INTEGER(16,true))",
    "int32 @ (INTEGER(8,true))"
  )
  refusesForms(ValuesHaveTheirForm, "INT", "int32")(
    "int64 @" -> "int64",
    "int32 @ (INTEGER(32,false))" -> "int32 (INTEGER(32,false))",
    "int32 @ (DATE)" -> "int32 (DATE)"
  )
  acceptsForms(ValuesHaveTheirForm, "BIGINT")(
    "int64 @",
    "int64 @ (INTEGER(64,true))",
    "int32 @",
    "int32 @ (INTEGER(32,true))"
  )
  refusesForms(ValuesHaveTheirForm, "BIGINT", "int64")(
    "int64 @ (INTEGER(64,false))" -> "int64 (INTEGER(64,false))",
    "int32 @ (INTEGER(32,false))" -> "int32 (INTEGER(32,false))"
  )
  acceptsForms(ValuesHaveTheirForm, "FLOAT")("float @")
  refusesForms(ValuesHaveTheirForm, "FLOAT", "float")("double @" -> "double")
  acceptsForms(ValuesHaveTheirForm, "DOUBLE")("double @", "float @")
  // Iceberg v2 does not promote an int to a double.
  refusesForms(ValuesHaveTheirForm, "DOUBLE", "double")("int32 @" -> "int32")
  acceptsForms(ValuesHaveTheirForm, "STRING")("binary @ (STRING)")
  refusesForms(ValuesHaveTheirForm, "STRING", "binary (STRING)")(
    "binary @" -> "binary",
    "binary @ (JSON)" -> "binary (JSON)",
    "int32 @" -> "int32"
  )
  acceptsForms(ValuesHaveTheirForm, "BINARY")("binary @")
  refusesForms(ValuesHaveTheirForm, "BINARY", "binary")(
    "binary @ (STRING)" -> "binary (STRING)",
    "fixed_len_byte_array(4) @" -> "fixed_len_byte_array(4)"
  )
  acceptsForms(ValuesHaveTheirForm, "DATE")("int32 @ (DATE)")
  refusesForms(ValuesHaveTheirForm, "DATE", "int32 (DATE)")("int32 @" -> "int32")

  refuses(ValuesHaveTheirForm, "a repeated field")(flat)(file("repeated int32 col-1 = 1;")) {
    (
      "a",
      "is stored as repeated int32, not as int32",
      "col-1 is repeated int32 with the field id 1"
    )
  }
  refuses(ValuesHaveTheirForm, "a group in place of a value")(flat) {
    file("optional group col-1 = 1 { optional int32 x = 1; }")
  }(("a", "is stored as group, not as int32", "col-1 is group with the field id 1"))
  private val struct = CompliantTable.of("s STRUCT<x: INT>")
  refuses(ValuesHaveTheirForm, "a value in place of a struct")(struct) {
    file("optional int32 col-1 = 1;")
  }(("s", "is stored as int32, not as group", "col-1 is int32 with the field id 1"))
  refuses(ValuesHaveTheirForm, "a list in place of a struct")(struct) {
    file("optional group col-1 (LIST) = 1 { repeated group list { optional int32 element = 2; } }")
  }(
    (
      "s",
      "is stored as group (LIST), not as group",
      "col-1 is group (LIST) with the field id 1"
    )
  )
  accepts(ValuesHaveTheirForm, "a type that Iceberg does not have, which C7 tells of")(
    CompliantTable.of("a SMALLINT")
  )(file("optional int32 col-1 (INTEGER(16,true)) = 1;"))
  refuses(TimestampsAreMicroseconds, "INT96 at every depth")(
    CompliantTable.of("s STRUCT<t: TIMESTAMP>, m MAP<TIMESTAMP, ARRAY<TIMESTAMP>>")
  ) {
    file(
      "optional group col-1 = 1 { optional int96 col-2 = 2; }",
      "optional group col-3 (MAP) = 3 { repeated group key_value { required int96 key = 4;",
      "optional group value (LIST) = 5 { repeated group list { optional int96 element = 6; } } } }"
    )
  }(
    Seq(
      ("s.t", "col-1.col-2", 2),
      ("m.key", "col-3.key_value.key", 4),
      ("m.value.element", "col-3.key_value.value.list.element", 6)
    ).map { case (path, inFile, id) =>
      (
        path,
        "is stored as int96, not as int64 (TIMESTAMP(MICROS,true))",
        s"$inFile is int96 with the field id $id"
      )
    }: _*
  )
  refuses(TimestampsAreMicroseconds, "INT96 in a file without ids")(
    CompliantTable.of("a TIMESTAMP")
  ) {
    file("optional int96 a;")
  }(("a", "is stored as int96, not as int64 (TIMESTAMP(MICROS,true))", "a is int96"))

  // E5

  private def partitioned(dataType: String) =
    CompliantTable.of(s"a INT, p $dataType").copy(partitionColumns = Seq("p"))

  private def partitionFile(form: String) =
    file("optional int32 col-1 = 1;", s"optional ${form.replace("@", "col-2")} = 2;")

  accepts(PartitionColumnsAreStored, "a table that is not partitioned")(flat)(flatFile)
  refuses(PartitionColumnsAreStored, "a file without the partition column")(partitioned("INT")) {
    flatFile.withPartition("col-2" -> "7")
  }(("p", "is a partition column, but is not in the file", "7 in the log"))
  accepts(PartitionColumnsAreStored, "a partition column without an id, which E1f tells of")(
    partitioned("INT")
  )(file("optional int32 col-1 = 1;", "optional int32 col-2;").withPartition("col-2" -> "7"))
  accepts(PartitionColumnsAreStored, "a column of which no bounds are known")(partitioned("INT")) {
    partitionFile("int32 @").withPartition("col-2" -> "7").withUnknownValues("col-2")
  }
  accepts(PartitionColumnsAreStored, "a file without rows")(partitioned("INT")) {
    partitionFile("int32 @").withPartition("col-2" -> "7")
  }
  refuses(PartitionColumnsAreStored, "a row group with other values")(partitioned("INT")) {
    partitionFile("int32 @")
      .withPartition("col-2" -> "7")
      .withValues("col-2")(7, 7)
      .withValues("col-2")(7, 8)
  }(
    (
      "p",
      "is a partition column, but has other values than the log",
      "values from 7 to 8, 0 nulls of 2, 7 in the log"
    )
  )
  refuses(PartitionColumnsAreStored, "a null where the log has a value")(partitioned("INT")) {
    partitionFile("int32 @").withPartition("col-2" -> "7").withValues("col-2")(7, null)
  }(
    (
      "p",
      "is a partition column, but has other values than the log",
      "values from 7 to 7, 1 nulls of 2, 7 in the log"
    )
  )

  private val days = java.time.LocalDate.parse("2026-11-18").toEpochDay.toInt
  private val micros = 1_700_000_000_123_456L

  // A type, how it is stored, a value in the log, values with which it agrees, and others.
  private val partitionValues = Seq[(String, String, String, Seq[Any], Seq[Any])](
    ("INT", "int32 @", "-7", Seq(-7, -7), Seq(7)),
    ("INT", "int32 @", "", Seq(null, null), Seq(null, 0)),
    ("INT", "int32 @", null, Seq(null), Seq(0)),
    ("BIGINT", "int64 @", "5000000000", Seq(5000000000L), Seq(5L)),
    // From before the column was widened.
    ("BIGINT", "int32 @", "7", Seq(7), Seq(8)),
    ("BOOLEAN", "boolean @", "true", Seq(true), Seq(true, false)),
    ("FLOAT", "float @", "1.1", Seq(1.1f), Seq(1.2f)),
    ("FLOAT", "float @", "-0.0", Seq(0.0f), Seq(1.0f)),
    ("DOUBLE", "double @", "1.0E-5", Seq(1e-5), Seq(1e-4)),
    // Delta makes a double of the text, which is none of the floats in the file.
    ("DOUBLE", "float @", "1.5", Seq(1.5f), Seq(1.2f)),
    ("DOUBLE", "float @", "1.100000023841858", Seq(1.1f), Seq(1.2f)),
    ("DOUBLE", "float @", "-0.0", Seq(0.0f), Seq(1.0f)),
    ("DOUBLE", "float @", "1.1", Nil, Seq(1.1f)),
    ("DOUBLE", "double @", "Infinity", Seq(Double.PositiveInfinity), Seq(Double.NegativeInfinity)),
    ("DOUBLE", "double @", "NaN", Seq(Double.NaN), Seq(1.0)),
    ("DECIMAL(5, 2)", "int32 @ (DECIMAL(5,2))", "1.50", Seq(150), Seq(15)),
    ("DECIMAL(5, 2)", "int32 @ (DECIMAL(5,2))", "1.5", Seq(150), Seq(15)),
    ("DECIMAL(18, 2)", "int64 @ (DECIMAL(18,2))", "-1.50", Seq(-150L), Seq(150L)),
    (
      "DECIMAL(20, 2)",
      "fixed_len_byte_array(9) @ (DECIMAL(20,2))",
      "-1.50",
      Seq(Seq(-1, -1, -1, -1, -1, -1, -1, -1, 0x6a)),
      Seq(Seq(0, 0, 0, 0, 0, 0, 0, 0, 0x6a))
    ),
    ("DATE", "int32 @ (DATE)", "2026-11-18", Seq(days), Seq(days + 1)),
    (
      "TIMESTAMP",
      "int64 @ (TIMESTAMP(MICROS,true))",
      "2023-11-14T22:13:20.123456Z",
      Seq(micros),
      Seq(micros + 1)
    ),
    (
      "TIMESTAMP_NTZ",
      "int64 @ (TIMESTAMP(MICROS,false))",
      "2023-11-14 22:13:20.123456",
      Seq(micros),
      Seq(micros + 1)
    ),
    ("STRING", "binary @ (STRING)", "Zürich 北", Seq("Zürich 北"), Seq("Zürich 北", "Zürich 南")),
    ("STRING", "binary @ (STRING)", "a", Seq("a"), Seq("a", "b")),
    ("STRING", "binary @ (STRING)", "", Seq(null), Seq("")),
    ("BINARY", "binary @", "ab", Seq(Seq(0x61, 0x62)), Seq(Seq(0x61, 0x63)))
  )

  for ((dataType, form, logged, same, other) <- partitionValues) {
    val shown = if (logged == null) "null" else s"'$logged'"
    def partition(values: Seq[Any]) =
      partitionFile(form).withPartition("col-2" -> logged).withValues("col-2")(values: _*)
    accepts(PartitionColumnsAreStored, s"${form.split(' ').head} for the $dataType $shown")(
      partitioned(dataType)
    )(partition(same))
    test(s"E5 refuses other ${form.split(' ').head} for the $dataType $shown") {
      assert(PartitionColumnsAreStored.check(partitioned(dataType), partition(other)).size == 1)
    }
  }

  accepts(PartitionColumnsAreStored, "a timestamp in the zone of its writer, which D4 tells of")(
    partitioned("TIMESTAMP")
  ) {
    partitionFile("int64 @ (TIMESTAMP(MICROS,true))")
      .withPartition("col-2" -> "2023-11-14 22:13:20.123456")
      .withValues("col-2")(micros + 3_600_000_000L)
  }
  accepts(PartitionColumnsAreStored, "bytes that were lost in the log")(partitioned("BINARY")) {
    partitionFile("binary @")
      .withPartition("col-2" -> "\uFFFD")
      .withValues("col-2")(Seq(0xff))
  }
  accepts(PartitionColumnsAreStored, "bounds that were cut off")(partitioned("STRING")) {
    partitionFile("binary @ (STRING)")
      .withPartition("col-2" -> "abcdef")
      .withBounds("col-2")("abc".getBytes, "abd".getBytes)
  }
  test("E5 refuses bounds that were cut off, but not from this value") {
    val file = partitionFile("binary @ (STRING)").withPartition("col-2" -> "xyz")
    Seq("abc" -> "abd", "xa" -> "xz", "xyz" -> "xyzz", "xy" -> "xya").foreach { case (min, max) =>
      val cut = file.withBounds("col-2")(min.getBytes, max.getBytes)
      assert(PartitionColumnsAreStored.check(partitioned("STRING"), cut).size == 1, (min, max))
    }
  }
  accepts(PartitionColumnsAreStored, "a file that the log gives no values, which D2 tells of")(
    partitioned("INT")
  )(partitionFile("int32 @").withValues("col-2")(1, 2).copy(partitionValues = null))
  accepts(PartitionColumnsAreStored, "values in a wrong form, which E4 tells of")(
    partitioned("TIMESTAMP")
  ) {
    partitionFile("int64 @ (TIMESTAMP(MILLIS,true))")
      .withPartition("col-2" -> "2023-11-14T22:13:20.123456Z")
      .withValues("col-2")(micros / 1000)
  }

  // E6

  private val list = CompliantTable.of("l ARRAY<INT>")
  private val map = CompliantTable.of("m MAP<STRING, INT>")
  private val noList = "is not stored as a list of three levels"
  private val noMap = "is not stored as a map of three levels"

  for (
    (what, form) <- Seq(
      "two levels" -> "optional group col-1 (LIST) = 1 { repeated int32 array = 2; }",
      "the names of old Spark" ->
        "optional group col-1 (LIST) = 1 { repeated group bag { optional int32 array = 2; } }",
      "no annotation" ->
        "optional group col-1 = 1 { repeated group list { optional int32 element = 2; } }",
      "two fields" -> ("optional group col-1 (LIST) = 1 " +
        "{ repeated group list { optional int32 element = 2; optional int32 x = 3; } }"),
      "a middle that is not repeated" ->
        "optional group col-1 (LIST) = 1 { optional group list { optional int32 element = 2; } }",
      "a repeated element" ->
        "optional group col-1 (LIST) = 1 { repeated group list { repeated int32 element = 2; } }",
      "one level" -> "repeated int32 col-1 = 1;"
    )
  )
    test(s"E6 refuses a list of $what") {
      val found = CollectionsHaveThreeLevels.check(list, file(form))
      assert(found.map(_.location) == Seq(Location.Column(Seq("l"), Some(1), Some("col-1"))))
      assert(found.map(_.parameters("found")) == Seq(s"column l $noList"))
      assert(found.head.parameters("detail").startsWith(form.takeWhile(_ != '(').trim.take(15)))
    }

  for (
    (what, form) <- Seq(
      "another annotation" -> ("optional group col-1 (LIST) = 1 { repeated group key_value { " +
        "required binary key (STRING) = 2; optional int32 value = 3; } }"),
      "another name in the middle" -> ("optional group col-1 (MAP) = 1 " +
        "{ repeated group map { required binary key (STRING) = 2; optional int32 value = 3; } }"),
      "the value first" -> ("optional group col-1 (MAP) = 1 { repeated group key_value { " +
        "optional int32 value = 3; required binary key (STRING) = 2; } }"),
      "no value" -> ("optional group col-1 (MAP) = 1 " +
        "{ repeated group key_value { required binary key (STRING) = 2; } }")
    )
  )
    refuses(CollectionsHaveThreeLevels, s"a map of $what")(map)(file(form)) {
      ("m", noMap, schema(form).getType(0).toString.replaceAll("\\s+", " "))
    }

  // E9

  for (name <- Seq("_change_type", "_row-id-col-7", "unheard"))
    refuses(NoOtherColumns, s"the column $name")(flat) {
      file("optional int32 col-1 = 1;", s"optional binary $name (STRING);")
    }(
      (
        "",
        s"it has the column ${SchemaNode.sqlPath(Seq(name))}, which is not a column of the table",
        s"$name is binary (STRING)"
      )
    )
  refuses(NoOtherColumns, "an id that the table never gave out")(flat) {
    file("optional int32 col-1 = 1;", "optional int32 x = 2;")
  }(
    (
      "",
      "it has the column x with the field id 2, which the table never assigned",
      "x is int32 with the field id 2"
    )
  )

  // E10

  private val required = CompliantTable.of(
    "a INT NOT NULL, s STRUCT<x: INT NOT NULL>, r STRUCT<y: INT> NOT NULL"
  )
  private val optional = file(
    "optional int32 col-1 = 1;",
    "optional group col-2 = 2 { optional int32 col-3 = 3; }",
    "optional group col-4 = 4 { optional int32 col-5 = 5; }"
  )

  accepts(RequiredColumnsHaveNoNulls, "columns without nulls")(required) {
    optional
      .withValues("col-1")(1, 2)
      .withValues("col-2", "col-3")(1)
      .withValues("col-4", "col-5")(1)
  }
  accepts(RequiredColumnsHaveNoNulls, "a writer that tells nothing of nulls")(required) {
    optional.withUnknownValues("col-1").withUnknownValues("col-4", "col-5")
  }
  accepts(RequiredColumnsHaveNoNulls, "nulls that may be those of the struct around")(required) {
    optional.withValues("col-2", "col-3")(null, 1).withValues("col-4", "col-5")(null)
  }
  accepts(RequiredColumnsHaveNoNulls, "nulls that are those of the struct around")(required) {
    optional.withLevels("col-2", "col-3")(2, 0, 1).withLevels("col-4", "col-5")(0, 2, 1)
  }
  refuses(RequiredColumnsHaveNoNulls, "a column with nulls in two row groups")(required) {
    optional.withValues("col-1")(1, null).withValues("col-1")(null, null)
  }(("a", "is required, but has nulls", "at least 3 nulls"))
  refuses(RequiredColumnsHaveNoNulls, "a nested field that is null where its struct is not")(
    required
  )(optional.withLevels("col-2", "col-3")(0, 2, 1))(
    ("s.x", "is required, but has nulls", "at least 2 nulls")
  )
  refuses(RequiredColumnsHaveNoNulls, "a struct with nulls")(required) {
    optional.withLevels("col-4", "col-5")(1, 2, 0)
  }(("r", "is required, but has nulls", "at least 1 nulls"))
  refuses(RequiredColumnsHaveNoNulls, "null elements and values that cannot be null") {
    val schema = StructType(
      Seq(
        StructField("l", ArrayType(IntegerType, containsNull = false)),
        StructField("m", MapType(IntegerType, IntegerType, valueContainsNull = false))
      )
    )
    CompliantTable.of(CompliantTable.withIds(schema))
  } {
    file(
      "optional group col-1 (LIST) = 1 { repeated group list { optional int32 element = 2; } }",
      "optional group col-3 (MAP) = 3 { repeated group key_value {",
      "required int32 key = 4; optional int32 value = 5; } }"
    ).withLevels("col-1", "list", "element")(1, 1, 2, 1)
      .withLevels("col-3", "key_value", "value")(1, 1, 3, 1)
  }(
    ("l.element", "is required, but has nulls", "at least 2 nulls"),
    ("m.value", "is required, but has nulls", "at least 3 nulls")
  )
  accepts(RequiredColumnsHaveNoNulls, "a missing partition column, which E5 tells of")(
    CompliantTable.of("a INT, p INT NOT NULL").copy(partitionColumns = Seq("p"))
  )(flatFile)

  // E11

  private val dated = CompliantTable.of("d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, i INT")
  private val daysFile = file(
    "optional int32 col-1 (DATE) = 1;",
    "optional int64 col-2 (TIMESTAMP(MICROS,true)) = 2;",
    "optional int64 col-3 (TIMESTAMP(MICROS,false)) = 3;",
    "optional int32 col-4 = 4;"
  )
  private val old = daysFile
    .withValues("col-1")(-171000, 0)
    .withValues("col-2")(-2300000000000000L, 0L)
    .withValues("col-3")(-2300000000000000L, 0L)
    .withValues("col-4")(-171000)
  private def saying(file: DataFile, keys: (String, String)*) =
    file.withFooter(_.copy(keys = keys.toMap))
  private val legacy =
    "is stored in the Julian calendar, which Delta readers convert and Iceberg readers do not"

  for (
    (what, keys) <- Seq(
      "nobody" -> Nil,
      "Spark 3" -> Seq("org.apache.spark.version" -> "3.0.0"),
      "Spark 4 with timestamps of 96 bits" -> Seq(
        "org.apache.spark.version" -> "4.1.3",
        "org.apache.spark.legacyINT96" -> ""
      ),
      "Hive" -> Seq("writer.date.proleptic" -> "true", "writer.time.zone" -> "UTC"),
      "an unknown Spark" -> Seq("org.apache.spark.version" -> "x")
    )
  ) accepts(DaysAreGregorian, s"early days of $what")(dated)(saying(old, keys: _*))

  for (
    ((key, value), writer) <- Seq(
      ("org.apache.spark.legacyDateTime" -> "") -> "with org.apache.spark.legacyDateTime",
      ("org.apache.spark.version" -> "2.4.8") -> "by Spark 2.4.8",
      ("writer.date.proleptic" -> "false") -> "with writer.date.proleptic = false"
    )
  ) {
    refuses(DaysAreGregorian, s"early days of $key $value")(dated)(saying(old, key -> value))(
      ("d", legacy, s"from 1501-10-27, written $writer"),
      ("t", legacy, s"from 1897-02-11T15:06:40.000000+0000, written $writer")
    )
    accepts(DaysAreGregorian, s"late days of $key $value")(dated) {
      saying(
        daysFile.withValues("col-1")(-100000).withValues("col-2")(0L).withValues("col-1")(null),
        key -> value
      )
    }
    refuses(DaysAreGregorian, s"unknown days of $key $value")(dated) {
      saying(daysFile.withUnknownValues("col-1"), key -> value)
    }(("d", legacy, s"written $writer"))
  }

  test("a table without ids gets everything else that is wrong with its files") {
    val plain = TableState(
      "db.t",
      Lifecycle.Enabling,
      ProtocolState(1, 2, None, None),
      Map.empty,
      StructType.fromDDL("t TIMESTAMP, l ARRAY<INT>, p INT"),
      Seq("p"),
      V1.contract
    )
    val old = file(
      "optional int96 t;",
      "optional group l (LIST) { repeated group bag { optional int32 array; } }"
    ).withPartition("p" -> "1")
    assert(V1.rules.check(plain, old).map(_.rule.id).toSeq == Seq("E1f", "E4", "E5", "E6"))
  }

  test("each rule has the remedy of its violations") {
    assert(contentRules.map(_.remedy(byName).text).distinct == Seq(copy))
  }

  test("no copy is proposed of values that Delta reads as null") {
    val history = "DESCRIBE HISTORY db.t"
    assert(
      contentRules.filter(_.remedy(flat).text == history) == Seq(FooterRules.FieldsHaveTheirIds)
    )
    assert(contentRules.map(_.remedy(flat).text).distinct.toSet == Set(copy, history))
  }

  private def byName: TableState =
    flat.copy(properties = flat.properties + ("delta.columnMapping.mode" -> "name"))
}
