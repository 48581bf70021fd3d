package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.streaming.{StreamingQueryException, Trigger}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{LoggedColumn, TestTable}

/** A compliant table stays so, whatever becomes of its schema. */
class EvolutionSuite extends TableSuite {

  private def fields(table: TestTable): Map[String, LoggedColumn] =
    table.log.columns.flatMap(_.below).toMap

  /** Every id, of fields, elements, keys and values. */
  private def ids(table: TestTable): Set[Long] =
    fields(table).values.flatMap(field => (field.id +: field.nestedIds).flatten).toSet

  /** Runs a change, which must assign only new ids. */
  private def evolve(table: TestTable)(change: => Unit): Unit = {
    val (before, idsBefore) = (maxColumnId(table), ids(table))
    change
    assertCompliant(table)
    assert(maxColumnId(table) >= before)
    assert((ids(table) -- idsBefore).forall(_ > before))
    ()
  }

  private def alter(table: TestTable, change: String): Unit =
    sql(s"ALTER TABLE ${table.name} $change")

  private val added: Seq[(String, Seq[String])] = Seq(
    "more INT" -> Seq("more"),
    "more STRUCT<p: ARRAY<MAP<STRING, STRUCT<q: INT>>>>" -> Seq(
      "more",
      "more.p",
      "more.p.element.value.q"
    ),
    "s.more INT" -> Seq("s.more"),
    "s.y.more ARRAY<ARRAY<INT>>" -> Seq("s.y.more"),
    "tags.element.more STRUCT<q: INT>" -> Seq("tags.element.more", "tags.element.more.q"),
    "attrs.value.more MAP<INT, STRUCT<q: INT>>" ->
      Seq("attrs.value.more", "attrs.value.more.value.q")
  )

  for ((column, paths) <- added)
    test(s"ADD COLUMN $column") {
      val table = compliant()
      val before = fields(table)
      evolve(table)(alter(table, s"ADD COLUMNS ($column)"))
      assert(fields(table).keySet == before.keySet ++ paths)
      // What was there keeps its id and name.
      before.foreach { case (path, field) =>
        assert(fields(table)(path).id == field.id && fields(table)(path).name == field.name)
      }
      val path = spark.table(table.name).columns.map(c => s"`$c`").mkString(", ")
      evolve(table)(sql(s"INSERT INTO ${table.name} SELECT $path FROM ${table.name}"))
      assert(count(table) == 4)
    }

  for (where <- Seq("FIRST", "AFTER id"))
    test(s"ADD COLUMN more INT $where") {
      val table = compliant()
      evolve(table)(alter(table, s"ADD COLUMNS (more INT $where)"))
      evolve(table)(alter(table, "ALTER COLUMN day FIRST"))
      assert(table.log.columns.head.name == "day")
    }

  for ((old, renamed) <- Seq("name" -> "full_name", "s.x" -> "w", "tags.element.v" -> "w"))
    test(s"RENAME COLUMN $old keeps the id, the physical name and the rows") {
      val table = compliant()
      val before = fields(table)(old)
      evolve(table)(alter(table, s"RENAME COLUMN $old TO $renamed"))
      val path = (old.split('.').init :+ renamed).mkString(".")
      val after = fields(table)(path)
      assert((after.id, after.physicalName) == ((before.id, before.physicalName)))
      assert(!fields(table).contains(old))
      insert(table)
      assertCompliant(table)
      assert(count(table) == 4)
    }

  for (column <- Seq("name", "s.y", "tags.element.v", "attrs.value.b", "deep"))
    test(s"DROP COLUMN $column, and ADD it again under a new id") {
      val table = compliant()
      val before = fields(table)(column)
      evolve(table)(alter(table, s"DROP COLUMN $column"))
      assert(!fields(table).contains(column))
      evolve(table)(alter(table, s"ADD COLUMNS ($column ARRAY<STRUCT<q: INT>>)"))
      assert(fields(table)(column).id.get > before.id.get)
      assert(fields(table)(column).nestedIds.flatten.forall(_ > before.id.get))
    }

