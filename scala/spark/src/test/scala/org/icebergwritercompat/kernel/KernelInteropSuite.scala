package org.icebergwritercompat.kernel

import io.delta.kernel.types._
import org.apache.spark.sql.Row
import org.apache.spark.sql.delta.writercompat.upgrade.TableUpgrade
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.testing.{Compliance, SharedSpark, TestTable}
import org.scalatest.funsuite.AnyFunSuite

import java.time.{Instant, LocalDate}

/** The same tables in the hands of Delta Kernel and of a guarded session. */
class KernelInteropSuite extends AnyFunSuite with SharedSpark {

  private val property = "delta.enableIcebergWriterCompatV1"

  // The partition column stands in the middle: in a file it need not.
  private val columns =
    "id INT NOT NULL, name STRING, p STRING, s STRUCT<x: INT, y: STRUCT<z: DATE>>, " +
      "l ARRAY<STRUCT<v: INT>>, m MAP<STRING, ARRAY<INT>>, ts TIMESTAMP, d DECIMAL(12, 3)"

  private val kernelSchema: StructType = {
    val z = new StructType().add("z", DateType.DATE)
    new StructType()
      .add("id", IntegerType.INTEGER, false)
      .add("name", StringType.STRING)
      .add("p", StringType.STRING)
      .add("s", new StructType().add("x", IntegerType.INTEGER).add("y", z))
      .add("l", new ArrayType(new StructType().add("v", IntegerType.INTEGER), true))
      .add("m", new MapType(StringType.STRING, new ArrayType(IntegerType.INTEGER, true), true))
      .add("ts", TimestampType.TIMESTAMP)
      .add("d", new DecimalType(12, 3))
  }

  private def partition(id: Int): String = if (id % 3 == 0) "x y/z" else s"p${id % 3}"

  private def instant(id: Int): Instant =
    Instant.parse("2026-11-18T12:34:56.789012Z").plusSeconds(id.toLong)

  private def decimal(id: Int): java.math.BigDecimal = new java.math.BigDecimal(s"$id.125")

  private def day(id: Int): LocalDate = LocalDate.parse("1969-12-30").plusDays(id.toLong)

  /** A row of the first schema; every fourth has as many nulls as may be. */
  private def first(id: Int): Record =
    if (id % 4 == 0) Record(id, null, partition(id), null, null, null, null, null)
    else
      Record(
        id,
        s"n$id",
        partition(id),
        Record(id * 10, Record(day(id))),
        Seq(Record(id), null, Record(null)),
        Map("k" -> Seq[Any](id, null), s"k$id" -> Nil),
        instant(id),
        decimal(id)
      )

  private val evolution =
    "ADD COLUMNS (e BIGINT, s.w STRING, s.y.u ARRAY<INT>, l.element.q MAP<INT, DATE>)"

  /** A row of the first schema, as it looks after the evolution. */
  private def evolved(record: Record): Record = {
    def plus(value: Any)(more: Any*): Any = value match {
      case Record(values @ _*) => Record(values ++ more: _*)
      case other               => other
    }
    val values = record.values.zipWithIndex.map {
      case (Record(x, y), 3)     => Record(x, plus(y)(null), null)
      case (elements: Seq[_], 4) => elements.map(plus(_)(null))
      case (value, _)            => value
    }
    Record(values :+ null: _*)
  }

  /** A row of the evolved schema. */
  private def second(id: Int): Record = Record(
    id,
    s"m$id",
    partition(id),
    Record(id, Record(day(id), Seq[Any](id, null)), "w"),
    Seq(Record(id, Map(id -> day(id))), null),
    Map("k" -> null),
    instant(id),
    decimal(id),
    id * 5000000000L
  )

  private def toSpark(value: Any): Any = value match {
    case Record(values @ _*) => Row(values.map(toSpark): _*)
    case elements: Seq[_]    => elements.map(toSpark)
    case entries: Map[_, _]  => entries.map { case (k, v) => toSpark(k) -> toSpark(v) }
    case other               => other
  }

