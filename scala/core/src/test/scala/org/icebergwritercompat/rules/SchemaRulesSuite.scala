package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.model.Location
import org.icebergwritercompat.rules.CompliantTable._
import org.icebergwritercompat.rules.SchemaRules._

class SchemaRulesSuite extends RuleSuite {

  acceptsCompliantTables(
    FieldsHaveIdAndPhysicalName,
    PhysicalNameIsColId,
    IdsAreUnique,
    CollectionsHaveNestedIds,
    TypesAreSupported
  )

  private val copy = "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
    "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
  private val look = "DESCRIBE HISTORY db.t"
  private val idKey = "delta.columnMapping.id"
  private val nameKey = "delta.columnMapping.physicalName"
  private val nestedKey = "delta.columnMapping.nested.ids"

  private def missing(location: Location, column: String, key: String) =
    expect("MISSING_COLUMN_MAPPING_METADATA", location, if (key == nestedKey) copy else look)(
      "column" -> column,
      "key" -> key
    )

  private def broken(shape: Shape)(change: StructField => StructField): TableState =
    CompliantTable.of(changed(shape.schema, shape.path)(change))

  for (shape <- shapes) {
    val column = shape.sqlPath
    val name = s"col-${shape.id}"

    // C1
    refuses(FieldsHaveIdAndPhysicalName, s"a field without id in ${shape.name}") {
      broken(shape)(withoutId)
    }(missing(Location.Column(shape.path, None, Some(name)), column, idKey))
    refuses(FieldsHaveIdAndPhysicalName, s"a field without physical name in ${shape.name}") {
      broken(shape)(withoutName)
    }(missing(Location.Column(shape.path, Some(shape.id), None), column, nameKey))
    refuses(FieldsHaveIdAndPhysicalName, s"a field with neither in ${shape.name}") {
      broken(shape)(f => withoutId(withoutName(f)))
    }(missing(Location.Column(shape.path, None, None), column, s"$idKey and $nameKey"))

    // C2
    Seq(
      s"col-${shape.id + 1}",
      s"COL-${shape.id}",
      s"col-0${shape.id}",
      s"col-${shape.id} ",
      shape.path.last,
      "col-6b29fc40-ca47-1067-b31d-00dd010662da"
    ).foreach { physical =>
      refuses(PhysicalNameIsColId, s"the physical name '$physical' in ${shape.name}") {
        broken(shape)(named(physical))
      } {
        expect(
          "FIELD_ID_DOES_NOT_MATCH_PHYSICAL_NAME",
          Location.Column(shape.path, Some(shape.id), Some(physical)),
          copy
        )(
          "column" -> column,
          "id" -> shape.id.toString,
          "physicalName" -> physical,
          "required" -> name
        )
      }
    }
    // What is not there is C1's business.
    passes(PhysicalNameIsColId, s"a field without id in ${shape.name}")(broken(shape)(withoutId))

    // C3
    Seq(0L, -1L, 2147483448L, Long.MaxValue).foreach { id =>
      refuses(IdsAreUnique, s"the id $id in ${shape.name}")(broken(shape)(withId(id))) {
        expect("COLUMN_ID_OUT_OF_RANGE", Location.Column(shape.path, Some(id), Some(name)), copy)(
          "column" -> column,
          "id" -> id.toString,
          "highest" -> "2147483447"
        )
      }
    }
    passes(IdsAreUnique, s"the highest id there may be in ${shape.name}") {
      broken(shape)(withId(2147483447L))
    }
    // The root's id is 1 in every shape.
    refuses(IdsAreUnique, s"an id given twice in ${shape.name}")(broken(shape)(withId(1))) {
      val root = shape.schema.head.name
      expect("DUPLICATE_COLUMN_ID", Location.Column(shape.path, Some(1), Some(name)), copy)(
        "id" -> "1",
        "columns" -> s"$root, $column"
      )
    }
  }

  refuses(IdsAreUnique, "an element with the id of its list") {
    CompliantTable.of(
      changed(withIds(StructType.fromDDL("l ARRAY<INT>")), Seq("l"))(
        withNestedIds("col-1.element" -> 1L)
      )
    )
  } {
    expect("DUPLICATE_COLUMN_ID", Location.Column(Seq("l", "element"), Some(1), None), copy)(
      "id" -> "1",
      "columns" -> "l, l.element"
    )
  }
  refuses(IdsAreUnique, "a value with the id of a column elsewhere") {
    val schema = withIds(StructType.fromDDL("a INT, m MAP<INT, INT>"))
    CompliantTable.of(
      changed(schema, Seq("m"))(withNestedIds("col-2.key" -> 3L, "col-2.value" -> 1L))
    )
  } {
    expect("DUPLICATE_COLUMN_ID", Location.Column(Seq("m", "value"), Some(1), None), copy)(
      "id" -> "1",
      "columns" -> "a, m.value"
    )
  }