  test("a comment and a NOT NULL that goes leave ids alone") {
    val table = managed()
    sql(
      s"CREATE TABLE ${table.name} (a INT NOT NULL, l ARRAY<INT>) USING delta " +
        s"TBLPROPERTIES ($on)"
    )
    sql(s"INSERT INTO ${table.name} VALUES (1, array(1))")
    val before = ids(table)
    evolve(table)(alter(table, "ALTER COLUMN l COMMENT 'numbers'"))
    evolve(table)(alter(table, "ALTER COLUMN a DROP NOT NULL"))
    assert(ids(table) == before)
  }

  private def more = spark
    .sql(
      s"SELECT *, array(map('k', named_struct('q', 1))) AS more, " +
        s"named_struct('x', s.x, 'y', named_struct('z', s.y.z, 'u', array(1))) AS s2 " +
        s"FROM ($someRows)"
    )
    .drop("s")
    .withColumnRenamed("s2", "s")

  test("mergeSchema, top level and nested, by name") {
    val table = compliant()
    evolve(table) {
      more.write
        .format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .saveAsTable(table.name)
    }
    assert(fields(table).contains("more.element.value.q"))
    assert(fields(table).contains("s.y.u"))
    assert(count(table) == 4)
  }

  test("mergeSchema by path") {
    val table = compliant(byPath())
    evolve(table) {
      more.write
        .format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .save(table.folder.toString)
    }
    assert(count(table) == 4)
  }

  test("MERGE WITH SCHEMA EVOLUTION") {
    val table = compliant()
    more.createOrReplaceTempView("merge_source")
    evolve(table) {
      sql(
        s"MERGE WITH SCHEMA EVOLUTION INTO ${table.name} t " +
          "USING (SELECT id + 1 AS id, * EXCEPT (id) FROM merge_source) u " +
          "ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
      )
    }
    assert(fields(table).contains("more.element.value.q"))
    assert(fields(table).contains("s.y.u"))
    assert(count(table) == 3)
  }

  private def overwrite(table: TestTable, query: String): Unit = spark
    .sql(query)
    .write
    .format("delta")
    .mode("overwrite")
    .option("overwriteSchema", "true")
    .saveAsTable(table.name)

  private val overwrites: Seq[(String, String)] = Seq(
    "a new column and a column less" -> "SELECT * EXCEPT (deep), array(map('k', 1)) AS more",
    "columns in another order" -> "SELECT day, * EXCEPT (day)",
    "a field more in a struct" ->
      "SELECT * EXCEPT (s), named_struct('x', s.x, 'y', s.y, 'w', array(1)) AS s",
    "a field less in a list" ->
      "SELECT * EXCEPT (tags), array(named_struct('k', 'p')) AS tags",
    "a field more in a map's value" ->
      "SELECT * EXCEPT (attrs), map('q', named_struct('a', 1, 'c', 2)) AS attrs",
    "other columns altogether" -> "SELECT id AS other, array(struct(id)) AS more"
  )

  for ((what, query) <- overwrites)
    test(s"overwriteSchema with $what") {
      val table = compliant()
      evolve(table)(overwrite(table, s"$query FROM ($someRows)"))
      assert(count(table) == 2)
    }

  test("overwriteSchema by path") {
    val table = compliant(byPath())
    evolve(table) {
      frame
        .selectExpr("*", "array(map('k', 1)) AS more")
        .write
        .format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .save(table.folder.toString)
    }
    assert(count(table) == 2)
  }

  private def stream(source: TestTable, target: TestTable, merge: Boolean): Unit =
    spark.readStream
      .table(source.name)
      .writeStream
      .format("delta")
      .option("mergeSchema", merge.toString)
      .option("checkpointLocation", byPath().folder.toString)
      .trigger(Trigger.AvailableNow())
      .toTable(target.name)
      .awaitTermination()

  test("a stream appends, and its new columns get ids and names") {
    val (source, table) = (plain(), compliant())
    evolve(table)(stream(source, table, merge = false))
    alter(source, "ADD COLUMNS (more ARRAY<STRUCT<q: INT>>)")
    evolve(table)(stream(source, table, merge = true))
    assert(fields(table).contains("more.element.q"))
    assert(count(table) == 6)
  }

