package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{ChangeKind, ProtocolState, TableChange, TableState}
import org.icebergwritercompat.contract.ChangeKind._
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.{Location, SchemaNode}
import org.icebergwritercompat.rules.ChangeRules._
import org.icebergwritercompat.rules.CompliantTable._
import org.icebergwritercompat.rules.Schemas._

class ChangeRulesSuite extends StepSuite {

  private val kinds: Seq[ChangeKind] = Seq(Ordinary, Replacing, Restoring, DroppingFeature)
  private val enabled = "delta.enableIcebergWriterCompatV1"
  private val maxColumnId = "delta.columnMapping.maxColumnId"

  private def having(table: TableState, properties: (String, String)*): TableState =
    table.copy(properties = table.properties ++ properties)

  private def supporting(table: TableState, more: String*): TableState =
    table.copy(protocol = ProtocolState(2, 7, None, Some(features ++ more)))

  /** The step from `before` to a table with another schema, which has ids up to `max`. */
  private def to(before: TableState, schema: StructType, kind: ChangeKind, max: Long): TableChange =
    TableChange(
      before,
      having(before, maxColumnId -> max.toString)
        .copy(schema = schema, previous = Some(before)),
      kind
    )

  private def to(before: TableState, schema: StructType, kind: ChangeKind): TableChange =
    to(before, schema, kind, before.maxColumnId)

  private def badChange(
      location: Location,
      fix: String
  )(column: String, change: String, reason: String): Expected =
    expect("INCOMPATIBLE_SCHEMA_CHANGE", location, fix)(
      "column" -> column,
      "change" -> change,
      "reason" -> reason
    )

  private def adding(column: String) = {
    // Delta adds a column of this type to a table that supports it only.
    val supporting =
      if (!column.contains("TIMESTAMP_NTZ")) ""
      else "ALTER TABLE db.t SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')\n"
    s"${supporting}ALTER TABLE db.t ADD COLUMNS ($column)"
  }

  // What a table in its next version is compared with is itself.
  for {
    shape <- shapes
    kind <- kinds
    rule <- V1.rules.change
  } passes(rule, s"no change at all, $kind, with ${shape.name}") {
    val table = CompliantTable.of(shape.schema)
    TableChange(table, table, kind)
  }

  // B13+
  private val formats = "delta.universalFormat.enabledFormats"
  for (shape <- shapes; kind <- kinds) {
    val table = CompliantTable.of(shape.schema)
    val named = having(table, formats -> "hudi,iceberg")
    refuses(UniFormStaysOff, s"$formats naming iceberg, $kind, with ${shape.name}") {
      TableChange(table, named, kind)
    } {
      expect(
        "WRONG_REQUIRED_TABLE_PROPERTY",
        Location.Property(formats, Some("hudi,iceberg")),
        "ALTER TABLE db.t SET TBLPROPERTIES ('icebergWriterCompat.publish' = 'true')"
      )(
        "property" -> formats,
        "value" -> "hudi,iceberg",
        "required" -> "a list without iceberg",
        "reason" -> ("UniForm and this project would both write Iceberg metadata of the table; " +
          "to publish each commit, use icebergWriterCompat.publish")
      )
    }
    passes(UniFormStaysOff, s"$formats that named iceberg before, $kind, with ${shape.name}") {
      TableChange(named, having(table, formats -> "iceberg"), kind)
    }
  }

  // B1+
  for (shape <- shapes; kind <- kinds) {
    val table = CompliantTable.of(shape.schema)
    Seq(
      "unset" -> None,
      "set to 'false'" -> Some("false"),
      "set to 'no'" -> Some("no"),
      "set to ''" -> Some("")
    ).foreach { case (change, value) =>
      refuses(SwitchedOffWithTheFeatureOnly, s"the property $change, $kind, with ${shape.name}") {
        val after = table.copy(properties = table.properties - enabled ++ value.map(enabled -> _))
        TableChange(table, after, kind)
      } {
        expect(
          "DISABLING_REQUIRED_TABLE_FEATURE",
          Location.Property(enabled, value),
          "ALTER TABLE db.t DROP FEATURE icebergWriterCompatV1"
        )("property" -> enabled, "change" -> change)
      }
    }
  }
  passes(SwitchedOffWithTheFeatureOnly, "a table that leaves the feature whole") {
    val table = CompliantTable.of("a INT")
    val without = ProtocolState(2, 7, None, Some(features - "icebergWriterCompatV1"))
    val after = table.copy(protocol = without, properties = table.properties - enabled)
    TableChange(table, after, DroppingFeature)
  }
  passes(SwitchedOffWithTheFeatureOnly, "the value in other letters") {
    val table = CompliantTable.of("a INT")
    TableChange(table, having(table, enabled -> " TRUE "), Ordinary)
  }

