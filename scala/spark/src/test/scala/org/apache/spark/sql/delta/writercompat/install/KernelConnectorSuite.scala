package org.apache.spark.sql.delta.writercompat.install

import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.streaming.Trigger
import org.icebergwritercompat.testing.{SharedSpark, TestTable}

/** Delta's connector on Kernel, which a test setting of Delta puts in charge of every table. */
class KernelConnectorSuite extends TableSuite {

  private val mode = "spark.databricks.delta.v2.enableMode"

  private def strictly[T](body: => T): T = withConf(mode -> "STRICT")(body)

  private def created(properties: String): TestTable = {
    val table = managed()
    sql(s"CREATE TABLE ${table.name} (id BIGINT) USING delta TBLPROPERTIES ($properties)")
    sql(s"INSERT INTO ${table.name} VALUES (1)")
    table
  }

  private def row = spark.range(2, 3).toDF("id")

  private lazy val source: TestTable = {
    val table = byPath()
    row.write.format("delta").save(table.folder.toString)
    table
  }

  private def stream(table: TestTable): Unit =
    spark.readStream
      .format("delta")
      .load(source.folder.toString)
      .writeStream
      .format("delta")
      .option("checkpointLocation", SharedSpark.freshFolder().toString)
      .trigger(Trigger.AvailableNow())
      .toTable(table.name)
      .awaitTermination()

  private val writes: Seq[(String, TestTable => Unit)] = Seq(
    "INSERT INTO" -> (table => sql(s"INSERT INTO ${table.name} VALUES (2)")),
    "INSERT INTO a path" -> (table => sql(s"INSERT INTO delta.`${table.folder}` VALUES (2)")),
    "insertInto" -> (table => row.write.insertInto(table.name)),
    "saveAsTable" -> (table => row.write.format("delta").mode("append").saveAsTable(table.name)),
    "writeTo" -> (table => row.writeTo(table.name).append()),
    "a stream by toTable" -> stream
  )

  for ((way, write) <- writes) {
    test(s"$way: Kernel's write to a table with the feature is refused, Delta's is not") {
      val table = created(on)
      val error = refused(table)(strictly(write(table)))
      assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UNGUARDED_WRITE")
      assert(error.getMessageParameters.get("setting") == mode)
      strictly {
        sql(error.getMessageParameters.get("fix"))
        write(table)
      }
      assert(rows(s"SELECT * FROM ${table.name}") == Set("[1]", "[2]"))
      assertCompliant(table)
    }

    test(s"$way: Kernel's write to a table without the feature is Kernel's business") {
      val table = created("'delta.columnMapping.mode' = 'none'")
      strictly(write(table))
      assert(writer(table).contains("Kernel"), writer(table))
      assert(rows(s"SELECT * FROM ${table.name}") == Set("[1]", "[2]"))
    }
  }

  private val changes: Seq[(String, TestTable => String)] = Seq(
    "DELETE" -> (table => s"DELETE FROM ${table.name}"),
    "DELETE of a partition" -> (table => s"DELETE FROM ${table.name} WHERE p = 1"),
    "TRUNCATE" -> (table => s"TRUNCATE TABLE ${table.name}"),
    "UPDATE" -> (table => s"UPDATE ${table.name} SET id = 5"),
    "MERGE" -> (table =>
      s"MERGE INTO ${table.name} USING (SELECT 1 AS id) s ON ${table.name}.id = s.id " +
        "WHEN MATCHED THEN DELETE"
    )
  )

  // Of these, Kernel's connector has a DELETE of its own in Delta releases after 4.4.
  for ((way, statement) <- changes)
    test(s"$way: Kernel's change to a table with the feature is refused, Delta's is not") {
      val table = managed()
      sql(
        s"CREATE TABLE ${table.name} (id BIGINT, p INT) USING delta PARTITIONED BY (p) " +
          s"TBLPROPERTIES ($on)"
      )
      sql(s"INSERT INTO ${table.name} VALUES (1, 1)")
      val error = refused(table)(strictly(sql(statement(table))))
      assert(error.getCondition == "DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.UNGUARDED_WRITE")
      strictly {
        sql(error.getMessageParameters.get("fix"))
        // Delta has no TRUNCATE.
        if (way != "TRUNCATE") sql(statement(table))
      }
      val left = if (way == "UPDATE") Set("[5]") else Set.empty
      if (way != "TRUNCATE") assert(rows(s"SELECT id FROM ${table.name}") == left)
      assertCompliant(table)
    }

  test("a table with the feature can be read by Kernel's connector") {
    val table = created(on)
    assert(strictly(rows(s"SELECT * FROM ${table.name}")) == Set("[1]"))
  }

  private def writer(table: TestTable): String =
    table.log
      .actions(table.log.version)
      .collectFirst { case ("commitInfo", info) => info.path("engineInfo").asText }
      .getOrElse("")
}
