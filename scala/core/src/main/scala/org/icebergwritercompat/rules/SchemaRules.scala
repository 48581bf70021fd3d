package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{
  AssignedByActivation,
  Clause,
  Fix,
  FixedByActivation,
  FixedByRewrite,
  Lifecycle,
  Obstacle,
  TableRule,
  TableState,
  Violation
}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{
  Condition,
  Location,
  Role,
  SchemaNode,
  SupportedTypes,
  TypePromotion,
  WriterCompat
}
import org.icebergwritercompat.remedy.Remedy

import java.util.Locale

/** Requirements on the schema, at every depth. */
object SchemaRules {

  /** The highest column id that a table may use; Iceberg reserves higher ones. */
  val MaxIcebergColumnId: Long = 2147483447L

  private def missing(
      rule: TableRule,
      node: SchemaNode,
      key: String,
      remedy: Remedy
  ) =
    Violation(
      rule,
      Condition.MissingColumnMappingMetadata,
      node.location,
      remedy,
      Map("column" -> node.sqlPath, "key" -> key)
    )

  object FieldsHaveIdAndPhysicalName
      extends TableRule(
        "C1",
        s"Every field has `${WriterCompat.ColumnId}` and `${WriterCompat.PhysicalName}`.",
        "Iceberg finds a column only by its id, so a column without an id cannot be read.",
        Clause(DeltaProtocol, "Column Mapping")
      )
      with FixedByRewrite {

    override def check(table: TableState): Seq[Violation] =
      for {
        node <- table.nodes if node.isField
        keys = Option.when(node.id.isEmpty)(WriterCompat.ColumnId) ++
          Option.when(node.physicalName.isEmpty)(WriterCompat.PhysicalName)
        if keys.nonEmpty
      } yield missing(this, node, keys.mkString(" and "), Fix.enableUnread(table))
  }

  object PhysicalNameIsColId
      extends TableRule(
        "C2",
        "The physical name of every field is `col-` followed by its id.",
        "Iceberg writers derive the name from the id, and would write the column under another " +
          "name.",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      )
      with AssignedByActivation {

    override def check(table: TableState): Seq[Violation] =
      for {
        node <- table.nodes if node.isField
        id <- node.id
        name <- node.physicalName
        expected = WriterCompat.physicalName(id) if name != expected
      } yield violation(
        Condition.FieldIdDoesNotMatchPhysicalName,
        node.location,
        Fix.enable(table),
        "column" -> node.sqlPath,
        "id" -> id.toString,
        "physicalName" -> name,
        "required" -> expected
      )
  }

  /** Finds fields whose metadata has one of the keys of a legacy feature. */
  sealed abstract class LegacyFeatureInactive(
      id: String,
      feature: String,
      why: String,
      val keys: Seq[String],
      reason: String,
      remedyOf: (TableState, SchemaNode) => Remedy,
      clause: Clause
  ) extends TableRule(
        id,
        s"No field has the metadata ${keys.map(key => s"`$key`").mkString(", ")}: the feature " +
          s"`$feature` is not active.",
        why,
        clause
      ) {

    override def check(table: TableState): Seq[Violation] =
      for {
        node <- table.nodes if node.isField
        key <- keys.find(node.metadata.contains)
        remedy = remedyOf(table, node)
      } yield violation(
        Condition.IncompatibleTableFeature,
        node.location,
        remedy,
        "feature" -> feature,
        "reason" -> (s"column ${node.sqlPath} uses it by its metadata $key, and $reason" +
          Fix.price(table, remedy))
      )
  }

  private val disallowed = Clause(Rfc, "Disallowed Features")

  object IdsAreUnique
      extends TableRule(
        "C3",
        "Ids of fields, elements, keys and values are unique over the whole schema, from 1 to " +
          s"$MaxIcebergColumnId.",
        "Iceberg identifies a column only by its id, so columns with the same id cannot be " +
          "distinguished.",
        Clause(DeltaProtocol, "Column Mapping"),
        Clause(IcebergSpec, "Reserved Field IDs")
      ) {

    override def check(table: TableState): Seq[Violation] = {
      val withId = table.nodes.flatMap(node => node.id.map(_ -> node))
      val duplicates = withId
        .groupMap(_._1)(_._2)
        .toSeq
        .filter(_._2.sizeIs > 1)
        .sortBy(_._1)
        .map { case (shared, nodes) =>
          violation(
            Condition.DuplicateColumnId,
            nodes.last.location,
            Fix.enable(table),
            "id" -> shared.toString,
            "columns" -> nodes.map(_.sqlPath).mkString(", ")
          )
        }
      val outOfRange = withId.collect {
        case (found, node) if found < 1 || found > MaxIcebergColumnId =>
          violation(
            Condition.ColumnIdOutOfRange,
            node.location,
            Fix.enable(table),
            "column" -> node.sqlPath,
            "id" -> found.toString,
            "highest" -> MaxIcebergColumnId.toString
          )
      }
      duplicates ++ outOfRange
    }
  }