  // B4+
  private val twice = "ids up to 20 are already assigned, so an id could be assigned twice"
  for (shape <- shapes; kind <- kinds) {
    val table = having(CompliantTable.of(shape.schema), maxColumnId -> "20")
    Seq("19" -> "19", "0" -> "0", "many" -> "0").foreach { case (value, read) =>
      refuses(MaxColumnIdNeverFalls, s"a fall from 20 to $value, $kind, with ${shape.name}") {
        TableChange(table, having(table, maxColumnId -> value), kind)
      } {
        expect(
          "WRONG_MAX_COLUMN_ID",
          Location.Property(maxColumnId, Some(read)),
          "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
            "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
        )("property" -> maxColumnId, "value" -> read, "reason" -> twice)
      }
    }
    Seq("20", "21", "2147483447").foreach { value =>
      passes(MaxColumnIdNeverFalls, s"20 and then $value, $kind, with ${shape.name}") {
        TableChange(table, having(table, maxColumnId -> value), kind)
      }
    }
  }

  // A9
  for (shape <- shapes; kind <- kinds) {
    val before = supporting(CompliantTable.of(shape.schema), "clustering", "domainMetadata")
    val lost = TableChange(before, supporting(before, "domainMetadata"), kind)
    if (kind == DroppingFeature)
      passes(FeaturesStay, s"DROP FEATURE clustering with ${shape.name}")(lost)
    else
      refuses(FeaturesStay, s"the loss of clustering, $kind, with ${shape.name}")(lost) {
        expect(
          "MISSING_REQUIRED_TABLE_FEATURE",
          Location.Feature("clustering"),
          "ALTER TABLE db.t DROP FEATURE clustering"
        )("feature" -> "clustering", "neededBy" -> "the table's history")
      }
    passes(FeaturesStay, s"a feature more, $kind, with ${shape.name}") {
      TableChange(before, supporting(before, "clustering", "domainMetadata", "appendOnly"), kind)
    }
  }
  refuses(FeaturesStay, "the loss of two features for readers, each by its name") {
    val table = CompliantTable.of("a INT")
    def three(more: Set[String]) = table.copy(protocol =
      ProtocolState(3, 7, Some(more + "columnMapping"), Some(features ++ more))
    )
    TableChange(three(Set("v2Checkpoint", "timestampNtz")), three(Set.empty), Ordinary)
  }(Seq("timestampNtz", "v2Checkpoint").map { feature =>
    expect(
      "MISSING_REQUIRED_TABLE_FEATURE",
      Location.Feature(feature),
      s"ALTER TABLE db.t DROP FEATURE $feature"
    )("feature" -> feature, "neededBy" -> "the table's history")
  }: _*)

  // C4: ids up to 20 have been given out, and most of their columns dropped again.
  for (shape <- shapes) {
    val table = having(CompliantTable.of(shape.schema), maxColumnId -> "20")
    val parent = shape.path.init
    val path = parent :+ "n"
    def added(id: Long) = plus(table.schema, parent, field("n", DateType, id))

    for (kind <- kinds) {
      passes(NewColumnsHaveNewIds, s"a new id, $kind, in ${shape.name}") {
        to(table, added(21), kind, max = 21)
      }
      Seq(20L, 19L).foreach { id =>
        val change = to(table, added(id), kind)
        val what = s"the given-out id $id, $kind, in ${shape.name}"
        if (kind == Restoring) passes(NewColumnsHaveNewIds, what)(change)
        else
          refuses(NewColumnsHaveNewIds, what)(change) {
            badChange(
              Location.Column(path, Some(id), Some(s"col-$id")),
              adding(s"${path.mkString(".")} DATE")
            )(
              path.mkString("."),
              s"is new but has the id $id",
              "ids up to 20 are already assigned, and values of an older column would show up " +
                "in it"
            )
          }
      }
    }
    passes(NewColumnsHaveNewIds, s"a column that is gone from ${shape.name}") {
      to(table, minus(table.schema, shape.path), Ordinary)
    }
    // A name says nothing: the id does.
    passes(NewColumnsHaveNewIds, s"another name for a column in ${shape.name}") {
      to(table, changed(table.schema, shape.path)(_.copy(name = "n")), Ordinary)
    }
    refuses(NewColumnsHaveNewIds, s"a column under the name of a dropped one in ${shape.name}") {
      to(table, changed(table.schema, shape.path)(f => withId(20)(named("col-20")(f))), Ordinary)
    } {
      val beside = shape.path match {
        case "m" +: "key" +: _ => "m_2 MAP<STRUCT<x: INT>, INT>"
        case way               => s"${way.mkString(".")}_2 ${typeOf(shape).sql}"
      }
      badChange(Location.Column(shape.path, Some(20), Some("col-20")), adding(beside))(
        shape.sqlPath,
        "is new but has the id 20",
        "ids up to 20 are already assigned, and values of an older column would show up in it"
      )
    }
  }
  refuses(NewColumnsHaveNewIds, "old ids below a new column") {
    val table = having(CompliantTable.of("a INT"), maxColumnId -> "20")
    val list = withNestedIds("col-21.element" -> 7L)(field("l", ArrayType(IntegerType), 21))
    to(table, table.schema.add(list), Ordinary, max = 21)
  } {
    badChange(Location.Column(Seq("l", "element"), Some(7), None), adding("l ARRAY<INT>"))(
      "l.element",
      "is new but has the id 7",
      "ids up to 20 are already assigned, and values of an older column would show up in it"
    )
  }

