package org.apache.spark.sql.delta.writercompat.guard

import io.delta.tables.DeltaTable
import org.apache.iceberg.data.IcebergGenerics
import org.apache.iceberg.expressions.Expressions
import org.apache.spark.sql.delta.schema.DeltaInvariantViolationException
import org.apache.spark.sql.delta.writercompat.publish.PublishedSuite
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.apache.spark.sql.streaming.Trigger
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.TestTable

import java.nio.file.Files
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * CHAR and VARCHAR, which Delta keeps as strings with a length beside: what Delta shows is what
 * readers of Iceberg find.
 */
class CharVarcharSuite extends PublishedSuite {

  private val property = "delta.enableIcebergWriterCompatV1"

  private val texts = "id INT, c CHAR(5), v VARCHAR(5), s STRUCT<c: CHAR(3), i: INT>, " +
    "a ARRAY<CHAR(3)>, m MAP<CHAR(2), VARCHAR(3)>"

  private def row(id: Int): String =
    s"SELECT $id AS id, 'ab' AS c, 'ab' AS v, named_struct('c', 'x', 'i', 1) AS s, " +
      "array('y', null) AS a, map('k', 'v') AS m"

  private val filled = "[ab   ,ab,x  ,y  ,v]"

  private def shown(table: TestTable): Set[String] =
    rows(s"SELECT c, v, s.c, a[0], map_values(m)[0] FROM ${table.name}")

  /** The log has strings only, and the files what is shown, also where Spark fills nothing up. */
  private def assertStrings(table: TestTable): Unit = {
    assertCompliant(table)
    val kinds = "\"(type|elementType|keyType|valueType)\":\"(var)?char".r
    assert(kinds.findFirstIn(table.log.schemaString).isEmpty)
    val stored = withConf("spark.sql.readSideCharPadding" -> "false") {
      inDelta(spark.table(table.name))
    }
    assert(stored == inDelta(spark.table(table.name)))
  }

