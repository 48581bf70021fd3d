package org.icebergwritercompat.upgrade

import org.apache.spark.sql.types.{MetadataBuilder, StructField, StructType}
import org.scalatest.funsuite.AnyFunSuite

/** What the log says of a file, under other names. */
class RenamingSuite extends AnyFunSuite {

  private def named(field: StructField, name: String): StructField =
    field.copy(metadata =
      new MetadataBuilder().putString("delta.columnMapping.physicalName", name).build()
    )

  private val plain = StructType.fromDDL("a DECIMAL(38, 10), s STRUCT<x: STRING, y: INT>, d DATE")

  private val after = {
    val below = plain("s").dataType.asInstanceOf[StructType]
    val renamed = StructType(Seq(named(below("x"), "col-3"), named(below("y"), "col-4")))
    StructType(
      Seq(
        named(plain("a"), "col-1"),
        named(plain("s").copy(dataType = renamed), "col-2"),
        named(plain("d"), "d")
      )
    )
  }

  private val renaming = Renaming.of(plain, after)

  test("statistics keep every digit, every escape and every part that is not by column") {
    val stats =
      """{"numRecords":3,"minValues":{"a":1234567890123456789012345678.0123456789,""" +
        """"s":{"x":"a\"bé\n","y":-1},"d":"2026-01-01"},"maxValues":{"s":{"x":null}},""" +
        """"nullCount":{"a":0,"s":{"x":1,"y":2}},"tightBounds":true,"more":[1.50,{"a":2e9}]}"""
    val expected =
      """{"numRecords":3,"minValues":{"col-1":1234567890123456789012345678.0123456789,""" +
        """"col-2":{"col-3":"a\"bé\n","col-4":-1},"d":"2026-01-01"},""" +
        """"maxValues":{"col-2":{"col-3":null}},""" +
        """"nullCount":{"col-1":0,"col-2":{"col-3":1,"col-4":2}},"tightBounds":true,""" +
        """"more":[1.50,{"a":2e9}]}"""
    assert(renaming.statistics(stats) == expected)
  }

  test("statistics of a dropped column are left out, whatever they hold") {
    val stats = """{"minValues":{"gone":{"x":[1]},"a":1,"s":{"gone":2}},"numRecords":1}"""
    assert(
      renaming.statistics(stats) == """{"minValues":{"col-1":1,"col-2":{}},"numRecords":1}"""
    )
  }

  test("what is no JSON stays what it is") {
    Seq(null, "", "{", "nonsense", """{"minValues":{"a":""").foreach { text =>
      assert(renaming.statistics(text) == text)
    }
  }

  test("partition values and paths get the new names, and nulls stay") {
    val values = renaming.partitionValues(Map("a" -> "1", "d" -> null))
    assert(values == Map("col-1" -> "1", "d" -> null))
    assert(renaming.path(Seq("s", "y")).contains(Seq("col-2", "col-4")))
    assert(renaming.path(Seq("s", "z")).isEmpty)
  }

  test("a schema whose names stay needs no file to be entered again") {
    assert(Renaming.of(after, after).isEmpty && !renaming.isEmpty)
  }
}
