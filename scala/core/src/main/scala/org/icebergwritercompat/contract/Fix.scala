package org.icebergwritercompat.contract

import org.apache.spark.sql.types._
import org.icebergwritercompat.model.{SchemaNode, SupportedTypes, WriterCompat}
import org.icebergwritercompat.remedy.{Change, Remedy}
import org.icebergwritercompat.remedy.Remedy._

/** Chooses the remedy of a violation, depending on what is being done with the table. */
object Fix {

  /** Sets the property `key` to `value`. */
  def setProperty(table: TableState, key: String, value: String): Remedy = table.moment match {
    case _: Moment.Creating => create(table, Change.Property(key, Some(value)))
    case _                  => SetProperty(table.name, key, value)
  }

  /** Creates the table without UniForm, published by this project. */
  def publishInstead(table: TableState): Remedy = {
    val others = Some(WriterCompat.otherUniversalFormats(table.properties)).filter(_.nonEmpty)
    create(
      table,
      Change.Property(WriterCompat.UniversalFormats, others),
      Change.Property(WriterCompat.Publish, Some("true"))
    )
  }

  /** Unsets a property. */
  def unsetProperty(table: TableState, key: String): Remedy = table.moment match {
    case _: Moment.Creating => create(table, Change.Property(key, None))
    case _                  => UnsetProperty(table.name, key)
  }

  /** Drops a CHECK constraint. */
  def dropConstraint(table: TableState, constraint: String): Remedy = table.moment match {
    case _: Moment.Creating => create(table, Change.Property(constraintKey(constraint), None))
    case _ if table.previous.exists(!_.properties.contains(constraintKey(constraint))) =>
      leave(table)
    case _ => DropConstraint(table.name, constraint)
  }

  private def constraintKey(constraint: String): String = WriterCompat.ConstraintPrefix + constraint

  /** Drops the default of a column. */
  def dropDefault(table: TableState, node: SchemaNode): Remedy = table.moment match {
    case _: Moment.Creating                    => create(table, Change.Plain(node.path))
    case Moment.Changing if isNew(table, node) => add(table, node)
    case _ if table.previous.isDefined         => leave(table)
    case _                                     => DropDefault(table.name, node.path)
  }

  /** Makes a column nullable. */
  def dropNotNull(table: TableState, node: SchemaNode): Remedy =
    DropNotNull(table.name, node.path)

  /** Adds the node, or the new column that contains it, in a form that breaks no rule. */
  def add(table: TableState, node: SchemaNode): Remedy =
    node.path.inits.toSeq.reverseIterator
      .flatMap(table.additions.get)
      .nextOption()
      .getOrElse(addition(table, fieldAround(table, node)))

  /** The remedies that add the new nodes below existing ones, by path. */
  private[icebergwritercompat] def additions(table: TableState): Map[Vector[String], Remedy] =
    table.nodes.iterator
      .filter { node =>
        node.isField && isNew(table, node) &&
        !table.nodesByPath.get(node.path.init).exists(isNew(table, _))
      }
      .map(node => node.path -> addition(table, node))
      .toMap

  private def addition(table: TableState, field: SchemaNode): Remedy = {
    val instead =
      types(table).filter(_.path.startsWith(field.path)) ++
        Seq(Change.Plain(field.path), Change.Nullable(field.path))
    addColumn(table, field.path, field.dataType, instead)
  }

  private def addColumn(
      table: TableState,
      path: Seq[String],
      dataType: DataType,
      instead: Seq[Change] = Nil
  ): Remedy = {
    val wanted = SupportedTypes.nearest(dataType)
    // The protocol before the refused statement, which was not committed.
    val protocol = table.previous.fold(table.protocol)(_.protocol)
    val features = Seq(TimestampNtz).filter { feature =>
      hasNtz(wanted) && !protocol.listedFeatures(feature)
    }
    AddColumn(table.name, path, wanted, features, instead)
  }

  private def hasNtz(dataType: DataType): Boolean = dataType match {
    case s: StructType => s.exists(field => hasNtz(field.dataType))
    case a: ArrayType  => hasNtz(a.elementType)
    case m: MapType    => hasNtz(m.keyType) || hasNtz(m.valueType)
    case other         => other == TimestampNTZType
  }

  /** The feature of a timestamp without time zone. */
  private[icebergwritercompat] val TimestampNtz = "timestampNtz"

  /** Adds a column of the new type under another name; the node is not changed. */
  def addBeside(table: TableState, node: SchemaNode): Remedy = {
    val field = fieldAround(table, node, outsideKeys = true)
    val path = Iterator
      .from(2)
      .map(i => field.path.init :+ s"${field.path.last}_$i")
      .find(!table.nodesByPath.contains(_))
      .getOrElse(field.path)
    addColumn(table, path, field.dataType)
  }