  // C6
  for (kind <- kinds) {
    Seq[
      (String, Seq[String], Seq[(String, Long)], Seq[String], Option[Long], Option[Long], String)
    ](
      (
        "l ARRAY<INT>",
        Seq("l"),
        Seq("col-1.element" -> 9L),
        Seq("l", "element"),
        Some(2),
        Some(9),
        "l_2 ARRAY<INT>"
      ),
      ("l ARRAY<INT>", Seq("l"), Nil, Seq("l", "element"), Some(2), None, "l_2 ARRAY<INT>"),
      (
        "m MAP<INT, DATE>",
        Seq("m"),
        Seq("col-1.key" -> 9L, "col-1.value" -> 3L),
        Seq("m", "key"),
        Some(2),
        Some(9),
        "m_2 MAP<INT, DATE>"
      ),
      (
        "s STRUCT<l: ARRAY<ARRAY<INT>>>",
        Seq("s", "l"),
        Seq("col-2.element" -> 3L, "col-2.element.element" -> 9L),
        Seq("s", "l", "element", "element"),
        Some(4),
        Some(9),
        "s.l_2 ARRAY<ARRAY<INT>>"
      ),
      (
        "m MAP<INT, STRUCT<l: ARRAY<INT>>>",
        Seq("m", "value", "l"),
        Seq("col-4.element" -> 9L),
        Seq("m", "value", "l", "element"),
        Some(5),
        Some(9),
        "m.value.l_2 ARRAY<INT>"
      )
    ).foreach { case (ddl, holder, ids, path, was, is, beside) =>
      refuses(NestedIdsStay, s"${path.mkString(".")} with the id $is, $kind") {
        val table = CompliantTable.of(ddl)
        to(table, changed(table.schema, holder)(withNestedIds(ids: _*)), kind, max = 9)
      } {
        badChange(Location.Column(path, is, None), adding(beside))(
          path.mkString("."),
          s"has the id ${is.getOrElse("none")} instead of ${was.get}",
          "Iceberg identifies it only by its id"
        )
      }
    }
    passes(NestedIdsStay, s"a renamed list, $kind") {
      val table = CompliantTable.of("l ARRAY<ARRAY<INT>>")
      to(table, changed(table.schema, Seq("l"))(_.copy(name = "n")), kind)
    }
    passes(NestedIdsStay, s"a new list under the name of an old one, $kind") {
      val table = CompliantTable.of("l ARRAY<INT>")
      val list = withNestedIds("col-3.element" -> 4L)(field("l", ArrayType(IntegerType), 3))
      to(table, StructType(Seq(list)), kind, max = 4)
    }
  }

  // C14
  private def typeOf(shape: Shape): DataType =
    SchemaNode.flatten(shape.schema).find(_.path == shape.path).get.dataType

  private val noPromotion = "Iceberg format version 2 has no such type promotion"
  private val noWidening =
    "the table does not support typeWidening, without which Delta cannot read the older files"
  private val widen = "ALTER TABLE db.t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"

  private def beside(shape: Shape, dataType: DataType): String = shape.path match {
    case "m" +: "key" +: _ => adding(s"m_2 MAP<STRUCT<x: ${dataType.sql}>, INT>")
    case path              => adding(s"${path.mkString(".")}_2 ${dataType.sql}")
  }