  private def fromSpark(value: Any): Any = value match {
    case row: Row                      => Record(row.toSeq.map(fromSpark): _*)
    case elements: collection.Seq[_]   => elements.map(fromSpark).toSeq
    case entries: collection.Map[_, _] =>
      entries.map { case (k, v) => fromSpark(k) -> fromSpark(v) }.toMap
    case other => other
  }

  private def path(table: TestTable): String = table.folder.toString

  private def frame(table: TestTable, records: Seq[Record]) = {
    import scala.jdk.CollectionConverters._
    val schema = spark.read.format("delta").load(path(table)).schema
    spark.createDataFrame(records.map(toSpark(_).asInstanceOf[Row]).asJava, schema)
  }

  private def sparkAppends(table: TestTable, records: Record*): Unit =
    frame(table, records).write.format("delta").mode("append").save(path(table))

  private def sparkReads(table: TestTable): Seq[Record] =
    withConf("spark.sql.datetime.java8API.enabled" -> "true") {
      val rows = spark.read.format("delta").load(path(table)).collect().toSeq
      rows.map(fromSpark(_).asInstanceOf[Record])
    }

  private def byId(records: Iterable[Record]): Seq[Record] =
    records.toSeq.sortBy(_.values.head.asInstanceOf[Int])

  private def allSee(table: TestTable, kernel: KernelTable, expected: Iterable[Record]): Unit = {
    assert(byId(kernel.rows()) == byId(expected))
    assert(byId(sparkReads(table)) == byId(expected))
    assert(Compliance.problems(table) == Nil)
  }

