package org.icebergwritercompat.contract

import org.apache.spark.sql.types._
import org.icebergwritercompat.model.SchemaNode
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.CompliantTable
import org.icebergwritercompat.rules.CompliantTable._
import org.icebergwritercompat.rules.Schemas._
import org.icebergwritercompat.rules.Statements.assertParsed
import org.scalatest.funsuite.AnyFunSuite

/** What a statement must look like to be run where the violation is. */
class FixStatementsSuite extends AnyFunSuite {

  private val creating = Lifecycle.Creating(replacing = false)
  private val property = "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"

  private def node(table: TableState, path: String*): SchemaNode = table.nodesByPath(path.toVector)

  private def isStatement(remedy: Remedy, expected: String): Unit = {
    assert(remedy.sql == Seq(expected))
    assertParsed(remedy.text)
  }

  private val old = CompliantTable.of("a INT, s STRUCT<x: INT>")
  private def evolved(path: Seq[String], field: StructField): TableState =
    old.copy(schema = plus(old.schema, path, field), previous = Some(old))

  private val pair = StructType(Seq(field("u", ShortType, 11), field("v", ByteType, 12)))

  test("the remedy of a violation in a new column adds the whole column") {
    val table = evolved(Nil, field("n", pair, 10))
    Seq(Seq("n", "u"), Seq("n", "v"), Seq("n")).foreach { path =>
      isStatement(
        Fix.useSupportedType(table, node(table, path: _*)),
        "ALTER TABLE db.t ADD COLUMNS (n STRUCT<u: INT, v: INT>)"
      )
    }
  }

  test("the remedy of a violation in a new field of an existing struct adds that field") {
    val table = evolved(Seq("s"), field("n", pair, 10))
    isStatement(
      Fix.useSupportedType(table, node(table, "s", "n", "u")),
      "ALTER TABLE db.t ADD COLUMNS (s.n STRUCT<u: INT, v: INT>)"
    )
  }

  test("a column that was there gets a neighbour of the type it should have had") {
    val table = old.copy(
      schema = changed(old.schema, Seq("a"))(_.copy(dataType = ShortType)),
      previous = Some(old)
    )
    isStatement(
      Fix.useSupportedType(table, node(table, "a")),
      "ALTER TABLE db.t ADD COLUMNS (a_2 INT)"
    )
  }

  test("a neighbour takes a name that is free") {
    val table = CompliantTable.of("a INT, a_2 INT, a_3 INT, s STRUCT<a: INT>")
    isStatement(Fix.addBeside(table, node(table, "a")), "ALTER TABLE db.t ADD COLUMNS (a_4 INT)")
    isStatement(
      Fix.addBeside(table, node(table, "s", "a")),
      "ALTER TABLE db.t ADD COLUMNS (s.a_2 INT)"
    )
  }

  test("fields that are called like parts of collections are fields") {
    val table = CompliantTable.of("key STRUCT<value: STRUCT<element: INT>>")
    isStatement(
      Fix.addBeside(table, node(table, "key", "value", "element")),
      "ALTER TABLE db.t ADD COLUMNS (key.value.element_2 INT)"
    )
  }

  test("a neighbour of what is below a map key is a neighbour of the map") {
    val table = CompliantTable.of("s STRUCT<m: MAP<STRUCT<k: MAP<INT, DATE>>, INT>>")
    Seq("key", "value").foreach { part =>
      isStatement(
        Fix.addBeside(table, node(table, "s", "m", "key", "k", part)),
        "ALTER TABLE db.t ADD COLUMNS (s.m_2 MAP<STRUCT<k: MAP<INT, DATE>>, INT>)"
      )
    }
  }

  test("a column that was renamed is renamed to something else") {
    val table = old.copy(
      schema = changed(old.schema, Seq("s", "x"))(_.copy(name = "y")),
      previous = Some(old)
    )
    isStatement(
      Fix.rename(table, node(table, "s", "y"), "my z"),
      "ALTER TABLE db.t RENAME COLUMN s.x TO `my z`"
    )
  }