  test("a stream that brings an unsupported type stops with the refusal") {
    val (source, table) = (plain(), compliant())
    alter(source, "ADD COLUMNS (b SMALLINT)")
    val version = table.log.version
    val error = intercept[StreamingQueryException](stream(source, table, merge = true))
    val causes = Iterator.iterate[Throwable](error)(_.getCause).takeWhile(_ != null).toSeq
    assert(causes.exists {
      case e: IcebergWriterCompatException => e.getCondition.endsWith(".UNSUPPORTED_DATA_TYPE")
      case _                               => false
    })
    assert(table.log.version == version)
    assertCompliant(table)
  }

  private val refusals: Seq[(String, TestTable => Unit)] = Seq(
    "ADD COLUMN" -> { table => alter(table, "ADD COLUMNS (b SMALLINT)") },
    "ADD COLUMN below an array" -> { table =>
      alter(table, "ADD COLUMNS (tags.element.b TINYINT)")
    },
    "mergeSchema" -> { table =>
      frame
        .selectExpr("*", "1S AS b")
        .write
        .format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .saveAsTable(table.name)
    },
    "overwriteSchema" -> { table =>
      frame
        .selectExpr("*", "map('k', 1Y) AS b")
        .write
        .format("delta")
        .mode("overwrite")
        .option("overwriteSchema", "true")
        .saveAsTable(table.name)
    },
    "MERGE WITH SCHEMA EVOLUTION" -> { table =>
      frame.selectExpr("*", "1S AS b").createOrReplaceTempView("short_source")
      sql(
        s"MERGE WITH SCHEMA EVOLUTION INTO ${table.name} t USING short_source u " +
          "ON t.id = u.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
      )
    },
    "REPLACE TABLE" -> { table => sql(s"REPLACE TABLE ${table.name} (b SMALLINT) USING delta") },
    "CREATE OR REPLACE TABLE AS SELECT" -> { table =>
      sql(s"CREATE OR REPLACE TABLE ${table.name} USING delta AS SELECT 1S AS b")
    }
  )

  for ((way, change) <- refusals)
    test(s"a SMALLINT is refused with nothing written: $way") {
      val table = compliant()
      refusedFor("UNSUPPORTED_DATA_TYPE", "C7", table)(change(table))
      assert(count(table) == 2)
      assertCompliant(table)
    }

  for (column <- Seq("b SMALLINT", "s.b TINYINT", "b ARRAY<SMALLINT>", "b MAP<STRING, TINYINT>"))
    test(s"the statement that a refused ADD COLUMNS ($column) ends with does run") {
      val table = compliant()
      val error = refusedFor("UNSUPPORTED_DATA_TYPE", "C7", table) {
        alter(table, s"ADD COLUMNS ($column)")
      }
      evolve(table)(sql(error.getMessageParameters.get("fix")))
      assert(fields(table).contains(column.split(' ').head))
    }

  private val rowChanges: Seq[(String, TestTable => Unit)] = Seq(
    "INSERT" -> { table => insert(table) },
    "append by DataFrame" -> { table =>
      frame.write.format("delta").mode("append").saveAsTable(table.name)
    },
    "append by DataFrameWriterV2" -> { table => frame.writeTo(table.name).append() },
    "overwrite" -> { table =>
      frame.write.format("delta").mode("overwrite").insertInto(table.name)
    },
    "UPDATE" -> { table => sql(s"UPDATE ${table.name} SET name = 'x' WHERE id = 0") },
    "DELETE" -> { table => sql(s"DELETE FROM ${table.name} WHERE id = 0") },
    "OPTIMIZE" -> { table => insert(table); sql(s"OPTIMIZE ${table.name}") },
    "REORG PURGE" -> { table =>
      alter(table, "DROP COLUMN name")
      sql(s"REORG TABLE ${table.name} APPLY (PURGE)")
    }
  )

  for ((way, change) <- rowChanges)
    test(s"$way changes rows and nothing else") {
      val table = compliant()
      change(table)
      assertCompliant(table)
      assert(table.log.lastKinds.intersect(Set("metaData", "protocol", "cdc")) == Set.empty)
      assert(table.log.lastKinds.contains("add"))
    }
}
