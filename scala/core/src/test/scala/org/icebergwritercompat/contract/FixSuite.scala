package org.icebergwritercompat.contract

import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.types.{ByteType, ShortType, StructType}
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.{CompliantTable, SchemaRules}
import org.scalatest.funsuite.AnyFunSuite

class FixSuite extends AnyFunSuite {

  private val names = Seq("t", "db.t", "spark_catalog.db.t", "`my db`.`my.t`", "delta.`/tmp/a b`")
  private val lifecycles = Seq(
    Lifecycle.Creating(replacing = false),
    Lifecycle.Creating(replacing = true),
    Lifecycle.Enabling,
    Lifecycle.Changing
  )
  private val ddl = "a INT NOT NULL, `b c` ARRAY<STRUCT<`d.e`: SMALLINT>>, m MAP<STRING, TINYINT>"

  private def table(name: String, lifecycle: Lifecycle) =
    CompliantTable
      .of(ddl)
      .copy(name = name, lifecycle = lifecycle, partitionColumns = Seq("a"))

  // DROP FEATURE is Delta's own statement, which Spark cannot parse.
  private def isSparks(statement: String) = !statement.contains(" DROP FEATURE ")

  private def parse(fix: String): Unit =
    fix.split("\n").filter(isSparks).foreach { statement =>
      assert(CatalystSqlParser.parsePlan(statement).toString.nonEmpty)
    }

  for (name <- names; lifecycle <- lifecycles) {
    val state = table(name, lifecycle)
    val fixes: Seq[(String, Remedy)] =
      Seq(
        "setProperty" -> Fix.setProperty(state, "delta.enableDeletionVectors", "false"),
        "dropFeature" -> Fix.dropFeature(state, "rowTracking"),
        "enable" -> Fix.enable(state),
        "copyInto" -> Fix.copyInto(state)
      ) ++
        state.nodes.filter(n => n.dataType == ByteType || n.dataType == ShortType).map { node =>
          s"useSupportedType(${node.sqlPath})" -> Fix.useSupportedType(state, node)
        }
    for ((fix, remedy) <- fixes; statement = remedy.text)
      test(s"$fix of $name, $lifecycle, is a statement that Spark parses") {
        parse(statement)
        // A path or a quoted name must come out as it went in, for the user to paste.
        assert(statement.contains(name.stripSuffix("`")))
      }
  }

  test("a new table is spelled out with supported types, nullability and partitions") {
    assert(
      Fix.enable(table("db.t", Lifecycle.Creating(replacing = false))).text ==
        "CREATE TABLE db.t (a INT NOT NULL, `b c` ARRAY<STRUCT<`d.e`: INT>>, " +
        "m MAP<STRING, INT>) USING delta PARTITIONED BY (a) " +
        "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
    )
  }

  test("a very wide table is spelled out to its end") {
    val wide = CompliantTable.of((1 to 100).map(i => s"c$i INT").mkString(", "))
    val fix = Fix.enable(wide.copy(lifecycle = Lifecycle.Creating(replacing = false))).text
    parse(fix)
    assert(fix.contains("c40 INT, c41 INT") && fix.contains("c100 INT)"))
  }

  test("rows are copied with casts only where a type must change") {
    assert(
      Fix.copyInto(table("db.t", Lifecycle.Enabling)).text ==
        "CREATE TABLE db.t_iceberg USING delta PARTITIONED BY (a) " +
        "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT a, " +
        "CAST(`b c` AS ARRAY<STRUCT<`d.e`: INT>>) AS `b c`, " +
        "CAST(m AS MAP<STRING, INT>) AS m FROM db.t"
    )
  }

  test("a quoted table is copied into one whose quotes fit") {
    assert(
      Fix
        .copyInto(table("delta.`/tmp/a b`", Lifecycle.Enabling))
        .text
        .startsWith("CREATE TABLE delta.`/tmp/a b_iceberg` USING delta")
    )
  }

  private def fixesOf(
      lifecycle: Lifecycle,
      ddl: String,
      before: Option[StructType] = None
  ): Seq[String] = {
    val state =
      CompliantTable
        .of(ddl)
        .copy(lifecycle = lifecycle, previous = before.map(schema => CompliantTable.of(schema)))
    SchemaRules.TypesAreSupported.check(state).map(_.remedy.text)
  }

  test("on enabling, a short becomes an int if asked, and anything else is copied") {
    assert(
      fixesOf(Lifecycle.Enabling, "s STRUCT<x: SMALLINT, v: VARIANT>") == Seq(
        "CALL iceberg_writer_compat.system.enable(table => 'db.t', rewrite => true)",
        "CREATE TABLE db.t_iceberg USING delta " +
          "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true') " +
          "AS SELECT CAST(s AS STRUCT<x: INT, v: STRING>) AS s FROM db.t"
      )
    )
  }

  // Only a field can be added or dropped by itself; an element, key or value comes with its column.
  for {
    (before, ddl, added) <- Seq(
      ("", "l ARRAY<SMALLINT>", "l ARRAY<INT>"),
      ("", "m MAP<STRING, VARIANT>", "m MAP<STRING, STRING>"),
      ("s STRUCT<>", "s STRUCT<n: ARRAY<ARRAY<TINYINT>>>", "s.n ARRAY<ARRAY<INT>>")
    )
  } test(s"a column $ddl that is refused is added as $added") {
    val was =
      if (before.isEmpty) new StructType() else CompliantTable.withIds(StructType.fromDDL(before))
    assert(
      fixesOf(Lifecycle.Changing, ddl, Some(was)) == Seq(s"ALTER TABLE db.t ADD COLUMNS ($added)")
    )
  }

  test("a column that a table has already is copied as another type") {
    assert(
      fixesOf(Lifecycle.Changing, "l ARRAY<SMALLINT>") == Seq(
        "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
          "('delta.enableIcebergWriterCompatV1' = 'true') " +
          "AS SELECT CAST(l AS ARRAY<INT>) AS l FROM db.t"
      )
    )
  }

  for {
    (ddl, copied) <- Seq(
      "m MAP<STRING, VARIANT>" -> "CAST(m AS MAP<STRING, STRING>) AS m",
      "s STRUCT<n: ARRAY<VARIANT>>" -> "CAST(s AS STRUCT<n: ARRAY<STRING>>) AS s"
    )
  } test(s"on enabling, the unsupported part of $ddl is copied as text, and not lost") {
    assert(
      fixesOf(Lifecycle.Enabling, ddl) == Seq(
        "CREATE TABLE db.t_iceberg USING delta TBLPROPERTIES " +
          s"('delta.enableIcebergWriterCompatV1' = 'true') AS SELECT $copied FROM db.t"
      )
    )
  }

  test("names that need quotes are quoted in a fix") {
    assert(
      fixesOf(
        Lifecycle.Changing,
        "`my s` STRUCT<`x.y`: SMALLINT>",
        Some(CompliantTable.withIds(StructType.fromDDL("`my s` STRUCT<>")))
      ) == Seq("ALTER TABLE db.t ADD COLUMNS (`my s`.`x.y` INT)")
    )
  }

  test("a property's fix keeps to the table's own columns") {
    assert(
      StructType
        .fromDDL(ddl)
        .fieldNames
        .forall(name =>
          Fix
            .setProperty(table("db.t", Lifecycle.Creating(replacing = true)), "k", "v")
            .text
            .contains(name)
        )
    )
  }
}
