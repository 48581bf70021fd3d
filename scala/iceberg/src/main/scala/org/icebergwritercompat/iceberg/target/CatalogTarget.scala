package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.iceberg.{HasTableOperations, TableMetadata, TableOperations}
import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}
import org.apache.iceberg.exceptions._
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg.rest.RESTCatalog
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.MetadataTimes

import java.util.concurrent.{ExecutionException, Executors, TimeUnit, TimeoutException}
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Success, Try}

/** The place where metadata is continued, according to its properties. */
private[iceberg] final case class CatalogPlace(catalog: String, table: String) {

  def properties: Map[String, String] =
    CatalogPlace.properties.zip(Seq(catalog, table)).toMap
}

private[iceberg] object CatalogPlace {

  private val catalogProperty = "delta-catalog"

  private val tableProperty = "delta-catalog-table"

  /** The properties of metadata that name the place. */
  val properties: Seq[String] = Seq(catalogProperty, tableProperty)

  def of(metadata: TableMetadata): Option[CatalogPlace] =
    for {
      catalog <- Option(metadata.property(catalogProperty, null))
      table <- Option(metadata.property(tableProperty, null))
    } yield CatalogPlace(catalog, table)
}

/** Where a table is published. */
object PublishTargets {

  /** The catalog in which metadata goes on, and the name of the table there; not of its folder. */
  def elsewhere(metadata: TableMetadata): Option[(String, String)] =
    CatalogPlace.of(metadata).map(place => (place.catalog, place.table))

  /** The error that the name of a table in a catalog is that of a table of another kind. */
  def nameInUse(
      name: String,
      settings: CatalogSettings,
      identifier: String
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "NAME_IN_USE",
      Map(
        "table" -> name,
        "catalog" -> settings.place,
        "catalogTable" -> identifier,
        "free" -> s"${identifier}_iceberg"
      )
    )

