package org.icebergwritercompat.rules

import org.apache.spark.sql.catalyst.util.QuotingUtils.quoteIfNeeded
import org.apache.spark.sql.types._
import org.icebergwritercompat.WriterCompat

/** The statements that mend violations, ready to paste. */
object Fix {

  /** Columns beyond this number are left to the reader in a CREATE statement. */
  private val columnsSpelledOut = 40

  /** Gives the table the property `key` = `value`. */
  def setProperty(table: TableState, key: String, value: String): String = table.moment match {
    case creating: Moment.Creating => create(table, creating, Map(key -> value))
    case _ => s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('$key' = '$value')"
  }

  /** Takes a property away. */
  def unsetProperty(table: TableState, key: String): String = table.moment match {
    case _: Moment.Creating => table.createStatement
    case _                  => s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('$key')"
  }

  /** Takes a CHECK constraint away. */
  def dropConstraint(table: TableState, constraint: String): String = table.moment match {
    case _: Moment.Creating => table.createStatement
    case _ if table.previous.exists(!_.properties.contains(constraintKey(constraint))) =>
      leave(table)
    case _ => s"ALTER TABLE ${table.name} DROP CONSTRAINT ${quoteIfNeeded(constraint)}"
  }

  private def constraintKey(constraint: String): String = WriterCompat.ConstraintPrefix + constraint

  /** Takes the default of a column away. */
  def dropDefault(table: TableState, node: SchemaNode): String = table.moment match {
    case _: Moment.Creating                    => table.createStatement
    case Moment.Changing if isNew(table, node) => add(table, node)
    case _ if table.previous.isDefined         => leave(table)
    case _ => s"ALTER TABLE ${table.name} ALTER COLUMN ${node.sqlPath} DROP DEFAULT"
  }

  /** Lets a column hold nulls. */
  def dropNotNull(table: TableState, node: SchemaNode): String =
    s"ALTER TABLE ${table.name} ALTER COLUMN ${node.sqlPath} DROP NOT NULL"

  /** Adds the node, or the column around it that is as new, in a way that breaks no rule. */
  def add(table: TableState, node: SchemaNode): String =
    node.path.inits.toSeq.reverseIterator
      .flatMap(table.additions.get)
      .nextOption()
      .getOrElse(addition(table, fieldAround(table, node)))

  /** The statement for each node that is new below one that is not, by its path. */
  private[rules] def additions(table: TableState): Map[Vector[String], String] =
    table.nodes.iterator
      .filter { node =>
        node.isField && isNew(table, node) &&
        !table.nodesByPath.get(node.path.init).exists(isNew(table, _))
      }
      .map(node => node.path -> addition(table, node))
      .toMap

  private def addition(table: TableState, field: SchemaNode): String =
    addColumn(table, field.path, field.dataType)

  private def addColumn(table: TableState, path: Seq[String], dataType: DataType): String =
    s"ALTER TABLE ${table.name} ADD COLUMNS " +
      s"(${SchemaNode.sqlPath(path)} ${SupportedTypes.nearest(dataType).sql})"

  /** Adds a column of the new type beside the node, which stays as it is. */
  def addBeside(table: TableState, node: SchemaNode): String = {
    val field = fieldAround(table, node, outsideKeys = true)
    val path = Iterator
      .from(2)
      .map(i => field.path.init :+ s"${field.path.last}_$i")
      .find(!table.nodesByPath.contains(_))
      .getOrElse(field.path)
    addColumn(table, path, field.dataType)
  }

  // An element, key or value cannot be added by itself, and nothing can be added to a map key.
  private def fieldAround(
      table: TableState,
      node: SchemaNode,
      outsideKeys: Boolean = false
  ): SchemaNode =
    node.path.inits
      .flatMap(path => if (path == node.path) Some(node) else table.nodesByPath.get(path))
      .find(n => n.isField && !(outsideKeys && n.belowMapKey))
      .getOrElse(node)

  /** Whether the version before does not have the node; one without an id is known by its path. */
  private[rules] def isNew(table: TableState, node: SchemaNode): Boolean =
    table.previous.exists { before =>
      !node.id.fold(before.nodesByPath.contains(node.path))(before.nodesById.contains)
    }

  /** Gives the node another name. */
  def rename(table: TableState, node: SchemaNode, name: String): String = {
    def renaming(was: SchemaNode) =
      s"ALTER TABLE ${table.name} RENAME COLUMN ${was.sqlPath} TO ${quoteIfNeeded(name)}"
    table.moment match {
      case creating: Moment.Creating =>
        create(table, creating, Map.empty, renamed(_, node.path, name))
      case Moment.Enabling if !table.asItIs.getOrElse(table).isMapped =>
        s"${setProperty(table, WriterCompat.ColumnMappingMode, "name")}; ${renaming(node)}"
      case Moment.Enabling => renaming(node)
      case Moment.Changing =>
        val before =
          for (previous <- table.previous; id <- node.id; was <- previous.nodesById.get(id))
            yield was
        before.fold(addColumn(table, node.path.init :+ name, node.dataType))(renaming)
    }
  }

