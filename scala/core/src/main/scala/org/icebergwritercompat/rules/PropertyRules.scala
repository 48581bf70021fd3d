package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{
  AssignedByActivation,
  Clause,
  Contract,
  FileFormat,
  Fix,
  FixedByActivation,
  Lifecycle,
  Rule,
  TableRule,
  TableState,
  Violation
}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{Condition, Location, WriterCompat}
import org.icebergwritercompat.remedy.Remedy

/** A property that must have one value, whether or not it may also be absent. */
sealed abstract class PropertyRule(
    id: String,
    statement: String,
    why: String,
    key: Contract => String,
    required: String,
    reason: String,
    clauses: Clause*
) extends TableRule(id, statement, why, clauses: _*) {

  /** Whether the table's properties meet the requirement. */
  protected def holds(table: TableState): Boolean

  /** What gives the property the value. */
  protected def remedy(table: TableState, found: String): Remedy =
    Fix.setProperty(table, found, required)

  final override def check(table: TableState): Seq[Violation] =
    if (holds(table)) Nil
    else {
      val found = table.keyOf(key(table.contract))
      Seq(
        violation(
          Condition.WrongRequiredTableProperty,
          Location.Property(found, table.property(found)),
          remedy(table, found),
          "property" -> found,
          "value" -> table.property(found).getOrElse("not set"),
          "required" -> required,
          "reason" -> reason
        )
      )
    }
}

/** A property that must be set to one value. */
sealed abstract class RequiredProperty(
    id: String,
    statement: String,
    why: String,
    key: Contract => String,
    required: String,
    reason: String,
    clauses: Clause*
) extends PropertyRule(id, statement, why, key, required, reason, clauses: _*) {

  override protected def holds(table: TableState): Boolean =
    // Other engines do not trim: to Delta Kernel ` true ` is off, and Delta Spark fails on it.
    table.property(key(table.contract)).exists(_.equalsIgnoreCase(required))
}

/** A switch that must be off: absent or, in any case of letters, `false`. */
sealed abstract class SwitchedOff(
    id: String,
    statement: String,
    why: String,
    key: String,
    reason: String,
    clauses: Clause*
) extends PropertyRule(id, statement, why, _ => key, "false", reason, clauses: _*) {

  override protected def holds(table: TableState): Boolean =
    table.property(key).isEmpty || table.flag(key).contains(false)
}

/** Requirements on the table properties. */
object PropertyRules {

  object WriterCompatEnabled
      extends RequiredProperty(
        "B1",
        "The property that switches the contract on is `true`.",
        "Without the property no writer checks the rules.",
        _.property,
        "true",
        "it is the property that switches the feature on",
        Clause(Rfc, "IcebergWriterCompatV1")
      )
      with FixedByActivation

  object IcebergCompatV2Enabled
      extends RequiredProperty(
        "B2",
        s"`${WriterCompat.IcebergCompatV2Enabled}` is `true`.",
        "Without it, data files may lack the field ids and types that Iceberg requires.",
        _ => WriterCompat.IcebergCompatV2Enabled,
        "true",
        "the feature includes all requirements of IcebergCompatV2",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      )
      with AssignedByActivation

  object ColumnMappingById
      extends RequiredProperty(
        "B3",
        s"`${WriterCompat.ColumnMappingMode}` is `${WriterCompat.IdMode}`.",
        "With mapping by name, Delta reads nulls from a file that an Iceberg engine wrote with " +
          "other column names.",
        _ => WriterCompat.ColumnMappingMode,
        WriterCompat.IdMode,
        "only in this mode do Delta readers find columns by id in files that Iceberg engines wrote",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      )
      with AssignedByActivation {

    override protected def remedy(table: TableState, found: String): Remedy =
      Fix.setMappingMode(table, WriterCompat.IdMode)
  }

