package org.icebergwritercompat.model

import org.apache.spark.sql.types._

import scala.util.Try

/** Type changes, as Delta records them and as Iceberg v2 allows them. */
object TypePromotion {

  private val recordedKey = "delta.typeChanges"

  /**
   * A type change of the past.
   *
   * @param way
   *   the way from the field to the element, key or value that changed; empty for the field itself
   * @param types
   *   the old and the new type; `None` where the log does not tell
   */
  final case class Recorded(way: Seq[String], types: Option[(DataType, DataType)]) {

    /** Whether Iceberg v2 reads the files that were written before the change. */
    def isReadable: Boolean = types.exists { case (from, to) => isHarmlessInHistory(from, to) }

    /** Whether a map key changed to another of Iceberg's types. */
    def changesMapKey: Boolean = way.contains(Role.Key.name) && !types.exists { case (from, to) =>
      asInIceberg(from) == asInIceberg(to)
    }
  }

  /** Whether Iceberg v2 reads files of the old type with the new one. */
  def isAllowed(from: DataType, to: DataType): Boolean = (from, to) match {
    case (same, other) if same == other                    => true
    case (IntegerType, LongType) | (FloatType, DoubleType) => true
    case (old: DecimalType, wider: DecimalType)            =>
      old.scale == wider.scale && old.precision <= wider.precision
    case _ => false
  }

  /** The same for changes of the past: a byte or short was stored as an int all along. */
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
   * The metadata of a field without the changes on each way up to the last that Iceberg does not
   * have, which is right where no live file is as old as that.
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
