package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.fs.Path
import org.apache.iceberg.catalog.{Namespace, TableIdentifier => IcebergIdentifier}
import org.apache.iceberg.exceptions.{
  AlreadyExistsException,
  NamespaceNotEmptyException,
  NoSuchNamespaceException,
  ValidationException
}
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{
  DatabaseAlreadyExistsException,
  NoSuchTableException,
  TableAlreadyExistsException
}
import org.apache.spark.sql.catalyst.catalog.{
  CatalogDatabase,
  CatalogStorageFormat,
  CatalogTable,
  CatalogTableType,
  CatalogUtils
}
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.read.Sessions
import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.contracts.Contracts

import scala.util.Try
import scala.util.control.NonFatal

/** The tables and databases of a session's own catalog, by the names that Iceberg gives them. */
final class SessionTables {

  /** The session of the caller. A catalog outlives sessions, and is called by any of them. */
  def session: SparkSession =
    SparkSession.getActiveSession
      .orElse(SparkSession.getDefaultSession)
      .getOrElse(
        throw new IllegalStateException(
          "DeltaIcebergCatalog commits by Delta, and there is no Spark session in this process"
        )
      )

  private def catalog = session.sessionState.catalog

  /** The name of a table in the session's catalog. */
  def identifier(table: IcebergIdentifier): TableIdentifier =
    TableIdentifier(table.name, Some(table.namespace.level(0)))

  /** What the catalog has under a name; `None` for nothing, and for a view. */
  def entry(table: IcebergIdentifier): Option[CatalogTable] =
    try
      Option
        .when(catalog.databaseExists(table.namespace.level(0)))(
          catalog.getTableMetadata(identifier(table))
        )
        .filter(_.tableType != CatalogTableType.VIEW)
    catch { case _: NoSuchTableException => None }

  /** Whether the name is taken. */
  def exists(table: IcebergIdentifier): Boolean = catalog.tableExists(identifier(table))

  /** The log of a Delta table of the catalog. */
  def log(entry: CatalogTable): Option[DeltaLog] =
    Option.when(entry.provider.exists(_.equalsIgnoreCase("delta")))(
      Sessions.active(session)(DeltaLog.forTable(session, entry))
    )

  /** The log in a folder, whether there is one or not. */
  def log(folder: Path): DeltaLog = Sessions.active(session)(DeltaLog.forTable(session, folder))

  /** Where the session keeps a table of this name. */
  def defaultLocation(table: IcebergIdentifier): Path =
    new Path(catalog.defaultTablePath(identifier(table)))

  /** Gives a Delta table that exists a name. */
  def register(table: IcebergIdentifier, folder: Path): CatalogTable = {
    val isDefault = defaultLocation(table).toUri.getPath == folder.toUri.getPath
    val entry = CatalogTable(
      identifier(table),
      if (isDefault) CatalogTableType.MANAGED else CatalogTableType.EXTERNAL,
      // A path as text would be encoded once more.
      CatalogStorageFormat.empty.copy(locationUri = Some(folder.toUri)),
      new StructType,
      provider = Some("delta")
    )
    // The folder has the table already.
    try catalog.createTable(entry, ignoreIfExists = false, validateLocation = false)
    catch {
      case _: TableAlreadyExistsException =>
        throw new AlreadyExistsException("Table already exists: %s", table)
    }
    entry
  }

  /** The tables with the feature in a database. */
  def guarded(namespace: Namespace): Seq[IcebergIdentifier] = {
    val database = existing(namespace)
    catalog.listTables(database).map(_.table).sorted.map(IcebergIdentifier.of(namespace, _)).filter {
      table => Try(isGuarded(table)).getOrElse(false)
    }
  }

  private def isGuarded(table: IcebergIdentifier): Boolean =
    entry(table).flatMap(log).exists { found =>
      Sessions.active(session) {
        Contracts.isEnabled(found.update(catalogTableOpt = entry(table)).metadata.configuration)
      }
    }

  /**
   * Takes the name from a table.
   *
   * @param purge
   *   whether the files of a managed table go too
   */
  def drop(table: IcebergIdentifier, purge: Boolean): Unit = {
    if (!purge) { keepFolder(table); () }
    catalog.dropTable(identifier(table), ignoreIfNotExists = true, purge = false)
    if (purge) DeltaLog.clearCache()
  }

