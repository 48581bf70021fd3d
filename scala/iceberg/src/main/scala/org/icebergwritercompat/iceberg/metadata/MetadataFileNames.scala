package org.icebergwritercompat.iceberg.metadata

import java.io.InputStream
import java.util.zip.GZIPInputStream
import scala.util.matching.Regex

/**
 * The names of the files that hold Iceberg's metadata, plain and compressed, as Iceberg's library
 * has written them in all its versions. It does not need that library.
 */
object MetadataFileNames {

  private val uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

  /** What follows on the number or id; the first is what is written. */
  val Endings: Seq[String] = Seq(".metadata.json", ".gz.metadata.json", ".metadata.json.gz")

  private val ending = Endings.map(Regex.quote).mkString("(?:", "|", ")")

  /** The file of a version of a path table, with the number of the version. */
  val OfPath: Regex = s"v(\\d+)$ending".r

  /** The file of a version of a table in a catalog, with the number of the version. */
  val OfCatalog: Regex = s"(\\d+)-$uuid$ending".r

  /** A file that is to be renamed to one of these. */
  val Temporary: Regex = s"$uuid$ending|$uuid-version-hint\\.(?:temp|text)".r

  /**
   * A manifest, or a list of manifests: of Iceberg's library and all who follow it, of its rewrite
   * of manifests by Spark, and of DuckDB, whose lists have no number of an attempt.
   */
  val Avro: Regex =
    s"$uuid-m\\d+\\.avro|optimized-m-$uuid\\.avro|snap-\\d+-(?:\\d+-)?$uuid\\.avro".r

  /** The JSON in a file of this name. */
  def uncompressed(name: String, content: InputStream): InputStream =
    if (Endings.tail.exists(name.endsWith)) new GZIPInputStream(content) else content
}
