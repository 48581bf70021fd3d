package org.icebergwritercompat.contract

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.model.{Location, PhysicalNameTree, SchemaNode, WriterCompat}
import org.icebergwritercompat.remedy.{Change, Remedy}

import java.util.Locale

/**
 * When a table is looked at: it decides which statement mends a violation, never whether there is
 * one.
 */
sealed trait Moment

object Moment {

  /** The table is being created, or replaced by a new one. */
  final case class Creating(replacing: Boolean) extends Moment

  /** The feature is being switched on for a table that exists. */
  case object Enabling extends Moment

  /** The table has the feature and is being changed. */
  case object Changing extends Moment
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
}

/** The file format a table declares. */
final case class FileFormat(provider: String, options: Map[String, String])

object FileFormat {

  /** What every Delta table declares. */
  val Parquet: FileFormat = FileFormat("parquet", Map.empty)
}

/**
 * One version of a table, as far as its protocol and metadata tell.
 *
 * @param name
 *   how a statement refers to the table, such as `db.t` or a quoted path
 * @param contract
 *   the contract that the table follows, or is to follow
 * @param previous
 *   the version before, if a change is looked at; it decides which statement mends a violation,
 *   never whether there is one
 * @param asItIs
 *   the table before the feature is switched on, if this is what it is to become; it decides which
 *   statement mends a violation
 */
final case class TableState(
    name: String,
    moment: Moment,
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

  /** Whether the table follows its contract, or is yet to. */
  def isEnabled: Boolean = contract.isEnabled(properties)

  /** The column mapping mode: `none`, `name` or `id`. */
  def mappingMode: String =
    property(WriterCompat.ColumnMappingMode).fold("none")(lower(_).trim)

  /** Whether columns have names and ids of their own in data files. */
  def isMapped: Boolean = mappingMode != "none"

  /** All violations of this version of the table, each found when it is asked for, and once. */
  @transient lazy val violations: LazyList[Violation] = LazyList.from(contract.rules.check(this))

  /** The column that a violation is about. */
  def nodeAt(location: Location): Option[SchemaNode] = location match {
    case Location.Column(path, _, _) => nodesByPath.get(path.toVector)
    case _                           => None
  }

  /** Every column, nested field, element, key and value of the schema, parents before children. */
  lazy val nodes: Vector[SchemaNode] = SchemaNode.flatten(schema)

  /** The nodes by id; of those that share one, the last. */
  lazy val nodesById: Map[Long, SchemaNode] =
    nodes.iterator.flatMap(node => node.id.map(_ -> node)).toMap

  /** The highest id given out, as the property tells; 0 where it tells nothing. */
  lazy val maxColumnId: Long =
    property(WriterCompat.MaxColumnId).flatMap(_.trim.toLongOption).getOrElse(0L)

  /** The partition columns as nodes of the schema; a column that is not there is left out. */
  lazy val partitionNodes: Seq[SchemaNode] = partitionColumns.flatMap(column)

  private lazy val columnsByName: Map[String, SchemaNode] =
    nodes.reverseIterator.filter(_.path.length == 1).map(n => lower(n.path.head) -> n).toMap

  private def lower(name: String): String = name.toLowerCase(Locale.ROOT)

  /** The first column of this name, in letters of any case. */
  def column(name: String): Option[SchemaNode] =
    Option(name).flatMap(n => columnsByName.get(lower(n)))

  /** The nodes by path; names may differ in the case of letters alone. */
  lazy val nodesByPath: Map[Vector[String], SchemaNode] =
    nodes.iterator.map(node => node.path -> node).toMap

  private lazy val nodesByParent: Map[Vector[String], Vector[SchemaNode]] =
    nodes.groupBy(_.path.init)

  /** The fields, or the element, key and value, that hang directly below the node at `path`. */
  def nodesBelow(path: Vector[String]): Vector[SchemaNode] =
    nodesByParent.getOrElse(path, Vector.empty)

  /** The columns. */
  def columns: Vector[SchemaNode] = nodesBelow(Vector.empty)

  /** The fields by physical name; of those that share one, the last. */
  lazy val fieldsByPhysicalName: Map[String, SchemaNode] =
    nodes.iterator.flatMap(node => node.physicalName.map(_ -> node)).toMap

  // Thousands of violations may have the same remedy.
  private[icebergwritercompat] lazy val copied: Remedy = Fix.copy(this)

  /** Whether two fields of one struct have names that differ in the case of letters alone. */
  private[icebergwritercompat] lazy val differInCaseAlone: Boolean =
    IcebergNames.differInCaseAlone(nodes)

  private[icebergwritercompat] lazy val typeChanges: Seq[Change.Type] = Fix.typeChanges(this)

  private[icebergwritercompat] lazy val additions: Map[Vector[String], Remedy] = Fix.additions(this)

  /** The names under which a file action must give its partition values. */
  lazy val partitionKeys: Set[String] =
    partitionNodes.map(node => node.physicalName.getOrElse(node.path.head)).toSet

  /** The schema as trees of physical names, to look up paths in statistics. */
  lazy val physicalNames: PhysicalNameTree = PhysicalNameTree.of(schema)

  /** The key that holds the property, as Delta looks for it: its own before any other. */
  def keyOf(key: String): String = WriterCompat.keyOf(key, properties)

  /** The value of a property; a null in the log is text too, and none that a rule asks for. */
  def property(key: String): Option[String] = properties.get(keyOf(key)).map(String.valueOf(_))

  /** The boolean value of a property; `None` where it is absent or is no boolean. */
  def flag(key: String): Option[Boolean] =
    property(key).flatMap(_.trim.toLowerCase(Locale.ROOT).toBooleanOption)
}