  private def struct(fields: StructField*): DataType = StructType(fields)
  private val inner = field("y", IntegerType, 21)
  private val illegal: Seq[(DataType, DataType)] = Seq(
    IntegerType -> DoubleType,
    IntegerType -> StringType,
    IntegerType -> DecimalType(10, 0),
    IntegerType -> DateType,
    LongType -> IntegerType,
    LongType -> DoubleType,
    LongType -> TimestampType,
    DoubleType -> FloatType,
    FloatType -> DecimalType(10, 2),
    DecimalType(10, 2) -> DecimalType(12, 4),
    DecimalType(10, 2) -> DecimalType(9, 2),
    DecimalType(10, 2) -> DoubleType,
    DateType -> TimestampType,
    DateType -> TimestampNTZType,
    TimestampType -> TimestampNTZType,
    TimestampNTZType -> TimestampType,
    StringType -> BinaryType,
    BinaryType -> StringType,
    BooleanType -> IntegerType,
    struct(inner) -> IntegerType,
    IntegerType -> struct(inner),
    ArrayType(IntegerType) -> IntegerType,
    ArrayType(IntegerType) -> struct(inner),
    MapType(IntegerType, IntegerType) -> ArrayType(IntegerType)
  )
  private val legal: Seq[(DataType, DataType)] = Seq(
    IntegerType -> LongType,
    FloatType -> DoubleType,
    DecimalType(10, 2) -> DecimalType(12, 2),
    DecimalType(10, 2) -> DecimalType(38, 2)
  )

  for (shape <- shapes) {
    def step(from: DataType, to_ : DataType, kind: ChangeKind, features: String*) = {
      def schema(dataType: DataType) =
        changed(shape.schema, shape.path)(_.copy(dataType = dataType))
      to(supporting(CompliantTable.of(schema(from)), features: _*), schema(to_), kind)
    }
    def wrong(from: DataType, to: DataType, fix: String, reason: String) =
      badChange(shape.location, fix)(
        shape.sqlPath,
        s"changes from ${from.sql} to ${to.sql}",
        reason
      )

    for ((from, is) <- illegal; kind <- kinds) {
      val what = s"${from.sql} to ${is.sql}, $kind, in ${shape.name}"
      if (kind == Restoring) passes(TypesAreKeptOrPromoted, what)(step(from, is, kind))
      else
        refuses(TypesAreKeptOrPromoted, what)(step(from, is, kind, "typeWidening"))(
          wrong(from, is, beside(shape, is), noPromotion)
        )
    }
    for ((from, is) <- legal) {
      val what = s"${from.sql} to ${is.sql} in ${shape.name}"
      Seq("typeWidening", "typeWidening-preview").foreach { feature =>
        passes(TypesAreKeptOrPromoted, s"$what with $feature")(step(from, is, Ordinary, feature))
      }
      passes(TypesAreKeptOrPromoted, s"$what when all rows are replaced")(step(from, is, Replacing))
      refuses(TypesAreKeptOrPromoted, s"$what without typeWidening")(step(from, is, Ordinary))(
        wrong(from, is, widen, noWidening)
      )
    }
  }
  for {
    (path, ddl, fix) <- Seq(
      (Seq("l", "element"), "l ARRAY<INT>", "l_2 ARRAY<STRING>"),
      (Seq("m", "value"), "m MAP<INT, INT>", "m_2 MAP<INT, STRING>"),
      (
        Seq("s", "l", "element", "element"),
        "s STRUCT<l: ARRAY<ARRAY<INT>>>",
        "s.l_2 ARRAY<ARRAY<STRING>>"
      )
    )
  } refuses(TypesAreKeptOrPromoted, s"${path.mkString(".")} from INT to STRING") {
    val table = CompliantTable.of(ddl)
    to(table, retyped(table.schema, path)(_ => StringType), Ordinary)
  } {
    val table = CompliantTable.of(ddl)
    badChange(table.nodesByPath(path.toVector).location, adding(fix))(
      path.mkString("."),
      "changes from INT to STRING",
      noPromotion
    )
  }
  private def partitionedBy(column: String, kind: ChangeKind, feature: String = "typeWidening") = {
    val before =
      supporting(CompliantTable.of("f FLOAT, i INT, g FLOAT"), feature)
        .copy(partitionColumns = Seq(column))
    val wider = Map("f" -> DoubleType, "i" -> LongType).withDefaultValue(FloatType)
    to(before, retyped(before.schema, Seq(column))(_ => wider(column)), kind)
  }
  refuses(TypesAreKeptOrPromoted, "a partition column from FLOAT to DOUBLE")(
    partitionedBy("f", Ordinary)
  ) {
    badChange(Location.Column(Seq("f"), Some(1), Some("col-1")), adding("f_2 DOUBLE"))(
      "f",
      "changes from FLOAT to DOUBLE",
      "Delta reads the partition value from its log, where it is text, so 0.1 becomes the double " +
        "0.1, while Iceberg's readers find the float in the file, which is 0.10000000149011612"
    )
  }
  passes(TypesAreKeptOrPromoted, "a partition column from FLOAT to DOUBLE without its rows")(
    partitionedBy("f", Replacing)
  )
  passes(TypesAreKeptOrPromoted, "a partition column from INT to BIGINT")(
    partitionedBy("i", Ordinary)
  )
  passes(TypesAreKeptOrPromoted, "another column than that of the partitions") {
    val change = partitionedBy("f", Ordinary)
    change.copy(
      before = change.before.copy(partitionColumns = Seq("g")),
      after = change.after.copy(partitionColumns = Seq("g"))
    )
  }
  passes(TypesAreKeptOrPromoted, "another column of another type under the same name") {
    val table = CompliantTable.of("a INT")
    to(table, StructType(Seq(field("a", StringType, 2))), Replacing, max = 2)
  }