  private def renamed(field: StructField, path: Seq[String], name: String): StructField =
    path match {
      case Seq(last) if field.name == last      => field.copy(name = name)
      case first +: rest if field.name == first =>
        field.copy(dataType = renamedIn(field.dataType, rest, name))
      case _ => field
    }

  private def renamedIn(dataType: DataType, path: Seq[String], name: String): DataType =
    (dataType, path) match {
      case (s: StructType, _)        => StructType(s.map(renamed(_, path, name)))
      case (a: ArrayType, _ +: rest) => a.copy(elementType = renamedIn(a.elementType, rest, name))
      case (m: MapType, Role.Key.name +: rest) =>
        m.copy(keyType = renamedIn(m.keyType, rest, name))
      case (m: MapType, _ +: rest) => m.copy(valueType = renamedIn(m.valueType, rest, name))
      case (other, _)              => other
    }

  /** What an upgrade takes away when it is asked to, by the names that users ask by. */
  val GeneratedColumns = "generated-columns"
  val IdentityColumns = "identity-columns"
  val Invariants = "invariants"

  /** Makes the column a plain one: creates or adds it so, or lets an upgrade take `what` away. */
  def withoutExpression(table: TableState, node: SchemaNode, what: String): String =
    table.moment match {
      case Moment.Changing if isNew(table, node) => add(table, node)
      case Moment.Enabling                       => callEnable(table, Seq("drop" -> Seq(what)))
      case _                                     => partitionBy(table, table.partitionColumns)
    }

  /** Creates the table partitioned by these columns, or copies its rows into one that is. */
  def partitionBy(table: TableState, columns: Seq[String]): String = {
    val wanted =
      if (columns == table.partitionColumns) table else table.copy(partitionColumns = columns)
    table.moment match {
      case _: Moment.Creating => wanted.createStatement
      case _                  => copyInto(wanted)
    }
  }

  /** Replaces the table with the partition columns it had, which come back if they are gone. */
  def keepPartitioning(before: TableState, after: TableState): String = {
    val gone = before.partitionNodes.filter(node => after.column(node.path.head).isEmpty)
    val schema = gone.foldLeft(after.schema) { (all, node) =>
      all.add(node.path.head, node.dataType, node.nullable)
    }
    create(
      after.copy(schema = schema, partitionColumns = before.partitionColumns),
      Moment.Creating(replacing = true),
      Map.empty
    )
  }

  /** Copies the rows of `before` into a new table with the names and partitions of `after`. */
  def repartition(before: TableState, after: TableState): String = {
    val names = for {
      was <- before.nodes if was.path.length == 1
      is <- was.id.flatMap(after.nodesById.get) if is.path.length == 1
    } yield (quoteIfNeeded(was.path.head), quoteIfNeeded(is.path.head))
    val selected =
      if (names.forall { case (was, is) => was == is }) "*"
      else names.map { case (was, is) => if (was == is) was else s"$was AS $is" }.mkString(", ")
    copyOf(after, selected)
  }

  /** Takes the feature out of the table's protocol, or never puts it there. */
  def dropFeature(table: TableState, feature: String): String = table.moment match {
    case Moment.Creating(false)                                          => table.createStatement
    case _ if table.previous.exists(!_.protocol.listedFeatures(feature)) => leave(table)
    case Moment.Enabling if leavesTraces(feature) && !table.profile.alsoAllowed(protection) =>
      s"ALTER TABLE ${table.name} DROP FEATURE $feature $truncating"
    case _ => s"ALTER TABLE ${table.name} DROP FEATURE $feature"
  }

  /** How a statement ends that drops a feature with all that is left of it in older versions. */
  val truncating = "TRUNCATE HISTORY"

  /** How long after its last use Delta lets a feature be dropped so. */
  def truncationPeriod(table: TableState): String = table
    .property("delta.dropFeatureTruncateHistory.retentionDuration")
    .fold("24 hours")(_.stripPrefix("interval "))

  /** The profile under which a feature that leaves traces in older versions need not wait. */
  def profileThatDropsAtOnce(table: TableState): Option[Profile] =
    Profile.accepting(protection, table.profile)

  // Delta drops these at once only in exchange for another feature, which may not be allowed.
  private val protection = "checkpointProtection"

  private val leavesTraces: Set[String] = Set("deletionVectors", protection)

  /** Gives the node a type that both formats have. */
  def useSupportedType(table: TableState, node: SchemaNode): String = table.moment match {
    case _: Moment.Creating                                           => table.createStatement
    case Moment.Enabling if SupportedTypes.widensToInt(node.dataType) =>
      widen(table, node, IntegerType)
    case Moment.Enabling =>
      s"ALTER TABLE ${table.name} DROP COLUMN ${fieldAround(table, node).sqlPath}"
    case Moment.Changing if table.previous.isDefined && !isNew(table, fieldAround(table, node)) =>
      addBeside(table, node)
    case Moment.Changing => add(table, node)
  }

