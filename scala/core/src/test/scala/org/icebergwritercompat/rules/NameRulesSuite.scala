package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{Lifecycle, TableChange}
import org.icebergwritercompat.contract.ChangeKind.{Ordinary, Replacing}
import org.icebergwritercompat.model.{Condition, Location, SchemaNode}
import org.icebergwritercompat.rules.CompliantTable._
import org.icebergwritercompat.rules.NameRules._
import org.icebergwritercompat.rules.Schemas._

class NameRulesSuite extends StepSuite {

  acceptsCompliantTables(NamesAreDistinct, NoReservedNames, NoEmptyStructs)

  private val reserved = Seq("_file", "_pos", "_deleted", "_spec_id", "_partition")
  private val creating = Lifecycle.Creating(replacing = false)

  private def badName(location: Location, fix: String)(column: String, reason: String) =
    expect("INCOMPATIBLE_COLUMN_NAME", location, fix)("column" -> column, "reason" -> reason)

  private def adding(column: String) = s"ALTER TABLE db.t ADD COLUMNS ($column)"
  private def created(columns: String, verb: String) =
    s"$verb db.t ($columns) USING delta TBLPROPERTIES " +
      "('delta.enableIcebergWriterCompatV1' = 'true')"

  private def indistinct(others: String) = "Iceberg's index of names cannot distinguish it from " +
    s"$others"

