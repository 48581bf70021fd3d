package org.icebergwritercompat.model

/**
 * The values of a file's statistics that the rules use.
 *
 * @param rowCount
 *   the value of `numRecords`, if it is a valid number of rows
 * @param unknownNames
 *   the keys of the column statistics that are not physical names, each as a path
 */
final case class FileStatistics(rowCount: Option[Long], unknownNames: Set[Vector[String]])

object FileStatistics {

  /** The fields of the statistics that have a value for each column. */
  val ByColumn: Set[String] = Set("minValues", "maxValues", "nullCount")

  /**
   * What the rules use of statistics; `None` if they are not a JSON object.
   *
   * @param names
   *   the physical names that the keys of the column statistics are compared with
   */
  def parse(json: String, names: PhysicalNameTree): Option[FileStatistics] =
    names.decoder.decode(json)

  /** The same without the names, for callers that do not check them. */
  def parse(json: String): Option[FileStatistics] = StatisticsDecoder.ofRowCounts.decode(json)

  /** The row count in statistics that may be missing. */
  def rowCount(json: String): Option[Long] =
    parse(json).flatMap(_.rowCount)

  /**
   * What [[parse]] finds in the text that [[withRowCount]] makes of statistics without a row count.
   *
   * @param parsed
   *   what it finds in `json`
   */
  def parsedWithRowCount(
      json: String,
      parsed: Option[FileStatistics],
      rows: Long
  ): Option[FileStatistics] =
    if (json == null || json.isBlank) Some(FileStatistics(Some(rows), Set.empty))
    else parsed.map(_.copy(rowCount = Some(rows)))

  /**
   * The statistics with a row count and otherwise unchanged; statistics that are not a JSON object
   * are returned unchanged.
   */
  def withRowCount(json: String, rows: Long): String =
    if (json == null || json.isBlank) s"""{"numRecords":$rows}"""
    else
      parse(json) match {
        case Some(FileStatistics(None, _)) =>
          // At the end, because the last of several equal keys counts.
          val fields = json.substring(0, json.lastIndexOf('}'))
          val comma = if (fields.trim == "{") "" else ","
          s"""$fields$comma"numRecords":$rows}"""
        case _ => json
      }
}
