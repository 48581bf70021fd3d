package org.icebergwritercompat.testing

import com.fasterxml.jackson.annotation.{JsonAutoDetect, PropertyAccessor}
import com.fasterxml.jackson.databind.{
  DeserializationFeature,
  ObjectMapper,
  PropertyNamingStrategies
}
import com.sun.net.httpserver.{HttpExchange, HttpServer}
import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}
import org.apache.iceberg.exceptions._
import org.apache.iceberg.rest.RESTCatalogProperties.SnapshotMode
import org.apache.iceberg.rest.requests._
import org.apache.iceberg.rest.responses.{ConfigResponse, ErrorResponse, LoadTableResponse}
import org.apache.iceberg.rest.{CatalogHandlers, RESTSerializers}

import java.net.InetSocketAddress
import java.util.concurrent.atomic.AtomicReference
import java.util.concurrent.{ExecutorService, Executors}
import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

/**
 * An Iceberg REST catalog over HTTP: the protocol's server side is Iceberg's own, which here only
 * gets a socket.
 *
 * @param defaults
 *   what it tells its clients to do, if they have not decided otherwise
 * @param ofTables
 *   what it tells them with each table, and overrides their own settings
 */
final class RestCatalogServer(
    catalog: Catalog with SupportsNamespaces,
    defaults: Map[String, String] = Map.empty,
    ofTables: Map[String, String] = Map.empty
) extends AutoCloseable {

  private val mapper = new ObjectMapper
  mapper.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY)
  mapper.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)
  mapper.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy)
  RESTSerializers.registerAll(mapper)

  private val threads: ExecutorService = Executors.newFixedThreadPool(4)
  private val server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0)
  server.setExecutor(threads)
  server.createContext("/", exchange => Using.resource(exchange)(answer))
  server.start()

  /** Where clients find it. */
  val uri: String = s"http://127.0.0.1:${server.getAddress.getPort}"

  private val awaited = new AtomicReference[Option[() => Unit]](None)

  /** Does something once, after the next commit to a table and before its answer. */
  def afterCommit(action: => Unit): Unit = awaited.set(Some(() => action))

  override def close(): Unit = {
    server.stop(0)
    threads.shutdown()
  }

  private def answer(exchange: HttpExchange): Unit = {
    val (code, body) =
      try
        Option(handle(exchange)).fold(204 -> Array.empty[Byte])(200 -> mapper.writeValueAsBytes(_))
      catch {
        case NonFatal(e) =>
          val code = e match {
            case _: NoSuchTableException | _: NoSuchNamespaceException => 404
            case _: AlreadyExistsException | _: CommitFailedException  => 409
            case _: ValidationException | _: IllegalArgumentException  => 400
            case _                                                     => 500
          }
          val error = ErrorResponse
            .builder()
            .responseCode(code)
            .withType(e.getClass.getSimpleName)
            .withMessage(String.valueOf(e.getMessage))
            .build()
          code -> mapper.writeValueAsBytes(error)
      }
    val bare = exchange.getRequestMethod == "HEAD" || body.isEmpty
    exchange.getResponseHeaders.add("Content-Type", "application/json")
    exchange.sendResponseHeaders(code, if (bare) -1 else body.length.toLong)
    if (!bare) exchange.getResponseBody.write(body)
  }

  private def configured(found: LoadTableResponse): LoadTableResponse =
    LoadTableResponse
      .builder()
      .withTableMetadata(found.tableMetadata)
      .addAllConfig(ofTables.asJava)
      .build()

  private def handle(exchange: HttpExchange): AnyRef = {
    def read[T](kind: Class[T]): T = mapper.readValue(exchange.getRequestBody, kind)
    val path = exchange.getRequestURI.getPath.stripPrefix("/v1/").split('/').toSeq
    (exchange.getRequestMethod, path) match {
      case ("GET", Seq("config")) => ConfigResponse.builder().withDefaults(defaults.asJava).build()
      case ("POST", Seq("namespaces")) =>
        CatalogHandlers.createNamespace(catalog, read(classOf[CreateNamespaceRequest]))
      case ("GET" | "HEAD", Seq("namespaces", namespace)) =>
        CatalogHandlers.loadNamespace(catalog, Namespace.of(namespace))
      case ("POST", Seq("namespaces", namespace, "register")) =>
        configured(
          CatalogHandlers.registerTable(
            catalog,
            Namespace.of(namespace),
            read(classOf[RegisterTableRequest])
          )
        )
      case ("GET", Seq("namespaces", namespace, "tables")) =>
        CatalogHandlers.listTables(catalog, Namespace.of(namespace))
      case ("GET" | "HEAD", Seq("namespaces", namespace, "tables", name)) =>
        configured(
          CatalogHandlers.loadTable(catalog, TableIdentifier.of(namespace, name), SnapshotMode.ALL)
        )
      case ("POST", Seq("namespaces", namespace, "tables", name)) =>
        val answer = CatalogHandlers.updateTable(
          catalog,
          TableIdentifier.of(namespace, name),
          read(classOf[UpdateTableRequest])
        )
        awaited.getAndSet(None).foreach(_())
        answer
      case ("DELETE", Seq("namespaces", namespace, "tables", name)) =>
        CatalogHandlers.dropTable(catalog, TableIdentifier.of(namespace, name))
        null
      case (_, Seq(_, _, "tables", _, "metrics")) => null
      case _ => throw new IllegalArgumentException(s"no such endpoint: $path")
    }
  }
}
