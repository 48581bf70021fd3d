package org.icebergwritercompat.rules

import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{
  ChangeKind,
  ChangeRule,
  Clause,
  Fix,
  Rule,
  TableChange,
  TableState,
  Violation
}
import org.icebergwritercompat.contract.Source._
import org.icebergwritercompat.model.{
  Condition,
  Location,
  Role,
  SchemaNode,
  TypePromotion,
  WriterCompat
}
import org.icebergwritercompat.remedy.Remedy

/**
 * Requirements on how a table with the feature may change. Columns are compared by id, never by
 * name.
 */
object ChangeRules {

  private val evolution = Clause(IcebergSpec, "Schema Evolution")

  private def badChange(
      rule: Rule,
      node: SchemaNode,
      remedy: Remedy,
      change: String,
      reason: String
  ): Violation =
    Violation(
      rule,
      Condition.IncompatibleSchemaChange,
      node.location,
      remedy,
      Map("column" -> node.sqlPath, "change" -> change, "reason" -> reason)
    )

  object SwitchedOffWithTheFeatureOnly
      extends ChangeRule(
        "B1+",
        "The property that switches the contract on is removed or set to `false` only in the " +
          "commit that drops the feature.",
        "Iceberg writers can rely on the rules as long as the protocol has the feature.",
        Clause(Rfc, "IcebergWriterCompatV1"),
        Clause(DeltaProtocol, "Supported Features")
      ) {

    override def check(change: TableChange): Seq[Violation] = {
      val after = change.after
      val contract = change.before.contract
      val stays = after.protocol.listedFeatures(contract.feature)
      if (!stays || contract.isEnabled(after.properties)) Nil
      else {
        val value = after.properties.get(contract.property)
        Seq(
          violation(
            Condition.DisablingRequiredTableFeature,
            Location.Property(contract.property, value),
            Fix.leave(change.before),
            "property" -> contract.property,
            "change" -> value.fold("unset")(v => s"set to '$v'")
          )
        )
      }
    }
  }

  object UniFormStaysOff
      extends ChangeRule(
        "B13+",
        s"`iceberg` is not added to `${WriterCompat.UniversalFormats}`.",
        "UniForm and this project would both write Iceberg metadata, and readers of one would " +
          "not see the commits of the other, or fail.",
        Clause(DeltaSpark, "UniversalFormat")
      ) {

    override def check(change: TableChange): Seq[Violation] =
      if (
        WriterCompat.isUniFormIceberg(change.before.properties) ||
        !WriterCompat.isUniFormIceberg(change.after.properties)
      ) Nil
      else {
        val remedy = Remedy.SetProperties(
          change.before.name,
          Seq(WriterCompat.Publish -> "true"),
          without = Seq(WriterCompat.UniversalFormats)
        )
        Seq(PropertyRules.uniForm(this, change.after, remedy))
      }
  }

  object MaxColumnIdNeverFalls
      extends ChangeRule(
        "B4+",
        s"`${WriterCompat.MaxColumnId}` never decreases.",
        "The id of a dropped column could be assigned again, and the new column would show its " +
          "old values.",
        Clause(DeltaProtocol, "Column Mapping")
      ) {

    override def check(change: TableChange): Seq[Violation] = {
      val now = change.after.maxColumnId
      val was = change.before.maxColumnId
      if (now >= was) Nil
      else {
        val reason = PropertyRules.alreadyGiven(was)
        Seq(PropertyRules.wrongMaximum(this, change.after, Some(now.toString), reason))
      }
    }
  }

  object FeaturesStay
      extends ChangeRule(
        "A9",
        "A supported feature is removed from the protocol only by `DROP FEATURE`.",
        "Older versions of the table may need the feature to be read.",
        Clause(DeltaProtocol, "Supported Features")
      ) {

    override def check(change: TableChange): Seq[Violation] = change.kind match {
      case ChangeKind.DroppingFeature => Nil
      case _                          =>
        (change.before.protocol.listedFeatures -- change.after.protocol.listedFeatures).toSeq.sorted
          .map { feature =>
            violation(
              Condition.MissingRequiredTableFeature,
              Location.Feature(feature),
              Fix.dropFeature(change.before, feature),
              "feature" -> feature,
              "neededBy" -> "the table's history"
            )
          }
    }
  }