  // An element, key or value cannot be added alone, and nothing can be added to a map key.
  private def fieldAround(
      table: TableState,
      node: SchemaNode,
      outsideKeys: Boolean = false
  ): SchemaNode =
    node.path.inits
      .flatMap(path => if (path == node.path) Some(node) else table.nodesByPath.get(path))
      .find(n => n.isField && !(outsideKeys && n.belowMapKey))
      .getOrElse(node)

  /** Whether the previous version does not have the node; without an id, its path is compared. */
  private[icebergwritercompat] def isNew(table: TableState, node: SchemaNode): Boolean =
    table.previous.exists { before =>
      !node.id.fold(before.nodesByPath.contains(node.path))(before.nodesById.contains)
    }

  /** Renames the node. */
  def rename(table: TableState, node: SchemaNode, name: String): Remedy = {
    val renamed = Change.Name(node.path, name)
    table.moment match {
      case _: Moment.Creating                                         => create(table, renamed)
      case Moment.Enabling if !table.asItIs.getOrElse(table).isMapped =>
        RenameColumn(table.name, node.path, name, mapped = false)
      case Moment.Enabling => RenameColumn(table.name, node.path, name)
      case Moment.Changing =>
        val before =
          for (previous <- table.previous; id <- node.id; was <- previous.nodesById.get(id))
            yield was
        before.fold(addColumn(table, node.path.init :+ name, node.dataType, Seq(renamed))) { was =>
          RenameColumn(table.name, was.path, name)
        }
    }
  }

  /** Values of the option `drop` of an upgrade. */
  val GeneratedColumns = "generated-columns"
  val IdentityColumns = "identity-columns"
  val Invariants = "invariants"

  /** Creates or adds the column as an ordinary one, or lets an upgrade drop `what`. */
  def withoutExpression(table: TableState, node: SchemaNode, what: String): Remedy =
    table.moment match {
      case Moment.Changing if isNew(table, node) => add(table, node)
      case Moment.Enabling                       => callEnable(table, drop = Seq(what))
      case _: Moment.Creating                    => create(table, Change.Plain(node.path))
      case _                                     => copyInto(table)
    }

  /** Creates the table partitioned by these columns, or copies its rows into such a table. */
  def partitionBy(table: TableState, columns: Seq[String]): Remedy = table.moment match {
    case _: Moment.Creating => create(table, Change.Partitioning(columns))
    case _                  => copyInto(table.copy(partitionColumns = columns))
  }

  /** Replaces the table with its previous partition columns, and adds them if they are missing. */
  def keepPartitioning(before: TableState, after: TableState): Remedy = {
    val gone = before.partitionNodes
      .filter(node => after.column(node.path.head).isEmpty)
      .map(node => Change.Added(node.path.head, node.dataType))
    create(
      after.copy(moment = Moment.Creating(replacing = true)),
      gone :+ Change.Partitioning(before.partitionColumns): _*
    )
  }

  /** Copies the rows of `before` into a new table with the names and partitions of `after`. */
  def repartition(before: TableState, after: TableState): Remedy = {
    val (was, is) = (for {
      was <- before.columns
      is <- was.id.flatMap(after.nodesById.get) if is.path.length == 1
    } yield (
      StructField(was.path.head, was.dataType),
      StructField(is.path.head, was.dataType)
    )).unzip
    val same = was.map(_.name) == is.map(_.name)
    copyOf(after, if (same) Nil else Remedy.selected(StructType(was), StructType(is)))
  }

  /** Drops the feature, or does not add it. */
  def dropFeature(table: TableState, feature: String): Remedy = table.moment match {
    case Moment.Creating(false) => create(table, Change.Property(s"delta.feature.$feature", None))
    case _ if table.previous.exists(!_.protocol.listedFeatures(feature)) =>
      DropFeature(table.name, WriterCompat.Feature, None, asked = Some(feature))
    case Moment.Enabling if leavesTraces(feature) && !table.profile.alsoAllowed(protection) =>
      DropFeature(table.name, feature, Some(truncationPeriod(table)), asked = Some(feature))
    case _ => DropFeature(table.name, feature, None, asked = Some(feature))
  }

  /** Drops a feature and the versions that use it, which Delta allows only after some time. */
  def truncating(table: TableState, feature: String): Remedy =
    DropFeature(table.name, feature, Some(truncationPeriod(table)))

  /** The time after the last use of a feature when Delta allows that. */
  def truncationPeriod(table: TableState): String = table
    .property("delta.dropFeatureTruncateHistory.retentionDuration")
    .fold("24 hours")(_.stripPrefix("interval "))

  /** The profile with which a feature that older versions use can be dropped at once. */
  def profileThatDropsAtOnce(table: TableState): Option[Profile] =
    Profile.accepting(protection, table.profile)