  // N1: schema, the node to rename, its id and type, and the name it gets.
  Seq[(String, String, Seq[String], Long, String, String, String)](
    ("names that differ in their case", "a INT, A STRING", Seq("A"), 2, "a", "A_2 STRING", "A_2"),
    ("the same below", "s STRUCT<x: INT, X: DATE>", Seq("s", "X"), 3, "s.x", "s.X_2 DATE", "X_2"),
    (
      "the same in an array",
      "l ARRAY<STRUCT<x: INT, X: INT>>",
      Seq("l", "element", "X"),
      4,
      "l.element.x",
      "l.element.X_2 INT",
      "X_2"
    ),
    (
      "the same in a map",
      "m MAP<INT, STRUCT<x: INT, X: INT>>",
      Seq("m", "value", "X"),
      5,
      "m.value.x",
      "m.value.X_2 INT",
      "X_2"
    ),
    (
      "a dotted name before the path it looks like",
      "`a.b` INT, a STRUCT<b: INT>",
      Seq("a.b"),
      1,
      "a.b",
      "a_b INT",
      "a_b"
    ),
    (
      "a dotted name after it",
      "a STRUCT<b: INT>, `A.b` INT",
      Seq("A.b"),
      3,
      "a.b",
      "A_b INT",
      "A_b"
    ),
    (
      "a dotted name like an element",
      "l ARRAY<INT>, `l.element` INT",
      Seq("l.element"),
      3,
      "l.element",
      "l_element INT",
      "l_element"
    ),
    (
      "a dotted name like a map's value",
      "`m.value` INT, m MAP<INT, INT>",
      Seq("m.value"),
      1,
      "m.value",
      "m_value INT",
      "m_value"
    ),
    (
      "a dotted name like the short one of a list's field, in other letters",
      "l ARRAY<STRUCT<x: INT>>, `L.X` INT",
      Seq("L.X"),
      4,
      "l.element.x",
      "L_X INT",
      "L_X"
    ),
    (
      "a dotted name like the short one below lists of maps, in other letters",
      "`m.value.X` INT, m MAP<INT, ARRAY<STRUCT<x: INT>>>",
      Seq("m.value.X"),
      1,
      "m.value.element.x",
      "m_value_X INT",
      "m_value_X"
    ),
    (
      "a field whose short name is that of its map's key, in other letters",
      "m MAP<INT, STRUCT<Key: INT>>",
      Seq("m", "value", "Key"),
      4,
      "m.key",
      "m.value.Key_2 INT",
      "Key_2"
    ),
    (
      "a field whose short name is that of its map's value, in other letters",
      "m MAP<INT, STRUCT<VALUE: INT>>",
      Seq("m", "value", "VALUE"),
      4,
      "m.value",
      "m.value.VALUE_2 INT",
      "VALUE_2"
    ),
    (
      "a field whose short name is that of its list's element, in other letters",
      "l ARRAY<STRUCT<Element: INT>>",
      Seq("l", "element", "Element"),
      3,
      "l.element",
      "l.element.Element_2 INT",
      "Element_2"
    )
  ).foreach { case (what, ddl, path, id, others, added, name) =>
    val sqlPath = SchemaNode.sqlPath(path)
    val location = Location.Column(path, Some(id), Some(s"col-$id"))
    refuses(NamesAreDistinct, what)(CompliantTable.of(ddl))(
      badName(location, adding(added))(sqlPath, indistinct(others))
    )
    refuses(NamesAreDistinct, s"$what, on enabling") {
      CompliantTable.of(ddl).copy(lifecycle = Lifecycle.Enabling)
    } {
      val rename = s"ALTER TABLE db.t RENAME COLUMN $sqlPath TO $name"
      // By default Spark finds two columns of such a name.
      val differInCase = path.mkString(".").equalsIgnoreCase(others) &&
        path.length == others.count(_ == '.') + 1
      val exact = Seq("SET spark.sql.caseSensitive=true", rename, "RESET spark.sql.caseSensitive")
      badName(location, if (differInCase) exact.mkString("\n") else rename)(
        sqlPath,
        indistinct(others)
      )
    }
    test(s"N1 names a new table that N1 accepts instead of $what") {
      val table = CompliantTable.of(ddl).copy(lifecycle = creating)
      val found = theOne(NamesAreDistinct.check(table))
      val columns = found.remedy.text.stripPrefix("CREATE TABLE db.t (").takeWhile(_ != ')')
      assert(NamesAreDistinct.check(CompliantTable.of(columns)) == Nil)
    }
  }
  refuses(NamesAreDistinct, "a name for which the nearest ones are taken") {
    CompliantTable.of("a STRUCT<b: INT>, `a.b` INT, A_B INT, a_b_2 INT")
  } {
    badName(Location.Column(Seq("a.b"), Some(3), Some("col-3")), adding("a_b_3 INT"))(
      "`a.b`",
      indistinct("a.b")
    )
  }
  refuses(NamesAreDistinct, "three of one name in one violation")(
    CompliantTable.of("abc INT, aBc INT, ABC INT")
  ) {
    badName(Location.Column(Seq("ABC"), Some(3), Some("col-3")), adding("ABC_2 INT"))(
      "ABC",
      indistinct("abc, aBc")
    )
  }
  refuses(NamesAreDistinct, "a column that is renamed to a name that is there") {
    val table = CompliantTable.of("a INT, b INT")
    table.copy(schema = changed(table.schema, Seq("a"))(_.copy(name = "B")), previous = Some(table))
  } {
    badName(Location.Column(Seq("b"), Some(2), Some("col-2")), rename("b", "b_2"))(
      "b",
      indistinct("B")
    )
  }
  refuses(NamesAreDistinct, "a new column before one that is there") {
    val table = CompliantTable.of("a INT")
    table.copy(schema = StructType(field("A", DateType, 2) +: table.schema), previous = Some(table))
  } {
    badName(Location.Column(Seq("A"), Some(2), Some("col-2")), adding("A_2 DATE"))(
      "A",
      indistinct("a")
    )
  }
  refuses(NamesAreDistinct, "a short name, with one for which the nearest short name is taken") {
    CompliantTable.of("l ARRAY<STRUCT<Element: INT>>, `l.Element_2` INT")
  } {
    badName(
      Location.Column(Seq("l", "element", "Element"), Some(3), Some("col-3")),
      adding("l.element.Element_3 INT")
    )("l.element.Element", indistinct("l.element"))
  }
  // The index ignores a short name that equals a full name, and duplicates of short names.
  Seq(
    "l ARRAY<STRUCT<x: INT>>, `l.x` INT",
    "`m.x` INT, m MAP<INT, STRUCT<x: INT>>",
    "m MAP<INT, STRUCT<key: INT, value: INT>>",
    "l ARRAY<STRUCT<element: INT>>",
    "l ARRAY<STRUCT<a: STRUCT<`element.x`: INT>, `a.x`: ARRAY<INT>>>",
    "l ARRAY<STRUCT<a: ARRAY<STRUCT<x: INT>>, `a.x`: INT>>",
    // The key of a map is never left out.
    "m MAP<STRUCT<Key: INT, Value: INT, x: INT>, INT>, `M.X` INT",
    // An element or value is left out only above the fields of a struct.
    "l ARRAY<ARRAY<INT>>, `L.Element.X` INT"
  ).foreach { ddl =>
    passes(NamesAreDistinct, s"names that Iceberg's index can tell apart: $ddl") {
      CompliantTable.of(ddl)
    }
  }
  passes(NamesAreDistinct, "one name in two structs, and parts of names") {
    CompliantTable.of("x INT, s STRUCT<x: INT>, t STRUCT<x: INT, s: INT>, `s_x` INT, `s.y` INT")
  }

  private def rename(from: String, to: String) = s"ALTER TABLE db.t RENAME COLUMN $from TO $to"