  // C14t
  private def record(from: DataType, to: DataType, way: String): Metadata = {
    val change = new MetadataBuilder()
      .putString("fromType", from.typeName)
      .putString("toType", to.typeName)
    if (way.nonEmpty) change.putString("fieldPath", way)
    change.build()
  }
  private def promoted(ddl: String, path: Seq[String], field: Seq[String], records: Metadata*)(
      kind: ChangeKind,
      features: String*
  ): TableChange = {
    val table = CompliantTable.of(ddl)
    val schema = retyped(table.schema, path)(_ => LongType)
    to(
      supporting(table, features: _*),
      if (records.isEmpty) schema
      else marked(schema, field)(_.putMetadataArray("delta.typeChanges", records.toArray)),
      kind
    )
  }
  for {
    (ddl, path, field, way) <- Seq(
      ("a INT", Seq("a"), Seq("a"), ""),
      ("s STRUCT<x: INT>", Seq("s", "x"), Seq("s", "x"), ""),
      ("l ARRAY<INT>", Seq("l", "element"), Seq("l"), "element"),
      ("m MAP<STRING, INT>", Seq("m", "value"), Seq("m"), "value"),
      ("l ARRAY<STRUCT<x: INT>>", Seq("l", "element", "x"), Seq("l", "element", "x"), ""),
      (
        "s STRUCT<l: ARRAY<MAP<INT, INT>>>",
        Seq("s", "l", "element", "value"),
        Seq("s", "l"),
        "element.value"
      )
    )
    feature <- Seq("typeWidening", "typeWidening-preview")
  } {
    val what = s"${path.mkString(".")} from INT to BIGINT with $feature"
    val right = record(IntegerType, LongType, way)
    passes(PromotionsAreRecorded, s"$what, recorded") {
      promoted(ddl, path, field, right)(Ordinary, feature)
    }
    passes(PromotionsAreRecorded, s"$what, recorded beside others") {
      promoted(ddl, path, field, record(ShortType, IntegerType, way), right)(Ordinary, feature)
    }
    Seq(
      "not recorded" -> Nil,
      "recorded for another place" -> Seq(record(IntegerType, LongType, s"$way.key")),
      "recorded as another change" -> Seq(record(ShortType, LongType, way)),
      "recorded the wrong way round" -> Seq(record(LongType, IntegerType, way))
    ).foreach { case (how, records) =>
      refuses(PromotionsAreRecorded, s"$what, $how") {
        promoted(ddl, path, field, records: _*)(Ordinary, feature)
      } {
        badChange(
          CompliantTable.of(ddl).nodesByPath(path.toVector).location,
          "ALTER TABLE db.t SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')\n" +
            s"ALTER TABLE db.t ALTER COLUMN ${path.mkString(".")} TYPE BIGINT"
        )(
          path.mkString("."),
          "changes from INT to BIGINT without a record of it",
          "Delta needs the record in delta.typeChanges of the nearest enclosing field"
        )
      }
    }
    // No file has the older type, or the files that return have the type that returns.
    Seq(Replacing, Restoring).foreach { kind =>
      passes(PromotionsAreRecorded, s"$what, not recorded, $kind") {
        promoted(ddl, path, field)(kind, feature)
      }
    }
  }
  passes(PromotionsAreRecorded, "a promotion without typeWidening, which is C14's business") {
    promoted("a INT", Seq("a"), Seq("a"))(Ordinary)
  }
  passes(PromotionsAreRecorded, "an older record that goes: nobody can tell from the schema") {
    val table = CompliantTable.of("a BIGINT")
    val recorded = marked(table.schema, Seq("a")) {
      _.putMetadataArray("delta.typeChanges", Array(record(IntegerType, LongType, "")))
    }
    to(supporting(table.copy(schema = recorded), "typeWidening"), table.schema, Ordinary)
  }