  object MaxColumnIdCoversAllIds
      extends TableRule(
        "B4",
        s"`${WriterCompat.MaxColumnId}` is a whole number, at least the highest column id or " +
          s"nested id, and at most ${SchemaRules.MaxIcebergColumnId}.",
        "Otherwise a new column could get the id of an older one, and show its values.",
        Clause(DeltaProtocol, "Column Mapping"),
        Clause(IcebergSpec, "Table Metadata Fields, last-column-id")
      )
      with AssignedByActivation {

    override def check(table: TableState): Seq[Violation] = {
      val highest = table.nodes.flatMap(_.id).maxOption.getOrElse(0L)
      val value = table.property(WriterCompat.MaxColumnId)
      val maximum =
        value.flatMap(_.toLongOption).filter(id => id >= 0 && id <= SchemaRules.MaxIcebergColumnId)
      if (maximum.exists(_ >= highest)) Nil
      else {
        val reason =
          if (value.isEmpty && highest == 0) "it must record the highest id that was ever assigned"
          else if (value.isDefined && maximum.isEmpty) noMaximum
          else alreadyGiven(highest)
        Seq(wrongMaximum(this, table, value, reason))
      }
    }

    private val noMaximum = s"it must be a whole number from 0 to " +
      s"${SchemaRules.MaxIcebergColumnId}: Iceberg reserves higher ids for its metadata columns"
  }

  /** Why the next id cannot be the one after a lower maximum. */
  private[rules] def alreadyGiven(highest: Long): String =
    s"ids up to $highest are already assigned, so an id could be assigned twice"

  /** A highest id that is not the highest. */
  private[rules] def wrongMaximum(
      rule: Rule,
      table: TableState,
      value: Option[String],
      reason: String
  ): Violation =
    Violation(
      rule,
      Condition.WrongMaxColumnId,
      Location.Property(WriterCompat.MaxColumnId, value),
      Fix.enable(table),
      Map(
        "property" -> WriterCompat.MaxColumnId,
        "value" -> value.getOrElse("not set"),
        "reason" -> reason
      )
    )

  object IcebergCompatV1Off
      extends SwitchedOff(
        "B5",
        s"`${WriterCompat.IcebergCompatV1Enabled}` is not `true`.",
        "The versions of IcebergCompat contradict each other on lists, maps and names.",
        WriterCompat.IcebergCompatV1Enabled,
        "the feature requires IcebergCompatV2, and a table can have only one version of " +
          "IcebergCompat",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )
      with FixedByActivation

  object DeletionVectorsOff
      extends SwitchedOff(
        "B6",
        s"`${WriterCompat.DeletionVectorsEnabled}` is not `true`.",
        "Iceberg readers would ignore the deletion vectors and return deleted rows.",
        WriterCompat.DeletionVectorsEnabled,
        "Iceberg readers ignore Delta's deletion vectors and would return deleted rows",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )

  object IcebergCompatV3Off
      extends SwitchedOff(
        "B5v3",
        s"`${WriterCompat.IcebergCompatV3Enabled}` is not `true`.",
        "The versions of IcebergCompat contradict each other, and version 3 is for Iceberg " +
          "format version 3.",
        WriterCompat.IcebergCompatV3Enabled,
        "the feature requires IcebergCompatV2, and a table can have only one version of " +
          "IcebergCompat",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )
      with FixedByActivation

  object ChangeDataFeedOff
      extends SwitchedOff(
        "B7",
        s"`${WriterCompat.ChangeDataFeedEnabled}`, or if that is absent " +
          s"${WriterCompat.AlternateKeys(WriterCompat.ChangeDataFeedEnabled).map(key => s"`$key`").mkString(", ")}, " +
          "is absent or `false`.",
        "Iceberg writers write no change data files, so readers of the feed would miss their " +
          "changes.",
        WriterCompat.ChangeDataFeedEnabled,
        "Iceberg writers do not write change data files",
        Clause(Rfc, "Disallowed Features")
      )

  object NoCheckConstraints
      extends TableRule(
        "B8",
        s"No property begins with `${WriterCompat.ConstraintPrefix}`.",
        "Iceberg writers do not check constraints, so they could write rows that break them.",
        Clause(Rfc, "Disallowed Features")
      ) {

    override def check(table: TableState): Seq[Violation] =
      table.properties.keys.toSeq.sorted
        .filter(_.toLowerCase(java.util.Locale.ROOT).startsWith(WriterCompat.ConstraintPrefix))
        .map { key =>
          val constraint = key.substring(WriterCompat.ConstraintPrefix.length)
          val remedy = Fix.dropConstraint(table, constraint)
          violation(
            Condition.IncompatibleTableFeature,
            Location.Property(key, table.property(key)),
            remedy,
            "feature" -> "checkConstraints",
            "reason" -> (s"the constraint $constraint uses it, and Iceberg writers do not check " +
              s"constraints${Fix.price(table, remedy)}")
          )
        }
  }