  object NewColumnsHaveNewIds
      extends ChangeRule(
        "C4",
        "A new column, and every field, element, key and value in it, has an id above the " +
          s"previous `${WriterCompat.MaxColumnId}`.",
        "Otherwise values of a dropped column would show up in the new one.",
        Clause(DeltaProtocol, "Column Mapping"),
        evolution
      ) {

    // A column that RESTORE brings back has the id it had in this table.
    override def check(change: TableChange): Seq[Violation] = change.kind match {
      case ChangeKind.Restoring => Nil
      case _                    =>
        change.added.filter(_.id.exists(_ <= change.before.maxColumnId)).toSeq.map { node =>
          badChange(
            this,
            node,
            addWithNewId(change, node),
            s"is new but has the id ${node.id.getOrElse("")}",
            s"ids up to ${change.before.maxColumnId} are already assigned, and values of an " +
              "older column would show up in it"
          )
        }
    }

    // If another column of this name remains, the new one needs another name.
    private def addWithNewId(change: TableChange, node: SchemaNode): Remedy =
      if (change.before.nodesByPath.contains(node.path)) Fix.addBeside(change.after, node)
      else Fix.add(change.after, node)
  }

  object NestedIdsStay
      extends ChangeRule(
        "C6",
        "The ids of the element, key and value of a list or map do not change.",
        "Iceberg could not find the elements, keys or values in older files any more.",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2"),
        evolution
      ) {

    override def check(change: TableChange): Seq[Violation] = {
      val before = (for {
        node <- change.before.nodes if !node.isField
        parent <- node.parentId
      } yield (parent, node.role) -> node.id).toMap
      for {
        node <- change.after.nodes if !node.isField
        parent <- node.parentId
        was <- before.get((parent, node.role)) if was != node.id
      } yield badChange(
        this,
        node,
        Fix.addBeside(change.after, node),
        s"has the id ${node.id.getOrElse("none")} instead of ${was.getOrElse("none")}",
        "Iceberg identifies it only by its id"
      )
    }
  }

  object TypesAreKeptOrPromoted
      extends ChangeRule(
        "C14",
        "A column keeps its type, or changes from int to long, from float to double, or to a " +
          "wider decimal of the same scale. This also holds if the commit replaces all rows; " +
          "if it does not, the feature `typeWidening` is required, and a partition column of " +
          "type float keeps it.",
        "Otherwise Iceberg cannot read older files or snapshots with the new type; of a float " +
          "partition value, Delta and Iceberg would read different doubles.",
        evolution,
        Clause(Rfc, "Allowed Supported list of features")
      ) {

    // The files that are live after RESTORE were written with the schema that it restores.
    override def check(change: TableChange): Seq[Violation] = change.kind match {
      case ChangeKind.Restoring => Nil
      case _                    =>
        val canWiden = change.kind == ChangeKind.Replacing || widens(change.after)
        change.kept.flatMap { case (was, is) =>
          if (!sameKind(was.dataType, is.dataType))
            Some(typeChange(was, is, Fix.addBeside(change.after, is), noPromotion))
          else if (!canWiden && isAnother(was.dataType, is.dataType))
            Some(typeChange(was, is, widen(change.before), noWidening))
          else if (change.kind == ChangeKind.Ordinary && isWidenedFloat(change.after, was, is))
            Some(typeChange(was, is, Fix.addBeside(change.after, is), twoDoubles))
          else None
        }.toSeq
    }

    private val noPromotion = "Iceberg format version 2 has no such type promotion"
    private val noWidening =
      "the table does not support typeWidening, without which Delta cannot read the older files"

    private val twoDoubles =
      "Delta reads the partition value from its log, where it is text, so 0.1 becomes the double " +
        "0.1, while Iceberg's readers find the float in the file, which is 0.10000000149011612"

    private def isWidenedFloat(table: TableState, was: SchemaNode, is: SchemaNode): Boolean =
      was.dataType == FloatType && is.dataType == DoubleType &&
        table.partitionNodes.exists(_.path == is.path)

    private def widen(table: TableState): Remedy =
      Fix.setProperty(table, WriterCompat.TypeWideningEnabled, "true")

    private def typeChange(was: SchemaNode, is: SchemaNode, remedy: Remedy, reason: String) =
      badChange(this, is, remedy, s"changes from ${was.dataType.sql} to ${is.dataType.sql}", reason)

    private def sameKind(was: DataType, is: DataType): Boolean = (was, is) match {
      case (_: StructType, _: StructType) | (_: ArrayType, _: ArrayType) |
          (_: MapType, _: MapType) =>
        true
      case _ => TypePromotion.isAllowed(was, is)
    }
  }

