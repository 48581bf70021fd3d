package org.icebergwritercompat.iceberg.translate

import org.apache.iceberg.types.Conversions
import org.apache.iceberg.types.Types._
import org.apache.iceberg.{Metrics, PartitionSpec, Schema}
import org.scalatest.funsuite.AnyFunSuite

import java.nio.ByteBuffer
import java.time.{Instant, LocalDate}
import scala.jdk.CollectionConverters._

class IcebergMetricsSuite extends AnyFunSuite {

  private val types: Seq[org.apache.iceberg.types.Type] = Seq(
    IntegerType.get,
    LongType.get,
    FloatType.get,
    DoubleType.get,
    DecimalType.of(38, 9),
    StringType.get,
    DateType.get,
    TimestampType.withZone,
    TimestampType.withoutZone,
    BooleanType.get,
    BinaryType.get
  )

  private val (int, long, float, double, decimal, string) = (1, 2, 3, 4, 5, 6)
  private val (date, instant, local, bool, binary) = (7, 8, 9, 10, 11)

  private val schema = new Schema(
    (types.zipWithIndex.map { case (t, i) => NestedField.optional(i + 1, s"c${i + 1}", t) } ++
      Seq(
        NestedField.optional(
          20,
          "s",
          StructType.of(
            NestedField.optional(21, "x", LongType.get),
            NestedField
              .optional(22, "t", StructType.of(NestedField.optional(23, "y", DoubleType.get)))
          )
        ),
        NestedField.optional(30, "l", ListType.ofOptional(31, LongType.get)),
        NestedField.optional(40, "m", MapType.ofOptional(41, 42, StringType.get, LongType.get))
      )).asJava
  )

  private val none = new PartitionTuple(Array.empty)

  private def metrics(json: String): Metrics =
    new IcebergMetrics(schema, PartitionSpec.unpartitioned).of(json, none).get

  /** What a reader takes for the bounds of a column whose statistics are these. */
  private def bounds(id: Int, min: String, max: String): (Option[Any], Option[Any]) = {
    val found = metrics(
      s"""{"numRecords":2,"minValues":{"col-$id":$min},"maxValues":{"col-$id":$max}}"""
    )
    def value(all: java.util.Map[Integer, ByteBuffer]): Option[Any] =
      Option(all.get(id)).map(Conversions.fromByteBuffer[Any](schema.findType(id), _)).map {
        case text: CharSequence => text.toString
        case other              => other
      }
    (value(found.lowerBounds), value(found.upperBounds))
  }

  private def micros(text: String): Long = {
    val time = Instant.parse(text)
    time.getEpochSecond * 1000000 + time.getNano / 1000
  }

  test("whole numbers are exact, however large") {
    assert(bounds(int, "-2147483648", "2147483647") == (Some(Int.MinValue), Some(Int.MaxValue)))
    assert(
      bounds(long, "-9223372036854775808", "9223372036854775807") ==
        (Some(Long.MinValue), Some(Long.MaxValue))
    )
    assert(bounds(long, "9007199254740993", "9007199254740993")._1.contains(9007199254740993L))
  }

  test("a number that is none of the type is no bound") {
    assert(bounds(int, "2147483648", "1.5") == (None, None))
    assert(bounds(long, "9223372036854775808", "\"1\"") == (None, None))
    assert(bounds(bool, "1", "true") == (None, Some(true)))
    assert(bounds(binary, "\"YQ==\"", "\"YQ==\"") == (None, None))
    assert(bounds(date, "\"soon\"", "17") == (None, None))
  }

  test("decimals are exact, in the scale of the column") {
    val nines = "9" * 29 + "." + "9" * 9
    assert(
      bounds(decimal, s"-$nines", nines) ==
        (Some(new java.math.BigDecimal(s"-$nines")), Some(new java.math.BigDecimal(nines)))
    )
    assert(bounds(decimal, "1.5", "2")._1.contains(new java.math.BigDecimal("1.500000000")))
    assert(bounds(decimal, "1.0000000001", "1e40") == (None, None))
  }

  test("NaN is no bound, infinity is, and zero is both zeros") {
    assert(bounds(double, "\"NaN\"", "\"NaN\"") == (None, None))
    assert(bounds(double, "1.5", "\"NaN\"") == (Some(1.5d), None))
    assert(
      bounds(float, "\"-Infinity\"", "\"Infinity\"") ==
        (Some(Float.NegativeInfinity), Some(Float.PositiveInfinity))
    )
    Seq("0.0", "-0.0").foreach { zero =>
      val (lower, upper) = bounds(double, zero, zero)
      assert(1 / lower.get.asInstanceOf[Double] == Double.NegativeInfinity)
      assert(1 / upper.get.asInstanceOf[Double] == Double.PositiveInfinity)
      val (low, high) = bounds(float, zero, zero)
      assert(1 / low.get.asInstanceOf[Float] == Float.NegativeInfinity)
      assert(1 / high.get.asInstanceOf[Float] == Float.PositiveInfinity)
    }
  }

