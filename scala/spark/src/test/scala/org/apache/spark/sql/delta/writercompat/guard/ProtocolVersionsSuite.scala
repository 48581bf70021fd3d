package org.apache.spark.sql.delta.writercompat.guard

import io.delta.tables.DeltaTable
import org.apache.spark.sql.delta.DeltaTableFeatureException
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.testing.TestTable

import java.nio.file.Files

/**
 * `delta.minReaderVersion` and `delta.minWriterVersion`, which Delta takes as input and never keeps
 * as properties.
 */
class ProtocolVersionsSuite extends TableSuite {

  private val versions = Seq("delta.minReaderVersion", "delta.minWriterVersion")

  private def pair(reader: Any, writer: Any): String =
    s"'${versions.head}' = '$reader', '${versions.last}' = '$writer'"

  private def assertTaken(table: TestTable): Unit = {
    assertCompliant(table)
    assert(table.log.properties.keySet.intersect(versions.toSet) == Set.empty)
    ()
  }

  test("a new table may name any pair of versions that Delta knows") {
    for ((reader, writer) <- Seq(1, 2, 3).flatMap(r => Seq(1, 2, 4, 5, 6, 7).map(r -> _))) {
      val table = byPath()
      sql(
        s"CREATE TABLE ${table.name} (i INT) USING delta TBLPROPERTIES ($on, ${pair(reader, writer)})"
      )
      assertTaken(table)
    }
  }

  test(
    "a table with the feature may be altered by any pair that Delta lets a table be altered by"
  ) {
    val table = compliant()
    for (reader <- 1 to 3; writer <- 1 to 7) {
      def alter(): Unit =
        sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES (${pair(reader, writer)})")
      if (reader < 3 || writer == 7) alter()
      else {
        val version = table.log.version
        val error = intercept[DeltaTableFeatureException](alter())
        assert(error.getCondition == "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE")
        assert(table.log.version == version)
      }
      assertTaken(table)
    }
    insert(table)
    assertTaken(table)
  }

  test("the versions come by every other door") {
    val (reader, writer) = (versions.head -> "3", versions.last -> "7")
    val both = Seq(reader, writer)
    val feature = "delta.enableIcebergWriterCompatV1" -> "true"
    val created: Seq[TestTable => Unit] = Seq(
      t =>
        byDefault(
          sql(s"CREATE TABLE ${t.name} USING delta TBLPROPERTIES (${pair(3, 7)}) AS $someRows")
        ),
      t => {
        sql(s"CREATE TABLE ${t.name} USING delta AS $someRows")
        sql(
          s"CREATE OR REPLACE TABLE ${t.name} USING delta TBLPROPERTIES ($on, ${pair(2, 5)}) AS $someRows"
        )
      },
      t => {
        val builder =
          DeltaTable.create(spark).tableName(t.name).addColumns(StructType.fromDDL(columns))
        (feature +: both)
          .foldLeft(builder) { case (b, (key, value)) => b.property(key, value) }
          .execute()
        insert(t)
      },
      t => frame.write.format("delta").options((feature +: both).toMap).saveAsTable(t.name),
      t =>
        (feature +: both)
          .foldLeft(frame.writeTo(t.name).using("delta")) { case (w, (key, value)) =>
            w.tableProperty(key, value)
          }
          .create(),
      t =>
        withConf(both.map { case (key, value) =>
          "spark.databricks.delta.properties.defaults." + key.stripPrefix("delta.") -> value
        }: _*)(sql(s"CREATE TABLE ${t.name} USING delta TBLPROPERTIES ($on) AS $someRows")),
      t => {
        sql(s"CREATE TABLE ${t.name} ($columns) USING delta")
        sql(s"ALTER TABLE ${t.name} SET TBLPROPERTIES ($on, ${pair(2, 6)})")
        insert(t)
      },
      t =>
        sql(
          s"CREATE TABLE ${t.name} SHALLOW CLONE ${compliant().name} TBLPROPERTIES (${pair(3, 7)})"
        )
    )
    created.foreach { create =>
      val table = managed()
      create(table)
      assertTaken(table)
      assert(count(table) == 2)
    }
    val saved = byPath()
    frame.write.format("delta").options((feature +: both).toMap).save(saved.folder.toString)
    assertTaken(saved)
  }

  test("versions that Delta does not know are refused by Delta, and leave nothing") {
    Seq((4, 7), (0, 7), (3, 8), ("abc", 7)).foreach { case (reader, writer) =>
      val table = byPath()
      val error = intercept[IllegalArgumentException] {
        sql(
          s"CREATE TABLE ${table.name} (i INT) USING delta TBLPROPERTIES ($on, ${pair(reader, writer)})"
        )
      }
      assert(error.getMessage.contains("needs to be one of"))
      assert(!Files.exists(table.folder))
    }
  }

  test("a version that another writer has stored is refused until it is taken away") {
    val table = byPath()
    compliant(table)
    store(table, versions.last, "7")
    val error = refusedFor("WRONG_REQUIRED_TABLE_PROPERTY", "B10", table)(insert(table))
    sql(error.getMessageParameters.get("fix"))
    insert(table)
    assertTaken(table)
    assert(count(table) == 4)
  }
}
