package org.icebergwritercompat.model

import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.schema.MessageType

/**
 * A live data file, as the log and its own footer describe it.
 *
 * @param path
 *   as the log has it
 * @param partitionValues
 *   by physical name; null for a null
 * @param size
 *   the bytes that the log says it has
 * @param rowCount
 *   the `numRecords` of its statistics, which counts the rows that a deletion vector hides too
 * @param namesById
 *   the physical names that columns had for its writer, where they have others now
 */
final case class DataFile(
    path: String,
    partitionValues: Map[String, String],
    size: Long,
    rowCount: Option[Long],
    footer: Either[Unreadable, Footer],
    namesById: Map[Long, String] = Map.empty
)

/**
 * Why there is no footer.
 *
 * @param reason
 *   in words that are the same for all files with this reason
 * @param detail
 *   what is to say of this file
 */
final case class Unreadable(reason: String, detail: String)

/**
 * What a Parquet file says of itself.
 *
 * @param size
 *   the bytes of the file
 * @param chunks
 *   what each row group says of a leaf column, by the names that lead to it
 * @param keys
 *   what the writer says of itself and its settings
 * @param createdBy
 *   the library that wrote the file
 */
final case class Footer(
    schema: MessageType,
    rowCount: Long,
    size: Long,
    chunks: Map[Seq[String], Seq[ColumnChunk]] = Map.empty,
    keys: Map[String, String] = Map.empty,
    createdBy: Option[String] = None
)

/**
 * What a row group says of a leaf column.
 *
 * @param valueCount
 *   the number of values, nulls included
 * @param definitionLevels
 *   how many values have each definition level; empty where the writer does not tell
 */
final class ColumnChunk(
    val statistics: Statistics[_],
    val valueCount: Long,
    val definitionLevels: Seq[Long] = Nil
) {

  /** The number of nulls, if the writer tells. */
  def nullCount: Option[Long] = Option.when(statistics.isNumNullsSet)(statistics.getNumNulls)

  /** The least and the greatest value are known, so there is one that is not null. */
  def hasBounds: Boolean = statistics.hasNonNullValue
}