  test("the bounds of a double hold what was written as a float") {
    Seq("1.1", "0.3", "-1.1", "3.4028235E38").foreach { text =>
      val inFile = text.toFloat.toDouble
      val (lower, upper) = bounds(double, text, text)
      assert(lower.get.asInstanceOf[Double] <= math.min(inFile, text.toDouble))
      assert(upper.get.asInstanceOf[Double] >= math.max(inFile, text.toDouble))
    }
    assert(bounds(double, "1.5", "1.5") == (Some(1.5d), Some(1.5d)))
  }

  test("the upper bound of a time is a millisecond later") {
    val text = "\"2026-01-01T00:00:00.123Z\""
    val at = micros("2026-01-01T00:00:00.123Z")
    assert(bounds(instant, text, text) == (Some(at), Some(at + 1000)))
    val zoned = "\"2026-01-01T01:00:00.123+01:00\""
    assert(bounds(instant, zoned, zoned) == (Some(at), Some(at + 1000)))
    val zoneless = "\"2026-01-01T00:00:00.123\""
    assert(bounds(local, zoneless, zoneless) == (Some(at), Some(at + 1000)))
  }

  test("a time without a zone is no bound of an instant") {
    assert(bounds(instant, "\"2026-01-01T00:00:00\"", "\"2026-01-01 00:00:00\"") == (None, None))
  }

  test("a time of when zones had seconds is held by its bounds") {
    // 00:00:00 in Zurich of 1850, 34 minutes and 8 seconds ahead.
    val actual = micros("1849-12-31T23:25:52Z")
    val written = "\"1850-01-01T00:00:00.000+00:34\""
    val (lower, upper) = bounds(instant, written, written)
    assert(lower.get.asInstanceOf[Long] <= actual && upper.get.asInstanceOf[Long] >= actual)
  }

  test("days are exact") {
    assert(
      bounds(date, "\"0001-01-01\"", "\"9999-12-31\"") ==
        (
          Some(LocalDate.of(1, 1, 1).toEpochDay.toInt),
          Some(LocalDate.of(9999, 12, 31).toEpochDay.toInt)
        )
    )
  }

  private def quoted(text: String): String =
    new com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(text)

  // In the order of their UTF-8 bytes, which is that of Iceberg.
  private def isAbove(bound: String, value: String): Boolean =
    java.util.Arrays.compareUnsigned(bound.getBytes("UTF-8"), value.getBytes("UTF-8")) >= 0

  test("short strings are exact") {
    assert(bounds(string, quoted(""), quoted("é😀")) == (Some(""), Some("é😀")))
  }

  private val longStrings = Seq(
    "ASCII" -> "z" * 40,
    "two bytes" -> "é" * 40,
    "surrogates" -> "😀" * 40,
    "a surrogate at the cut" -> ("a" * 31 + "😀" + "tail"),
    "delete characters" -> ("a" * 32 + "\u007f" * 9),
    "a string of just that length" -> "a" * 32
  )

  longStrings.foreach { case (name, value) =>
    test(s"what is cut off $name does not lower the bound") {
      val cuts =
        Seq(32, 33, 40).map(value.take(_)).filterNot(_.lastOption.exists(_.isHighSurrogate))
      val stored = cuts.flatMap(cut => Seq(cut, s"$cut\u007f", s"$cut\udbff\udfff"))
      stored.foreach { max =>
        val bound = bounds(string, quoted(""), quoted(max))._2
        assert(bound.exists(upper => isAbove(upper.toString, value)))
      }
    }
  }

  test("a string that nothing is above has no upper bound") {
    assert(bounds(string, quoted("a"), quoted("\udbff\udfff" * 40)) == (Some("a"), None))
  }

  test("statistics tell the same however they are put down") {
    val columns = Seq(
      """"col-1":-5,"col-2":9223372036854775807,"col-6":"text"""",
      """"col-1":5,"col-1":"x","col-2":7,"col-2":8""",
      """"col-20":{"col-21":3,"col-22":{"col-23":4}},"col-99":1,"col-999999":2""",
      """"col-6":"a b \/ , } : {","col-9":"2026-01-01T00:00:00.123","col-7":"2026-01-01"""",
      """"col-2":007""",
      """"col-2":9223372036854775806,"col-1":-9223372036854775807""",
      """"col-2":9223372036854775808""",
      """"col-2":9223372036854775817,"col-3":99999999999999999999""",
      """"col-2":-9223372036854775808""",
      """"col-01":7,"col-2":-0""",
      """"col-3":1,"col-4":12,"col-5":123,"col-10":"true"""",
      """"col-6":"quoted \\"""",
      """"col-6":"tab \t"""",
      """"col-2":1,""",
      """"col-2":1 "col-1":2""",
      """"col-2":1.0,"col-1":1e3,"col-10":true,"col-6":null,"col-8":[1]""",
      ""
    )
    val texts = columns.flatMap { values =>
      Seq(
        s"""{"numRecords":9,"minValues":{$values},"maxValues":{$values},"nullCount":{$values}}""",
        s"""{"nullCount":{"col-1":9},"minValues":{"col-1":1},"minValues":{$values},"numRecords":9}""",
        s"""{"numRecords":9,"maxValues":{$values},"tightBounds":false}""",
        s"""{"numRecords":9,"nullCount":{$values},"tightBounds":true}""",
        s"""{"numRecords":9,"maxValues":{$values},"tightBounds":trues}""",
        s"""{"numRecords":9,"maxValues":{$values}"""
      )
    } ++ Seq(
      """{"numRecords":9}""",
      """{"numRecords":-1}""",
      """{"numRecords":9}]""",
      """{"numRecords":9,}""",
      "{}",
      "{",
      ""
    )
    def shown(text: String): Option[Seq[Any]] =
      new IcebergMetrics(schema, PartitionSpec.unpartitioned).of(text, none).map { found =>
        Seq(
          found.recordCount,
          found.valueCounts,
          found.nullValueCounts,
          found.lowerBounds,
          found.upperBounds
        )
      }
    // A blank is what Delta's writers do not put down.
    texts.foreach(text => assert(shown(text) == shown(s" $text"), text))
    assert(texts.count(shown(_).isDefined) > 20)
  }

