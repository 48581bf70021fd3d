package org.icebergwritercompat.iceberg

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}
import org.apache.iceberg.exceptions._
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg.{HasTableOperations, TableMetadata, TableOperations}
import org.icebergwritercompat.errors.IcebergWriterCompatException

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/** Where metadata goes on, as it says itself. */
private[iceberg] final case class CatalogPlace(catalog: String, table: String) {

  def properties: Map[String, String] =
    Map(CatalogPlace.catalogProperty -> catalog, CatalogPlace.tableProperty -> table)
}

private[iceberg] object CatalogPlace {

  private val catalogProperty = "delta-catalog"

  private val tableProperty = "delta-catalog-table"

  def of(metadata: TableMetadata): Option[CatalogPlace] =
    for {
      catalog <- Option(metadata.property(catalogProperty, null))
      table <- Option(metadata.property(tableProperty, null))
    } yield CatalogPlace(catalog, table)
}

/** Where a table is published. */
object PublishTargets {

  /**
   * The target that the session asks for.
   *
   * @param wanted
   *   the parts of the table's name in a catalog, if it has one
   */
  def of(
      name: String,
      root: Path,
      conf: Configuration,
      writeOnce: WriteOnce,
      settings: Option[CatalogSettings],
      wanted: Option[Seq[String]]
  ): PublishTarget = {
    val path = new PathTableOperations(name, root, conf, writeOnce)
    settings.fold[PublishTarget](path) { catalog =>
      if (catalog.isHadoop)
        new PathTableOperations(name, root, conf, writeOnce, Some(inWarehouse(name, root, catalog)))
      else {
        def known = Option(path.current())
          .flatMap(CatalogPlace.of)
          .filter(_.catalog == catalog.place)
          .map(place => TableIdentifier.parse(place.table))
        val identifier = wanted.map(parts => TableIdentifier.of(parts: _*)).orElse(known).getOrElse {
          throw IcebergWriterCompatException.notPublishable(
            "NO_NAME",
            Map("table" -> name, "catalog" -> catalog.place)
          )
        }
        new CatalogTarget(
          name,
          root,
          catalog,
          IcebergCatalogs.open(catalog, conf),
          identifier,
          path
        )
      }
    }
  }

  // A Hadoop catalog has no names but those of folders.
  private def inWarehouse(name: String, root: Path, catalog: CatalogSettings): String = {
    val warehouse = catalog.properties.getOrElse("warehouse", "")
    val parent = s"${new Path(warehouse).toUri.getPath.stripSuffix("/")}/"
    val folder = root.toUri.getPath
    if (!folder.startsWith(parent))
      throw IcebergWriterCompatException.notPublishable(
        "NOT_IN_WAREHOUSE",
        Map("table" -> name, "folder" -> root.toString, "warehouse" -> warehouse)
      )
    folder.stripPrefix(parent).replace('/', '.')
  }
}

/**
 * The Iceberg metadata of a table in a catalog.
 *
 * Metadata is begun in the table's folder, where it says in which catalog it goes on, and then
 * registered there. So no publisher that does not know of the catalog can go on with it by itself,
 * and what is in the folder already is taken over as it is.
 */
private[iceberg] final class CatalogTarget(
    name: String,
    root: Path,
    settings: CatalogSettings,
    catalog: Catalog,
    identifier: TableIdentifier,
    path: PathTableOperations
) extends PublishTarget {

  private val place = CatalogPlace(settings.place, identifier.toString)

  override def properties: Map[String, String] = place.properties

  override def catalogTable: Option[String] = Some(identifier.toString)

  private var operations: Option[TableOperations] = None

  private def inCatalog[T](call: => T): T =
    try call
    catch {
      case e: CommitFailedException       => throw e
      case e: CommitStateUnknownException => throw e
      case NonFatal(e)                    => throw IcebergCatalogs.failed(settings, e)
    }

  private def look(): Option[TableOperations] = {
    if (operations.isEmpty)
      operations = inCatalog {
        try Some(operationsOf(catalog.loadTable(identifier)))
        catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }
      }
    operations
  }

  private def operationsOf(table: AnyRef): TableOperations =
    table.asInstanceOf[HasTableOperations].operations

  override def current(): TableMetadata = look().map(_.current()).orNull

  override def refresh(): TableMetadata =
    operations.map(found => inCatalog(found.refresh())).getOrElse(current())

  override def check(metadata: TableMetadata): Unit =
    if (new Path(metadata.location) != root)
      throw IcebergWriterCompatException.notPublishable(
        "NAME_TAKEN",
        Map(
          "table" -> name,
          "catalog" -> settings.place,
          "catalogTable" -> identifier.toString,
          "folder" -> metadata.location
        )
      )

  override def takeOver(): Unit = Option(current()) match {
    case Some(metadata) =>
      IcebergPublisher.versionOf(name, metadata)
      check(metadata)
      // Somebody has registered it here, and the folder is to know.
      if (!CatalogPlace.of(metadata).contains(place))
        Option(path.current()).filterNot(CatalogPlace.of(_).contains(place)).foreach(move)
    case None =>
      Option(path.current()).foreach { metadata =>
        IcebergPublisher.versionOf(name, metadata)
        CatalogPlace.of(metadata) match {
          case Some(`place`) => register(metadata)
          case None          => register(move(metadata))
          case Some(_)       => path.check(metadata)
        }
      }
  }

  private def move(metadata: TableMetadata): TableMetadata = {
    val moved = TableMetadata.buildFrom(metadata).setProperties(properties.asJava)
    path.commit(metadata, MetadataTimes.build(moved, Some(metadata)))
    path.refresh()
  }

  private def register(metadata: TableMetadata): Unit = {
    val found = inCatalog {
      createNamespace(identifier.namespace)
      try Some(operationsOf(catalog.registerTable(identifier, metadata.metadataFileLocation)))
      catch { case _: AlreadyExistsException => None }
    }
    operations = found
    // Somebody else has registered the same, or another table is called so.
    if (found.isEmpty) check(current())
  }

  private def createNamespace(namespace: Namespace): Unit = catalog match {
    case catalog: SupportsNamespaces if !namespace.isEmpty && !catalog.namespaceExists(namespace) =>
      try catalog.createNamespace(namespace)
      catch { case _: AlreadyExistsException => }
    case _ =>
  }

  override def commit(base: TableMetadata, metadata: TableMetadata): Unit =
    if (base == null) {
      path.commit(null, metadata)
      register(path.refresh())
    } else inCatalog(operations.get.commit(base, metadata))

  override def mend(): Unit = ()

  override def io(): FileIO = path.io()

  override def metadataFileLocation(fileName: String): String = path.metadataFileLocation(fileName)

  override def locationProvider(): LocationProvider = path.locationProvider()
}
