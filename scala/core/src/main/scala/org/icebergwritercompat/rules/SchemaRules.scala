package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{
  BoundByFiles,
  Clause,
  Fix,
  FollowsFromTheSwitch,
  LaidOutByTheSwitch,
  Moment,
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

  /** The highest column id Iceberg leaves to tables; those above are its own. */
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
        "Iceberg finds a column by its id alone, so one without an id is not there.",
        Clause(DeltaProtocol, "Column Mapping")
      )
      with BoundByFiles {

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
        "The physical name of every field is exactly `col-` and its id.",
        "Writers that derive the name from the id would write the column under another name.",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      )
      with LaidOutByTheSwitch {

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
        "Iceberg knows a column by its id alone, so two of one id cannot be told apart.",
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
        "Iceberg finds the elements, keys and values by their ids, so the list or map reads " +
          "as empty or fails.",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      )
      with BoundByFiles {

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
          "timestamp, timestamp_ntz, date, array, map and struct; a char is a string that is stored " +
          "with the spaces it is shown with.",
        "Iceberg v2 has no such type, so its engines can neither read nor write the column.",
        Clause(Rfc, "Writer Requirements for IcebergWriterCompatV1")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // A byte or short keeps its values as an int; without rows a statement alters the type.
      if (
        hasFiles && table
          .nodeAt(violation.location)
          .exists(node => SupportedTypes.widensToInt(node.dataType))
      ) Obstacle.Rewrite
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

    /** The violations of a table whose files may hold CHAR values without the spaces shown. */
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
        "nearest" -> "STRING, with the spaces of a CHAR in the files"
      )
  }

  object TimestampNtzIsSupported
      extends TableRule(
        "C8",
        "A timestamp without time zone needs the feature `timestampNtz`.",
        "Delta engines refuse the column unless the protocol names the feature.",
        Clause(DeltaProtocol, "Timestamp without timezone (TimestampNtz)")
      )
      with FollowsFromTheSwitch {

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
        "Iceberg writers would not check the invariant, and rows could break it.",
        Seq("delta.invariants"),
        "Iceberg writers would not check the invariant",
        Fix.withoutExpression(_, _, Fix.Invariants),
        disallowed
      )

  object NoIdentityColumns
      extends LegacyFeatureInactive(
        "C10",
        "identityColumns",
        "Iceberg writers would not give out the next numbers, so numbers could repeat.",
        Seq("start", "step", "highWaterMark", "allowExplicitInsert").map("delta.identity." + _),
        "Iceberg writers would not give out the next numbers",
        Fix.withoutExpression(_, _, Fix.IdentityColumns),
        disallowed
      )

  object NoGeneratedColumns
      extends LegacyFeatureInactive(
        "C11",
        "generatedColumns",
        "Iceberg writers would not compute the column, so its values could contradict the rows.",
        Seq("delta.generationExpression"),
        "Iceberg writers would not compute the column",
        Fix.withoutExpression(_, _, Fix.GeneratedColumns),
        disallowed
      )

  object NoColumnDefaults
      extends LegacyFeatureInactive(
        "C12",
        "allowColumnDefaults",
        "Iceberg v2 has no defaults, so its writers would write null instead.",
        Seq("CURRENT_DEFAULT"),
        "Iceberg format version 2 has no column defaults",
        Fix.dropDefault,
        disallowed
      )

  object RecordedTypeChangesArePromotions
      extends TableRule(
        "C13",
        "Every recorded type change is one that Iceberg v2 has: int to long, float to double, a " +
          "wider decimal of the same scale, or a byte or short that became an int or long; inside " +
          "a map key it is only that a byte or short became an int.",
        "Iceberg cannot read files that were written before such a change.",
        Clause(Rfc, "Allowed Supported list of features"),
        Clause(IcebergSpec, "Schema Evolution"),
        Clause(IcebergCode, "SchemaUpdate")
      ) {

    override def obstacle(table: TableState, violation: Violation, hasFiles: Boolean): Obstacle =
      // No live file is older than the type change once those that are have been written again.
      if (table.nodeAt(violation.location).exists(isPastWithFilesWrittenAnew)) Obstacle.Rewrite
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
        "reason" -> (if (change.isReadable) "Iceberg lets nothing change inside a map key"
                     else if (change.types.isEmpty)
                       "nobody can tell whether Iceberg reads the older files"
                     else "Iceberg cannot read the older files with the newer type")
      )

    /** Whether all that is refused is past once no live file is older than it. */
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
        "Partition columns are top-level columns of the schema with a primitive type, spelled to the " +
          "letter as there.",
        "Iceberg partitions by top-level values only, so no reader could prune by it.",
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
            table.moment match {
              case _: Moment.Creating =>
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
        case None                             => Some("is no column of the table")
        case Some(column) if isNested(column) => Some(s"has the type ${column.dataType.typeName}")
        case Some(column)                     =>
          // Delta cannot load a table whose partition column it does not find by its exact name.
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
        "No partition column is a decimal, which Delta Spark 4.4.0 refuses by a mistake of its own.",
        "Delta Spark 4.4.0 refuses every write to such a table.",
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
            "reason" -> (s"${node.path.head} is a decimal: Iceberg and the protocol allow it, but " +
              "Delta Spark 4.4.0 refuses it under IcebergCompatV2 by mistake")
          )
      }

    private def isDecimal(table: TableState, name: String): Boolean =
      table.column(name).exists(_.dataType.isInstanceOf[DecimalType])
  }
}
