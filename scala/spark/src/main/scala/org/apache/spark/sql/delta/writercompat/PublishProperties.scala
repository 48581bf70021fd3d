package org.apache.spark.sql.delta.writercompat

import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.delta.actions.Metadata
import org.icebergwritercompat.{IcebergLibrary, WriterCompat}
import org.icebergwritercompat.WriterCompat.{Enabled, Publish, PublishTable}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.rules.{Contracts, SupportedTypes}

/** The table properties of this project that tell how a table is published. */
object PublishProperties {

  private val prefix = "icebergWriterCompat."

  private val all = Seq(Publish, PublishTable)

  /**
   * Refuses what `metadata` sets in vain, other than the properties before.
   *
   * @param wasPublished
   *   whether the table is published after each commit already, by whatever session
   */
  def check(
      table: String,
      before: Map[String, String],
      metadata: Metadata,
      wasPublished: Boolean
  ): Unit = {
    val properties = metadata.configuration
    def set(key: String, value: String) =
      s"ALTER TABLE $table SET TBLPROPERTIES ('$key' = '$value')"
    for {
      (key, value) <- properties
      if isOne(key) && !before.get(key).contains(value)
    } {
      def refuse(allowed: String, fix: String): Nothing =
        throw IcebergWriterCompatException.invalidValue(key, value, allowed, fix)
      key match {
        case Publish =>
          if (!Seq("true", "false").exists(_.equalsIgnoreCase(value.trim)))
            refuse("true or false", set(Publish, "true"))
        case PublishTable =>
          if (!isName(value))
            refuse("a namespace and a name, with a dot between", set(PublishTable, "db.t"))
        case _ =>
          refuse(s"called ${all.mkString(" or ")}, in these letters", set(Publish, "true"))
      }
    }
    val starts = WriterCompat.isPublished(properties) && !WriterCompat.isPublished(before)
    if (starts && !Contracts.isEnabled(properties))
      throw IcebergWriterCompatException.invalidValue(
        Publish,
        properties(Publish),
        s"set together with $Enabled, because other tables may not be readable as Iceberg",
        s"ALTER TABLE $table SET TBLPROPERTIES ('$Enabled' = 'true', '$Publish' = 'true')"
      )
    // UniForm that comes with the statement is a matter of the rules.
    val hasUniForm = Seq(before, properties).forall(WriterCompat.isUniFormIceberg)
    if (starts && hasUniForm) throw byUniForm(table, properties)
    if (starts && !wasPublished) IcebergLibrary.require()
    if (WriterCompat.isPublished(properties) && Contracts.isEnabled(properties))
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

  /** Whether a name is that of one of them, or looks like it. */
  def isOne(key: String): Boolean = key.regionMatches(true, 0, prefix, 0, prefix.length)

  /** Those among the options of a write, in the letters of the properties. */
  def among(options: Map[String, String]): Map[String, String] =
    options.collect {
      case (key, value) if isOne(key) => all.find(_.equalsIgnoreCase(key)).getOrElse(key) -> value
    }

  /** Refuses options of a write that Delta would pass over. */
  def refuseOptions(table: String, options: Map[String, String]): Unit =
    among(options).headOption.foreach { case (key, value) =>
      throw IcebergWriterCompatException.invalidValue(
        key,
        value,
        "a property of the table: as an option of a write that does not create the table by name " +
          "it would have no effect",
        s"ALTER TABLE $table SET TBLPROPERTIES ('$key' = '$value')"
      )
    }

  private def isName(value: String): Boolean =
    try DeltaTables.nameParts(value).size > 1
    catch { case _: ParseException => false }
}
