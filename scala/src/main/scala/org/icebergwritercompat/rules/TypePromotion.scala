package org.icebergwritercompat.rules

import org.apache.spark.sql.types._

import scala.util.Try

/** Type changes, as Delta records them and as Iceberg v2 allows them. */
object TypePromotion {

  private val recordedKey = "delta.typeChanges"

  /** Whether Iceberg v2 reads files of the old type with the new one. */
  def isAllowed(from: DataType, to: DataType): Boolean = (from, to) match {
    case (same, other) if same == other => true
    case (IntegerType, LongType) | (FloatType, DoubleType) => true
    case (old: DecimalType, wider: DecimalType) =>
      old.scale == wider.scale && old.precision <= wider.precision
    case _ => false
  }

  /** The same for changes of the past: a byte or short was stored as an int all along. */
  def isHarmlessInHistory(from: DataType, to: DataType): Boolean = (from, to) match {
    case (ByteType | ShortType, ShortType | IntegerType | LongType) => true
    case _ => isAllowed(from, to)
  }

  /** The changes that the metadata of a field records; one that cannot be read counts as a change
    * from nothing known.
    */
  def recorded(field: Metadata): Seq[(DataType, DataType)] =
    if (!field.contains(recordedKey)) Nil
    else
      Try(field.getMetadataArray(recordedKey).toSeq).toOption
        .fold(Seq[(DataType, DataType)](NullType -> NullType))(_.map { change =>
          (parse(change, "fromType"), parse(change, "toType"))
        })

  private def parse(change: Metadata, key: String): DataType =
    Try(DataType.fromJson("\"" + change.getString(key) + "\"")).getOrElse(NullType)
}
