package org.icebergwritercompat.iceberg.writeback

import org.apache.iceberg.types.{Type, TypeUtil}
import org.apache.iceberg.{DataFile, Schema}

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.nio.charset.StandardCharsets.UTF_8
import scala.jdk.CollectionConverters._

/** The bounds of text columns in what a client says of its files. */
private[writeback] object TextBounds {

  /** The ids of the columns of text, at any depth. */
  def columns(schema: Schema): Set[Int] = TypeUtil
    .indexById(schema.asStruct)
    .asScala
    .collect { case (id, field) if field.`type`.typeId == Type.TypeID.STRING => id.toInt }
    .toSet

  /** Whether a file has a bound of one of the columns that is no text in UTF-8. */
  def hasUnreadable(file: DataFile, columns: Set[Int]): Boolean =
    Seq(file.lowerBounds, file.upperBounds)
      .flatMap(Option(_))
      .flatMap(_.asScala)
      .exists { case (id, bound) => columns(id) && bound != null && !isText(bound) }

  private def isText(bytes: ByteBuffer): Boolean =
    try {
      UTF_8.newDecoder().decode(bytes.duplicate())
      true
    } catch { case _: CharacterCodingException => false }
}
