package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{
  ChangeKind,
  FileFormat,
  Lifecycle,
  ProtocolState,
  TableChange,
  TableState,
  Violation
}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.model.DataAction._
import org.icebergwritercompat.rules.CompliantTable._
import org.icebergwritercompat.rules.Schemas._
import org.scalatest.funsuite.AnyFunSuite

import java.lang.management.ManagementFactory

/**
 * Rules find violations in whatever a log holds: they do not throw, and their work grows with the
 * size of the table and not with its square.
 */
class MalformedTablesSuite extends AnyFunSuite {

  private val id = "delta.columnMapping.id"
  private val name = "delta.columnMapping.physicalName"
  private val nested = "delta.columnMapping.nested.ids"

  private type Mark = MetadataBuilder => MetadataBuilder

  // Each with what C1, C2, C3 or C5 say of it.
  private val marks: Seq[(String, Mark, String)] = Seq[(String, Mark, String)](
    ("an id that is text", _.putString(id, "1"), "C1"),
    ("an id that is a fraction", _.putDouble(id, 1.5), "C1"),
    ("an id that is true", _.putBoolean(id, true), "C1"),
    ("an id that is null", _.putNull(id), "C1"),
    ("an id that is an object", _.putMetadata(id, Metadata.empty), "C1"),
    ("an id that is a list", _.putLongArray(id, Array(1L)), "C1"),
    ("the id 0", _.putLong(id, 0), "C2"),
    ("a name that is a number", _.putLong(name, 1), "C1"),
    ("a name that is null", _.putNull(name), "C1"),
    ("an empty name", _.putString(name, ""), "C2"),
    ("nested ids that are null", _.putNull(nested), ""),
    ("nested ids that are text", _.putString(nested, "col-1.element"), ""),
    ("nested ids that are a list", _.putStringArray(nested, Array("col-1.element")), ""),
    ("a default that is null", _.putNull("CURRENT_DEFAULT"), "C12")
  )

  private def allOf(table: TableState, before: TableState): Seq[Violation] =
    V1.rules.check(table).toSeq ++
      V1.rules.check(TableChange(before, table, ChangeKind.Ordinary)).toSeq ++
      V1.rules.check(TableChange(table, before, ChangeKind.Restoring)).toSeq

  private def assertWhole(violations: Seq[Violation]): Unit = violations.foreach { violation =>
    assert(violation.parameters.values.forall(_ != null), violation.rule.id)
    assert(violation.summary.nonEmpty && !violation.location.toString.contains("name null"))
    Statements.assertParsed(violation.remedy.text)
  }

  for {
    shape <- shapes
    lifecycle <- Seq(
      Lifecycle.Creating(replacing = false),
      Lifecycle.Creating(replacing = true),
      Lifecycle.Enabling,
      Lifecycle.Changing
    )
    (what, mark, rule) <- marks
  } test(s"$what in ${shape.name}, $lifecycle") {
    val before = CompliantTable.of(shape.schema)
    val table = before.copy(
      schema = marked(before.schema, shape.path)(mark),
      lifecycle = lifecycle,
      previous = Some(before)
    )
    val found = allOf(table, before)
    assertWhole(found)
    assert(rule.isEmpty || found.exists(_.rule.id == rule))
  }

  for {
    (what, ids) <- Seq[(String, MetadataBuilder)](
      "null" -> new MetadataBuilder().putNull("col-1.element"),
      "text" -> new MetadataBuilder().putString("col-1.element", "2"),
      "a fraction" -> new MetadataBuilder().putDouble("col-1.element", 2.5)
    )
  } test(s"a nested id that is $what is none") {
    val table = CompliantTable.of("l ARRAY<INT>")
    val broken =
      table.copy(schema = marked(table.schema, Seq("l"))(_.putMetadata(nested, ids.build())))
    assert(SchemaRules.CollectionsHaveNestedIds.check(broken).map(_.rule.id) == Seq("C5"))
    assertWhole(allOf(broken, table))
  }

