package org.apache.spark.sql.delta.writercompat.publish

import org.apache.spark.sql.catalyst.parser.ParseException
import org.apache.spark.sql.delta.actions.Metadata
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.{SupportedTypes, WriterCompat}
import org.icebergwritercompat.model.WriterCompat.{Publish, PublishScheme, PublishTable}
import org.icebergwritercompat.remedy.{Change, Declared, Door, Remedy, Together}
import org.apache.spark.sql.delta.writercompat.read.{DeltaTables, RunningStatement}
import org.icebergwritercompat.iceberg.IcebergLibrary
import org.icebergwritercompat.iceberg.publish.PublishRefusals
import org.icebergwritercompat.iceberg.target.StoreSchemes

/** The table properties that say whether and how a table is published. */
object PublishProperties {

  private val prefix = "icebergWriterCompat."

  private val all = Seq(Publish, PublishTable, PublishScheme)

  /**
   * Refuses properties in `metadata` that are new or changed and would have no effect.
   *
   * @param wasPublished
   *   whether the table is published after each commit already, by whatever session
   * @param isNew
   *   whether the table is only being created
   */
  def check(
      table: String,
      before: Map[String, String],
      metadata: Metadata,
      wasPublished: Boolean,
      isNew: Boolean
  ): Unit = {
    val properties = metadata.configuration
    val contract = Contracts.of(properties).getOrElse(Contracts.default)
    def set(properties: (String, String)*) =
      offered(isNew, Remedy.SetProperties(table, properties), contract)
    for {
      (key, value) <- properties
      if isOne(key) && !before.get(key).contains(value)
    } {
      def refuse(allowed: String, remedy: Remedy): Nothing =
        throw IcebergWriterCompatException.invalidValue(key, value, allowed, remedy, contract)
      key match {
        case Publish =>
          if (!Seq("true", "false").exists(_.equalsIgnoreCase(value.trim)))
            refuse("true or false", set(Publish -> "true"))
        case PublishTable =>
          if (!WriterCompat.isNoName(value) && !isName(value))
            refuse(
              s"a namespace and a name, with a dot between, or ${WriterCompat.NoName}",
              set(PublishTable -> "db.t")
            )
        case PublishScheme =>
          if (!StoreSchemes.ofS3.contains(value))
            refuse(StoreSchemes.ofS3.mkString(" or "), set(PublishScheme -> StoreSchemes.ofS3.head))
        case _ =>
          refuse(
            s"called ${all.mkString(" or ")}, in these letters",
            offered(
              isNew,
              Remedy.SetProperties(table, Seq(Publish -> "true"), without = Seq(key)),
              contract
            )
          )
      }
    }
    val starts = WriterCompat.isPublished(properties) && !WriterCompat.isPublished(before)
    if (starts && !Contracts.isEnabled(properties))
      throw IcebergWriterCompatException.invalidValue(
        Publish,
        properties(Publish),
        s"set together with ${contract.property}, because other tables may not be " +
          "readable as Iceberg",
        set(contract.property -> "true", Publish -> "true"),
        contract
      )
    // If the statement itself switches UniForm on, a rule refuses it.
    val hasUniForm = Seq(before, properties).forall(WriterCompat.isUniFormIceberg)
    if (starts && hasUniForm) throw PublishRefusals.byUniForm(table, properties)
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

  // For a table that is being created, the statement that creates it is offered with the change.
  private def offered(
      isNew: Boolean,
      set: Remedy.SetProperties,
      contract: Contract
  ): Remedy = {
    val remedy =
      if (isNew) Remedy.Create(undeclared(set.table, contract), set.changes)
      else set
    Together.of(Seq(remedy), RunningStatement.door)
  }

  private def undeclared(table: String, contract: Contract): Declared =
    Declared(table, replacing = false, new StructType, Nil, contract.property)

  /** Whether a key begins as these properties do, in letters of any case. */
  def isOne(key: String): Boolean = key.regionMatches(true, 0, prefix, 0, prefix.length)

  /** These properties among the options of a write, whose keys may be in letters of any case. */
  def among(options: Map[String, String]): Map[String, String] =
    options.collect {
      case (key, value) if isOne(key) => all.find(_.equalsIgnoreCase(key)).getOrElse(key) -> value
    }

  /** Refuses options of a write that Delta would ignore. */
  def refuseOptions(table: String, options: Map[String, String], isNew: Boolean): Unit =
    among(options).headOption.foreach { case (key, value) =>
      throw IcebergWriterCompatException.invalidValue(
        key,
        value,
        "a property of the table: as an option of a write that does not create the table by name " +
          "it would have no effect",
        if (isNew)
          Remedy.Create(
            undeclared(table, Contracts.default),
            Seq(Change.Property(key, None)),
            Some(Door.Writer)
          )
        else Remedy.SetProperty(table, key, value)
      )
    }

  private def isName(value: String): Boolean =
    try DeltaTables.nameParts(value).size > 1
    catch { case _: ParseException => false }
}