  /** Lets Delta give the node a wider type, and keep the record of it. */
  def widen(table: TableState, node: SchemaNode, dataType: DataType): String =
    s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('${WriterCompat.TypeWideningEnabled}' = " +
      s"'true'); ALTER TABLE ${table.name} ALTER COLUMN ${node.sqlPath} TYPE ${dataType.sql}"

  /** Takes the whole feature out of the table. */
  def leave(table: TableState): String =
    s"ALTER TABLE ${table.name} DROP FEATURE ${table.contract.feature}"

  /** What a statement costs that nobody should paste without knowing. */
  def price(table: TableState, fix: String): String =
    if (fix == leave(table)) s"; a table that needs it has to leave ${table.contract.feature}"
    else ""

  /** Lets the helper lay the table out, which plain SQL cannot do. */
  def enable(table: TableState): String = table.moment match {
    case _: Moment.Creating => table.createStatement
    case _                  => callEnable(table)
  }

  /** The call that plans and makes the change on an existing table. */
  def callEnable(table: TableState): String =
    s"""enable_iceberg_writer_compat(spark, "${table.name.replace("\"", "\\\"")}")"""

  /** The same call, with these named arguments. */
  def callEnable(table: TableState, arguments: Seq[(String, Any)]): String = {
    val named = arguments.map {
      case (name, words: Seq[_]) => s", $name=[${words.mkString("\"", "\", \"", "\"")}]"
      case (name, true)          => s", $name=True"
      case (name, value)         => s", $name=$value"
    }
    callEnable(table).stripSuffix(")") + named.mkString + ")"
  }

  /** Shows who wrote what when, where no statement can bring lost values back. */
  def lookIntoHistory(table: TableState): String = s"DESCRIBE HISTORY ${table.name}"

  /**
   * A statement as a session takes it to the letter, though a name in it looks like a variable of
   * Spark's; nothing else has an escape for that.
   */
  def toPaste(statement: String): String =
    if (statement.contains("${") && isStatement.matches(statement))
      s"SET spark.sql.variable.substitute=false; $statement"
    else statement

  private val isStatement = """(?s)[A-Z]+ .*""".r

  /** Copies the rows into a new table that has the feature. */
  def copyInto(table: TableState): String = table.copyStatement

  /** The same, made anew at each call. */
  private[rules] def copy(table: TableState): String = {
    val otherNames = NameRules.namesForReserved(table)
    def named(column: String) = quoteIfNeeded(otherNames.getOrElse(column, column))
    val columns = table.schema.fields.map { field =>
      val nearest = SupportedTypes.nearest(field.dataType)
      val (was, is) = (quoteIfNeeded(field.name), named(field.name))
      if (nearest != field.dataType) s"CAST($was AS ${nearest.sql}) AS $is"
      else if (was == is) was
      else s"$was AS $is"
    }
    val partitions = table.partitionColumns.map(column => otherNames.getOrElse(column, column))
    copyOf(
      table.copy(partitionColumns = partitions),
      if (columns.exists(_.contains(" AS "))) columns.mkString(", ") else "*"
    )
  }

  private def copyOf(table: TableState, selected: String): String =
    s"CREATE TABLE ${nameOfCopy(table)} USING delta${partitionedBy(table)} " +
      s"TBLPROPERTIES ('${table.contract.property}' = 'true') AS SELECT $selected FROM ${table.name}"

  private def nameOfCopy(table: TableState): String =
    if (table.name.endsWith("`")) table.name.dropRight(1) + "_iceberg`"
    else table.name + "_iceberg"

  private def partitionedBy(table: TableState): String =
    table.partitionColumns.filter(_ != null) match {
      case Seq() => ""
      case names => names.map(quoteIfNeeded).mkString(" PARTITIONED BY (", ", ", ")")
    }

  /** Creates the table, or replaces it, as it would be without what breaks a rule. */
  private[rules] def create(table: TableState): String =
    create(
      table,
      Moment.Creating(replacing = table.moment == Moment.Creating(replacing = true)),
      Map.empty
    )

  private def create(
      table: TableState,
      creating: Moment.Creating,
      properties: Map[String, String],
      change: StructField => StructField = identity
  ): String = {
    val verb = if (creating.replacing) "CREATE OR REPLACE TABLE" else "CREATE TABLE"
    val columns = table.schema.fields.take(columnsSpelledOut).map(change).map { field =>
      val notNull = if (field.nullable) "" else " NOT NULL"
      s"${quoteIfNeeded(field.name)} ${SupportedTypes.nearest(field.dataType).sql}$notNull"
    }
    val left = table.schema.length - columns.length
    val rest = if (left > 0) s" /* and $left more */" else ""
    val list = if (columns.isEmpty) "" else s"(${columns.mkString(", ")}$rest) "
    val settings = (Map(table.contract.property -> "true") ++ properties).toSeq.sorted
      .map { case (key, value) => s"'$key' = '$value'" }
      .mkString(", ")
    s"$verb ${table.name} ${list}USING delta${partitionedBy(table)} TBLPROPERTIES ($settings)"
  }
}