  /** Updates the rows 2 and 4 and inserts row 20. */
  private def sparkMerges(table: TestTable): Unit = {
    frame(table, Seq(second(2), second(4), second(20))).createOrReplaceTempView("source")
    sql(
      s"MERGE INTO ${table.name} t USING source ON t.id = source.id " +
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
  }

  for ((partitionColumns, kind) <- Seq(Nil -> "an unpartitioned", Seq("p") -> "a partitioned")) {

    test(s"Kernel creates $kind table, Spark appends, evolves and merges, Kernel appends again") {
      val table = byPath()
      val kernel = new KernelTable(table.folder)
      kernel.create(kernelSchema, partitionColumns, Map(property -> "true"), (1 to 4).map(first))
      assert(IcebergWriterCompat.isEnabled(spark, path(table)))
      allSee(table, kernel, (1 to 4).map(first))

      sparkAppends(table, (5 to 8).map(first): _*)
      allSee(table, kernel, (1 to 8).map(first))

      val before = table.log.columns.flatMap(_.below).toMap
      sql(s"ALTER TABLE ${table.name} $evolution")
      allSee(table, kernel, (1 to 8).map(first).map(evolved))
      // What was there keeps the ids that Kernel gave it.
      val after = table.log.columns.flatMap(_.below).toMap
      assert(before.keySet.subsetOf(after.keySet))
      assert(before.keys.forall(column => before(column).id == after(column).id))

      sparkMerges(table)
      val merged =
        (1 to 8).filterNot(Set(2, 4)).map(id => evolved(first(id))) ++ Seq(2, 4, 20).map(second)
      allSee(table, kernel, merged)

      kernel.append((30 to 33).map(second): _*)
      allSee(table, kernel, merged ++ (30 to 33).map(second))

      // And the table has not become one that Spark can only read.
      sql(s"DELETE FROM ${table.name} WHERE id IN (1, 30)")
      allSee(
        table,
        kernel,
        (merged ++ (30 to 33).map(second)).filterNot(r => Set[Any](1, 30)(r.values.head))
      )
    }

    test(s"Spark creates $kind table, Kernel appends, Spark evolves it, Kernel appends again") {
      val table = byPath()
      val kernel = new KernelTable(table.folder)
      val partitioning = partitionColumns.map(c => s"PARTITIONED BY ($c)").mkString
      sql(
        s"CREATE TABLE ${table.name} ($columns) USING delta $partitioning " +
          s"TBLPROPERTIES ('$property' = 'true')"
      )
      sparkAppends(table, (1 to 4).map(first): _*)
      allSee(table, kernel, (1 to 4).map(first))

      kernel.append((5 to 8).map(first): _*)
      allSee(table, kernel, (1 to 8).map(first))

      sql(s"ALTER TABLE ${table.name} $evolution")
      sparkAppends(table, second(9))
      allSee(table, kernel, (1 to 8).map(first).map(evolved) :+ second(9))

      kernel.append(second(10), second(11))
      sparkMerges(table)
      val merged = (1 to 8).filterNot(Set(2, 4)).map(id => evolved(first(id))) ++
        Seq(2, 4, 9, 10, 11, 20).map(second)
      allSee(table, kernel, merged)

      // Renaming and dropping leave Kernel's files as they are: columns are found by id.
      sql(s"ALTER TABLE ${table.name} RENAME COLUMN name TO title")
      sql(s"ALTER TABLE ${table.name} DROP COLUMN e")
      def withoutLast(record: Record) = Record(record.values.init: _*)
      allSee(table, kernel, merged.map(withoutLast))
      kernel.append(withoutLast(second(40)))
      sql(s"OPTIMIZE ${table.name}")
      allSee(table, kernel, (merged :+ second(40)).map(withoutLast))
    }
  }

  for (
    (kind, properties, rewritten) <- Seq(
      ("without column mapping", Map.empty[String, String], true),
      // By name, Kernel writes no ids into its files; by id, it cannot write lists without V2.
      ("by name", Map("delta.columnMapping.mode" -> "name"), true),
      ("by name with V2", Map("delta.enableIcebergCompatV2" -> "true"), true),
      (
        "by id with V2",
        Map("delta.enableIcebergCompatV2" -> "true", "delta.columnMapping.mode" -> "id"),
        false
      )
    );
    partitionColumns <- Seq(Nil, Seq("p"))
  ) test(s"a table $kind by $partitionColumns that Kernel created gets the feature") {
    val table = byPath()
    val kernel = new KernelTable(table.folder)
    kernel.create(kernelSchema, partitionColumns, properties, (1 to 4).map(first))
    kernel.append((5 to 8).map(first): _*)
    val live = table.log.liveFiles.keySet
    val result = TableUpgrade.of(spark, table.name, "auto", rewrite = rewritten, Nil).run()
    assert(result.filesRewritten == (if (rewritten) live.size else 0))
    assert(rewritten || table.log.liveFiles.keySet == live)
    allSee(table, kernel, (1 to 8).map(first))
    kernel.append(first(9))
    sparkAppends(table, first(10))
    sql(s"ALTER TABLE ${table.name} $evolution")
    sparkMerges(table)
    val merged = (1 to 10).filterNot(Set(2, 4)).map(id => evolved(first(id)))
    allSee(table, kernel, merged ++ Seq(2, 4, 20).map(second))
  }

  // The limit of "the other way round"; a listed difference of DifferentialSuite in practice.
  test("Kernel reads a table partitioned by a capital letter, and cannot append to it") {
    val table = byPath()
    val kernel = new KernelTable(table.folder)
    sql(
      s"CREATE TABLE ${table.name} (id INT, P STRING) USING delta PARTITIONED BY (P) " +
        s"TBLPROPERTIES ('$property' = 'true')"
    )
    sparkAppends(table, Record(1, "a"))
    allSee(table, kernel, Seq(Record(1, "a")))
    val error = intercept[IllegalArgumentException](kernel.append(Record(2, "b")))
    assert(error.getMessage == "Partition column p not found in the schema")
    allSee(table, kernel, Seq(Record(1, "a")))
  }
}