  private def widens(table: TableState): Boolean =
    table.protocol.listedFeatures.exists(Set("typeWidening", "typeWidening-preview"))

  private def isAnother(was: DataType, is: DataType): Boolean = is match {
    case _: StructType | _: ArrayType | _: MapType => false
    case _                                         => was != is
  }

  object PromotionsAreRecorded
      extends ChangeRule(
        "C14t",
        "A type promotion in a table with rows is recorded in `delta.typeChanges` of the nearest " +
          "enclosing field.",
        "Without the record, Delta readers cannot read files that were written before the change.",
        Clause(DeltaProtocol, "Writer Requirements for Type Widening")
      ) {

    // Without the feature a promotion breaks rule C14. Whether an older record can be removed
    // depends on the types in every live file; Delta removes records only after a rewrite.
    override def check(change: TableChange): Seq[Violation] = change.kind match {
      case ChangeKind.Ordinary if widens(change.after) =>
        change.kept.collect {
          case (was, is)
              if isAnother(was.dataType, is.dataType) &&
                TypePromotion.isAllowed(was.dataType, is.dataType) &&
                !isRecorded(change.after, was, is) =>
            badChange(
              this,
              is,
              Fix.widen(change.before, was, is.dataType),
              s"changes from ${was.dataType.sql} to ${is.dataType.sql} without a record of it",
              "Delta needs the record in delta.typeChanges of the nearest enclosing field"
            )
        }.toSeq
      case _ => Nil
    }

    private def isRecorded(after: TableState, was: SchemaNode, is: SchemaNode): Boolean =
      is.path.inits
        .takeWhile(_.nonEmpty)
        .flatMap(path => if (path == is.path) Some(is) else after.nodesByPath.get(path))
        .find(_.isField)
        .exists { field =>
          val record = TypePromotion
            .Recorded(is.path.drop(field.path.length), Some((was.dataType, is.dataType)))
          TypePromotion.recorded(field.metadata).contains(record)
        }
  }

  object ParentsStay
      extends ChangeRule(
        "C14p",
        "A field is not moved to another struct, nor an element, key or value to another list " +
          "or map.",
        "Iceberg looks for an id only below the same parent, so values in older files would be " +
          "lost.",
        evolution
      ) {

    override def check(change: TableChange): Seq[Violation] =
      change.kept
        .filter { case (was, is) => was.parentId != is.parentId || was.role != is.role }
        .map { case (was, is) =>
          badChange(
            this,
            is,
            Fix.addBeside(change.after, is),
            s"moves from ${was.sqlPath} to ${is.sqlPath}",
            "in Iceberg an id always has the same parent"
          )
        }
        .toSeq
  }

