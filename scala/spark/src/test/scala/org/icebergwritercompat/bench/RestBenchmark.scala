package org.icebergwritercompat.bench

import org.apache.iceberg.TableOperations
import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}
import org.apache.iceberg.jdbc.JdbcCatalog
import org.apache.iceberg.rest.RESTCatalog
import org.apache.spark.sql.SparkSession
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.rest.{
  RequestKey,
  RestServer,
  RestSettings,
  Served,
  WatchedOperations
}

import java.net.URI
import java.net.http.HttpResponse.BodyHandlers
import java.net.http.{HttpClient, HttpRequest}
import java.nio.file.Path

/** Times what a client of the REST server waits for, against the same server over JDBC. */
object RestBenchmark {

  private val kinds = Seq("served", "own_served")

  def run(settings: Settings): Section = ScratchFolder.use { folder =>
    val sizes = Seq(10, 1000)
    val tables = for { files <- sizes; kind <- kinds } yield kind -> files
    val worker =
      new ChildJvm("org.icebergwritercompat.bench.WriteBackWorker", folder.resolve("a").toString)
    val taken =
      try {
        worker.answer()
        tables.foreach { case (kind, files) => worker.ask(s"table $kind $files") }
        val rounds = (0 until (if (settings.quick) 16 else 60)).map { i =>
          (if (i % 2 == 0) tables else tables.reverse).map { case (kind, files) =>
            (kind, files) ->
              (worker.ask(s"append $kind $files") ++ worker.ask(s"load $kind $files"))
          }.toMap
        }
        rounds.drop(rounds.size / 4)
      } finally worker.close()
    if (settings.verbose) Console.err.println(taken)
    def row(what: String, files: Int, at: Int, limit: Option[Double]) = {
      def samples(kind: String) = taken.map(_(kind -> files)(at)).toVector
      Row.ratio(
        s"$what, $files files",
        samples("served"),
        samples("own_served"),
        limit.map(most => Goal.atMost(s"$most", most))
      )
    }
    Section(
      "A client of the REST server",
      s"One guarded session; the tables of the section above. Both are offered by `org.icebergwritercompat.rest`, the " +
        "baseline over Iceberg's own JDBC catalog on SQLite; the servers and their client are in one process. A commit is " +
        "`newAppend().appendFile(file).commit()` of Iceberg's `RESTCatalog`, so the client's part is in it. A load is a plain " +
        "`GET` of a table that has not changed since the load before, the median of " + s"${ServedCatalog.loads}; then the " +
        "same with `If-None-Match`, which is answered by 304. The tables take turns.",
      sizes.flatMap { files =>
        Seq(
          row("a commit", files, 0, Some(2.0)),
          row("a commit, CPU time of the process", files, 1, None),
          row("a load", files, 2, Some(1.2)),
          row("a load, not modified", files, 3, None)
        )
      }
    )
  }
}

/** A catalog behind a server, and a client of it. */
private[bench] final class ServedCatalog(server: RestServer, spark: SparkSession)
    extends AutoCloseable {

  /** Iceberg's own client. */
  val catalog: RESTCatalog = {
    val made = new RESTCatalog
    made.setConf(spark.sessionState.newHadoopConf())
    made.initialize("served", java.util.Map.of("uri", server.uri))
    made
  }

  private val client = HttpClient.newHttpClient()

  /** The milliseconds of a load, and of one of what the client has already. */
  def load(table: TableIdentifier): Seq[Double] = {
    val path = s"${server.uri}/v1/namespaces/${table.namespace}/tables/${table.name}"
    val plain = HttpRequest.newBuilder(URI.create(path)).build()
    val tag = sent(plain, 200)._2
    val known = HttpRequest.newBuilder(URI.create(path)).header("If-None-Match", tag).build()
    Seq(plain -> 200, known -> 304).map { case (request, status) =>
      Estimate.median(Seq.fill(ServedCatalog.loads)(sent(request, status)._1))
    }
  }

  private def sent(request: HttpRequest, status: Int): (Double, String) = {
    val begin = System.nanoTime
    val answer = client.send(request, BodyHandlers.ofByteArray())
    val took = (System.nanoTime - begin) / 1e6
    if (answer.statusCode != status) sys.error(s"${answer.statusCode} for $request")
    (took, answer.headers.firstValue("ETag").orElse(""))
  }

  override def close(): Unit = {
    catalog.close()
    server.close()
  }
}

private[bench] object ServedCatalog {

  val loads = 50

  /** The Delta tables of a session, as users serve them. */
  def of(spark: SparkSession): ServedCatalog = {
    val none = java.util.Map.of[String, String]()
    val server = IcebergWriterCompat
      .serve(spark, "127.0.0.1", 0, null, null, null, none, "refuse", prints = false)
    new ServedCatalog(server, spark)
  }

  /** Other tables, by the same server. */
  def of(served: Served, spark: SparkSession): ServedCatalog =
    new ServedCatalog(
      RestServer.start(served, RestSettings("127.0.0.1", 0, None, None, _ => ())),
      spark
    )
}

/** The tables of Iceberg's JDBC catalog. */
private[bench] final class ServedJdbc(
    initialized: JdbcCatalog => JdbcCatalog,
    warehouse: Path
) extends Served {

  override val catalog: Catalog with SupportsNamespaces = initialized(new JdbcCatalog {
    override protected def newTableOps(table: TableIdentifier): TableOperations =
      new WatchedOperations(
        super.newTableOps(table),
        table.toString,
        folders(table.namespace)
      )
  })

  override def within[T](key: Option[RequestKey])(body: => T): T = body

  override def isCommitted(table: TableIdentifier, key: RequestKey): Boolean = false

  override def isAlive: Boolean = true

  override def whyNone(table: TableIdentifier): Option[String] = None

  override def whyUnreadable(table: TableIdentifier, failure: Throwable): Option[String] = None

  override def folders(namespace: Namespace): Seq[String] = Seq(warehouse.toUri.toString)

  override def makeFolders(location: String): Unit = ()

  override def wrongName(name: String): Option[String] = None
}