  /**
   * Gives a table another name; its folder stays, as the metadata names each file by its whole
   * path.
   */
  def rename(from: IcebergIdentifier, to: IcebergIdentifier): Unit = {
    existing(to.namespace)
    val wasManaged = keepFolder(from)
    def managedAgain(name: IcebergIdentifier): Unit = if (wasManaged)
      entry(name).foreach(e => catalog.alterTable(e.copy(tableType = CatalogTableType.MANAGED)))
    try catalog.renameTable(identifier(from), identifier(to))
    catch {
      case NonFatal(e) =>
        managedAgain(from)
        throw e match {
          case _: TableAlreadyExistsException =>
            new AlreadyExistsException("Table already exists: %s", to)
          case other => other
        }
    }
    managedAgain(to)
  }

  // Of a managed table Spark would move or remove it with the name.
  private def keepFolder(table: IcebergIdentifier): Boolean =
    entry(table).filter(_.tableType == CatalogTableType.MANAGED).exists { entry =>
      catalog.alterTable(entry.copy(tableType = CatalogTableType.EXTERNAL))
      true
    }

  /** All databases. */
  def databases: Seq[Namespace] = catalog.listDatabases().map(Namespace.of(_))

  /** Whether there is a database of this name. */
  def databaseExists(namespace: Namespace): Boolean =
    namespace.levels.length == 1 && catalog.databaseExists(namespace.level(0))

  private def existing(namespace: Namespace): String =
    if (databaseExists(namespace)) namespace.level(0)
    else throw new NoSuchNamespaceException("Namespace does not exist: %s", namespace)

  /** Makes a database. */
  def createDatabase(namespace: Namespace, properties: Map[String, String]): Unit = {
    if (namespace.levels.length != 1)
      throw new IllegalArgumentException(
        s"Namespace $namespace has ${namespace.levels.length} levels, and a database has one"
      )
    if (databaseExists(namespace))
      throw new AlreadyExistsException("Namespace already exists: %s", namespace)
    val name = namespace.level(0)
    val location = properties
      .get(locationKey)
      .map(CatalogUtils.stringToURI)
      .getOrElse(catalog.getDefaultDBPath(name))
    val made = CatalogDatabase(
      name,
      properties.getOrElse(commentKey, ""),
      location,
      properties - locationKey
    )
    try catalog.createDatabase(made, ignoreIfExists = false)
    catch {
      // Another request was faster.
      case _: DatabaseAlreadyExistsException =>
        throw new AlreadyExistsException("Namespace already exists: %s", namespace)
      // Such as global_temp, which is Spark's.
      case e: AnalysisException => throw new ValidationException(e, "%s", e.getMessage)
    }
  }

  /** What is known of a database. */
  def database(namespace: Namespace): Map[String, String] = {
    val found = catalog.getDatabaseMetadata(existing(namespace))
    found.properties ++ Map(locationKey -> found.locationUri.toString) ++
      Option(found.description).filter(_.nonEmpty).map(commentKey -> _)
  }

  /** Changes what is known of a database. */
  def alterDatabase(namespace: Namespace, set: Map[String, String], unset: Set[String]): Unit = {
    val found = catalog.getDatabaseMetadata(existing(namespace))
    val location = found.locationUri.toString
    if (unset(locationKey) || set.get(locationKey).exists(_ != location))
      throw new ValidationException(
        "The location of namespace %s stays %s, where its tables are. Leave it out, or make another " +
          "namespace there",
        namespace,
        location
      )
    val all = found.properties -- unset ++ set - locationKey
    catalog.alterDatabase(
      found.copy(
        properties = all,
        description =
          if (unset(commentKey)) "" else set.getOrElse(commentKey, found.description)
      )
    )
  }

  /** Removes a database without tables; false if there is none. */
  def dropDatabase(namespace: Namespace): Boolean =
    databaseExists(namespace) && {
      // The session lists its temporary views in every database.
      if (catalog.externalCatalog.listTables(namespace.level(0)).nonEmpty)
        throw new NamespaceNotEmptyException("Namespace is not empty: %s", namespace)
      // Spark keeps the database default.
      try catalog.dropDatabase(namespace.level(0), ignoreIfNotExists = true, cascade = false)
      catch { case e: AnalysisException => throw new ValidationException(e, "%s", e.getMessage) }
      true
    }

  private val locationKey = "location"

  private val commentKey = "comment"
}