  test("counts are of what is not below a list or map") {
    val found = metrics(
      """{"numRecords":7,"nullCount":{"col-1":3,"col-20":{"col-21":7,"col-22":{"col-23":0}},""" +
        """"col-30":2,"col-40":1,"col-99":5,"name":1}}"""
    )
    assert(found.recordCount == 7)
    assert(found.nullValueCounts.asScala == Map(1 -> 3L, 21 -> 7L, 23 -> 0L))
    assert(
      found.valueCounts.asScala == ((1 to types.size) ++ Seq(21, 23)).map(id => id -> 7L).toMap
    )
  }

  test("bounds are found below structs") {
    val found = metrics("""{"numRecords":1,"minValues":{"col-20":{"col-22":{"col-23":1.5}}}}""")
    assert(found.lowerBounds.keySet.asScala == Set(23))
  }

  test("what is not tight tells nothing but the extremes of null counts") {
    val found = metrics(
      """{"numRecords":7,"tightBounds":false,"nullCount":{"col-1":3,"col-2":7,"col-3":0},""" +
        """"minValues":{"col-1":1},"maxValues":{"col-1":1}}"""
    )
    assert(found.nullValueCounts.asScala == Map(2 -> 7L, 3 -> 0L))
    assert(found.lowerBounds.isEmpty && found.upperBounds.isEmpty)
  }

  test("more nulls than rows are no count") {
    assert(
      metrics("""{"numRecords":1,"nullCount":{"col-1":2,"col-2":-1}}""").nullValueCounts.isEmpty
    )
  }

  test("a count of nulls that no file has is none") {
    Seq("18446744073709551616", "1.0", "\"0\"", "null").foreach { count =>
      val found = metrics(s"""{"numRecords":5,"nullCount":{"col-1":$count,"col-2":0}}""")
      assert(found.nullValueCounts.asScala == Map(2 -> 0L), count)
    }
  }

  test("a name tells nothing of a column in another place") {
    val values = """{"col-21":1,"col-23":1.5,"col-20":{"col-1":5,"col-23":1.5}}"""
    val nulls = """{"col-21":1,"col-20":{"col-1":1,"col-23":1}}"""
    val found =
      metrics(s"""{"numRecords":1,"minValues":$values,"maxValues":$values,"nullCount":$nulls}""")
    assert(found.lowerBounds.isEmpty && found.upperBounds.isEmpty)
    assert(found.nullValueCounts.isEmpty)
  }

  test("statistics without a row count are none") {
    val metrics = new IcebergMetrics(schema, PartitionSpec.unpartitioned)
    Seq(null, "", "{", "[]", "{}", """{"numRecords":"1"}""", """{"numRecords":-1}""").foreach {
      text => assert(metrics.of(text, none).isEmpty, String.valueOf(text))
    }
  }

  test("a partition column has the bounds and nulls of its one value") {
    val spec = PartitionSpec.builderFor(schema).identity("c1").identity("c6").identity("c4").build()
    val metrics = new IcebergMetrics(schema, spec)
    val some = metrics.of("""{"numRecords":3}""", new PartitionTuple(Array(7, "p", 0.0d))).get
    assert(some.nullValueCounts.asScala == Map(1 -> 0L, 6 -> 0L, 4 -> 0L))
    assert(Conversions.fromByteBuffer[Any](IntegerType.get, some.lowerBounds.get(1)) == 7)
    assert(Conversions.fromByteBuffer[Any](IntegerType.get, some.upperBounds.get(1)) == 7)
    val nan = metrics.of("""{"numRecords":3}""", new PartitionTuple(Array(null, null, Double.NaN)))
    assert(nan.get.nullValueCounts.asScala == Map(1 -> 3L, 6 -> 3L, 4 -> 0L))
    assert(nan.get.lowerBounds.isEmpty)
  }

  test("columns whose bounds are no values are named") {
    assert(IcebergMetrics.looselyBounded(schema) == Seq("c3", "c4", "c8", "c9", "s.t.y"))
  }
}