  // C14p
  private val two = "s STRUCT<x: INT, z: INT>, t STRUCT<y: INT>, l ARRAY<STRUCT<v: INT>>"
  for (kind <- kinds) {
    val table = CompliantTable.of(two)
    def moved(from: Seq[String], into: Seq[String]) = {
      val node = table.nodesByPath(from.toVector)
      val moving = field(node.path.last, node.dataType, node.id.get)
      plus(minus(table.schema, from), into, moving)
    }
    Seq[(Seq[String], Seq[String], String)](
      (Seq("s", "x"), Seq("t"), "t.x_2"),
      (Seq("s", "x"), Nil, "x_2"),
      (Seq("s", "x"), Seq("l", "element"), "l.element.x_2"),
      (Seq("l", "element", "v"), Seq("s"), "s.v_2")
    ).foreach { case (from, into, fix) =>
      val path = into :+ from.last
      refuses(ParentsStay, s"${from.mkString(".")} moving to ${path.mkString(".")}, $kind") {
        to(table, moved(from, into), kind)
      } {
        badChange(
          table.nodesByPath(from.toVector).location match {
            case column: Location.Column => column.copy(path = path)
            case other                   => other
          },
          adding(s"$fix INT")
        )(
          path.mkString("."),
          s"moves from ${from.mkString(".")} to ${path.mkString(".")}",
          "in Iceberg an id always has the same parent"
        )
      }
    }
    passes(ParentsStay, s"a new order in a struct, $kind") {
      to(
        table,
        retyped(table.schema, Seq("s")) {
          case s: StructType => StructType(s.reverse)
          case other         => other
        },
        kind
      )
    }
    passes(ParentsStay, s"a renamed struct, $kind") {
      to(table, changed(table.schema, Seq("s"))(_.copy(name = "u")), kind)
    }
    refuses(ParentsStay, s"an element that has the id of a column, $kind") {
      val flat = CompliantTable.of("a INT, l ARRAY<INT>")
      val list = changed(flat.schema, Seq("l"))(withNestedIds("col-2.element" -> 1L))
      to(flat, minus(list, Seq("a")), kind)
    } {
      badChange(Location.Column(Seq("l", "element"), Some(1), None), adding("l_2 ARRAY<INT>"))(
        "l.element",
        "moves from a to l.element",
        "in Iceberg an id always has the same parent"
      )
    }
  }

  // C14n
  for (shape <- shapes) {
    val table = CompliantTable.of(shape.schema)
    val strict = table.copy(schema = changed(shape.schema, shape.path)(_.copy(nullable = false)))
    kinds.foreach { kind =>
      val change = to(table, strict.schema, kind)
      val what = s"a column made NOT NULL, $kind, in ${shape.name}"
      if (kind == Replacing || kind == Restoring) passes(NullableStaysNullable, what)(change)
      else
        refuses(NullableStaysNullable, what)(change) {
          badChange(
            shape.location,
            s"ALTER TABLE db.t ALTER COLUMN ${shape.sqlPath} DROP NOT NULL"
          )(shape.sqlPath, "is made NOT NULL", "older files may contain nulls")
        }
      passes(NullableStaysNullable, s"a column that may now be null, $kind, in ${shape.name}") {
        to(strict, table.schema, kind)
      }
    }
  }
  for {
    (ddl, path, change) <- Seq[(String, Seq[String], DataType => DataType)](
      ("l ARRAY<INT>", Seq("l", "element"), _ => ArrayType(IntegerType, containsNull = false)),
      (
        "m MAP<INT, INT>",
        Seq("m", "value"),
        _ => MapType(IntegerType, IntegerType, valueContainsNull = false)
      ),
      (
        "s STRUCT<l: ARRAY<INT>>",
        Seq("s", "l", "element"),
        _ => ArrayType(IntegerType, containsNull = false)
      )
    )
  } refuses(NullableStaysNullable, s"${path.mkString(".")} without nulls") {
    val table = CompliantTable.of(ddl)
    to(table, retyped(table.schema, path.init)(change), Ordinary)
  } {
    badChange(
      CompliantTable.of(ddl).nodesByPath(path.toVector).location,
      s"ALTER TABLE db.t ALTER COLUMN ${path.mkString(".")} DROP NOT NULL"
    )(path.mkString("."), "is made NOT NULL", "older files may contain nulls")
  }

