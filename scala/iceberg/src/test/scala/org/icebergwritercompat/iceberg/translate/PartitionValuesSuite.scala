package org.icebergwritercompat.iceberg.translate

import org.apache.iceberg.types.Types._
import org.apache.iceberg.{PartitionSpec, Schema}
import org.scalatest.funsuite.AnyFunSuite

class PartitionValuesSuite extends AnyFunSuite {

  private def parse(text: String, t: org.apache.iceberg.types.Type): Option[Any] =
    PartitionValues.parse(text, t)

  test("values are exact") {
    assert(parse("-2147483648", IntegerType.get).contains(Int.MinValue))
    assert(parse("9007199254740993", LongType.get).contains(9007199254740993L))
    assert(parse("true", BooleanType.get).contains(true))
    assert(parse("1.1", FloatType.get).contains(1.1f))
    assert(parse("1.0E-5", DoubleType.get).contains(1.0e-5))
    assert(parse("-Infinity", DoubleType.get).contains(Double.NegativeInfinity))
    assert(parse("NaN", FloatType.get).exists(_.asInstanceOf[Float].isNaN))
    assert(parse("1.5", DecimalType.of(38, 3)).contains(new java.math.BigDecimal("1.500")))
    assert(parse(" a%20 ", StringType.get).contains(" a%20 "))
    assert(parse("1969-12-31", DateType.get).contains(-1))
    assert(parse("1970-01-01T00:00:00.000001Z", TimestampType.withZone).contains(1L))
    assert(parse("1970-01-01 00:00:00.000001", TimestampType.withoutZone).contains(1L))
  }

  test("minus zero is zero, as it is to a query") {
    assert(1 / parse("-0.0", DoubleType.get).get.asInstanceOf[Double] > 0)
    assert(1 / parse("-0.0", FloatType.get).get.asInstanceOf[Float] > 0)
  }

  test("what cannot be told exactly is not told") {
    assert(parse("1.0", IntegerType.get).isEmpty)
    assert(parse("1.5", DecimalType.of(5, 0)).isEmpty)
    assert(parse("2026-01-01 00:00:00", TimestampType.withZone).isEmpty)
    assert(parse("soon", DateType.get).isEmpty)
    assert(parse("abc", BinaryType.get).isEmpty)
  }

  private val schema = new Schema(
    NestedField.optional(3, "a", IntegerType.get),
    NestedField.optional(5, "b", StringType.get)
  )
  private val both =
    PartitionSpec.builderFor(schema).withSpecId(2).identity("b").identity("a").build()

  test("values come by physical name, in the order of the spec; empty is null") {
    val tuple = PartitionValues.tuple(both, Map("col-3" -> "7", "col-5" -> "x")).toOption.get
    assert(tuple.get(0, classOf[Any]) == "x" && tuple.get(1, classOf[Any]) == 7)
    val nulls = PartitionValues.tuple(both, Map("col-3" -> "", "col-5" -> null)).toOption.get
    assert(nulls.get(0, classOf[Any]) == null && nulls.get(1, classOf[Any]) == null)
  }

  test("a value that cannot be told is named") {
    assert(
      PartitionValues.tuple(both, Map("col-3" -> "x", "col-5" -> "x")).left.exists(_ == "col-3")
    )
  }
}
