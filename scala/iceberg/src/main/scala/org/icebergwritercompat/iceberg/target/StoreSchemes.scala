package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy

/**
 * The schemes of S3: `s3a` in Hadoop, `s3` in most Iceberg readers. They name the same bucket.
 */
object StoreSchemes {

  /** The setting for the scheme in the locations that published metadata contains. */
  val Setting = "spark.icebergWriterCompat.publish.scheme"

  /** The schemes. */
  val ofS3: Seq[String] = Seq("s3", "s3a", "s3n")

  /** The scheme that the session's setting asks for. */
  def of(conf: Configuration): Option[String] = Option(conf.get(Setting)).map { asked =>
    if (!ofS3.contains(asked))
      throw IcebergWriterCompatException.invalidValue(
        Setting,
        asked,
        ofS3.mkString(" or "),
        Remedy.SetSetting(Seq(Setting -> ofS3.head))
      )
    asked
  }

  /** A text that is equal for locations that differ only in the scheme of S3. */
  def key(location: String): String =
    if (!location.startsWith("s3")) location
    else {
      val end = location.indexOf("://")
      if (end > 0 && ofS3.contains(location.substring(0, end))) s"s3${location.substring(end)}"
      else location
    }

  /** A location of S3 with this scheme; other locations are not changed. */
  def spelled(location: Path, scheme: String): Path =
    if (!isS3(location) || !ofS3.contains(scheme)) location
    else new Path(s"$scheme${location.toString.substring(location.toUri.getScheme.length)}")

  /** A location of S3 with the scheme of a folder, whose file system can open it. */
  def as(folder: Path, location: Path): Path =
    if (isS3(folder)) spelled(location, folder.toUri.getScheme) else location

  private def isS3(location: Path): Boolean = ofS3.contains(location.toUri.getScheme)
}