  // C5: schema, the field that holds the ids, what is done to it, and the nodes left without.
  private type Case = (String, String, Seq[String], StructField => StructField, Seq[Seq[String]])
  private val nestedCases: Seq[Case] = Seq(
    ("a list", "l ARRAY<INT>", Seq("l"), withoutNestedIds, Seq(Seq("l", "element"))),
    (
      "a map",
      "m MAP<INT, STRING>",
      Seq("m"),
      withoutNestedIds,
      Seq(Seq("m", "key"), Seq("m", "value"))
    ),
    (
      "a map's value",
      "m MAP<INT, STRING>",
      Seq("m"),
      withNestedIds("col-1.key" -> 2L),
      Seq(Seq("m", "value"))
    ),
    (
      "a list in a struct",
      "s STRUCT<l: ARRAY<INT>>",
      Seq("s", "l"),
      withoutNestedIds,
      Seq(Seq("s", "l", "element"))
    ),
    (
      "the inner one of two lists",
      "l ARRAY<ARRAY<INT>>",
      Seq("l"),
      withNestedIds("col-1.element" -> 2L),
      Seq(Seq("l", "element", "element"))
    ),
    (
      "a list in a map's value",
      "m MAP<INT, ARRAY<INT>>",
      Seq("m"),
      withNestedIds("col-1.key" -> 2L, "col-1.value" -> 3L),
      Seq(Seq("m", "value", "element"))
    ),
    (
      "a list in a list's struct",
      "l ARRAY<STRUCT<n: ARRAY<INT>>>",
      Seq("l", "element", "n"),
      withoutNestedIds,
      Seq(Seq("l", "element", "n", "element"))
    ),
    (
      "a list whose ids stand under the logical name",
      "l ARRAY<INT>",
      Seq("l"),
      withNestedIds("l.element" -> 2L),
      Seq(Seq("l", "element"))
    ),
    (
      "a list whose ids stand under the old key",
      "l ARRAY<INT>",
      Seq("l"),
      withNestedIdsUnder("parquet.field.nested.ids", "col-1.element" -> 2L),
      Seq(Seq("l", "element"))
    )
  )

  for ((what, ddl, path, change, places) <- nestedCases)
    refuses(CollectionsHaveNestedIds, s"$what without nested ids") {
      CompliantTable.of(changed(withIds(StructType.fromDDL(ddl)), path)(change))
    }(places.map { place =>
      missing(Location.Column(place, None, None), place.mkString("."), nestedKey)
    }: _*)
  passes(CollectionsHaveNestedIds, "an empty map of nested ids on a plain field") {
    CompliantTable.of(changed(withIds(StructType.fromDDL("a INT")), Seq("a"))(withNestedIds()))
  }

  // C7
  private val unsupported: Seq[(DataType, String)] = Seq(
    ByteType -> "INT",
    ShortType -> "INT",
    NullType -> "STRING",
    VariantType -> "STRING",
    CalendarIntervalType -> "STRING",
    YearMonthIntervalType(0, 1) -> "STRING",
    DayTimeIntervalType(0, 3) -> "STRING",
    StringType("UTF8_LCASE") -> "STRING"
  )

  for ((dataType, nearest) <- unsupported; shape <- shapes)
    refuses(TypesAreSupported, s"${dataType.sql} in ${shape.name}") {
      broken(shape)(_.copy(dataType = dataType))
    } {
      expect(
        "UNSUPPORTED_DATA_TYPE",
        shape.location,
        shape.copyWith(nearest)
      )("column" -> shape.sqlPath, "type" -> dataType.sql, "nearest" -> nearest)
    }

  test("C7 finds an element, a key and a value by themselves") {
    val table = CompliantTable.of(
      "l ARRAY<SMALLINT>, m MAP<TINYINT, INTERVAL DAY TO SECOND>, n ARRAY<MAP<INT, SMALLINT>>"
    )
    assert(
      TypesAreSupported.check(table).map(v => v.parameters("column") -> v.parameters("type")) ==
        Seq(
          "l.element" -> "SMALLINT",
          "m.key" -> "TINYINT",
          "m.value" -> "INTERVAL DAY TO SECOND",
          "n.element.value" -> "SMALLINT"
        )
    )
  }
}
