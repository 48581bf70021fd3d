package org.icebergwritercompat.model

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.rules.CompliantTable
import org.scalatest.funsuite.AnyFunSuite

import scala.jdk.CollectionConverters._
import scala.util.Random

class FileStatisticsSuite extends AnyFunSuite {

  private val names = PhysicalNameTree.of(
    CompliantTable.withIds(
      StructType.fromDDL(
        "a INT, s STRUCT<x: INT, y: STRUCT<z: INT>>, l ARRAY<STRUCT<v: INT>>, m MAP<INT, INT>"
      )
    )
  )

  private def parse(json: String) = FileStatistics.parse(json, names)

  private def counted(json: String): Option[Long] = parse(json).flatMap(_.rowCount)

  test("the tree has the fields of structs, and nothing below lists and maps") {
    def tree(fields: (String, PhysicalNameTree)*) = PhysicalNameTree(fields.toMap)
    assert(
      names == tree(
        "col-1" -> tree(),
        "col-2" -> tree("col-3" -> tree(), "col-4" -> tree("col-5" -> tree())),
        "col-6" -> tree(),
        "col-9" -> tree()
      )
    )
  }

  Seq("0" -> 0L, "3" -> 3L, "9223372036854775807" -> Long.MaxValue).foreach { case (json, count) =>
    test(s"numRecords $json is a row count") {
      assert(counted(s"""{"numRecords":$json}""").contains(count))
    }
  }
  Seq("null", "\"3\"", "3.0", "true", "[3]", "{\"numRecords\":3}").foreach { value =>
    test(s"numRecords $value is no row count, and no reason to fail") {
      assert(parse(s"""{"numRecords":$value}""").contains(FileStatistics(None, Set.empty)))
    }
  }
  test("the row count is found behind other keys") {
    assert(
      counted("""{"minValues":{"col-2":{"col-3":1}},"x":[{"numRecords":1}],"numRecords":7}""")
        .contains(7L)
    )
  }

  Seq(
    "",
    " ",
    "null",
    "[]",
    "\"text\"",
    "7",
    "{",
    """{"numRecords":1""",
    """{"minValues":{"col-1":""",
    "{\"numRecords\":9223372036854775808}",
    "not JSON at all"
  ).foreach { json =>
    test(s"'$json' is no statistics") {
      assert(parse(json).isEmpty)
    }
  }

  test("JSON nested without end is no statistics") {
    assert(parse("{\"minValues\":" + "{\"col-2\":" * 100000).isEmpty)
    assert(parse("{\"x\":" + "[" * 100000).isEmpty)
  }

  test("every unknown name is found once, with its path") {
    val json = """{
      "minValues":{"a":1,"col-2":{"x":1,"col-4":{"z":1,"col-5":2}}},
      "maxValues":{"a":1,"col-2":{"col-3":9},"col-7":{"v":1}},
      "nullCount":{"col-2":{"y":{"deep":{"er":1}}},"col-9":0}}"""
    assert(
      parse(json)
        .map(_.unknownNames)
        .contains(
          Set(
            Vector("a"),
            Vector("col-2", "x"),
            Vector("col-2", "y"),
            Vector("col-2", "col-4", "z"),
            Vector("col-7")
          )
        )
    )
  }

  test("scalars, nulls and lists may stand where objects are expected") {
    val json = """{"minValues":null,"maxValues":[1,{"a":1}],"nullCount":{"col-1":null,
      "col-2":7,"col-6":[{"a":1}],"col-9":{"a":1}},"numRecords":1}"""
    assert(parse(json).contains(FileStatistics(Some(1), Set.empty)))
  }

  // What a parser finds that keeps the whole tree in memory.
  private def inTree(json: String): FileStatistics = {
    val statistics = new ObjectMapper().readTree(json)
    def unknown(node: JsonNode, tree: PhysicalNameTree, path: Vector[String]): Set[Vector[String]] =
      node.properties.asScala.toSet.flatMap { (entry: java.util.Map.Entry[String, JsonNode]) =>
        val name = path :+ entry.getKey
        tree.fields.get(entry.getKey) match {
          case None                                => Set(name)
          case Some(below) if below.fields.isEmpty => Set.empty[Vector[String]]
          case Some(below)                         => unknown(entry.getValue, below, name)
        }
      }
    FileStatistics(
      Option(statistics.get("numRecords"))
        .filter(_.isIntegralNumber)
        .map(_.longValue)
        .filter(_ >= 0),
      FileStatistics.ByColumn
        .flatMap(field => Option(statistics.get(field)))
        .filter(_.isObject)
        .flatMap(unknown(_, names, Vector.empty))
    )
  }

  test("statistics tell the same as their tree, in the form of Delta's writers and in others") {
    val random = new Random(5)
    val keys = (1 to 9).map(i => s"col-$i") ++ Seq("a", "col-01", "é", "col-", "")
    val scalars =
      Seq("7", "-1", "1.50", "1e3", "\"text\"", "\"\\u0041\\\"\"", "true", "null", "[{\"a\":1}]")
    def value(depth: Int): String =
      if (depth < 3 && random.nextInt(4) == 0) columns(depth + 1)
      else scalars(random.nextInt(if (random.nextBoolean()) 3 else scalars.size))
    def columns(depth: Int): String =
      random
        .shuffle(keys)
        .take(random.nextInt(5))
        .map(key => s""""$key":${value(depth)}""")
        .mkString("{", ",", "}")
    (1 to 5000).foreach { _ =>
      val fields = Seq(
        "numRecords" -> scalars(random.nextInt(scalars.size)),
        "minValues" -> columns(0),
        "maxValues" -> columns(0),
        "nullCount" -> columns(0),
        "tightBounds" -> "true",
        "other" -> columns(0)
      )
      val json = random
        .shuffle(fields)
        .take(random.nextInt(7))
        .map { case (key, value) => s""""$key":$value""" }
        .mkString("{", ",", "}")
      assert(parse(json).contains(inTree(json)), json)
      assert(parse(s" $json").contains(inTree(json)), json)
    }
  }

  test("of two equal keys the last counts") {
    assert(counted("""{"numRecords":5,"numRecords":"x"}""").isEmpty)
    assert(counted("""{"numRecords":5,"numRecords":6}""").contains(6L))
  }

  Seq[(String, String)](
    (null, """{"numRecords":7}"""),
    " " -> """{"numRecords":7}""",
    "{}" -> """{"numRecords":7}""",
    """{"minValues":{"col-1":1.50}, "nullCount":{}} """ ->
      """{"minValues":{"col-1":1.50}, "nullCount":{},"numRecords":7}""",
    """{"numRecords":null}""" -> """{"numRecords":null,"numRecords":7}"""
  ).foreach { case (json, expected) =>
    test(s"$json gets a row count, and nothing else changes") {
      val completed = FileStatistics.withRowCount(json, 7)
      assert(completed == expected && counted(completed).contains(7L))
    }
  }

  Seq("""{"numRecords":3}""", "[]", "3", "{\"a\":", "x").foreach { json =>
    test(s"$json gets no row count") {
      assert(FileStatistics.withRowCount(json, 7) == json)
    }
  }
}
