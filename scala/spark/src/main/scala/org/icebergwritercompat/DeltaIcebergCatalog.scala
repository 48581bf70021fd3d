package org.icebergwritercompat

import org.apache.iceberg._
import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}
import org.apache.iceberg.exceptions.{
  AlreadyExistsException,
  NoSuchTableException,
  ValidationException
}
import org.apache.spark.sql.delta.writercompat.writeback.{
  ClientRequest,
  DeltaTableOperations,
  PublishedTable,
  RecentTables,
  SessionTables
}
import org.icebergwritercompat.iceberg.metadata.RowLevelDeletes

import java.util.{HashMap => JHashMap, List => JList, Map => JMap, Set => JSet}
import scala.jdk.CollectionConverters._

/**
 * The Delta tables with the feature in a session's own catalog, as an Iceberg catalog whose tables
 * can be written. Databases are its namespaces.
 *
 * {{{
 * spark.sql.catalog.ice=org.apache.iceberg.spark.SparkCatalog
 * spark.sql.catalog.ice.catalog-impl=org.icebergwritercompat.DeltaIcebergCatalog
 * }}}
 *
 * With the property `row-level-deletes` = `rewrite` it takes commits with delete files, and writes
 * the data files anew itself.
 */
class DeltaIcebergCatalog extends BaseMetastoreCatalog with SupportsNamespaces {

  private var ownName = "delta"

  private var settings: JMap[String, String] = new JHashMap

  private var rowDeletes: RowLevelDeletes = RowLevelDeletes.Refuse

  private val tables = new SessionTables

  override def initialize(name: String, properties: JMap[String, String]): Unit = {
    ownName = name
    settings = new JHashMap(properties)
    rowDeletes = Option(properties.get(RowLevelDeletes.Property))
      .fold[RowLevelDeletes](RowLevelDeletes.Refuse)(RowLevelDeletes.named)
  }

  override def name: String = ownName

  override protected def properties: JMap[String, String] = settings

  override protected def isValidIdentifier(table: TableIdentifier): Boolean =
    table.namespace.levels.length == 1

  override protected def newTableOps(table: TableIdentifier): TableOperations = operations(table)

  private def operations(table: TableIdentifier) =
    new DeltaTableOperations(tables, table, rowDeletes, recent)

  /** What was loaded of the tables, if that is kept. */
  private[icebergwritercompat] def recent: Option[RecentTables] = None

  override protected def defaultWarehouseLocation(table: TableIdentifier): String =
    tables.defaultLocation(table).toString

  /**
   * Whether a commit of the table was made for a request. Who serves requests asks this first: what
   * a request requires of a table need not hold any more once it was committed.
   */
  def isCommitted(table: TableIdentifier, request: ClientRequest): Boolean =
    isValidIdentifier(table) && operations(table).isCommitted(request)

  override def listTables(namespace: Namespace): JList[TableIdentifier] =
    tables.guarded(namespace).asJava

  override def tableExists(table: TableIdentifier): Boolean =
    isValidIdentifier(table) && operations(table).current() != null

  override def dropTable(table: TableIdentifier, purge: Boolean): Boolean =
    tableExists(table) && {
      tables.drop(table, purge)
      true
    }

  override def renameTable(from: TableIdentifier, to: TableIdentifier): Unit = {
    if (!tableExists(from)) throw new NoSuchTableException("Table does not exist: %s", from)
    if (from.namespace != to.namespace)
      throw new ValidationException(
        "Table %s cannot become %s: the catalog of Spark renames a table within its database alone. " +
          "Give the Delta table in %s the other name too by CREATE TABLE %s USING delta LOCATION '%s', " +
          "and drop the old one without its files",
        from,
        to,
        tables.entry(from).fold("")(_.location.toString),
        to,
        tables.entry(from).fold("")(_.location.toString)
      )
    if (tables.exists(to)) throw new AlreadyExistsException("Table already exists: %s", to)
    tables.rename(from, to)
  }

  /**
   * Gives a Delta table that has lost its name one again, by a metadata file that was published of
   * it. What the table has is in Delta's log, also if the file is an older one.
   */
  override def registerTable(table: TableIdentifier, metadataFileLocation: String): Table =
    registerTable(table, metadataFileLocation, false)