  // Delta drops these at once only if it can add the feature checkpointProtection.
  private val protection = "checkpointProtection"

  private val leavesTraces: Set[String] = Set("deletionVectors", protection)

  /** Changes the node to a type that both formats have. */
  def useSupportedType(table: TableState, node: SchemaNode): Remedy = table.moment match {
    case _: Moment.Creating                                           => create(table)
    case Moment.Enabling if SupportedTypes.widensToInt(node.dataType) =>
      widen(table, node, IntegerType)
    // Dropping the column would lose its values.
    case Moment.Enabling => copyInto(table)
    case Moment.Changing if table.previous.isDefined && !isNew(table, fieldAround(table, node)) =>
      addBeside(table, node)
    case Moment.Changing => add(table, node)
  }

  /** Changes the node to a wider type; Delta records the change. */
  def widen(table: TableState, node: SchemaNode, dataType: DataType): Remedy =
    WidenColumn(table.name, node.path, dataType)

  /** Drops the feature of the contract. */
  def leave(table: TableState): Remedy = DropFeature(table.name, table.contract.feature, None)

  /** A consequence of the remedy that the user must know before running it. */
  def price(table: TableState, remedy: Remedy): String = remedy match {
    case DropFeature(_, feature, _, _) if feature == table.contract.feature =>
      s"; if the table needs it, drop the feature $feature"
    case _ => ""
  }

  /** Creates the table again, or calls the upgrade, which can do more than a SQL statement. */
  def enable(table: TableState): Remedy = table.moment match {
    case _: Moment.Creating => create(table)
    case _                  => callEnable(table)
  }

  /** The call that switches the feature on for an existing table. */
  def callEnable(
      table: TableState,
      rewrite: Boolean = false,
      drop: Seq[String] = Nil
  ): Remedy = Enable(table.name, rewrite, drop)

  /** Shows the history of the table, if no statement can restore lost values. */
  def lookIntoHistory(table: TableState): Remedy = History(table.name)

  /** Copies the rows into a new table that has the feature. */
  def copyInto(table: TableState): Remedy = table.copied

  /** The same, without the cache of the table state. */
  private[icebergwritercompat] def copy(table: TableState): Remedy = {
    val (selected, partitions) = selection(table.schema, table.partitionColumns)
    copyOf(table.copy(partitionColumns = partitions), selected)
  }

  /**
   * The columns that a copy of the rows selects, with supported types and without reserved names,
   * and its partition columns. An empty selection means all columns.
   */
  def selection(
      schema: StructType,
      partitionColumns: Seq[String]
  ): (Seq[String], Seq[String]) = {
    val otherNames = IcebergNames.namesForReserved(SchemaNode.flatten(schema))
    def named(column: String) = otherNames.getOrElse(column, column)
    val wanted = StructType(
      schema.map(f => f.copy(name = named(f.name), dataType = SupportedTypes.nearest(f.dataType)))
    )
    val isSame = schema.map(_.dataType) == wanted.map(_.dataType) && otherNames.isEmpty
    (if (isSame) Nil else Remedy.selected(schema, wanted), partitionColumns.map(named))
  }

  private def copyOf(table: TableState, selected: Seq[String]): Remedy =
    CopyInto(
      nameOfCopy(table.name),
      selected,
      table.name,
      partitionsOf(table),
      Seq(table.contract.property -> "true")
    )

  /** The name of the copy of a table. */
  def nameOfCopy(name: String): String =
    if (name.endsWith("`")) name.dropRight(1) + "_iceberg`" else name + "_iceberg"

  private def partitionsOf(table: TableState): Seq[String] =
    table.partitionColumns.filter(_ != null)

  /** Creates or replaces the table, without what breaks a rule. */
  private def create(table: TableState, changes: Change*): Remedy = {
    val declared = Declared(
      table.name,
      table.moment == Moment.Creating(replacing = true),
      table.schema,
      partitionsOf(table)
    )
    Create(declared, types(table) ++ changes)
  }

  // Cached, because thousands of violations may need the same list.
  private def types(table: TableState): Seq[Change.Type] = table.typeChanges

  /** The changes after which all types are supported. */
  private[icebergwritercompat] def typeChanges(table: TableState): Seq[Change.Type] =
    table.nodes
      .map(node => node -> SupportedTypes.nearest(node.dataType))
      .collect {
        case (node, wanted) if isReplaced(node.dataType, wanted) => Change.Type(node.path, wanted)
      }

  private def isReplaced(found: DataType, wanted: DataType): Boolean = (found, wanted) match {
    case (_: StructType, _: StructType) | (_: ArrayType, _: ArrayType) | (_: MapType, _: MapType) =>
      false
    case _ => found != wanted
  }
}