  object NullableStaysNullable
      extends ChangeRule(
        "C14n",
        "A nullable column, element or value is not made required in a table with rows.",
        "Older files may contain nulls, which readers do not expect in a required column.",
        evolution
      ) {

    override def check(change: TableChange): Seq[Violation] = change.kind match {
      case ChangeKind.Replacing | ChangeKind.Restoring => Nil
      case _                                           =>
        change.kept
          .filter { case (was, is) => was.nullable && !is.nullable && is.role != Role.Key }
          .map { case (_, is) =>
            badChange(
              this,
              is,
              Fix.dropNotNull(change.after, is),
              "is made NOT NULL",
              "older files may contain nulls"
            )
          }
          .toSeq
    }
  }

  object NewColumnsAreNullable
      extends ChangeRule(
        "C14r",
        "A column or nested field that is added to a table with rows is nullable, unless the " +
          "struct around it is new as well.",
        "Older files do not contain the field, so it is null there.",
        evolution
      ) {

    // A field below a new column may be required: older files lack the whole column.
    override def check(change: TableChange): Seq[Violation] = change.kind match {
      case ChangeKind.Replacing | ChangeKind.Restoring => Nil
      case _                                           =>
        change.added
          .filter { node =>
            node.isField && !node.nullable && node.parentId.forall(change.old(_).isDefined)
          }
          .map { node =>
            badChange(
              this,
              node,
              Fix.add(change.after, node),
              "is added as NOT NULL",
              "older files do not have it, and Iceberg format version 2 has no defaults"
            )
          }
          .toSeq
    }
  }

  object MapKeysStay
      extends ChangeRule(
        "C17",
        "The key of a map does not change: no field, name, type or nullability in it.",
        "Iceberg does not allow changes of map keys, because keys from before and after would " +
          "not be equal.",
        Clause(IcebergCode, "SchemaUpdate")
      ) {

    override def check(change: TableChange): Seq[Violation] =
      change.kept.collect {
        case (was, is) if is.role == Role.Key && shape(was.dataType) != shape(is.dataType) =>
          violation(
            Condition.CannotChangeMapKey,
            is.location,
            Fix.addBeside(change.after, is),
            "column" -> is.sqlPath,
            "before" -> was.dataType.sql,
            "after" -> is.dataType.sql
          )
      }.toSeq

    private def shape(dataType: DataType): DataType = dataType match {
      case s: StructType =>
        StructType(s.map { field =>
          val id = new MetadataBuilder
          SchemaNode.idOf(field).foreach(id.putLong(WriterCompat.ColumnId, _))
          field.copy(dataType = shape(field.dataType), metadata = id.build())
        })
      case a: ArrayType => a.copy(elementType = shape(a.elementType))
      case m: MapType   => m.copy(keyType = shape(m.keyType), valueType = shape(m.valueType))
      case other        => other
    }
  }

  object PartitioningStays
      extends ChangeRule(
        "C15",
        "The partition columns of a partitioned table do not change.",
        "Otherwise live files would have different partition columns, and readers would skip " +
          "the wrong files.",
        Clause(DeltaProtocol, "Writer Requirements for IcebergCompatV2")
      ) {

    override def check(change: TableChange): Seq[Violation] = {
      val was = change.before.partitionColumns
      val is = change.after.partitionColumns
      if (was.isEmpty || was == is && !otherColumns(change)) Nil
      else
        Seq(
          violation(
            Condition.IncompatiblePartitioning,
            Location.Column(is, None, None),
            change.kind match {
              case ChangeKind.Replacing => Fix.keepPartitioning(change.before, change.after)
              case _                    => Fix.repartition(change.before, change.after)
            },
            "columns" -> (if (is.isEmpty) "no column" else is.mkString(", ")),
            "reason" -> (s"the table was partitioned by ${was.mkString(", ")}, and " +
              "IcebergCompatV2 does not allow this to change")
          )
        )
    }

    // Files that remain contain values of the columns that they were partitioned by.
    private def otherColumns(change: TableChange): Boolean =
      change.kind == ChangeKind.Ordinary &&
        change.after.partitionNodes.flatMap(_.id).exists(change.old(_).isEmpty)
  }
}
