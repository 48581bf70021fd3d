package org.icebergwritercompat.iceberg.source

/**
 * Rows that a change deletes without writing the files anew that have them. The sink does that.
 *
 * @param files
 *   the data files that may have such rows; delete files name them by their place in this list
 */
final case class RowDeletes(
    files: Seq[TouchedFile],
    positions: Seq[PositionDeletes],
    equality: Seq[EqualityDeletes]
)

/**
 * A data file that may have rows that are deleted.
 *
 * @param path
 *   as Delta's log has it
 * @param location
 *   as Iceberg has it, and as delete files name it
 * @param rows
 *   how many it has
 * @param isNew
 *   whether the same change adds it
 * @param sequenceNumber
 *   of its data
 * @param partition
 *   a number that files of the same partition share
 */
final case class TouchedFile(
    path: String,
    location: String,
    rows: Long,
    isNew: Boolean,
    sequenceNumber: Long,
    partition: Int
)

/**
 * A delete file.
 *
 * @param path
 *   as Delta's log would have it
 * @param rows
 *   how many entries it is said to have
 */
final case class DeleteFileEntry(path: String, size: Long, rows: Long)

/**
 * Rows that are deleted by the location of their file and their place in it.
 *
 * @param of
 *   the data files that it applies to
 */
final case class PositionDeletes(file: DeleteFileEntry, of: Set[Int])

/**
 * Rows that are deleted because they have the same values in some columns. A null is the same as a
 * null.
 *
 * @param of
 *   the data files that may have such rows
 * @param columns
 *   the ids of the columns
 * @param sequenceNumber
 *   rows of files with the same or a higher one stay
 * @param partition
 *   rows of files of another partition stay
 */
final case class EqualityDeletes(
    file: DeleteFileEntry,
    of: Set[Int],
    columns: Set[Int],
    sequenceNumber: Long,
    partition: Int
)