  // C14r
  for (shape <- shapes; kind <- kinds) {
    val table = CompliantTable.of(shape.schema)
    val path = shape.path.init :+ "n"
    def adds(nullable: Boolean) =
      to(
        table,
        plus(table.schema, shape.path.init, field("n", DateType, 21, nullable)),
        kind,
        max = 21
      )
    passes(NewColumnsAreNullable, s"a new column, $kind, in ${shape.name}")(adds(nullable = true))
    val what = s"a new NOT NULL column, $kind, in ${shape.name}"
    if (kind == Replacing || kind == Restoring)
      passes(NewColumnsAreNullable, what)(adds(nullable = false))
    else
      refuses(NewColumnsAreNullable, what)(adds(nullable = false)) {
        badChange(
          Location.Column(path, Some(21), Some("col-21")),
          adding(s"${path.mkString(".")} DATE")
        )(
          path.mkString("."),
          "is added as NOT NULL",
          "older files do not have it, and Iceberg format version 2 has no defaults"
        )
      }
  }
  passes(NewColumnsAreNullable, "required fields below a new column that may be null") {
    val table = CompliantTable.of("a INT")
    val below = StructType(Seq(field("x", IntegerType, 3, nullable = false)))
    to(table, table.schema.add(field("s", below, 2)), Ordinary, max = 3)
  }

