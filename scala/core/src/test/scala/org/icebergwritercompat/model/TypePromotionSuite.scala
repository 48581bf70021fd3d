package org.icebergwritercompat.model

import org.apache.spark.sql.types._
import org.icebergwritercompat.model.TypePromotion._
import org.scalatest.funsuite.AnyFunSuite

class TypePromotionSuite extends AnyFunSuite {

  private val types: Seq[DataType] = Seq(
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType(10, 0),
    DecimalType(10, 2),
    DecimalType(12, 2),
    DecimalType(20, 0),
    StringType,
    BinaryType,
    BooleanType,
    DateType,
    TimestampType,
    TimestampNTZType,
    ArrayType(IntegerType),
    new StructType().add("x", IntegerType)
  )

  // All that Iceberg v2 has, spelled out; everything else is refused.
  private val promotions: Set[(DataType, DataType)] = Set(
    (IntegerType, LongType),
    (FloatType, DoubleType),
    (DecimalType(10, 0), DecimalType(20, 0)),
    (DecimalType(10, 2), DecimalType(12, 2))
  )
  private val harmless: Set[(DataType, DataType)] = promotions ++ Set[(DataType, DataType)](
    (ByteType, ShortType),
    (ByteType, IntegerType),
    (ByteType, LongType),
    (ShortType, IntegerType),
    (ShortType, LongType)
  )

  for (from <- types; to <- types)
    test(s"${from.sql} to ${to.sql}") {
      assert(isAllowed(from, to) == (from == to || promotions((from, to))))
      assert(isHarmlessInHistory(from, to) == (from == to || harmless((from, to))))
    }

  private def change(keys: (String, String)*): Metadata =
    keys.foldLeft(new MetadataBuilder) { case (all, (k, v)) => all.putString(k, v) }.build()

  private def record(changes: Metadata*): Metadata =
    new MetadataBuilder().putMetadataArray("delta.typeChanges", changes.toArray).build()

  test("changes are read in their order, with the way to what changed") {
    assert(
      recorded(
        record(
          change("fromType" -> "byte", "toType" -> "integer"),
          change(
            "fromType" -> "decimal(5,2)",
            "toType" -> "decimal(9,2)",
            "fieldPath" -> "value.element"
          )
        )
      ) == Seq(
        Recorded(Nil, Some(ByteType -> IntegerType)),
        Recorded(Seq("value", "element"), Some(DecimalType(5, 2) -> DecimalType(9, 2)))
      )
    )
  }

  test("a field without a record, or with an empty one, has no changes") {
    assert(recorded(Metadata.empty) == Nil)
    assert(recorded(record()) == Nil)
  }

  test("what cannot be read is a change that Iceberg cannot be trusted with") {
    val unreadable = Seq(
      record(change("fromType" -> "byte")),
      record(change("fromType" -> "null", "toType" -> "\"")),
      new MetadataBuilder().putString("delta.typeChanges", "[]").build(),
      new MetadataBuilder().putNull("delta.typeChanges").build(),
      new MetadataBuilder().putLongArray("delta.typeChanges", Array(1L)).build()
    )
    unreadable.foreach { metadata =>
      assert(recorded(metadata) == Seq(Recorded(Nil, None)), metadata)
      assert(recorded(metadata).forall(!_.isReadable))
    }
  }

  test("a map key changes unless Iceberg has one type for both") {
    def inKey(from: DataType, to: DataType, way: String*) =
      Recorded(way, Some(from -> to)).changesMapKey
    assert(inKey(IntegerType, LongType, "key"))
    assert(inKey(ShortType, LongType, "value", "key", "element"))
    assert(!inKey(ShortType, IntegerType, "key"))
    assert(!inKey(IntegerType, LongType, "value"))
    assert(!inKey(IntegerType, LongType))
    assert(Recorded(Seq("key"), None).changesMapKey)
  }
}