  for (shape <- shapes; key <- CompliantTable.of("a INT").properties.keys.toSeq.sorted)
    test(s"the property $key that is null, with ${shape.name}") {
      val before = CompliantTable.of(shape.schema)
      val table = before.copy(properties = before.properties.updated(key, null))
      val found = allOf(table, before)
      assertWhole(found)
      assert(found.nonEmpty)
    }

  for {
    key <- Seq(
      "delta.enableIcebergCompatV1",
      "delta.enableDeletionVectors",
      "delta.enableChangeDataFeed",
      "delta.enableRowTracking",
      "delta.minReaderVersion",
      "delta.constraints.c",
      "delta.appendOnly"
    )
  } test(s"the property $key that is null") {
    val before = CompliantTable.of("a INT")
    val table = before.copy(properties = before.properties.updated(key, null))
    val found = allOf(table, before)
    assertWhole(found)
    // Append-only is no requirement: whatever else is not known to be off, or there at all, is.
    assert(found.isEmpty == (key == "delta.appendOnly"))
    assert(V1.rules.check(table, Removed("f", dataChange = true)).toSeq == Nil)
  }

  test("metadata without schema, properties, format or partitions") {
    val table = CompliantTable
      .of(new StructType())
      .copy(properties = Map.empty, format = FileFormat(null, null), partitionColumns = Seq(null))
    val found = allOf(table, CompliantTable.of("a INT"))
    assertWhole(found)
    assert(Set("B1", "B2", "B3", "B4", "B12", "C18").subsetOf(found.map(_.rule.id).toSet))
  }

  test("a protocol without any list, and with empty ones") {
    val table = CompliantTable.of("a INT")
    Seq(
      ProtocolState(0, 0, None, None),
      ProtocolState(3, 7, None, None),
      ProtocolState(3, 7, Some(Set.empty), Some(Set.empty)),
      ProtocolState(-1, Int.MaxValue, Some(Set("")), None)
    ).foreach { protocol =>
      val found = allOf(table.copy(protocol = protocol), table)
      assertWhole(found)
      assert(found.exists(_.rule.id.startsWith("A")))
    }
  }

  test("files with nulls for all they may hold") {
    val table = CompliantTable.of("a INT, p TIMESTAMP").copy(partitionColumns = Seq("p"))
    Seq[Map[String, String]](null, Map.empty, Map("col-2" -> null), Map("col-2" -> ""))
      .foreach { values =>
        val file = Added("f", values, None, hasDeletionVector = true, repeated = true, size = 742)
        val found = V1.rules.check(table, file).toSeq
        assertWhole(found)
        assert(Set("D1", "D5", "D6").subsetOf(found.map(_.rule.id).toSet))
      }
  }

  /** A schema in which every column breaks many rules. */
  private def broken(columns: Int): StructType = {
    val metadata = new MetadataBuilder()
      .putString("delta.invariants", "x")
      .putLong("delta.identity.start", 1)
      .putString("delta.generationExpression", "x")
      .putString("CURRENT_DEFAULT", "x")
      .putString("delta.typeChanges", "x")
      .build()
    val list = ArrayType(new StructType().add("x", ShortType, nullable = true, metadata))
    StructType((1 to columns).flatMap { i =>
      Seq(
        StructField(s"c$i", ShortType, nullable = true, metadata),
        StructField(s"C$i", list, nullable = true, metadata)
      )
    })
  }

  /**
   * Violations of ten times the size are found by at most fifteen times the work, as measured by
   * what a thread allocates, which does not depend on the machine or on its load.
   */
  private def assertGrowsLinearly(found: Int => Int)(atLeast: Int => Int): Unit = {
    def allocated(size: Int): Long = {
      val before = threads.getCurrentThreadAllocatedBytes
      val count = found(size)
      assert(count >= atLeast(size))
      threads.getCurrentThreadAllocatedBytes - before
    }
    // Once for what is made only once.
    allocated(wide / 10)
    val (small, large) = (allocated(wide / 10), allocated(wide))
    assert(large <= 15 * small, s"$small bytes for ${wide / 10}, $large for $wide")
    ()
  }

