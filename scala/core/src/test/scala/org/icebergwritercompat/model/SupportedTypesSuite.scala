package org.icebergwritercompat.model

import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

class SupportedTypesSuite extends AnyFunSuite {

  private def structOf(dataType: DataType) = new StructType().add("x", dataType)

  // The second of each pair is the nearest supported type; None where it is the type itself.
  private val types: Seq[(DataType, Boolean, Option[DataType])] = Seq(
    (IntegerType, true, None),
    (LongType, true, None),
    (FloatType, true, None),
    (DoubleType, true, None),
    (DecimalType(38, 18), true, None),
    (StringType, true, None),
    (StringType("UTF8_BINARY"), true, None),
    (BinaryType, true, None),
    (BooleanType, true, None),
    (DateType, true, None),
    (TimestampType, true, None),
    (TimestampNTZType, true, None),
    (ArrayType(IntegerType), true, None),
    (MapType(StringType, LongType), true, None),
    (structOf(IntegerType), true, None),
    (ByteType, false, Some(IntegerType)),
    (ShortType, false, Some(IntegerType)),
    (NullType, false, Some(StringType)),
    (VariantType, false, Some(StringType)),
    (CalendarIntervalType, false, Some(StringType)),
    (YearMonthIntervalType(), false, Some(StringType)),
    (DayTimeIntervalType(), false, Some(StringType)),
    (StringType("UTF8_LCASE"), false, Some(StringType)),
    (StringType("UNICODE_CI"), false, Some(StringType)),
    (CharType(3), false, Some(StringType)),
    (VarcharType(3), false, Some(StringType)),
    (new PointType, false, Some(StringType)),
    // Children are nodes of their own, so the collection by itself is fine.
    (ArrayType(ShortType), true, Some(ArrayType(IntegerType))),
    (structOf(ByteType), true, Some(structOf(IntegerType))),
    (
      MapType(ByteType, structOf(ShortType)),
      true,
      Some(MapType(IntegerType, structOf(IntegerType)))
    ),
    (ArrayType(VariantType), true, Some(ArrayType(StringType)))
  )

  for ((dataType, supported, nearest) <- types) {
    val name =
      if (dataType.isInstanceOf[UserDefinedType[_]]) "a user-defined type" else dataType.sql
    test(
      s"$name (${dataType.getClass.getSimpleName}) is ${if (supported) "" else "not "}supported"
    ) {
      assert(SupportedTypes.contains(dataType) == supported)
    }
    test(s"the nearest to $name (${dataType.getClass.getSimpleName})") {
      assert(SupportedTypes.nearest(dataType) == nearest.getOrElse(dataType))
    }
  }

  private class PointType extends UserDefinedType[Array[Double]] {
    override def sqlType: DataType = ArrayType(DoubleType)
    override def serialize(point: Array[Double]): Any = point
    override def deserialize(datum: Any): Array[Double] = Array.empty
    override def userClass: Class[Array[Double]] = classOf[Array[Double]]
  }
}
