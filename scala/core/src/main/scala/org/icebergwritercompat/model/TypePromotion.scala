package org.icebergwritercompat.model

import org.apache.spark.sql.types._

import scala.util.Try

/** Type changes: those that Delta records, and those that Iceberg format version 2 allows. */
object TypePromotion {

  private val recordedKey = "delta.typeChanges"

  /**
   * A recorded type change.
   *
   * @param way
   *   the path from the field to the element, key or value that changed; empty for the field itself
   * @param types
   *   the old and the new type; `None` if the record cannot be parsed
   */
  final case class Recorded(way: Seq[String], types: Option[(DataType, DataType)]) {

    /** Whether Iceberg can read files that were written before the change. */
    def isReadable: Boolean = types.exists { case (from, to) => isHarmlessInHistory(from, to) }

    /** Whether a map key changed to another Iceberg type. */
    def changesMapKey: Boolean = way.contains(Role.Key.name) && !types.exists { case (from, to) =>
      asInIceberg(from) == asInIceberg(to)
    }
  }

  /** Whether Iceberg can read files of the old type as the new type. */
  def isAllowed(from: DataType, to: DataType): Boolean = (from, to) match {
    case (same, other) if same == other                    => true
    case (IntegerType, LongType) | (FloatType, DoubleType) => true
    case (old: DecimalType, wider: DecimalType)            =>
      old.scale == wider.scale && old.precision <= wider.precision
    case _ => false
  }

  /** The same for recorded changes, including from byte and short, which are stored as int. */
  def isHarmlessInHistory(from: DataType, to: DataType): Boolean = (from, to) match {
    case (ByteType | ShortType, ShortType | IntegerType | LongType) => true
    case _                                                          => isAllowed(from, to)
  }

  /** The changes that the metadata of a field records. */
  def recorded(field: Metadata): Seq[Recorded] =
    if (!field.contains(recordedKey)) Nil
    else
      Try(field.getMetadataArray(recordedKey).toSeq).toOption
        .fold(Seq(Recorded(Nil, None)))(_.map { change =>
          val types = for {
            from <- typeAt(change, "fromType")
            to <- typeAt(change, "toType")
          } yield (from, to)
          Recorded(wayOf(change), types)
        })

  /**
   * The metadata of a field without, for each path, the changes up to the last one that Iceberg
   * does not have. Valid only if no live file is older than that change.
   */
  def withoutUnreadable(field: Metadata): Metadata = {
    val changes = recorded(field)
    if (changes.forall(_.isReadable)) field
    else {
      val kept = Try(field.getMetadataArray(recordedKey).toSeq)
        .getOrElse(Nil)
        .zip(changes)
        .groupBy { case (_, change) => change.way }
        .values
        .flatMap(onWay => onWay.drop(onWay.lastIndexWhere(!_._2.isReadable) + 1))
        .map(_._1)
        .toSet
      val builder = new MetadataBuilder().withMetadata(field).remove(recordedKey)
      if (kept.nonEmpty)
        builder.putMetadataArray(recordedKey, field.getMetadataArray(recordedKey).filter(kept))
      builder.build()
    }
  }

  private def wayOf(change: Metadata): Seq[String] =
    Try(change.getString("fieldPath").split('.').toSeq).getOrElse(Nil)

  private def typeAt(change: Metadata, key: String): Option[DataType] =
    Try(DataType.fromJson("\"" + change.getString(key) + "\"")).toOption

  private def asInIceberg(dataType: DataType): DataType = dataType match {
    case ByteType | ShortType => IntegerType
    case other                => other
  }
}