  object CollectionsHaveNestedIds
      extends TableRule(
        "C5",
        "Every list has an id for its element, every map for its key and its value, under " +
          s"`${WriterCompat.NestedIds}` of the nearest field above.",
        "Iceberg finds elements, keys and values only by their ids; without them it reads an " +
          "empty list or map, or fails.",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )
      with FixedByRewrite {

    override def check(table: TableState): Seq[Violation] =
      table.nodes.collect {
        case node if !node.isField && node.id.isEmpty =>
          missing(this, node, WriterCompat.NestedIds, Fix.enable(table))
      }
  }

  object TypesAreSupported
      extends TableRule(
        "C7",
        "Every type is one of integer, long, float, double, decimal, string, binary, boolean, " +
          "timestamp, timestamp_ntz, date, array, map and struct; a CHAR is a string, stored " +
          "padded with spaces.",
        "Iceberg format version 2 has no other types, so Iceberg engines could not read or " +
          "write the column.",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // A byte or short keeps its values as an int. Without files there is nothing to write, but
      // another type is still a change to ask for.
      if (
        table.nodeAt(violation.location).exists(node => SupportedTypes.widensToInt(node.dataType))
      )
        Obstacle.Rewrite
      else Obstacle.Blocker

    override def check(table: TableState): Seq[Violation] =
      table.nodes.collect {
        case node if !SupportedTypes.contains(node.dataType) =>
          violation(
            Condition.UnsupportedDataType,
            node.location,
            Fix.useSupportedType(table, node),
            "column" -> node.sqlPath,
            "type" -> node.dataType.sql,
            "nearest" -> SupportedTypes.nearest(node.dataType).sql
          )
      }

    /** The violations of a table whose files may hold CHAR values that are not padded. */
    def ofUnfilledFiles(table: TableState): Seq[Violation] =
      for {
        node <- table.nodes if node.isField
        filledUp <- SupportedTypes.filledUp(node.metadata)
      } yield violation(
        Condition.UnsupportedDataType,
        node.location,
        Fix.callEnable(table, rewrite = true),
        "column" -> node.sqlPath,
        "type" -> filledUp.toUpperCase(Locale.ROOT),
        "nearest" -> "STRING, padded with spaces in the files"
      )
  }

  object TimestampNtzIsSupported
      extends TableRule(
        "C8",
        "If a column is a timestamp without time zone, the feature `timestampNtz` is supported.",
        "Delta engines refuse such a column if the protocol does not list the feature.",
        Clause(DeltaProtocol, "Timestamp without timezone (TimestampNtz)")
      )
      with FixedByActivation {

    override def check(table: TableState): Seq[Violation] =
      if (table.protocol.listedFeatures(feature)) Nil
      else
        table.nodes.find(_.dataType == TimestampNTZType).toSeq.map { node =>
          violation(
            Condition.MissingRequiredTableFeature,
            node.location,
            Fix.setProperty(table, s"delta.feature.$feature", "supported"),
            "feature" -> feature,
            "neededBy" -> s"column ${node.sqlPath}"
          )
        }

    private val feature = "timestampNtz"
  }

  object NoInvariants
      extends LegacyFeatureInactive(
        "C9",
        "invariants",
        "Iceberg writers do not check invariants, so they could write rows that break them.",
        Seq("delta.invariants"),
        "Iceberg writers do not check invariants",
        Fix.withoutExpression(_, _, Fix.Invariants),
        disallowed
      )

  object NoIdentityColumns
      extends LegacyFeatureInactive(
        "C10",
        "identityColumns",
        "Iceberg writers do not generate identity values, so values could repeat or be missing.",
        Seq("start", "step", "highWaterMark", "allowExplicitInsert").map("delta.identity." + _),
        "Iceberg writers do not generate identity values",
        Fix.withoutExpression(_, _, Fix.IdentityColumns),
        disallowed
      )

  object NoGeneratedColumns
      extends LegacyFeatureInactive(
        "C11",
        "generatedColumns",
        "Iceberg writers do not compute generated columns, so they could write other values.",
        Seq("delta.generationExpression"),
        "Iceberg writers do not compute generated columns",
        Fix.withoutExpression(_, _, Fix.GeneratedColumns),
        disallowed
      )

  object NoColumnDefaults
      extends LegacyFeatureInactive(
        "C12",
        "allowColumnDefaults",
        "Iceberg format version 2 has no column defaults, so Iceberg writers would write null " +
          "instead.",
        Seq("CURRENT_DEFAULT"),
        "Iceberg format version 2 has no column defaults",
        Fix.dropDefault,
        disallowed
      )