  private val threads =
    ManagementFactory.getThreadMXBean.asInstanceOf[com.sun.management.ThreadMXBean]

  private val wide = 5000

  for {
    lifecycle <- Seq(
      Lifecycle.Creating(replacing = false),
      Lifecycle.Creating(replacing = true),
      Lifecycle.Enabling,
      Lifecycle.Changing
    )
  } test(s"10 000 columns that break every rule there is, $lifecycle") {
    val before = CompliantTable.of("a INT")
    def table(columns: Int) = CompliantTable
      .of("a INT")
      .copy(
        schema = broken(columns),
        partitionColumns = (1 to 100).map(i => s"C$i"),
        lifecycle = lifecycle,
        previous = Some(before)
      )
    assertGrowsLinearly(columns => V1.rules.check(table(columns)).size)(atLeast = 8 * _)
  }

  private def ints(columns: Int): TableState =
    CompliantTable.of((1 to columns).map(i => s"a$i INT").mkString(", "))

  test("10 000 columns that all change in every way") {
    def change(columns: Int): TableChange = {
      val before =
        CompliantTable.of((1 to columns).map(i => s"a$i INT, l$i ARRAY<INT>").mkString(", "))
      val after = before.copy(
        schema = StructType(before.schema.map { f =>
          f.dataType match {
            case _: ArrayType => withNestedIds()(f)
            case _            => f.copy(dataType = StringType, nullable = false)
          }
        }),
        previous = Some(before)
      )
      TableChange(before, after, ChangeKind.Ordinary)
    }
    assertGrowsLinearly(columns => V1.rules.check(change(columns)).size)(atLeast = 3 * _)
  }

  test("10 000 new columns with ids that were given out") {
    def change(columns: Int): TableChange = {
      val table = ints(2 * columns)
      val before = table.copy(schema = new StructType())
      TableChange(before, table.copy(previous = Some(before)), ChangeKind.Ordinary)
    }
    assertGrowsLinearly(columns => V1.rules.check(change(columns)).size)(atLeast = 2 * _)
  }

  test("10 000 compliant columns") {
    assertGrowsLinearly { columns =>
      assert(V1.rules.check(ints(2 * columns)).toSeq == Nil)
      0
    }(atLeast = _ => 0)
  }

  test("20 000 files that break every rule of theirs, in a table of 10 000 columns") {
    val table = ints(2 * wide)
    val file =
      Added("f", Map("x" -> "1"), None, hasDeletionVector = true, repeated = true, size = 742)
    assertGrowsLinearly { files =>
      (1 to 4 * files).iterator.flatMap(_ => V1.rules.check(table, file)).size
    }(atLeast = 16 * _)
  }

  test("schemas of depth 50, of structs, lists and maps in each other") {
    val keys = (1 to 50).foldLeft(ShortType: DataType) { (below, level) =>
      if (level % 10 == 0) MapType(below, IntegerType) else new StructType().add(s"f$level", below)
    }
    val list = (1 to 50).foldLeft(ShortType: DataType)((below, _) => ArrayType(below))
    val schema = withIds(new StructType().add("k", keys).add("l", list))
    val compliant = CompliantTable.of(schema)
    val table = compliant.copy(properties =
      compliant.properties + ("delta.columnMapping.maxColumnId" -> "200")
    )
    val found = V1.rules.check(table).toSeq
    assert(found.map(_.rule.id) == Seq("C7", "C7"))
    assertWhole(found)
    val changes = V1.rules.check(
      TableChange(table, table.copy(schema = new StructType()), ChangeKind.Ordinary)
    )
    assert(changes.toSeq == Nil)
    assert(V1.rules.check(TableChange(table, table, ChangeKind.Ordinary)).toSeq == Nil)
  }
}