  override def registerTable(
      table: TableIdentifier,
      metadataFileLocation: String,
      overwrite: Boolean
  ): Table = {
    if (!isValidIdentifier(table))
      throw new IllegalArgumentException(s"There can be no table $table: a database has one level")
    if (overwrite)
      throw new ValidationException(
        "Table %s is not registered with overwrite: a Delta table is what its log says, and no metadata " +
          "file takes its place. Leave overwrite out; to have the rows of an older version again, roll " +
          "back to its snapshot, or RESTORE the Delta table",
        table
      )
    new PublishedTable(tables, metadataFileLocation).register(table)
    loadTable(table)
  }

  override def buildTable(table: TableIdentifier, schema: Schema): Catalog.TableBuilder =
    new CheckedBuilder(
      super.buildTable(table, schema),
      operations(table),
      schema,
      defaultWarehouseLocation(table),
      () => loadTable(table)
    )

  override def createNamespace(namespace: Namespace, properties: JMap[String, String]): Unit =
    tables.createDatabase(namespace, properties.asScala.toMap)

  override def listNamespaces(namespace: Namespace): JList[Namespace] =
    (if (namespace.isEmpty) tables.databases
     else { tables.database(namespace); Nil }).asJava

  override def loadNamespaceMetadata(namespace: Namespace): JMap[String, String] =
    tables.database(namespace).asJava

  override def dropNamespace(namespace: Namespace): Boolean = tables.dropDatabase(namespace)

  override def setProperties(namespace: Namespace, properties: JMap[String, String]): Boolean = {
    tables.alterDatabase(namespace, properties.asScala.toMap, Set.empty)
    true
  }

  override def removeProperties(namespace: Namespace, properties: JSet[String]): Boolean = {
    tables.alterDatabase(namespace, Map.empty, properties.asScala.toSet)
    true
  }
}

/**
 * Refuses a table that cannot be one of Delta before a client writes files for it.
 *
 * @param place
 *   where it is to be, unless the client says otherwise
 * @param made
 *   the table, if it is there
 */
private final class CheckedBuilder(
    builder: Catalog.TableBuilder,
    operations: DeltaTableOperations,
    schema: Schema,
    place: String,
    made: () => Table
) extends Catalog.TableBuilder {

  private var spec = PartitionSpec.unpartitioned

  private var order = SortOrder.unsorted

  private var location = Option.empty[String]

  private val properties = new JHashMap[String, String]

  override def withPartitionSpec(wanted: PartitionSpec): this.type = {
    if (wanted != null) spec = wanted
    builder.withPartitionSpec(wanted)
    this
  }

  override def withSortOrder(wanted: SortOrder): this.type = {
    if (wanted != null) order = wanted
    builder.withSortOrder(wanted)
    this
  }

  override def withLocation(wanted: String): this.type = {
    location = Option(wanted)
    builder.withLocation(wanted)
    this
  }

  override def withProperties(wanted: JMap[String, String]): this.type = {
    if (wanted != null) properties.putAll(wanted)
    builder.withProperties(wanted)
    this
  }

  override def withProperty(key: String, value: String): this.type = {
    properties.put(key, value)
    builder.withProperty(key, value)
    this
  }

  override def create(): Table =
    if (ClientRequest.current.exists(operations.isCommitted)) made()
    else checked(None)(builder.create())

  override def createTransaction(): Transaction = checked(None)(builder.createTransaction())

  override def replaceTransaction(): Transaction = checked(there)(builder.replaceTransaction())

  override def createOrReplaceTransaction(): Transaction =
    checked(there)(builder.createOrReplaceTransaction())

  private def there: Option[TableMetadata] = Option(operations.current())

  private def checked[T](base: Option[TableMetadata])(make: => T): T = {
    val wanted = base match {
      case Some(known) =>
        val place = location.getOrElse(known.location)
        known.buildReplacement(schema, spec, order, place, properties)
      case None =>
        TableMetadata.newTableMetadata(schema, spec, order, location.getOrElse(place), properties)
    }
    operations.check(base, wanted)
    make
  }
}
