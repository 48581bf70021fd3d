package org.icebergwritercompat.model

import org.apache.spark.sql.types._
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.rules.CompliantTable
import org.icebergwritercompat.rules.CompliantTable.withIds
import org.scalatest.funsuite.AnyFunSuite

class SchemaNodeSuite extends AnyFunSuite {

  private def nodes(ddl: String) = SchemaNode.flatten(withIds(StructType.fromDDL(ddl)))

  test("parents come before children, in the order of the schema") {
    assert(
      nodes("a INT, m MAP<STRUCT<k: INT>, ARRAY<STRUCT<v: INT>>>, s STRUCT<x: INT>")
        .map(node => node.sqlPath -> node.id.get) == Seq(
        "a" -> 1L,
        "m" -> 2L,
        "m.key" -> 3L,
        "m.key.k" -> 4L,
        "m.value" -> 5L,
        "m.value.element" -> 6L,
        "m.value.element.v" -> 7L,
        "s" -> 8L,
        "s.x" -> 9L
      )
    )
  }

  test("each node knows its role, its parent and whether it is below a map key") {
    val byPath = nodes("m MAP<STRUCT<k: ARRAY<INT>>, STRUCT<v: INT>>")
      .map(node => node.sqlPath -> (node.role, node.parentId, node.belowMapKey))
      .toMap
    assert(
      byPath == Map(
        "m" -> (Role.Field, None, false),
        "m.key" -> (Role.Key, Some(1L), true),
        "m.key.k" -> (Role.Field, Some(2L), true),
        "m.key.k.element" -> (Role.Element, Some(3L), true),
        "m.value" -> (Role.Value, Some(1L), false),
        "m.value.v" -> (Role.Field, Some(5L), false)
      )
    )
  }

  test("elements and values know whether they may be null, keys never are") {
    val schema = new StructType()
      .add("l", ArrayType(IntegerType, containsNull = false), nullable = false)
      .add("m", MapType(IntegerType, IntegerType, valueContainsNull = false))
      .add("n", MapType(IntegerType, IntegerType, valueContainsNull = true))
    assert(
      SchemaNode.flatten(schema).map(node => node.sqlPath -> node.nullable) == Seq(
        "l" -> false,
        "l.element" -> false,
        "m" -> true,
        "m.key" -> false,
        "m.value" -> false,
        "n" -> true,
        "n.key" -> false,
        "n.value" -> true
      )
    )
  }

  test("names that a statement must quote are quoted") {
    assert(
      nodes("`a.b` STRUCT<`c d`: ARRAY<STRUCT<`e``f`: INT>>>").map(_.sqlPath).last ==
        "`a.b`.`c d`.element.`e``f`"
    )
  }

  test("ids that are no whole numbers are not there") {
    val metadata = new MetadataBuilder()
      .putString("delta.columnMapping.id", "1")
      .putLong("delta.columnMapping.physicalName", 1)
      .putString("delta.columnMapping.nested.ids", "col-1.element")
      .build()
    val schema = StructType(Seq(StructField("l", ArrayType(IntegerType), metadata = metadata)))
    assert(
      SchemaNode.flatten(schema).map(node => (node.sqlPath, node.id, node.physicalName)) ==
        Seq(("l", None, None), ("l.element", None, None))
    )
  }

  // Each level wraps the last one in all three kinds of nesting.
  private def deep(levels: Int): DataType =
    (1 to levels).foldLeft(IntegerType: DataType) { (below, level) =>
      level % 3 match {
        case 0 => ArrayType(below)
        case 1 => new StructType().add(s"f$level", below)
        case _ => MapType(StringType, below)
      }
    }

  test("a schema of depth 20 is walked to its end") {
    val schema = withIds(new StructType().add("root", deep(20)))
    val nodes = SchemaNode.flatten(schema)
    // One node for the root, one a level, and one for the key of each map.
    assert(nodes.size == 1 + 20 + 7)
    assert(nodes.map(_.path.size).max == 21)
    assert(nodes.flatMap(_.id) == nodes.indices.map(_ + 1L))
    assert(V1.rules.check(CompliantTable.of(schema)).toSeq == Nil)
  }
}
