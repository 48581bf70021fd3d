package org.icebergwritercompat.rules

import org.icebergwritercompat.contract.{
  Clause,
  Contract,
  FileFormat,
  Fix,
  FollowsFromTheSwitch,
  LaidOutByTheSwitch,
  Moment,
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
        "Without the switch no writer keeps the rules, so nothing of this is promised.",
        _.property,
        "true",
        "it is the one switch of the feature",
        Clause(Rfc, "IcebergWriterCompatV1")
      )
      with FollowsFromTheSwitch

  object IcebergCompatV2Enabled
      extends RequiredProperty(
        "B2",
        s"`${WriterCompat.IcebergCompatV2Enabled}` is `true`.",
        "Without it files may lack the ids and types that Iceberg needs.",
        _ => WriterCompat.IcebergCompatV2Enabled,
        "true",
        "all conditions of IcebergCompatV2 must hold too",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      )
      with LaidOutByTheSwitch

  object ColumnMappingById
      extends RequiredProperty(
        "B3",
        s"`${WriterCompat.ColumnMappingMode}` is `${WriterCompat.IdMode}`.",
        "By name, a file that an Iceberg engine wrote under other names is read as nulls.",
        _ => WriterCompat.ColumnMappingMode,
        WriterCompat.IdMode,
        "only in this mode does a reader find a column by its id, whoever wrote the file",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      )
      with LaidOutByTheSwitch {

    override protected def remedy(table: TableState, found: String): Remedy =
      Fix.setMappingMode(table, WriterCompat.IdMode)
  }

  object MaxColumnIdCoversAllIds
      extends TableRule(
        "B4",
        s"`${WriterCompat.MaxColumnId}` is a whole number, not below any column id or nested id, and " +
          s"not above ${SchemaRules.MaxIcebergColumnId}.",
        "A new column could be given the id of an older one, and show its values.",
        Clause(DeltaProtocol, "Column Mapping"),
        Clause(IcebergSpec, "Table Metadata Fields, last-column-id")
      )
      with LaidOutByTheSwitch {

    override def check(table: TableState): Seq[Violation] = {
      val highest = table.nodes.flatMap(_.id).maxOption.getOrElse(0L)
      val value = table.property(WriterCompat.MaxColumnId)
      val maximum =
        value.flatMap(_.toLongOption).filter(id => id >= 0 && id <= SchemaRules.MaxIcebergColumnId)
      if (maximum.exists(_ >= highest)) Nil
      else {
        val reason =
          if (value.isEmpty && highest == 0) "it has to tell which ids have been given out"
          else if (value.isDefined && maximum.isEmpty) noMaximum
          else alreadyGiven(highest)
        Seq(wrongMaximum(this, table, value, reason))
      }
    }

    private val noMaximum = s"a highest id is a whole number from 0 to " +
      s"${SchemaRules.MaxIcebergColumnId}: Iceberg has the ids above for columns of its own"
  }

  /** Why the next id cannot be the one after a lower maximum. */
  private[rules] def alreadyGiven(highest: Long): String =
    s"ids up to $highest have been given out, so an id would be given out twice"

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
        "Two versions of IcebergCompat contradict each other on lists, maps and names.",
        WriterCompat.IcebergCompatV1Enabled,
        "the table follows IcebergCompatV2, and only one version can be followed at a time",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )
      with FollowsFromTheSwitch

  object DeletionVectorsOff
      extends SwitchedOff(
        "B6",
        s"`${WriterCompat.DeletionVectorsEnabled}` is not `true`.",
        "Iceberg readers of format version 2 would show rows that were deleted.",
        WriterCompat.DeletionVectorsEnabled,
        "Iceberg readers of format version 2 do not see rows deleted by deletion vectors",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )

  object IcebergCompatV3Off
      extends SwitchedOff(
        "B5v3",
        s"`${WriterCompat.IcebergCompatV3Enabled}` is not `true`.",
        "Two versions of IcebergCompat contradict each other, and version 3 is for Iceberg v3.",
        WriterCompat.IcebergCompatV3Enabled,
        "the table follows IcebergCompatV2, and only one version can be followed at a time",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )
      with FollowsFromTheSwitch

  object ChangeDataFeedOff
      extends SwitchedOff(
        "B7",
        s"`${WriterCompat.ChangeDataFeedEnabled}`, or if that is absent " +
          s"${WriterCompat.AlternateKeys(WriterCompat.ChangeDataFeedEnabled).map(key => s"`$key`").mkString(", ")}, " +
          "is absent or `false`.",
        "Iceberg writers write no change data, so readers of the feed would miss their changes.",
        WriterCompat.ChangeDataFeedEnabled,
        "Iceberg writers do not write change data files",
        Clause(Rfc, "Disallowed Features")
      )

  object NoCheckConstraints
      extends TableRule(
        "B8",
        s"No property begins with `${WriterCompat.ConstraintPrefix}`.",
        "Iceberg writers would not check the constraint, and rows could break it.",
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
            "reason" -> (s"the constraint $constraint uses it, and Iceberg writers would not check " +
              s"the constraint${Fix.price(table, remedy)}")
          )
        }
  }

  object RowTrackingOff
      extends SwitchedOff(
        "B9",
        s"`${WriterCompat.RowTrackingEnabled}` is not `true`.",
        "Iceberg writers drop the ids of rows, so they would not stay with their rows.",
        WriterCompat.RowTrackingEnabled,
        "Iceberg writers do not keep row ids",
        Clause(Rfc, "Disallowed Features")
      )

  object NoProtocolVersions
      extends TableRule(
        "B10",
        "`delta.minReaderVersion` and `delta.minWriterVersion` are never stored as properties.",
        "Engines would disagree on which of the two versions counts.",
        Clause(DeltaProtocol, "Protocol Evolution")
      ) {

    override def check(table: TableState): Seq[Violation] =
      Seq("delta.minReaderVersion", "delta.minWriterVersion")
        .filter(table.properties.contains)
        .map { key =>
          violation(
            Condition.WrongRequiredTableProperty,
            Location.Property(key, table.property(key)),
            Fix.unsetProperty(table, key),
            "property" -> key,
            "value" -> table.property(key).getOrElse("not set"),
            "required" -> "not set",
            "reason" -> "the protocol action holds the versions"
          )
        }
  }

  private val onePublisher = "two publishers would write Iceberg metadata of the table side by " +
    s"side; ${WriterCompat.Publish} publishes each commit"

  /** UniForm where it writes Iceberg metadata. */
  private[rules] def uniForm(rule: Rule, table: TableState, remedy: Remedy): Violation = Violation(
    rule,
    Condition.WrongRequiredTableProperty,
    Location.Property(WriterCompat.UniversalFormats, table.property(WriterCompat.UniversalFormats)),
    remedy,
    Map(
      "property" -> WriterCompat.UniversalFormats,
      "value" -> table.property(WriterCompat.UniversalFormats).getOrElse("not set"),
      "required" -> "without iceberg",
      "reason" -> onePublisher
    )
  )

  object UniFormOff
      extends TableRule(
        "B13",
        s"No table gets the feature while `${WriterCompat.UniversalFormats}` names `iceberg`.",
        "Readers of one of the two would not see what the other has published, or fail.",
        Clause(DeltaSpark, "UniversalFormat")
      ) {

    // A table that somebody else has given both stays as it is.
    override def check(table: TableState): Seq[Violation] =
      if (table.moment == Moment.Changing || !WriterCompat.isUniFormIceberg(table.properties)) Nil
      else {
        val remedy = table.moment match {
          case _: Moment.Creating => Fix.publishInstead(table)
          case _                  =>
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
        "An Iceberg reader would take the files for Parquet and fail.",
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
            "reason" -> "the metadata of an Iceberg table names the format of each file"
          )
        )

    private def described(format: FileFormat): String =
      (String.valueOf(format.provider) +: Option(format.options).toSeq.flatten.sorted.map {
        case (key, value) => s"$key=$value"
      }).mkString(" ")
  }
}