  /**
   * The target that the settings of the session select.
   *
   * @param wanted
   *   the parts of the name of the table in a catalog, if it has a name; empty if it is to have
   *   none and to be published in its folder only
   * @param scheme
   *   the scheme of S3 that the table's property asks for
   */
  def of(
      name: String,
      root: Path,
      conf: Configuration,
      settings: Option[CatalogSettings],
      wanted: Option[Seq[String]],
      scheme: Option[String] = None
  ): PublishTarget = {
    def pathTable(
        catalogTable: Option[String],
        goesOn: TableMetadata => Option[CatalogPlace] = CatalogPlace.of
    ) = new PathTableOperations(
      name,
      root,
      conf,
      catalogTable,
      scheme.orElse(StoreSchemes.of(conf)),
      goesOn
    )
    val path = pathTable(None)
    settings.fold[PublishTarget](path) { catalog =>
      if (wanted.contains(Nil))
        pathTable(
          None,
          metadata =>
            CatalogPlace.of(metadata).filterNot { place =>
              !catalog.isHadoop &&
              isNowhere(metadata, place, catalog, IcebergCatalogs.open(catalog, conf), path)
            }
        )
      else if (catalog.isHadoop)
        pathTable(Some(inWarehouse(name, root, catalog)))
      else {
        def known = path.goesOnIn
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

  /**
   * Whether metadata names a place in a catalog where it cannot have been registered, because the
   * name belongs to a table that is not an Iceberg table.
   */
  private[target] def isNowhere(
      metadata: TableMetadata,
      bound: CatalogPlace,
      settings: CatalogSettings,
      catalog: Catalog,
      path: PathTableOperations
  ): Boolean =
    bound.catalog == settings.place && path.lastByCatalog(metadata).isEmpty && {
      try { catalog.loadTable(TableIdentifier.parse(bound.table)); false }
      catch {
        case _: NoSuchIcebergTableException                        => true
        case _: NoSuchTableException | _: NoSuchNamespaceException => false
        case IcebergCatalogs.Failed(e) => throw IcebergCatalogs.failed(settings, e)
      }
    }

  // In a Hadoop catalog the name of a table is its folder.
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
 * The first version of the metadata is written to the table's folder, with the name of the catalog
 * in its properties, and then registered in the catalog. So a publisher without the settings of the
 * catalog does not continue it in the folder, and metadata that the folder already has is kept.
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

  override def refusesOldSnapshots: Boolean = catalog.isInstanceOf[RESTCatalog]

  private var operations: Option[TableOperations] = None

  // A first failure must not be followed by an error of the catalog that was closed because of it.
  private var seen: Option[Try[Found]] = None

  // After an own change, the metadata is known and need not be read.
  private var changed = false

  private def inCatalog[T](call: => T): T =
    try call
    catch {
      case e: CommitFailedException       => throw e
      case e: CommitStateUnknownException => throw e
      case IcebergCatalogs.Failed(e)      => throw IcebergCatalogs.failed(settings, e)
    }

  override def found(): Found = {
    if (seen.isEmpty) seen = Some(Try(look()))
    seen.get.get
  }

  override def refresh(): TableMetadata = {
    seen = None
    current()
  }

  private def look(): Found =
    try entry()
    catch {
      case e: IcebergWriterCompatException => throw e
      case NonFatal(e) if !isNamed         => throw IcebergCatalogs.failed(settings, e)
      case e: LinkageError                 => throw IcebergCatalogs.failed(settings, e)
      // Tries again, because another publisher may have committed and removed the old metadata
      // file.
      case e: NotFoundException => Try(entry()).getOrElse(cannotBeRead(e))
      case NonFatal(e)          => cannotBeRead(e)
    }

  private def entry(): Found = loaded().fold(unnamed)(classify)

  // Iceberg retries for a minute and a half to read a truncated file.
  private def loaded(): Option[TableMetadata] = {
    val thread = Executors.newSingleThreadExecutor()
    try {
      val loading = thread.submit(() => load().map(_.current()))
      try loading.get(patienceMillis, TimeUnit.MILLISECONDS)
      catch {
        case _: TimeoutException =>
          path.damagedByCatalog.foreach(damage => throw new NotFoundException("%s", damage))
          loading.get()
      }
    } catch {
      case e: ExecutionException => throw e.getCause
    } finally thread.shutdownNow()
  }

  private val patienceMillis = 3000L

  // The folder may have foreign commits that the catalog does not list under this name: the table
  // was renamed, or somebody has dropped the name.
  private def unnamed: Found = path.found() match {
    case left: Found.ByOthers if left.lost.nonEmpty                  => left
    case Found.Line(begun) if CatalogPlace.of(begun).contains(place) =>
      path.lastByCatalog(begun).flatMap(Found.byOthers(_, None)).headOption.getOrElse(Found.Absent)
    case _ => Found.Absent
  }

  private def cannotBeRead(e: Throwable): Found =
    (e, path.damagedByCatalog) match {
      case (_, damages) if isOurs && damages.nonEmpty => PublishTarget.lost(damages)
      case (_: NotFoundException, _) if isOurs        =>
        Found.Lost(s"the metadata that the catalog names is missing (${e.getMessage})", Nil)
      case _ =>
        Found.Unreadable(
          IcebergWriterCompatException.notPublishable(
            "ENTRY_UNREADABLE",
            Map(
              "table" -> name,
              "catalog" -> settings.place,
              "catalogTable" -> identifier.toString,
              "cause" -> String.valueOf(e.getMessage).linesIterator.nextOption().getOrElse("")
            )
          )
        )
    }

  // A catalog that returns this error can be used.
  private def isNamed: Boolean =
    Try(catalog.listTables(identifier.namespace).contains(identifier)).getOrElse(false)

  private def load(): Option[TableOperations] = {
    operations match {
      case Some(known) => known.refresh()
      case None        =>
        operations =
          try Some(operationsOf(catalog.loadTable(identifier)))
          catch {
            // A subclass of NoSuchTableException, but the name is not free.
            case _: NoSuchIcebergTableException                        => throw nameInUse
            case _: NoSuchTableException | _: NoSuchNamespaceException => None
          }
    }
    operations
  }

  private def classify(metadata: TableMetadata): Found =
    if (!Found.isOurs(metadata)) Found.Line(metadata)
    else if (!isHere(metadata))
      relocated(metadata).fold[Found](Found.Line(metadata)) { why =>
        Found.byOthers(metadata, Some(why)).getOrElse(Found.Lost(why, Nil))
      }
    else
      Found.byOthers(metadata, None).getOrElse {
        if (changed) Found.Line(metadata) else PublishTarget.whole(metadata, io())
      }

  private def nameInUse: IcebergWriterCompatException =
    PublishTargets.nameInUse(name, settings, identifier.toString)

  // If the catalog cannot read the metadata of its entry, the folder shows which table it belongs
  // to.
  private lazy val isOurs: Boolean = path.goesOnIn.contains(place)

  // The table itself is where it was when this line was begun: it was not moved.
  private def relocated(metadata: TableMetadata): Option[String] = path.found() match {
    case Found.Line(begun)
        if begun.uuid == metadata.uuid && CatalogPlace.of(begun).contains(place) =>
      Some(s"an Iceberg writer has changed its location from $root to ${metadata.location}")
    case _ => None
  }

  private def isHere(metadata: TableMetadata): Boolean =
    Found.samePlace(new Path(metadata.location), root)

  private def operationsOf(table: AnyRef): TableOperations =
    table.asInstanceOf[HasTableOperations].operations

  override def abandon(lost: Found.Lost): Unit = { found(); seen = Some(Success(lost)) }

  override def putAside(file: String): Unit = path.putAside(file)

  override def setAside: Seq[String] = path.setAside

  override def check(metadata: TableMetadata): Unit =
    if (!isHere(metadata) && !isLeftBehind)
      throw IcebergWriterCompatException.notPublishable(
        "NAME_TAKEN",
        Map(
          "table" -> name,
          "catalog" -> settings.place,
          "catalogTable" -> identifier.toString,
          "folder" -> metadata.location
        )
      )

  private def isLeftBehind: Boolean = found() match {
    case theirs: Found.ByOthers => !isHere(theirs.metadata)
    case _                      => false
  }

  override def continueHere(): Unit = found() match {
    case Found.Unreadable(refusal)           => throw refusal
    case _: Found.Lost                       =>
    case _ if isLeftBehind                   =>
    case Found.Line(_) | (_: Found.ByOthers) =>
      val metadata = current()
      PublishedMetadata.versionOf(name, metadata)
      check(metadata)
      // Another publisher has registered it in this catalog; record this in the folder.
      if (!CatalogPlace.of(metadata).contains(place))
        Option(path.current()).filterNot(CatalogPlace.of(_).contains(place)).foreach(move)
    case Found.Absent =>
      Option(path.current()).foreach { metadata =>
        PublishedMetadata.versionOf(name, metadata)
        CatalogPlace.of(metadata) match {
          case Some(`place`) => register(metadata)
          case None          => register(move(metadata))
          // A version of this project that did not look bound it to a name that was in use.
          case Some(bound) if PublishTargets.isNowhere(metadata, bound, settings, catalog, path) =>
            register(move(metadata))
          case Some(_) => path.check(metadata)
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
    seen = None
    // Another publisher has registered this table, or another table has the name.
    if (found.isEmpty) check(current())
  }

  private def createNamespace(namespace: Namespace): Unit = catalog match {
    case catalog: SupportsNamespaces if !namespace.isEmpty && !catalog.namespaceExists(namespace) =>
      try catalog.createNamespace(namespace)
      catch { case _: AlreadyExistsException => }
    case _ =>
  }

  override def commit(base: TableMetadata, metadata: TableMetadata): Unit = {
    (found(), base) match {
      case (lost: Found.Lost, null) =>
        path.abandon(lost)
        path.commit(null, metadata)
        inCatalog(catalog.dropTable(identifier, false))
        register(path.refresh())
      case (_, null) =>
        path.commit(null, metadata)
        register(path.refresh())
      case _ if operations.isEmpty =>
        register(base)
        throw new CommitFailedException("%s is in the catalog again, and was not", identifier)
      case _ => inCatalog(operations.get.commit(base, metadata))
    }
    changed = true
    seen = None
  }

  override def misleading: Option[String] = found() match {
    case Found.Absent =>
      Option(path.current()).flatMap(CatalogPlace.of).filter(_ != place).map { other =>
        s"It is published in the Iceberg catalog ${other.catalog} as ${other.table}."
      }
    case _ => None
  }

  override def repair(): Unit = ()

  override def io(): FileIO = path.io()

  override def spelled(location: Path): Path = path.spelled(location)

  override def metadataFileLocation(fileName: String): String = path.metadataFileLocation(fileName)

  override def locationProvider(): LocationProvider = path.locationProvider()
}