  test("a nested field of a new table is renamed in the statement that creates it") {
    val table = CompliantTable
      .of("s STRUCT<x: INT>, m MAP<STRUCT<x: INT>, ARRAY<STRUCT<x: INT>>>")
      .copy(lifecycle = creating)
    Seq(
      Seq("s", "x") -> "(s STRUCT<z: INT>, m MAP<STRUCT<x: INT>, ARRAY<STRUCT<x: INT>>>)",
      Seq("m", "key", "x") -> "(s STRUCT<x: INT>, m MAP<STRUCT<z: INT>, ARRAY<STRUCT<x: INT>>>)",
      Seq("m", "value", "element", "x") ->
        "(s STRUCT<x: INT>, m MAP<STRUCT<x: INT>, ARRAY<STRUCT<z: INT>>>)"
    ).foreach { case (path, columns) =>
      isStatement(
        Fix.rename(table, node(table, path: _*), "z"),
        s"CREATE TABLE db.t $columns USING delta $property"
      )
    }
  }

  test("a table without columns is created without a list of them") {
    val table = CompliantTable.of(new StructType()).copy(lifecycle = creating)
    isStatement(
      Fix.setProperty(table, "delta.enableDeletionVectors", "false"),
      "CREATE TABLE db.t USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', " +
        "'delta.enableIcebergWriterCompatV1' = 'true')"
    )
  }

  test("a property is unset, or a new table made without it") {
    isStatement(
      Fix.unsetProperty(old, "delta.minReaderVersion"),
      "ALTER TABLE db.t UNSET TBLPROPERTIES ('delta.minReaderVersion')"
    )
    isStatement(
      Fix.unsetProperty(old.copy(lifecycle = creating), "delta.minReaderVersion"),
      s"CREATE TABLE db.t (a INT, s STRUCT<x: INT>) USING delta $property"
    )
  }

  test("a new table is made without a constraint") {
    isStatement(
      Fix.dropConstraint(old.copy(lifecycle = creating), "c"),
      s"CREATE TABLE db.t (a INT, s STRUCT<x: INT>) USING delta $property"
    )
  }

  test("an empty struct becomes text wherever it is") {
    val table = CompliantTable.of("s STRUCT<>, l ARRAY<STRUCT<x: STRUCT<>>>")
    isStatement(
      Fix.copyInto(table),
      s"CREATE TABLE db.t_iceberg USING delta $property AS SELECT " +
        "CAST(s AS STRING) AS s, CAST(l AS ARRAY<STRUCT<x: STRING>>) AS l FROM db.t"
    )
  }

  test("a copy that is partitioned by renamed columns renames them") {
    val before = CompliantTable.of("p INT, `my q` INT, v INT").copy(partitionColumns = Seq("p"))
    val after = before.copy(
      schema = changed(changed(before.schema, Seq("p"))(_.copy(name = "new p")), Seq("v"))(
        _.copy(name = "w")
      ),
      partitionColumns = Seq("new p")
    )
    isStatement(
      Fix.repartition(before, after),
      s"CREATE TABLE db.t_iceberg USING delta PARTITIONED BY (`new p`) $property AS SELECT " +
        "p AS `new p`, `my q`, v AS w FROM db.t"
    )
  }

  test("a feature that the table did not have before is had by leaving this one") {
    val with_ = old.copy(
      protocol = ProtocolState(2, 7, None, Some(features + "rowTracking")),
      previous = Some(old)
    )
    assert(
      Fix
        .dropFeature(with_, "rowTracking")
        .text == "ALTER TABLE db.t DROP FEATURE icebergWriterCompatV1"
    )
    assert(
      Fix.dropFeature(with_.copy(previous = Some(with_)), "rowTracking").text ==
        "ALTER TABLE db.t DROP FEATURE rowTracking"
    )
  }
}
