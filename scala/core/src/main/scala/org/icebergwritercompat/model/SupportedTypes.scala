package org.icebergwritercompat.model

import org.apache.spark.sql.types._

import scala.util.Try

/** The types that both Delta and Iceberg format version 2 have. */
object SupportedTypes {

  /** Whether both formats have this type; the types of its parts are not examined. */
  def contains(dataType: DataType): Boolean = dataType match {
    case _: CharType | _: VarcharType => false
    case s: StringType                => isPlain(s)
    case IntegerType | LongType | FloatType | DoubleType | BinaryType | BooleanType | DateType |
        TimestampType | TimestampNTZType =>
      true
    case _: DecimalType | _: StructType | _: ArrayType | _: MapType => true
    case _                                                          => false
  }

  /** Whether the type is byte or short, which become int. */
  def widensToInt(dataType: DataType): Boolean = dataType == ByteType || dataType == ShortType

  /** The supported type that can represent the same values, or string if there is none. */
  def nearest(dataType: DataType): DataType = dataType match {
    case narrow if widensToInt(narrow) => IntegerType
    case s: StructType if s.nonEmpty   =>
      StructType(s.map(f => f.copy(dataType = nearest(f.dataType))))
    case a: ArrayType => a.copy(elementType = nearest(a.elementType))
    case m: MapType   => m.copy(keyType = nearest(m.keyType), valueType = nearest(m.valueType))
    case other if contains(other) && !isEmpty(other) => other
    case _                                           => StringType
  }

  /**
   * The CHAR type of a column with this metadata, if Spark pads its values on reading. Delta stores
   * CHAR(n), at any depth, as a string, and the declared type in the metadata of the column.
   */
  def filledUp(column: Metadata): Option[String] =
    Option
      .when(column.contains(rawType))(Try(column.getString(rawType)).toOption)
      .flatten
      .filter(fixedLength.findFirstIn(_).isDefined)

  private val rawType = "__CHAR_VARCHAR_TYPE_STRING"

  private val fixedLength = "(?i)(?<![a-z])char\\(".r

  /** The first partition column whose values Delta's log cannot store exactly. */
  def lossyPartitionColumn(schema: StructType, partitionColumns: Seq[String]): Option[String] =
    partitionColumns.find(name => schema.exists(f => f.name == name && f.dataType == BinaryType))

  private def isEmpty(dataType: DataType): Boolean = dataType match {
    case s: StructType => s.isEmpty
    case _             => false
  }

  // Delta stores char and varchar as strings with a length in the metadata of the column; a
  // collation has no counterpart in Iceberg.
  private def isPlain(s: StringType): Boolean = s.collationId == StringType.collationId
}
