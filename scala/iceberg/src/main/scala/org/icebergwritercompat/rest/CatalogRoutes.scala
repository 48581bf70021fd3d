package org.icebergwritercompat.rest

import org.apache.iceberg.catalog.{Catalog, Namespace, TableIdentifier}
import org.apache.iceberg.exceptions.{
  AlreadyExistsException,
  CommitFailedException,
  NoSuchNamespaceException,
  NoSuchTableException,
  ValidationException
}
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode
import org.apache.iceberg.rest.requests._
import org.apache.iceberg.rest.responses._
import org.apache.iceberg.rest.{CatalogHandlers, Endpoint}
import org.apache.iceberg.UpdateRequirement.AssertTableDoesNotExist
import org.apache.iceberg.{
  BaseTable,
  MetadataUpdate,
  Schema,
  Snapshot,
  Table,
  TableMetadata,
  TableOperations
}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.time.{Duration, Instant}
import java.util.{Collections, LinkedHashMap => JLinkedHashMap, List => JList, Locale, Map => JMap}
import scala.jdk.CollectionConverters._

/**
 * The endpoints of an Iceberg REST catalog. Iceberg's own `CatalogHandlers` does the protocol.
 *
 * @param version
 *   of this project
 */
private[rest] final class CatalogRoutes(served: Served, version: String) {

  import CatalogRoutes._

  private def catalog = served.catalog

  /** What a request asks for; fails if its body is malformed. */
  def prepared(request: RestRequest): Prepared = {
    val found = routes.iterator.flatMap(route => route.matching(request).map(route -> _))
    found.nextOption() match {
      case Some((route, names)) => once(request, route.prepare(request, names))
      case None                 =>
        Prepared(None, line = false, () => nowhere(request))
    }
  }

  // What was done for the key of a request is not done again. Commits are found in Delta's log.
  private def once(request: RestRequest, asked: Prepared): Prepared =
    keyOf(request) match {
      case None        => asked
      case Some(known) =>
        def run(): RestAnswer = Option(answered.get(known)) match {
          case Some(before) => asked.again.fold(before)(_())
          case None         =>
            val answer = asked.run()
            // What is committed to a table is found there.
            val isFound = asked.table.isDefined && asked.again.isEmpty
            if (answer.status == 204 || answer.status == 200 && !isFound)
              answered.put(known, if (asked.again.isEmpty) answer else answer.copy(body = None))
            answer
        }
        asked.copy(run = () => run(), key = Some(known))
    }

  private def keyOf(request: RestRequest): Option[RequestKey] =
    request.header("Idempotency-Key").filter(_ => Changing(request.method)).map { key =>
      if (!key.matches("[\\w-]{1,100}"))
        throw new IllegalArgumentException("The Idempotency-Key is no UUID")
      RequestKey(key, content(request))
    }

  // The same request may come with the fields of its body in another order.
  private def content(request: RestRequest): Long = {
    val asked = Seq(request.method, request.path.mkString("/")) ++
      request.query.toSeq.sorted.map { case (key, value) => s"$key=$value" }
    val text = (asked :+ RestBodies.inOrder(request.body)).mkString("\n")
    val digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))
    math.max(ByteBuffer.wrap(digest).getLong >>> 1, 2L)
  }

  // Of requests that leave nothing in Delta's log, such as a drop.
  private val answered: JMap[RequestKey, RestAnswer] = Collections.synchronizedMap(
    new JLinkedHashMap[RequestKey, RestAnswer] {
      override def removeEldestEntry(eldest: JMap.Entry[RequestKey, RestAnswer]): Boolean =
        size > MostAnswered
    }
  )

  private def nowhere(request: RestRequest): RestAnswer =
    if (request.path.headOption.contains("v1"))
      RestAnswer.error(
        406,
        "UnsupportedOperationException",
        s"This catalog has no endpoint ${request.method} ${request.path.mkString("/", "/", "")}"
      )
    else RestAnswer.error(404, "NotFoundException", "An Iceberg REST catalog is below /v1")

  private final class Route(endpoint: Endpoint)(
      val prepare: (RestRequest, Map[String, String]) => Prepared
  ) {
    val offered: Endpoint = endpoint

    // Without a prefix: this catalog has none.
    private val pattern =
      endpoint.path.split('/').filter(_.nonEmpty).filterNot(_ == "{prefix}").toSeq

    def matching(request: RestRequest): Option[Map[String, String]] = {
      val fits = request.method == endpoint.httpMethod && request.path.size == pattern.size &&
        pattern.zip(request.path).forall { case (wanted, part) =>
          wanted == part || wanted.startsWith("{") && part.nonEmpty
        }
      Option.when(fits) {
        pattern
          .zip(request.path)
          .collect {
            case (wanted, part) if wanted.startsWith("{") => wanted.drop(1).dropRight(1) -> part
          }
          .toMap
      }
    }
  }

  /** A request that changes no table. */
  private def now(table: Option[TableIdentifier] = None)(run: => RestAnswer): Prepared =
    Prepared(table, line = false, () => run)

  /** A request that changes a table. */
  private def inLine(table: TableIdentifier)(run: => RestAnswer): Prepared =
    Prepared(Some(table), line = true, () => run)

  private def namespace(names: Map[String, String]): Namespace =
    Namespace.of(names("namespace").split(Separator, -1): _*)

  private def table(names: Map[String, String]): TableIdentifier =
    TableIdentifier.of(namespace(names), names("table"))

  private val routes: Seq[Route] = Seq(
    new Route(Endpoint.V1_LIST_NAMESPACES)((request, _) =>
      now() {
        val parent = request.query
          .get("parent")
          .filter(_.nonEmpty)
          .fold(Namespace.empty)(p => Namespace.of(p.split(Separator, -1): _*))
        ok(RestBodies.json(page(request) match {
          case Some((token, size)) => CatalogHandlers.listNamespaces(catalog, parent, token, size)
          case None                => CatalogHandlers.listNamespaces(catalog, parent)
        }))
      }
    ),
    new Route(Endpoint.V1_CREATE_NAMESPACE)((request, _) => {
      val wanted = RestBodies.createNamespace(request.body)
      now() {
        nameable(wanted.namespace.levels.toSeq: _*)
        Option(wanted.properties.get("location")).foreach(inside(Namespace.empty, _))
        ok(RestBodies.json(CatalogHandlers.createNamespace(catalog, wanted)))
      }
    }),
    new Route(Endpoint.V1_LOAD_NAMESPACE)((_, names) =>
      now()(ok(RestBodies.json(CatalogHandlers.loadNamespace(catalog, namespace(names)))))
    ),
    new Route(Endpoint.V1_NAMESPACE_EXISTS)((_, names) =>
      now()(done(CatalogHandlers.namespaceExists(catalog, namespace(names))))
    ),
    new Route(Endpoint.V1_UPDATE_NAMESPACE)((request, names) => {
      val wanted = RestBodies.updateNamespace(request.body)
      now() {
        val answer = CatalogHandlers.updateNamespaceProperties(catalog, namespace(names), wanted)
        ok(RestBodies.json(answer))
      }
    }),
    new Route(Endpoint.V1_DELETE_NAMESPACE)((_, names) =>
      now()(done(CatalogHandlers.dropNamespace(catalog, namespace(names))))
    ),
    new Route(Endpoint.V1_LIST_TABLES)((request, names) =>
      now() {
        ok(RestBodies.json(page(request) match {
          case Some((token, size)) =>
            CatalogHandlers.listTables(catalog, namespace(names), token, size)
          case None => CatalogHandlers.listTables(catalog, namespace(names))
        }))
      }
    ),
    new Route(Endpoint.V1_CREATE_TABLE)((request, names) => {
      val wanted = RestBodies.createTable(request.body)
      val made = TableIdentifier.of(namespace(names), wanted.name)
      inLine(made)(create(made, wanted))
    }),
    new Route(Endpoint.V1_LOAD_TABLE)((request, names) =>
      now(Some(table(names)))(load(request, table(names)))
    ),
    new Route(Endpoint.V1_TABLE_EXISTS)((_, names) =>
      now(Some(table(names)))(done(CatalogHandlers.tableExists(catalog, table(names))))
    ),
    new Route(Endpoint.V1_UPDATE_TABLE)((request, names) => {
      val wanted = RestBodies.updateTable(request.body)
      inLine(table(names))(answer(update(table(names), wanted, keyOf(request))))
    }),
    new Route(Endpoint.V1_DELETE_TABLE)((request, names) =>
      inLine(table(names)) {
        if (request.query.get("purgeRequested").exists(_.toBoolean))
          done(CatalogHandlers.purgeTable(catalog, table(names)))
        else done(CatalogHandlers.dropTable(catalog, table(names)))
      }
    ),
    new Route(Endpoint.V1_RENAME_TABLE)((request, _) => {
      val wanted = RestBodies.renameTable(request.body)
      inLine(wanted.source) {
        existing(wanted.destination.namespace)
        nameable(wanted.destination.name)
        done(CatalogHandlers.renameTable(catalog, wanted))
      }
    }),
    new Route(Endpoint.V1_REGISTER_TABLE)((request, names) => {
      val wanted = RestBodies.registerTable(request.body)
      val made = TableIdentifier.of(namespace(names), wanted.name)
      inLine(made)(register(made, wanted)).copy(again = Some(() => load(request, made)))
    }),
    new Route(Endpoint.V1_COMMIT_TRANSACTION)((request, _) => {
      val wanted = RestBodies.transaction(request.body)
      wanted.tableChanges.asScala.toSeq match {
        case Seq(change) if change.identifier != null =>
          inLine(change.identifier) {
            answer(update(change.identifier, change, keyOf(request)))
              .copy(status = 204, body = None)
          }
        case Seq(_) => throw new IllegalArgumentException("The changed table is not named")
        case all    =>
          throw new IllegalArgumentException(
            s"A transaction over ${all.size} tables cannot be one commit of Delta, whose log is one " +
              "table's. Commit each table by itself"
          )
      }
    }),
    new Route(Endpoint.V1_REPORT_METRICS)((request, names) => {
      RestBodies.anything(request.body)
      now(Some(table(names)))(RestAnswer.Done)
    }),
    new Route(Endpoint.create("GET", "/v1/config"))((_, _) => now()(ok(config))),
    new Route(Endpoint.create("GET", "/health"))((_, _) => now()(health))
  )

  // What is not below {prefix} is known to all clients. Keys of requests are not asked for: each is
  // an entry in the state of the Delta table for ever, and snapshots are known by their ids anyway.
  private lazy val config: String = {
    val endpoints = routes.map(_.offered).filter(_.path.contains("{prefix}"))
    ConfigResponseParser.toJson(ConfigResponse.builder().withEndpoints(endpoints.asJava).build())
  }

  private def health: RestAnswer =
    if (served.isAlive) ok(s"""{"status":"ok","version":"$version"}""")
    else RestAnswer.error(503, "ServiceUnavailableException", "The Spark session has stopped")

  private def done(run: => Unit): RestAnswer = {
    run
    RestAnswer.Done
  }

  private def ok(body: String): RestAnswer = RestAnswer(200, Some(body))

  /** The page that is asked for, if one is. */
  private def page(request: RestRequest): Option[(String, String)] =
    request.query.get("pageSize").map { size =>
      val token = request.query.getOrElse("pageToken", "")
      def whole(text: String, least: Int) = text.toIntOption.exists(_ >= least)
      if (!whole(size, 1) || token.nonEmpty && !whole(token, 0))
        throw new IllegalArgumentException(
          s"There is no page with pageSize '$size' and pageToken '$token'"
        )
      (token, size)
    }

  private def existing(namespace: Namespace): Unit =
    if (!catalog.namespaceExists(namespace))
      throw new NoSuchNamespaceException("Namespace does not exist: %s", namespace)

  private def nameable(names: String*): Unit =
    names
      .flatMap(served.wrongName)
      .headOption
      .foreach(why => throw new IllegalArgumentException(why))

  private def inside(
      namespace: Namespace,
      location: String,
      instead: String = "Leave it out, or name one below "
  ): Unit = {
    val folders = served.folders(namespace)
    if (!new Places(folders).has(location))
      throw new IllegalArgumentException(
        s"The location $location is not in the warehouse. $instead${folders.mkString(" or ")}"
      )
  }

  private def create(made: TableIdentifier, wanted: CreateTableRequest): RestAnswer = {
    existing(made.namespace)
    nameable(made.name)
    Option(wanted.location).foreach(inside(made.namespace, _))
    if (wanted.stageCreate) {
      // The answer for a given location is made without the catalog, which would look at the rest.
      catalog
        .buildTable(made, wanted.schema)
        .withPartitionSpec(wanted.spec)
        .withSortOrder(wanted.writeOrder)
        .withProperties(wanted.properties)
        .createTransaction()
      val staged = CatalogHandlers.stageTableCreate(catalog, made.namespace, wanted)
      // Some clients make none on a local disk.
      served.makeFolders(staged.tableMetadata.location)
      ok(LoadTableResponseParser.toJson(staged))
    } else answer(CatalogHandlers.createTable(catalog, made.namespace, wanted))
  }

  private def register(made: TableIdentifier, wanted: RegisterTableRequest): RestAnswer = {
    existing(made.namespace)
    nameable(made.name)
    inside(
      made.namespace,
      wanted.metadataLocation,
      "The Delta table gets its name by CREATE TABLE … USING delta LOCATION in Spark; metadata that is " +
        "registered is below "
    )
    val registered = CatalogHandlers.registerTable(catalog, made.namespace, wanted)
    served.makeFolders(registered.tableMetadata.location)
    answer(registered)
  }

  private def load(request: RestRequest, wanted: TableIdentifier): RestAnswer = {
    val mode = request.query.get("snapshots").fold(SnapshotMode.ALL) { text =>
      SnapshotMode.valueOf(text.toUpperCase(Locale.ROOT))
    }
    val response = CatalogHandlers.loadTable(new Loaded(existing(wanted)), wanted, mode)
    val loaded = answer(response, mode)
    if (request.header("If-None-Match").exists(loaded.headers.get("ETag").contains))
      loaded.copy(status = 304, body = None)
    else loaded
  }

  /** The table, or why there is none. */
  private def existing(wanted: TableIdentifier): Table =
    try catalog.loadTable(wanted)
    catch {
      case e: NoSuchTableException =>
        throw served.whyNone(wanted).fold(e)(why => new NoSuchTableException("%s", why))
    }

  private def there(wanted: TableIdentifier): Option[Table] =
    try Some(existing(wanted))
    catch { case _: NoSuchTableException => None }

  // A client that got no answer asks again, and is not to be told that somebody was faster.
  private def update(
      wanted: TableIdentifier,
      change: UpdateTableRequest,
      key: => Option[RequestKey]
  ): LoadTableResponse = {
    def isDone(table: Table) =
      isRepeated(change, metadata(table)) || key.exists(served.isCommitted(wanted, _))
    if (change.requirements.asScala.exists(_.isInstanceOf[AssertTableDoesNotExist])) {
      existing(wanted.namespace)
      nameable(wanted.name)
      there(wanted) match {
        case Some(table) if isDone(table) => response(metadata(table))
        // In the words of Iceberg's library, which clients may look for.
        case Some(_) =>
          throw new AlreadyExistsException("Requirement failed: table already exists: %s", wanted)
        case None =>
          Progress.current.stage = Progress.Applying
          val defined = definition(change)
          inside(wanted.namespace, defined.location)
          CatalogHandlers.updateTable(new Defined(catalog, defined), wanted, change)
      }
    } else {
      val table = existing(wanted)
      if (isDone(table)) response(metadata(table))
      else {
        Progress.current.stage = Progress.Applying
        try CatalogHandlers.updateTable(new Loaded(table), wanted, change)
        catch {
          case overtaken: CommitFailedException =>
            if (goneOn(table, wanted, change)) response(metadata(table)) else throw overtaken
          case refused @ (_: IllegalArgumentException | _: ValidationException)
              if Progress.current.stage == Progress.Applying =>
            throw offTime(change, refused)
        }
      }
    }
  }

  // Of a snapshot of the wrong time Iceberg's library says that its log is not sorted. A refusal of
  // this project says itself what is wrong.
  private def offTime(change: UpdateTableRequest, refused: Throwable): Throwable = {
    val now = Instant.now()
    val isOwn = refused.getCause.isInstanceOf[IcebergWriterCompatException]
    snapshots(change)
      .filterNot(_ => isOwn)
      .map(snapshot => Instant.ofEpochMilli(snapshot.timestampMillis))
      .find(Duration.between(_, now).abs.compareTo(MostOffTime) > 0)
      .fold(refused) { time =>
        new ValidationException(
          refused,
          "A snapshot is of %s, and the clock of the server says %s. They may differ by a minute, so " +
            "nothing was committed. Set the clock that is wrong; if the commit has taken so long, make " +
            "it again. What Iceberg's library says: %s",
          time,
          now,
          refused.getMessage
        )
      }
  }

  /** Whether a change that was made on an older state of the table was committed on the new one. */
  private def goneOn(
      table: Table,
      wanted: TableIdentifier,
      change: UpdateTableRequest
  ): Boolean = operations(table) match {
    case watched: WatchedOperations =>
      OvertakenAppend.of(change).exists(_.commit(watched, wanted.toString))
    case _ => false
  }

  /** What a request makes of nothing. */
  private def definition(change: UpdateTableRequest): TableMetadata = {
    val updates = change.updates.asScala
    val builder = updates
      .collectFirst { case upgrade: MetadataUpdate.UpgradeFormatVersion => upgrade.formatVersion }
      .fold(TableMetadata.buildFromEmpty())(version => TableMetadata.buildFromEmpty(version))
    updates.foreach(_.applyTo(builder))
    val made = builder.build()
    if (made.location == null) throw new IllegalArgumentException("The new table has no location")
    made
  }

  private def isRepeated(request: UpdateTableRequest, there: TableMetadata): Boolean = {
    val ids = snapshots(request).map(_.snapshotId)
    val uuids = request.updates.asScala.toSeq.collect { case assigned: MetadataUpdate.AssignUUID =>
      assigned.uuid
    }
    // Of a table that is there, the UUID says nothing about what the request changes.
    val isOfTable = request.requirements.asScala.exists(_.isInstanceOf[AssertTableDoesNotExist])
    (ids.nonEmpty || uuids.nonEmpty && isOfTable) && ids.forall(there.snapshot(_) != null) &&
    uuids.forall(_ == there.uuid)
  }

  private def snapshots(request: UpdateTableRequest): Seq[Snapshot] =
    request.updates.asScala.toSeq.collect { case added: MetadataUpdate.AddSnapshot =>
      added.snapshot
    }

  private def metadata(table: Table): TableMetadata = operations(table).current

  private def operations(table: Table): TableOperations = table match {
    case base: BaseTable => base.operations
    case other           => throw new NoSuchTableException("Table does not exist: %s", other.name)
  }

  private def response(metadata: TableMetadata): LoadTableResponse =
    LoadTableResponse.builder().withTableMetadata(metadata).build()

  private def answer(
      response: LoadTableResponse,
      mode: SnapshotMode = SnapshotMode.ALL
  ): RestAnswer = {
    val metadata = response.tableMetadata
    RestAnswer(
      200,
      Some(LoadTableResponseParser.toJson(response)),
      Map("ETag" -> tag(metadata, mode)),
      version = Option(metadata.property(PublishedMetadata.DeltaVersionProperty, null))
    )
  }

  // A table that is made anew has metadata files of the same names.
  private def tag(metadata: TableMetadata, mode: SnapshotMode): String = {
    val text = Seq(
      metadata.metadataFileLocation,
      metadata.uuid,
      metadata.lastUpdatedMillis.toString,
      metadata.property(PublishedMetadata.DeltaVersionProperty, ""),
      mode.name
    ).mkString("\n")
    val digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))
    digest.take(12).map(byte => f"$byte%02x").mkString("\"", "", "\"")
  }
}