  object RecordedTypeChangesArePromotions
      extends TableRule(
        "C13",
        "Every recorded type change is one that Iceberg format version 2 has: int to long, " +
          "float to double, a decimal to a wider one of the same scale; or it is byte or short " +
          "to int or long. Inside a map key only byte or short to int is allowed.",
        "Iceberg cannot read files that were written before any other type change.",
        Clause(Rfc, "Allowed Supported list of features"),
        Clause(IcebergSpec, "Schema Evolution"),
        Clause(IcebergCode, "SchemaUpdate")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // After a rewrite of the files from before the type change, no live file has the old type.
      if (!hasFiles) Obstacle.None
      else if (table.nodeAt(violation.location).exists(isPastWithFilesWrittenAnew)) Obstacle.Rewrite
      else Obstacle.Blocker

    override def check(table: TableState): Seq[Violation] =
      for {
        node <- table.nodes if node.isField
        change <- refused(node)
        isNew = table.previous.isDefined && !before(table, node).contains(change)
      } yield violation(
        Condition.IncompatibleSchemaChange,
        node.location,
        if (isNew) Fix.addBeside(table, node) else Fix.copyInto(table),
        "column" -> SchemaNode.sqlPath(node.path ++ change.way),
        "change" -> (change.types match {
          case Some((from, to)) if isNew => s"changes from ${from.sql} to ${to.sql}"
          case Some((from, to))          =>
            s"was changed from ${from.sql} to ${to.sql} while the table held rows"
          case None => "has a record of type changes that cannot be read"
        }),
        "reason" -> (if (change.isReadable) "Iceberg does not allow changes inside a map key"
                     else if (change.types.isEmpty)
                       "it is unknown whether Iceberg can read the older files"
                     else "Iceberg cannot read the older files with the newer type")
      )

    /** Whether a rewrite of the files from before the type changes resolves all violations. */
    def isPastWithFilesWrittenAnew(node: SchemaNode): Boolean = !refused(node).exists(_.isReadable)

    private def refused(node: SchemaNode): Seq[TypePromotion.Recorded] =
      TypePromotion.recorded(node.metadata).filter { change =>
        val inKey =
          change.changesMapKey || node.belowMapKey && change.copy(way = keyOnly).changesMapKey
        inKey || !change.isReadable
      }

    private val keyOnly = Seq(Role.Key.name)

    private def before(table: TableState, node: SchemaNode): Seq[TypePromotion.Recorded] =
      for {
        previous <- table.previous.toSeq
        id <- node.id.toSeq
        was <- previous.nodesById.get(id).toSeq
        change <- TypePromotion.recorded(was.metadata)
      } yield change
  }

  object PartitionColumnsAreTopLevel
      extends TableRule(
        "C18",
        "Partition columns are top-level columns of a primitive type, spelled exactly as in " +
          "the schema.",
        "Iceberg partitions by values of primitive type only.",
        Clause(DeltaProtocol, "Change Metadata"),
        Clause(IcebergSpec, "Partitioning")
      ) {

    override def check(table: TableState): Seq[Violation] =
      table.partitionColumns.flatMap { name =>
        problem(table, name).map { found =>
          val location = table.column(name).map(_.location)
          violation(
            Condition.IncompatiblePartitioning,
            location.getOrElse(Location.Column(Seq(String.valueOf(name)), None, None)),
            table.lifecycle match {
              case _: Lifecycle.Creating =>
                Fix.partitionBy(table, table.partitionColumns.flatMap(usable(table, _)))
              // Delta cannot read such a table, so its rows cannot be copied.
              case _ => Fix.lookIntoHistory(table)
            },
            "columns" -> String.valueOf(name),
            "reason" -> s"$name $found"
          )
        }
      }

    private def problem(table: TableState, name: String): Option[String] =
      table.column(name) match {
        case None                             => Some("is not a column of the table")
        case Some(column) if isNested(column) => Some(s"has the type ${column.dataType.typeName}")
        case Some(column)                     =>
          // Delta cannot load a table if the schema does not have the exact name of a partition
          // column.
          val isThere = table.nodesByPath.contains(Vector(name))
          Option.when(!isThere)(s"is spelled ${column.path.head} in the schema")
      }

    private def usable(table: TableState, name: String): Option[String] =
      table.column(name).filterNot(isNested).map(_.path.head)

    private def isNested(column: SchemaNode): Boolean = column.dataType match {
      case _: StructType | _: ArrayType | _: MapType => true
      case _                                         => false
    }
  }

  /**
   * Not a rule of the RFC. Of the tested releases, Delta 4.3.1 and 4.4.0 refuse decimals here. A
   * release that no longer does makes the rule stricter than it has to be: the rule does not know
   * which Delta runs, and has to be taken out of the contract then.
   */
  object NoDecimalPartitions
      extends TableRule(
        "C18d",
        "No partition column is a decimal. This is a limitation of Delta Spark 4.4.0.",
        "Because of a bug, Delta Spark 4.4.0 refuses every write to such a table.",
        Clause(DeltaSpark, "CheckPartitionDataTypeInV2AllowList")
      ) {

    override def check(table: TableState): Seq[Violation] =
      table.partitionNodes.collect {
        case node if isDecimal(table, node.path.head) =>
          violation(
            Condition.IncompatiblePartitioning,
            node.location,
            Fix.partitionBy(table, table.partitionColumns.filterNot(isDecimal(table, _))),
            "columns" -> node.path.head,
            "reason" -> (s"${node.path.head} is a decimal: Iceberg and the protocol allow it, " +
              "but a bug of Delta Spark 4.4.0 refuses it with IcebergCompatV2")
          )
      }

    private def isDecimal(table: TableState, name: String): Boolean =
      table.column(name).exists(_.dataType.isInstanceOf[DecimalType])
  }
}