  object RowTrackingOff
      extends SwitchedOff(
        "B9",
        s"`${WriterCompat.RowTrackingEnabled}` is not `true`.",
        "Iceberg writers do not keep row ids, so a row could get another id.",
        WriterCompat.RowTrackingEnabled,
        "Iceberg writers do not keep row ids",
        Clause(Rfc, "Disallowed Features")
      )

  object NoProtocolVersions
      extends TableRule(
        "B10",
        "`delta.minReaderVersion` and `delta.minWriterVersion` are never stored as properties.",
        "The protocol action has the versions; engines could read different ones from the " +
          "properties.",
        Clause(DeltaProtocol, "Protocol Evolution")
      )
      with FixedByActivation {

    override def check(table: TableState): Seq[Violation] =
      WriterCompat.ProtocolVersions
        .filter(table.properties.contains)
        .map { key =>
          violation(
            Condition.WrongRequiredTableProperty,
            Location.Property(key, table.property(key)),
            Fix.unsetProperty(table, key),
            "property" -> key,
            "value" -> table.property(key).getOrElse("not set"),
            "required" -> "not set",
            "reason" -> "the versions are in the protocol action"
          )
        }
  }

  private val onePublisher = "UniForm and this project would both write Iceberg metadata of the " +
    s"table; to publish each commit, use ${WriterCompat.Publish}"

  /** UniForm where it writes Iceberg metadata. */
  private[rules] def uniForm(rule: Rule, table: TableState, remedy: Remedy): Violation = Violation(
    rule,
    Condition.WrongRequiredTableProperty,
    Location.Property(WriterCompat.UniversalFormats, table.property(WriterCompat.UniversalFormats)),
    remedy,
    Map(
      "property" -> WriterCompat.UniversalFormats,
      "value" -> table.property(WriterCompat.UniversalFormats).getOrElse("not set"),
      "required" -> "a list without iceberg",
      "reason" -> onePublisher
    )
  )

  object UniFormOff
      extends TableRule(
        "B13",
        s"A table does not get the feature while `${WriterCompat.UniversalFormats}` contains " +
          "`iceberg`.",
        "UniForm and this project would both write Iceberg metadata, and readers of one would " +
          "not see the commits of the other, or fail.",
        Clause(DeltaSpark, "UniversalFormat")
      ) {

    // A table that somebody else has given both stays as it is.
    override def check(table: TableState): Seq[Violation] =
      if (table.lifecycle == Lifecycle.Changing || !WriterCompat.isUniFormIceberg(table.properties))
        Nil
      else {
        val remedy = table.lifecycle match {
          case _: Lifecycle.Creating => Fix.publishInstead(table)
          case _                     =>
            val others = WriterCompat.otherUniversalFormats(table.properties)
            Fix.setProperty(table, WriterCompat.UniversalFormats, others)
        }
        Seq(uniForm(this, table, remedy))
      }
  }

  object FormatIsParquet
      extends TableRule(
        "B12",
        "The format of data files is `parquet`, without options.",
        "Iceberg readers would read the files as Parquet and fail.",
        Clause(DeltaProtocol, "Change Metadata")
      ) {

    override def check(table: TableState): Seq[Violation] =
      if (table.format == FileFormat.Parquet) Nil
      else
        Seq(
          violation(
            Condition.WrongRequiredTableProperty,
            Location.Property("format", Some(table.format.provider)),
            Fix.copyInto(table),
            "property" -> "format",
            "value" -> described(table.format),
            "required" -> s"${FileFormat.Parquet.provider} without options",
            "reason" -> "all data files of the feature are Parquet"
          )
        )

    private def described(format: FileFormat): String =
      (String.valueOf(format.provider) +: Option(format.options).toSeq.flatten.sorted.map {
        case (key, value) => s"$key=$value"
      }).mkString(" ")
  }
}
