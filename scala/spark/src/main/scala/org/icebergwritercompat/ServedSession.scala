package org.icebergwritercompat

import org.apache.hadoop.fs.Path
import org.apache.iceberg.TableOperations
import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.delta.writercompat.read.{MalformedLog, Sessions, TableStates}
import org.apache.spark.sql.delta.writercompat.writeback.{
  ClientRequest,
  RecentTables,
  SessionTables
}
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.RowLevelDeletes
import org.icebergwritercompat.rest.{RequestKey, Served, WatchedOperations}

import scala.util.Try

/** The Delta tables of a session, for a REST server. */
private final class ServedSession(spark: SparkSession, rowDeletes: RowLevelDeletes) extends Served {

  // A table's state has as many partitions as this, and a small one is read again at each commit.
  private val session =
    Sessions.withDefaults(spark, Map("spark.databricks.delta.snapshotPartitions" -> "2"))

  private val tables = new SessionTables

  private val watched = new WatchedCatalog(folders)

  watched.initialize("delta", java.util.Map.of(RowLevelDeletes.Property, rowDeletes.name))

  override def catalog: Catalog with SupportsNamespaces = watched

  override def within[T](key: Option[RequestKey])(body: => T): T =
    Sessions.active(session)(key.fold(body)(k => ClientRequest.during(request(k))(body)))

  override def isCommitted(table: TableIdentifier, key: RequestKey): Boolean =
    watched.isCommitted(table, request(key))

  private def request(key: RequestKey) = ClientRequest(key.key, key.content)

  override def isAlive: Boolean = !spark.sparkContext.isStopped

  override def whyNone(table: TableIdentifier): Option[String] =
    Option.when(table.namespace.levels.length == 1)(table).flatMap(tables.entry).map { entry =>
      val log = tables.log(entry)
      if (log.isEmpty) s"$table is not a Delta table"
      else if (!log.exists(_.tableExists)) s"The folder of $table has no Delta table any more"
      else
        s"$table is a Delta table without ${Contracts.default.feature}. To offer it, run " +
          s"ALTER TABLE $table SET TBLPROPERTIES ('${Contracts.default.property}' = 'true')"
    }

  override def whyUnreadable(table: TableIdentifier, failure: Throwable): Option[String] =
    Sessions.active(session) {
      for {
        entry <- Option.when(table.namespace.levels.length == 1)(table).flatMap(tables.entry)
        name = TableStates.nameOf(Identifier.of(table.namespace.levels, table.name))
        why <- MalformedLog.textOf(session, name, failure)
      } yield {
        // The names of files are for the client, and where they are is not.
        val folder = new Path(entry.location)
        Seq(folder.toString, folder.toUri.getPath, "file:", "file://").foldLeft(why) {
          (text, place) => text.replace(s"$place/", "")
        }
      }
    }

  override def folders(namespace: Namespace): Seq[String] = {
    val database =
      Option.when(tables.databaseExists(namespace))(tables.database(namespace)("location"))
    (warehouse +: database.toSeq).distinct
  }

  // Spark does not change it in a session.
  private lazy val warehouse =
    qualified(new Path(session.sessionState.conf.warehousePath)).toString

  override def makeFolders(location: String): Unit = {
    val folder = qualified(new Path(location))
    val fs = folder.getFileSystem(session.sessionState.newHadoopConf())
    Seq("data", "metadata").foreach(child => fs.mkdirs(new Path(folder, child)))
  }

  override def wrongName(name: String): Option[String] = Option.unless(name.matches("\\w+"))(
    s"The name '$name' has other characters than a to z, digits and _, and the catalog of Spark " +
      "takes no others"
  )

  private def qualified(path: Path): Path =
    path.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(path)

  /** Gives a folder with a Delta table a name, if the session's catalog has none for it. */
  def offer(name: String, folder: String): Unit = within(None) {
    def refused(why: String, cause: Throwable = null) =
      IcebergWriterCompatException.serverNotStarted(
        "FOLDER",
        Map("folder" -> folder, "table" -> name, "cause" -> why),
        cause
      )
    val table = name.split('.') match {
      case Array(database, table) if Seq(database, table).forall(wrongName(_).isEmpty) =>
        TableIdentifier.of(database, table)
      case _ => throw refused("the name has to be NAMESPACE.TABLE, of letters, digits and _")
    }
    val place = Try(qualified(new Path(folder))).fold(e => throw refused(e.getMessage, e), identity)
    if (tables.log(place).update().version < 0) throw refused("it has no Delta table")
    if (!tables.databaseExists(table.namespace)) tables.createDatabase(table.namespace, Map.empty)
    if (!tables.exists(table)) {
      tables.register(table, place)
      ()
    } else {
      val known = tables.entry(table).map(entry => qualified(new Path(entry.location)))
      if (!known.contains(place))
        throw refused(s"the catalog has this name for ${known.fold("a view")(_.toString)}")
    }
  }
}

/** The tables, with operations that a client elsewhere may use. */
private final class WatchedCatalog(folders: Namespace => Seq[String]) extends DeltaIcebergCatalog {

  // Clients load a table for each statement, and between commits it is the same.
  override private[icebergwritercompat] val recent: Option[RecentTables] = Some(new RecentTables)

  override protected def newTableOps(table: TableIdentifier): TableOperations =
    new WatchedOperations(super.newTableOps(table), table.toString, folders(table.namespace))
}