  // C15
  for (kind <- kinds) {
    val table =
      CompliantTable.of("a INT, b INT, s STRUCT<x: INT>").copy(partitionColumns = Seq("a"))
    val replace = "CREATE OR REPLACE TABLE db.t (a INT, b INT, s STRUCT<x: INT>) USING delta " +
      "PARTITIONED BY (a) TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    def copy(columns: String) = s"CREATE TABLE db.t_iceberg USING delta$columns TBLPROPERTIES " +
      "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
    Seq((Seq("b"), " PARTITIONED BY (b)"), (Seq("a", "b"), " PARTITIONED BY (a, b)"), (Nil, ""))
      .foreach { case (columns, by) =>
        refuses(PartitioningStays, s"partitions by $columns instead of a, $kind") {
          TableChange(table, table.copy(partitionColumns = columns), kind)
        } {
          expect(
            "INCOMPATIBLE_PARTITIONING",
            Location.Column(columns, None, None),
            if (kind == Replacing) replace else copy(by)
          )(
            "columns" -> (if (columns.isEmpty) "no column" else columns.mkString(", ")),
            "reason" -> ("the table was partitioned by a, and IcebergCompatV2 does not allow " +
              "this to change")
          )
        }
      }
    passes(PartitioningStays, s"partitions where there were none, $kind") {
      val plain = table.copy(partitionColumns = Nil)
      TableChange(plain, table, kind)
    }
  }
  private val partitioned = CompliantTable.of("a INT, b INT").copy(partitionColumns = Seq("a"))
  private def incompatible(columns: String, fix: String) =
    expect("INCOMPATIBLE_PARTITIONING", Location.Column(Seq(columns), None, None), fix)(
      "columns" -> columns,
      "reason" -> ("the table was partitioned by a, and IcebergCompatV2 does not allow this to " +
        "change")
    )
  refuses(PartitioningStays, "a partition column of another name, with a copy that renames it") {
    val renamed = changed(partitioned.schema, Seq("a"))(_.copy(name = "z"))
    TableChange(
      partitioned,
      partitioned.copy(schema = renamed, partitionColumns = Seq("z")),
      Ordinary
    )
  } {
    incompatible(
      "z",
      "CREATE TABLE db.t_iceberg USING delta PARTITIONED BY (z) TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT a AS z, b FROM db.t"
    )
  }
  refuses(PartitioningStays, "another column of the same name, while the files stay") {
    val other = changed(partitioned.schema, Seq("a"))(f => withId(3)(named("col-3")(f)))
    to(partitioned, other, Ordinary, max = 3)
  } {
    incompatible(
      "a",
      "CREATE TABLE db.t_iceberg USING delta PARTITIONED BY (a) TBLPROPERTIES " +
        "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT * FROM db.t"
    )
  }
  passes(PartitioningStays, "another column of the same name, when all rows are replaced") {
    val other = changed(partitioned.schema, Seq("a"))(f => withId(3)(named("col-3")(f)))
    to(partitioned, other, Replacing, max = 3)
  }
  refuses(
    PartitioningStays,
    "a replaced table without the column, which the statement brings back"
  ) {
    val other =
      partitioned.copy(schema = minus(partitioned.schema, Seq("a")), partitionColumns = Seq("b"))
    TableChange(partitioned, other, Replacing)
  } {
    incompatible(
      "b",
      "CREATE OR REPLACE TABLE db.t (b INT, a INT) USING delta PARTITIONED BY (a) " +
        "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    )
  }

  // C17
  private val keyed = CompliantTable.of("m MAP<STRUCT<x: INT, l: ARRAY<INT>>, STRUCT<v: INT>>")
  private val keyPath = Seq("m", "key")
  private val x = Seq("m", "key", "x")
  private val keyChanges: Seq[(String, StructType)] = Seq(
    "a field more" -> plus(keyed.schema, keyPath, field("n", DateType, 20)),
    "a field less" -> minus(keyed.schema, x),
    "a renamed field" -> changed(keyed.schema, x)(_.copy(name = "n")),
    "a promoted field" -> changed(keyed.schema, x)(_.copy(dataType = LongType)),
    "a field that may not be null" -> changed(keyed.schema, x)(_.copy(nullable = false)),
    "another field of the same name" -> changed(keyed.schema, x)(withId(20)),
    "a field without id" -> changed(keyed.schema, x)(withoutId),
    "another order" -> retyped(keyed.schema, keyPath) {
      case s: StructType => StructType(s.reverse)
      case other         => other
    },
    "a promoted element" ->
      retyped(keyed.schema, Seq("m", "key", "l", "element"))(_ => LongType)
  )
  for ((what, schema) <- keyChanges; kind <- kinds)
    refuses(MapKeysStay, s"$what in a map key, $kind")(to(keyed, schema, kind, max = 20)) {
      val after = SchemaNode.flatten(schema)
      def typeAt(nodes: Seq[SchemaNode]) = nodes.find(_.path == keyPath).get.dataType
      val column = after.find(_.path == Seq("m")).get.dataType
      expect(
        "CANNOT_CHANGE_MAP_STRUCT_KEY",
        after.find(_.path == keyPath).get.location,
        adding(s"m_2 ${column.sql}")
      )("column" -> "m.key", "before" -> typeAt(keyed.nodes).sql, "after" -> typeAt(after).sql)
    }
  for {
    (ddl, path, beside) <- Seq(
      ("m MAP<INT, INT>", Seq("m", "key"), "m_2 MAP<BIGINT, INT>"),
      ("l ARRAY<MAP<INT, INT>>", Seq("l", "element", "key"), "l_2 ARRAY<MAP<BIGINT, INT>>"),
      ("s STRUCT<m: MAP<INT, INT>>", Seq("s", "m", "key"), "s.m_2 MAP<BIGINT, INT>")
    )
  } refuses(MapKeysStay, s"a promotion of ${path.mkString(".")}") {
    val table = supporting(CompliantTable.of(ddl), "typeWidening")
    to(table, retyped(table.schema, path)(_ => LongType), Ordinary)
  } {
    expect(
      "CANNOT_CHANGE_MAP_STRUCT_KEY",
      CompliantTable.of(ddl).nodesByPath(path.toVector).location,
      adding(beside)
    )("column" -> path.mkString("."), "before" -> "INT", "after" -> "BIGINT")
  }
  for (kind <- kinds) {
    passes(MapKeysStay, s"a field more in a map's value, $kind") {
      to(keyed, plus(keyed.schema, Seq("m", "value"), field("n", DateType, 20)), kind, max = 20)
    }
    passes(MapKeysStay, s"a renamed map, $kind") {
      to(keyed, changed(keyed.schema, Seq("m"))(_.copy(name = "n")), kind)
    }
    passes(MapKeysStay, s"a comment in a map's key, $kind") {
      to(keyed, changed(keyed.schema, x)(_.withComment("text")), kind)
    }
    passes(MapKeysStay, s"another map under the same name, $kind") {
      val map = withNestedIds("col-20.key" -> 21L, "col-20.value" -> 22L)(
        field("m", MapType(StringType, StringType), 20)
      )
      to(keyed, StructType(Seq(map)), kind, max = 22)
    }
  }
}