  private def create(properties: String = on, more: String = ""): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} ($texts) USING delta $more TBLPROPERTIES ($properties)")
    table
  }

  test("a column whose name is the physical name of a CHAR column is not filled up") {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (`col-2` STRING, c CHAR(3)) USING delta TBLPROPERTIES ($on)")
    sql(s"INSERT INTO ${table.name} VALUES ('a', 'b')")
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[a,b  ]"))
  }

  test("for every writer, Delta and Iceberg show the same") {
    val table = create()
    val source = managed()
    sql(s"CREATE TABLE ${source.name} USING delta AS ${row(1)}")
    def frame = spark.sql(row(2))
    sql(s"INSERT INTO ${table.name} ${row(3)}")
    sql(s"INSERT INTO delta.`${table.folder}` ${row(4)}")
    frame.write.format("delta").mode("append").save(table.folder.toString)
    frame.write.format("delta").mode("append").saveAsTable(table.name)
    frame.write.insertInto(table.name)
    frame.writeTo(table.name).append()
    spark.readStream
      .table(source.name)
      .writeStream
      .format("delta")
      .option("checkpointLocation", Files.createTempDirectory("checkpoint").toString)
      .trigger(Trigger.AvailableNow())
      .toTable(table.name)
      .awaitTermination()
    DeltaTable
      .forName(spark, table.name)
      .as("t")
      .merge(spark.sql(row(5)).as("s"), "t.id = s.id")
      .whenNotMatched()
      .insertAll()
      .execute()
    sql(s"UPDATE ${table.name} SET c = 'ab', s = named_struct('c', 'x', 'i', 2) WHERE id = 5")
    frame.write
      .format("delta")
      .mode("overwrite")
      .option("replaceWhere", "id = 2")
      .saveAsTable(table.name)
    sql(s"OPTIMIZE ${table.name}")
    assert(shown(table) == Set(filled))
    assertStrings(table)
    publish(table)
    assertPublished(table)
    assert(rows(s"SELECT * FROM iceberg_writer_compat_verify('${table.name}')") == Set.empty)
    // How long a value may be is Delta's matter.
    Seq("c" -> "abcdef", "v" -> "abcdef").foreach { case (column, long) =>
      val error = intercept[DeltaInvariantViolationException] {
        frame
          .withColumn(column, org.apache.spark.sql.functions.lit(long))
          .writeTo(table.name)
          .append()
      }
      assert(error.getCondition == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT")
    }
  }

  test("a column of CHAR or VARCHAR is added, widened, and made a plain string") {
    val table = create()
    sql(s"INSERT INTO ${table.name} ${row(1)}")
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (w VARCHAR(4), x CHAR(2), n STRUCT<c: CHAR(4)>)")
    sql(s"ALTER TABLE ${table.name} ADD COLUMNS (n.d CHAR(3))")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN v TYPE VARCHAR(10)")
    sql(s"ALTER TABLE ${table.name} ALTER COLUMN w TYPE STRING")
    sql(
      s"INSERT INTO ${table.name} SELECT *, 'long enough' AS w, 'x' AS x, " +
        s"named_struct('c', 'y', 'd', 'z') AS n FROM (${row(2)})"
    )
    publish(table)
    assertPublished(table)
    assertCompliant(table)
    assert(rows(s"SELECT w, x, n.c FROM ${table.name} WHERE id = 2").size == 1)
  }

  test("a table of CHAR and VARCHAR comes to be by every door") {
    val source = create()
    sql(s"INSERT INTO ${source.name} ${row(1)}")
    val named = Seq[TestTable => Unit](
      t => sql(s"CREATE OR REPLACE TABLE ${t.name} ($texts) USING delta TBLPROPERTIES ($on)"),
      t => sql(s"CREATE TABLE ${t.name} LIKE ${source.name}"),
      t => {
        sql(s"CREATE TABLE ${t.name} (c CHAR(9)) USING delta")
        sql(s"REPLACE TABLE ${t.name} ($texts) USING delta TBLPROPERTIES ($on)")
      },
      t =>
        texts
          .split(", (?=[a-z]+ [A-Z])")
          .map(_.split(" ", 2))
          .foldLeft(DeltaTable.create(spark).tableName(t.name)) { (builder, column) =>
            builder.addColumn(column(0), column(1))
          }
          .property(property, "true")
          .execute(),
      t =>
        spark
          .table(source.name)
          .where("false")
          .writeTo(t.name)
          .using("delta")
          .tableProperty(property, "true")
          .create(),
      t =>
        sql(
          s"CREATE TABLE ${t.name} USING delta TBLPROPERTIES ($on) AS SELECT * FROM ${source.name} WHERE false"
        ),
      t => {
        sql(s"CREATE TABLE ${t.name} ($texts) USING delta")
        sql(s"ALTER TABLE ${t.name} SET TBLPROPERTIES ($on)")
      }
    )
    named.foreach { create =>
      val table = managed()
      create(table)
      sql(s"INSERT INTO ${table.name} ${row(1)}")
      assert(shown(table) == Set(filled))
      assertStrings(table)
    }
  }

  test("a partition by CHAR is found by its value") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (id INT, c CHAR(5)) USING delta PARTITIONED BY (c) " +
        s"TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, 'ab'), (2, 'cd'), (3, null)")
    spark
      .sql("SELECT 4 AS id, 'ab' AS c")
      .write
      .format("delta")
      .mode("append")
      .save(table.folder.toString)
    publish(table)
    assertPublished(table)
    assertStrings(table)
    val found = IcebergGenerics.read(iceberg(table)).where(Expressions.equal("c", "ab   ")).build()
    val ids = Using.resource(found)(_.asScala.map(_.getField("id").toString).toSet)
    assert(ids == Set("1", "4"))
    assert(rows(s"SELECT id FROM ${table.name} WHERE c = 'ab'") == Set("[1]", "[4]"))
    assert(rows(s"SELECT * FROM iceberg_writer_compat_verify('${table.name}')") == Set.empty)
  }

  test("an upgrade rewrites files whose CHAR values may not be padded") {
    val table = create("'delta.columnMapping.mode' = 'id', 'delta.enableIcebergCompatV2' = 'true'")
    sql(s"INSERT INTO ${table.name} ${row(1)}")
    def upgrade(rewrite: Boolean) = TableUpgrade.of(spark, table.name, "auto", rewrite, Nil).run()
    val before = inDelta(spark.table(table.name))
    val error = intercept[IcebergWriterCompatException](upgrade(rewrite = false))
    assert(error.getMessage.contains("Column c is or contains a CHAR"))
    assert(upgrade(rewrite = true).changed)
    assert(inDelta(spark.table(table.name)) == before)
    assertStrings(table)
    publish(table)
    assertPublished(table)
    // What is written while the feature is off comes without the spaces.
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    sql(s"INSERT INTO ${table.name} ${row(2)}")
    val refusal = refused(table)(sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)"))
    assert(refusal.getMessageParameters.get("rule") == "C7")
    assert(refusal.getMessage.contains("column c "))
    assert(upgrade(rewrite = true).changed)
    assertStrings(table)
    assert(shown(table) == Set(filled))
    // Without CHAR, all files stay.
    val varying = managed()
    sql(
      s"CREATE TABLE ${varying.name} (v VARCHAR(5)) USING delta TBLPROPERTIES " +
        "('delta.columnMapping.mode' = 'id', 'delta.enableIcebergCompatV2' = 'true')"
    )
    sql(s"INSERT INTO ${varying.name} VALUES ('ab')")
    assert(
      TableUpgrade.of(spark, varying.name, "auto", rewrite = false, Nil).run().filesRewritten == 0
    )
  }
}
