package org.icebergwritercompat.contract

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.model.{Location, PhysicalNameTree, SchemaNode, WriterCompat}
import org.icebergwritercompat.remedy.{Change, Remedy}

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

/**
 * What is being done with a table when the rules are checked. It decides the remedy of a violation,
 * but not whether there is a violation.
 */
sealed trait Lifecycle

object Lifecycle {

  /** The table is being created, or replaced by a new one. */
  final case class Creating(replacing: Boolean) extends Lifecycle

  /** The feature is being switched on for an existing table. */
  case object Enabling extends Lifecycle

  /** The table has the feature and is being changed. */
  case object Changing extends Lifecycle
}

/** The protocol action of a table. */
final case class ProtocolState(
    minReaderVersion: Int,
    minWriterVersion: Int,
    readerFeatures: Option[Set[String]],
    writerFeatures: Option[Set[String]]
) {

  /** The features the protocol lists, for readers or for writers. */
  val listedFeatures: Set[String] =
    readerFeatures.getOrElse(Set.empty) ++ writerFeatures.getOrElse(Set.empty)

  /** Whether Delta writes tables of this writer version, so that a statement can change them. */
  def isWritable: Boolean = minWriterVersion <= ProtocolState.WriterVersionOfFeatures
}

object ProtocolState {

  /** The writer version that has a list of features, and the highest that there is. */
  val WriterVersionOfFeatures = 7
}

/** The file format a table declares. */
final case class FileFormat(provider: String, options: Map[String, String])

object FileFormat {

  /** The format of every Delta table. */
  val Parquet: FileFormat = FileFormat("parquet", Map.empty)
}

/**
 * The protocol and metadata of one version of a table.
 *
 * @param name
 *   how a statement refers to the table, such as `db.t` or a quoted path
 * @param contract
 *   the contract that the table follows, or is to follow
 * @param previous
 *   the previous version, if a change is checked; it decides the remedy of a violation, but not
 *   whether there is a violation
 * @param asItIs
 *   the table before the upgrade, if this is the state after it; it decides the remedy of a
 *   violation
 */
final case class TableState(
    name: String,
    lifecycle: Lifecycle,
    protocol: ProtocolState,
    properties: Map[String, String],
    schema: StructType,
    partitionColumns: Seq[String],
    contract: Contract,
    format: FileFormat = FileFormat.Parquet,
    profile: Profile = Profile.Rfc,
    previous: Option[TableState] = None,
    asItIs: Option[TableState] = None
) {

  /** Whether the property of the contract is `true`. */
  def isEnabled: Boolean = contract.isEnabled(properties)

  /** The column mapping mode: `none`, `name` or `id`. */
  def mappingMode: String =
    property(WriterCompat.ColumnMappingMode).fold("none")(lower(_).trim)

  /** Whether the table has column mapping. */
  def isMapped: Boolean = mappingMode != "none"

  /** All violations of this version of the table, computed lazily and once. */
  @transient lazy val violations: LazyList[Violation] = violationsOf(contract.rules.table)

  /** The violations of these rules in their order, computed lazily and once. */
  def violationsOf(rules: Seq[TableRule]): LazyList[Violation] =
    LazyList.from(rules.iterator.flatMap(rule => violationsOf(rule)))

  /** The violations of a rule, which is called once for this version. */
  def violationsOf(rule: TableRule): Seq[Violation] =
    found.computeIfAbsent(rule, _.check(this))

  @transient private lazy val found = new ConcurrentHashMap[TableRule, Seq[Violation]]

  /** The column that a violation is about. */
  def nodeAt(location: Location): Option[SchemaNode] = location match {
    case Location.Column(path, _, _) => nodesByPath.get(path.toVector)
    case _                           => None
  }

  /** Every column, nested field, element, key and value of the schema, parents before children. */
  lazy val nodes: Vector[SchemaNode] = SchemaNode.flatten(schema)

  /** The nodes by id; if several have the same id, the last. */
  lazy val nodesById: Map[Long, SchemaNode] =
    nodes.iterator.flatMap(node => node.id.map(_ -> node)).toMap

  /** The highest assigned id according to the property; 0 if it is missing or malformed. */
  lazy val maxColumnId: Long =
    property(WriterCompat.MaxColumnId).flatMap(_.trim.toLongOption).getOrElse(0L)

  /** The partition columns as nodes of the schema, without those that the schema lacks. */
  lazy val partitionNodes: Seq[SchemaNode] = partitionColumns.flatMap(column)

  private lazy val columnsByName: Map[String, SchemaNode] =
    nodes.reverseIterator.filter(_.path.length == 1).map(n => lower(n.path.head) -> n).toMap

  private def lower(name: String): String = name.toLowerCase(Locale.ROOT)

  /** The first column with this name, ignoring case. */
  def column(name: String): Option[SchemaNode] =
    Option(name).flatMap(n => columnsByName.get(lower(n)))

  /** The nodes by path; paths are case-sensitive. */
  lazy val nodesByPath: Map[Vector[String], SchemaNode] =
    nodes.iterator.map(node => node.path -> node).toMap

  private lazy val nodesByParent: Map[Vector[String], Vector[SchemaNode]] =
    nodes.groupBy(_.path.init)

  /** The fields, or the element, key and value, directly below the node at `path`. */
  def nodesBelow(path: Vector[String]): Vector[SchemaNode] =
    nodesByParent.getOrElse(path, Vector.empty)

  /** The columns. */
  def columns: Vector[SchemaNode] = nodesBelow(Vector.empty)

  /** The fields by physical name; if several have the same name, the last. */
  lazy val fieldsByPhysicalName: Map[String, SchemaNode] =
    nodes.iterator.flatMap(node => node.physicalName.map(_ -> node)).toMap

  // Cached, because thousands of violations may have the same remedy.
  private[icebergwritercompat] lazy val copied: Remedy = Fix.copy(this)

  /** Whether two fields of one struct have names that differ in the case of letters alone. */
  private[icebergwritercompat] lazy val differInCaseAlone: Boolean =
    IcebergNames.differInCaseAlone(nodes)

  private[icebergwritercompat] lazy val typeChanges: Seq[Change.Type] = Fix.typeChanges(this)

  /**
   * The same by top-level column, because a wide table has one question for each of its columns.
   */
  private[icebergwritercompat] lazy val typeChangesByColumn: Map[String, Seq[Change.Type]] =
    typeChanges.groupBy(_.path.head)

  private[icebergwritercompat] lazy val additions: Map[Vector[String], Remedy] = Fix.additions(this)

  /** The keys that the partition values of a file action must have. */
  lazy val partitionKeys: Set[String] =
    partitionNodes.map(node => node.physicalName.getOrElse(node.path.head)).toSet

  /** The physical names of the schema as a tree, to look up paths of statistics. */
  lazy val physicalNames: PhysicalNameTree = PhysicalNameTree.of(schema)

  /** The key under which the property is set; like Delta, the main key before alternate ones. */
  def keyOf(key: String): String = WriterCompat.keyOf(key, properties)

  /** The value of a property; a null in the log becomes the text `null`. */
  def property(key: String): Option[String] = properties.get(keyOf(key)).map(String.valueOf(_))

  /** The boolean value of a property; `None` if it is absent or not a boolean. */
  def flag(key: String): Option[Boolean] =
    property(key).flatMap(_.trim.toLowerCase(Locale.ROOT).toBooleanOption)
}