private[rest] object CatalogRoutes {

  // Between the levels of a namespace in a path.
  private val Separator = "\u001f"

  private val Changing = Set("POST", "DELETE")

  private val MostAnswered = 10000

  // What Iceberg's library allows.
  private val MostOffTime = Duration.ofMinutes(1)

  /** One table that is loaded already: it is not read twice for a request. */
  private final class Loaded(table: Table) extends OneTable {

    override def loadTable(wanted: TableIdentifier): Table = table
  }

  /**
   * A table that is to be made, of which Iceberg's handler would else say that it has no columns.
   */
  private final class Defined(catalog: Catalog, metadata: TableMetadata) extends OneTable {

    override def loadTable(wanted: TableIdentifier): Table = catalog.loadTable(wanted)

    override def buildTable(wanted: TableIdentifier, empty: Schema): Catalog.TableBuilder =
      catalog
        .buildTable(wanted, metadata.schema)
        .withPartitionSpec(metadata.spec)
        .withSortOrder(metadata.sortOrder)
        .withLocation(metadata.location)
        .withProperties(metadata.properties)
  }

  private abstract class OneTable extends Catalog {

    override def listTables(namespace: Namespace): JList[TableIdentifier] = JList.of()

    override def dropTable(wanted: TableIdentifier, purge: Boolean): Boolean = false

    override def renameTable(from: TableIdentifier, to: TableIdentifier): Unit =
      throw new UnsupportedOperationException("renameTable")
  }
}
