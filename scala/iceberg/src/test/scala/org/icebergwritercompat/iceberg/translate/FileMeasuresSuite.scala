package org.icebergwritercompat.iceberg.translate

import org.apache.iceberg.{PartitionSpec, Schema}
import org.apache.iceberg.types.Types._
import org.apache.spark.sql.types.{ArrayType, LongType => SparkLong, MetadataBuilder}
import org.apache.spark.sql.types.{StringType => SparkString, StructType => SparkStruct}
import org.icebergwritercompat.model.{FileStatistics, PhysicalNameTree}
import org.scalatest.funsuite.AnyFunSuite

import java.lang.{Integer => JInteger}
import java.util.{HashMap => JHashMap, Map => JMap}
import scala.jdk.CollectionConverters._
import scala.util.Random

/** What one pass over statistics finds for the rules, and the maps that it fills. */
class FileMeasuresSuite extends AnyFunSuite {

  private def id(number: Int) = new MetadataBuilder()
    .putLong("delta.columnMapping.id", number.toLong)
    .putString("delta.columnMapping.physicalName", s"col-$number")
    .build()

  private val names = PhysicalNameTree.of(
    new SparkStruct()
      .add("a", SparkLong, nullable = true, id(1))
      .add("b", SparkString, nullable = true, id(2))
      .add("s", new SparkStruct().add("c", SparkLong, true, id(4)), nullable = true, id(3))
      .add("l", ArrayType(SparkLong), nullable = true, id(5))
  )

  private val schema = new Schema(
    NestedField.optional(1, "a", LongType.get),
    NestedField.optional(2, "b", StringType.get),
    NestedField.optional(3, "s", StructType.of(NestedField.optional(4, "c", LongType.get))),
    NestedField.optional(5, "l", ListType.ofOptional(6, LongType.get))
  )

  private val metrics = new IcebergMetrics(schema, PartitionSpec.unpartitioned, Some(names))

  private val none = new PartitionTuple(Array.empty)

  test("what a pass tells the rules is what they would read themselves") {
    val random = new Random(7)
    val keys = Seq("col-1", "col-2", "col-3", "col-4", "col-5", "col-9", "a", "col-01", "col-")
    def value(depth: Int): String = random.nextInt(if (depth > 2) 3 else 4) match {
      case 0 => random.nextInt(9).toString
      case 1 => "\"text\""
      case 2 => "1.5"
      case 3 => columns(depth + 1)
    }
    def columns(depth: Int): String =
      Seq
        .fill(random.nextInt(4))(s""""${keys(random.nextInt(keys.size))}":${value(depth)}""")
        .mkString("{", ",", "}")
    def rows: String = Seq("5", "0", "-1", "2.5", "\"3\"")(random.nextInt(5))
    val known = (1 to 20000).count { _ =>
      val fields = Seq(
        "\"numRecords\":" + rows,
        "\"minValues\":" + columns(0),
        "\"maxValues\":" + columns(0),
        "\"nullCount\":" + columns(0),
        "\"tightBounds\":true",
        "\"other\":{\"x\":1}"
      )
      val json = random.shuffle(fields).take(random.nextInt(7)).mkString("{", ",", "}")
      val found = metrics.read(json).map(_.statistics)
      assert(found.isDefined && found == FileStatistics.parse(json, names), json)
      found.exists(of => of.rowCount.isDefined && of.unknownNames.isEmpty)
    }
    // What Delta's writers put down is among them.
    assert(known > 100)
    val usual = """{"numRecords":3,"minValues":{"col-1":1,"col-2":"x","col-3":{"col-4":2}},""" +
      """"maxValues":{"col-1":1,"col-2":"x","col-3":{"col-4":2}},""" +
      """"nullCount":{"col-1":0,"col-2":0,"col-3":{"col-4":0},"col-5":1},"tightBounds":true}"""
    def statistics(json: String) = metrics.read(json).map(_.statistics)
    val three = FileStatistics(Some(3), Set.empty)
    assert(statistics(usual).contains(three))
    val others = Seq(
      "spaces" -> usual.replace(",", ", "),
      "a fraction" -> usual.replace("\"col-1\":1", "\"col-1\":1.5"),
      "an escaped character" -> usual.replace("\"x\"", "\"x\\u0001\""),
      "another field" -> usual.replace("\"tightBounds\"", "\"other\":{\"x\":1},\"tightBounds\"")
    )
    others.foreach { case (what, json) =>
      assert(json != usual)
      assert(statistics(json).contains(three), what)
      assert(FileStatistics.parse(json, names).contains(three), what)
      val unknown = json.replace("col-5", "col-6")
      assert(statistics(unknown).contains(three.copy(unknownNames = Set(Vector("col-6")))), what)
    }
    val large = usual.replace("\"numRecords\":3", "\"numRecords\":18446744073709551621")
    assert(metrics.read(large).isEmpty)
    assert(FileStatistics.parse(large, names).isEmpty)
    val misplaced = three.copy(unknownNames = Set(Vector("col-3", "col-2")))
    assert(statistics(usual.replace("col-4", "col-2")).contains(misplaced))
    val unknown = three.copy(unknownNames = Set(Vector("col-6")))
    assert(statistics(usual.replace("col-5", "col-6")).contains(unknown))
  }

  test("the metrics are those of any other maps") {
    val json = """{"numRecords":3,"minValues":{"col-1":-9,"col-2":"x"},""" +
      """"maxValues":{"col-1":7,"col-3":{"col-4":2}},"nullCount":{"col-1":1,"col-2":3}}"""
    val found = metrics.of(json, none).get
    val counts = Map(1 -> 3L, 2 -> 3L, 4 -> 3L).map { case (k, v) => Int.box(k) -> Long.box(v) }
    assert(
      found.valueCounts == counts.asJava && found.valueCounts.hashCode == counts.asJava.hashCode
    )
    assert(
      found.nullValueCounts == Map(Int.box(1) -> Long.box(1), Int.box(2) -> Long.box(3)).asJava
    )
    assert(found.lowerBounds.keySet == Set[Integer](1, 2).asJava)
    assert(found.upperBounds.keySet == Set[Integer](1, 4).asJava)
    assert(found.lowerBounds.get(1).order(java.nio.ByteOrder.LITTLE_ENDIAN).getLong(0) == -9L)
  }

  test("a map of an array is a map") {
    val random = new Random(11)
    val ids = Array[JInteger](2, 3, 5, 8, 400)
    (1 to 2000).foreach { _ =>
      val map = new LeafMap[String](ids)
      val expected = new JHashMap[JInteger, String]
      (1 to random.nextInt(12)).foreach { i =>
        random.nextInt(10) match {
          case 0 => map.clear(); expected.clear()
          case n =>
            val at = random.nextInt(ids.length)
            val value = if (n < 4) null else s"$i"
            map.set(at, value)
            if (value == null) expected.remove(ids(at)) else expected.put(ids(at), value)
        }
      }
      assert(map == expected && expected == (map: JMap[JInteger, String]))
      assert(map.size == expected.size && map.entrySet.size == expected.size)
      (0 to 9).foreach(id => assert(map.get(Int.box(id)) == expected.get(Int.box(id))))
      assert(!map.containsKey(Int.box(7)) && map.get("2") == null)
    }
  }
}
