package org.icebergwritercompat.model

import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.schema.MessageType

/**
 * A live data file, with the values of the log and of its footer.
 *
 * @param path
 *   the path in the log
 * @param partitionValues
 *   by physical name; a null is `null`
 * @param size
 *   the size in bytes according to the log
 * @param rowCount
 *   the `numRecords` of its statistics, which includes rows that a deletion vector deletes
 * @param namesById
 *   the physical names that columns had when it was written, if they have others now
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
 * Why the footer cannot be read.
 *
 * @param reason
 *   the reason, without details of the file
 * @param detail
 *   details of this file
 */
final case class Unreadable(reason: String, detail: String)

/**
 * The footer of a Parquet file.
 *
 * @param size
 *   the bytes of the file
 * @param chunks
 *   for each leaf column, by its path, one entry per row group
 * @param keys
 *   the key-value metadata
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
 * The statistics of a leaf column in a row group.
 *
 * @param valueCount
 *   the number of values, nulls included
 * @param definitionLevels
 *   the number of values at each definition level; empty if the writer did not store it
 */
final class ColumnChunk(
    val statistics: Statistics[_],
    val valueCount: Long,
    val definitionLevels: Seq[Long] = Nil
) {

  /** The number of nulls, if the writer stored it. */
  def nullCount: Option[Long] = Option.when(statistics.isNumNullsSet)(statistics.getNumNulls)

  /** Whether minimum and maximum are known; then there is a value that is not null. */
  def hasBounds: Boolean = statistics.hasNonNullValue
}
