package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.delta.actions.Metadata
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.WriterCompat.{Enabled, Publish, PublishTable}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.rules.SupportedTypes

/** The table properties of this project that tell how a table is published. */
object PublishProperties {

  private val prefix = "icebergWriterCompat."

  private val all = Seq(Publish, PublishTable)

  /** Refuses what `metadata` sets in vain, other than the properties before. */
  def check(
      spark: SparkSession,
      table: String,
      before: Map[String, String],
      metadata: Metadata
  ): Unit = {
    val properties = metadata.configuration
    def set(key: String, value: String) =
      s"ALTER TABLE $table SET TBLPROPERTIES ('$key' = '$value')"
    for {
      (key, value) <- properties
      if key.regionMatches(true, 0, prefix, 0, prefix.length) && !before.get(key).contains(value)
    } {
      def refuse(allowed: String, fix: String): Nothing =
        throw IcebergWriterCompatException.invalidValue(key, value, allowed, fix)
      key match {
        case Publish =>
          if (!Seq("true", "false").exists(_.equalsIgnoreCase(value.trim)))
            refuse("true or false", set(Publish, "true"))
        case PublishTable =>
          if (!isName(spark, value))
            refuse("a namespace and a name, with a dot between", set(PublishTable, "db.t"))
        case _ =>
          refuse(s"called ${all.mkString(" or ")}, in these letters", set(Publish, "true"))
      }
    }
    val starts = WriterCompat.isPublished(properties) && !WriterCompat.isPublished(before)
    if (starts && !WriterCompat.isEnabled(properties))
      throw IcebergWriterCompatException.invalidValue(
        Publish,
        properties(Publish),
        s"set together with $Enabled, because other tables may not be readable as Iceberg",
        s"ALTER TABLE $table SET TBLPROPERTIES ('$Enabled' = 'true', '$Publish' = 'true')"
      )
    // UniForm that comes with the statement is a matter of the rules.
    val hasUniForm = Seq(before, properties).forall(WriterCompat.isUniFormIceberg)
    if (starts && hasUniForm) throw byUniForm(table, properties)
    if (WriterCompat.isPublished(properties) && WriterCompat.isEnabled(properties))
      SupportedTypes.lossyPartitionColumn(metadata.schema, metadata.partitionColumns).foreach {
        column =>
          throw IcebergWriterCompatException.notPublishable(
            "PARTITION_TYPE",
            Map("table" -> table, "column" -> column)
          )
      }
  }

  /** The refusal to publish a table that UniForm publishes. */
  def byUniForm(table: String, properties: Map[String, String]): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "UNIFORM",
      Map(
        "table" -> table,
        "formats" -> properties(WriterCompat.UniversalFormats),
        "others" -> WriterCompat.otherUniversalFormats(properties)
      )
    )

  private def isName(spark: SparkSession, value: String): Boolean =
    try spark.sessionState.sqlParser.parseMultipartIdentifier(value).size > 1
    catch { case _: ParseException => false }
}
