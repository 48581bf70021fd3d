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
    case creating @ Moment.Creating(_) => create(table, creating, Map.empty)
    case _ => s"ALTER TABLE ${table.name} UNSET TBLPROPERTIES ('$key')"
  }

  /** Takes a CHECK constraint away. */
  def dropConstraint(table: TableState, constraint: String): String = table.moment match {
    case creating: Moment.Creating => create(table, creating, Map.empty)
    case _ if table.previous.exists(!_.properties.contains(constraintKey(constraint))) =>
      leave(table)
    case _ => s"ALTER TABLE ${table.name} DROP CONSTRAINT ${quoteIfNeeded(constraint)}"
  }

  private def constraintKey(constraint: String): String = WriterCompat.ConstraintPrefix + constraint

  /** Takes the default of a column away. */
  def dropDefault(table: TableState, node: SchemaNode): String = table.moment match {
    case creating: Moment.Creating => create(table, creating, Map.empty)
    case _ if table.previous.isDefined => leave(table)
    case _ => s"ALTER TABLE ${table.name} ALTER COLUMN ${node.sqlPath} DROP DEFAULT"
  }

  /** Lets a column hold nulls. */
  def dropNotNull(table: TableState, node: SchemaNode): String =
    s"ALTER TABLE ${table.name} ALTER COLUMN ${node.sqlPath} DROP NOT NULL"

  /** Adds a column that may hold nulls, under the name of the node. */
  def addNullable(table: TableState, node: SchemaNode): String =
    s"ALTER TABLE ${table.name} ADD COLUMNS " +
      s"(${node.sqlPath} ${SupportedTypes.nearest(node.dataType).sql})"

  /** Adds a column of the new type beside the node, which stays as it is. */
  def addBeside(table: TableState, node: SchemaNode): String = {
    // An element, key or value cannot stand beside itself: the collection's column can.
    val top = node.path.head
    val target = table.nodes.find(_.path == Vector(top)).getOrElse(node)
    val field = if (node.isField && !node.path.init.exists(collectionParts)) node else target
    val name = SchemaNode.sqlPath(field.path.init :+ (field.path.last + "_2"))
    s"ALTER TABLE ${table.name} ADD COLUMNS ($name ${SupportedTypes.nearest(field.dataType).sql})"
  }

  private val collectionParts = Set("element", "key", "value")

  /** Gives the node another name. */
  def rename(table: TableState, node: SchemaNode, name: String): String = table.moment match {
    case creating: Moment.Creating =>
      create(renamed(table, node, name), creating, Map.empty)
    case Moment.Enabling =>
      s"ALTER TABLE ${table.name} RENAME COLUMN ${node.sqlPath} TO ${quoteIfNeeded(name)}"
    case Moment.Changing =>
      s"ALTER TABLE ${table.name} ADD COLUMNS " +
        s"(${SchemaNode.sqlPath(node.path.init :+ name)} " +
        s"${SupportedTypes.nearest(node.dataType).sql})"
  }

  private def renamed(table: TableState, node: SchemaNode, name: String): TableState =
    if (node.path.length > 1) table
    else
      table.copy(schema = StructType(table.schema.map { field =>
        if (field.name == node.path.head) field.copy(name = name) else field
      }))

  /** Creates the table with plain columns, or copies its rows into one that has them. */
  def withoutExpressions(table: TableState): String = partitionBy(table, table.partitionColumns)

  /** Creates the table partitioned by these columns, or copies its rows into one that is. */
  def partitionBy(table: TableState, columns: Seq[String]): String = {
    val wanted = table.copy(partitionColumns = columns)
    table.moment match {
      case creating: Moment.Creating => create(wanted, creating, Map.empty)
      case _ => copyInto(wanted)
    }
  }

  /** Replaces the table with the partition columns it had. */
  def keepPartitioning(before: TableState, after: TableState): String =
    create(
      after.copy(partitionColumns = before.partitionColumns),
      Moment.Creating(replacing = true),
      Map.empty)

  /** Takes the feature out of the table's protocol, or never puts it there. */
  def dropFeature(table: TableState, feature: String): String = table.moment match {
    case creating @ Moment.Creating(false) => create(table, creating, Map.empty)
    case _ if table.previous.exists(!_.protocol.listedFeatures(feature)) => leave(table)
    case _ => s"ALTER TABLE ${table.name} DROP FEATURE $feature"
  }

  /** Gives the node a type that both formats have. */
  def useSupportedType(table: TableState, node: SchemaNode): String = table.moment match {
    case creating: Moment.Creating => create(table, creating, Map.empty)
    case Moment.Enabling if widensToInt(node.dataType) =>
      s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('${WriterCompat.TypeWideningEnabled}' = " +
        s"'true'); ALTER TABLE ${table.name} ALTER COLUMN ${node.sqlPath} TYPE INT"
    case Moment.Enabling => s"ALTER TABLE ${table.name} DROP COLUMN ${node.sqlPath}"
    case Moment.Changing =>
      s"ALTER TABLE ${table.name} ADD COLUMNS (${node.sqlPath} " +
        s"${SupportedTypes.nearest(node.dataType).sql})"
  }

  /** Takes the whole feature out of the table. */
  def leave(table: TableState): String =
    s"ALTER TABLE ${table.name} DROP FEATURE ${WriterCompat.Feature}"

  /** Lets the helper lay the table out, which plain SQL cannot do. */
  def enable(table: TableState): String = table.moment match {
    case creating: Moment.Creating => create(table, creating, Map.empty)
    case _ => callEnable(table)
  }

  /** The call that plans and makes the change on an existing table. */
  def callEnable(table: TableState): String =
    s"""enable_iceberg_writer_compat(spark, "${table.name.replace("\"", "\\\"")}")"""

  /** Copies the rows into a new table that has the feature. */
  def copyInto(table: TableState): String = {
    val columns = table.schema.fields.map { field =>
      val nearest = SupportedTypes.nearest(field.dataType)
      val name = quoteIfNeeded(field.name)
      if (nearest == field.dataType) name else s"CAST($name AS ${nearest.sql}) AS $name"
    }
    val selected = if (columns.forall(!_.startsWith("CAST("))) "*" else columns.mkString(", ")
    s"CREATE TABLE ${nameOfCopy(table)} USING delta${partitionedBy(table)} " +
      s"TBLPROPERTIES ('${WriterCompat.Enabled}' = 'true') AS SELECT $selected FROM ${table.name}"
  }

  private def nameOfCopy(table: TableState): String =
    if (table.name.endsWith("`")) table.name.dropRight(1) + "_iceberg`"
    else table.name + "_iceberg"

  private def partitionedBy(table: TableState): String = table.partitionColumns match {
    case Seq() => ""
    case names => names.map(quoteIfNeeded).mkString(" PARTITIONED BY (", ", ", ")")
  }

  private def widensToInt(dataType: DataType): Boolean =
    dataType == ByteType || dataType == ShortType

  private def create(
      table: TableState,
      creating: Moment.Creating,
      properties: Map[String, String]): String = {
    val verb = if (creating.replacing) "CREATE OR REPLACE TABLE" else "CREATE TABLE"
    val columns = table.schema.fields.take(columnsSpelledOut).map { field =>
      val notNull = if (field.nullable) "" else " NOT NULL"
      s"${quoteIfNeeded(field.name)} ${SupportedTypes.nearest(field.dataType).sql}$notNull"
    }
    val left = table.schema.length - columns.length
    val rest = if (left > 0) s" /* and $left more */" else ""
    val settings = (Map(WriterCompat.Enabled -> "true") ++ properties).toSeq.sorted
      .map { case (key, value) => s"'$key' = '$value'" }
      .mkString(", ")
    s"$verb ${table.name} (${columns.mkString(", ")}$rest) USING delta${partitionedBy(table)} " +
      s"TBLPROPERTIES ($settings)"
  }
}