  // N2 and N2+
  private val metadataColumn = "Iceberg has a metadata column of this name"
  for (name <- reserved ++ Seq("_FILE", "_Pos")) {
    val table = CompliantTable.of(s"a INT, $name INT, s STRUCT<_file: INT>")
    val location = Location.Column(Seq(name), Some(2), Some("col-2"))
    val columns = s"a INT, ${name.drop(1)} INT, s STRUCT<_file: INT>"
    Seq(false -> "CREATE TABLE", true -> "CREATE OR REPLACE TABLE").foreach {
      case (replacing, verb) =>
        refuses(NoReservedNames, s"$name, $verb") {
          table.copy(lifecycle = Lifecycle.Creating(replacing))
        }(badName(location, created(columns, verb))(name, metadataColumn))
    }
    refuses(NoReservedNames, s"$name, on enabling") {
      table.copy(lifecycle = Lifecycle.Enabling)
    }(badName(location, rename(name, name.drop(1)))(name, metadataColumn))
    refuses(NoReservedNames, s"$name, on enabling without column mapping") {
      val plain = table.copy(properties = Map.empty)
      table.copy(lifecycle = Lifecycle.Enabling, asItIs = Some(plain))
    } {
      val mapped = "ALTER TABLE db.t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
      badName(location, s"$mapped\n${rename(name, name.drop(1))}")(name, metadataColumn)
    }
    refuses(NoReservedNames, s"$name beside its other names") {
      val taken = CompliantTable.of(s"a INT, $name INT, ${name.drop(1)} INT")
      taken.copy(lifecycle = Lifecycle.Enabling)
    }(badName(location, rename(name, s"${name.drop(1)}_2"))(name, metadataColumn))
    // The feature was switched on although the table has this name; reports contain a warning.
    passes(NoReservedNames, s"$name in a table that has the feature")(table)
    test(s"N2 knows $name in a table that has the feature") {
      val found = theOne(NoReservedNames.ofExisting(table))
      assert(found.remedy.text == rename(name, name.drop(1)))
    }

    val before = CompliantTable.of("a INT, b INT")
    refuses(NoNewReservedNames, s"a new column $name") {
      val after =
        before.copy(schema = before.schema.add(field(name, DateType, 3)), previous = Some(before))
      TableChange(before, after, Ordinary)
    } {
      badName(Location.Column(Seq(name), Some(3), Some("col-3")), adding(s"${name.drop(1)} DATE"))(
        name,
        metadataColumn
      )
    }
    refuses(NoNewReservedNames, s"a column renamed to $name") {
      val renamed = changed(before.schema, Seq("b"))(_.copy(name = name))
      TableChange(before, before.copy(schema = renamed, previous = Some(before)), Ordinary)
    }(badName(location, rename("b", name.drop(1)))(name, metadataColumn))
    passes(NoNewReservedNames, s"a column that was called $name before") {
      TableChange(table, table, Replacing)
    }
    passes(NoNewReservedNames, s"a nested field $name") {
      val inner = StructType(Seq(field(name, IntegerType, 4)))
      TableChange(before, before.copy(schema = before.schema.add(field("s", inner, 3))), Ordinary)
    }
    passes(NoNewReservedNames, s"$name renamed to something else") {
      val renamed = changed(table.schema, Seq(name))(_.copy(name = "b"))
      TableChange(table, table.copy(schema = renamed), Ordinary)
    }
  }
  passes(NoReservedNames, "names like the reserved ones") {
    CompliantTable
      .of("file INT, __file INT, _file_ INT, s STRUCT<_pos: INT>")
      .copy(lifecycle = creating)
  }

  // N3
  for (shape <- shapes) {
    val empty =
      CompliantTable.of(changed(shape.schema, shape.path)(_.copy(dataType = new StructType())))
    def unsupported(fix: String) =
      expect("UNSUPPORTED_DATA_TYPE", shape.location, fix)(
        "column" -> shape.sqlPath,
        "type" -> "STRUCT<>",
        "nearest" -> "STRING"
      )
    refuses(NoEmptyStructs, s"an empty struct in ${shape.name}")(empty)(
      // The column is there already, so that nothing can be added under its name.
      unsupported(shape.copyWith("STRING"))
    )
    test(s"N3 refuses an empty struct in ${shape.name} on enabling, and offers a copy without it") {
      val found = theOne(NoEmptyStructs.check(empty.copy(lifecycle = Lifecycle.Enabling)))
      assert((found.condition, found.location) == ((Condition.UnsupportedDataType, shape.location)))
      val copy = found.remedy.text
      Statements.assertParsed(copy)
      assert(copy.startsWith("CREATE TABLE db.t_iceberg ") && copy.endsWith(" FROM db.t"))
      assert(!copy.contains("<>"))
    }
    test(s"N3 names a new table without empty structs instead of ${shape.name}") {
      val found = theOne(NoEmptyStructs.check(empty.copy(lifecycle = creating)))
      Statements.assertParsed(found.remedy.text)
      assert(!found.remedy.text.contains("<>"))
    }
  }
  private val copyOfCollections =
    "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
      "('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT CAST(l AS ARRAY<STRING>) AS l, " +
      "CAST(m AS MAP<STRING, ARRAY<STRING>>) AS m FROM db.t"
  refuses(NoEmptyStructs, "an element, a key and a value") {
    CompliantTable.of("l ARRAY<STRUCT<>>, m MAP<STRUCT<>, ARRAY<STRUCT<>>>")
  }(
    Seq((Seq("l", "element"), 2), (Seq("m", "key"), 4), (Seq("m", "value", "element"), 6)).map {
      case (path, id) =>
        expect(
          "UNSUPPORTED_DATA_TYPE",
          Location.Column(path, Some(id.toLong), None),
          copyOfCollections
        )(
          "column" -> path.mkString("."),
          "type" -> "STRUCT<>",
          "nearest" -> "STRING"
        )
    }: _*
  )
}
