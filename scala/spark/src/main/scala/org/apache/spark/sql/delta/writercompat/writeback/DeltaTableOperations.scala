package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.fs.Path
import org.apache.iceberg.catalog.{TableIdentifier => IcebergIdentifier}
import org.apache.iceberg.exceptions.{
  AlreadyExistsException,
  CommitFailedException,
  CommitStateUnknownException,
  NoSuchTableException,
  ValidationException
}
import org.apache.iceberg.hadoop.HadoopFileIO
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg._
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.actions.{Action, CommitInfo}
import org.apache.spark.sql.delta.util.FileNames
import org.apache.spark.sql.delta.writercompat.publish.SparkPublishing
import org.apache.spark.sql.delta.writercompat.read.{Sessions, TableStates}
import org.apache.spark.sql.delta.{DeltaLog, Snapshot => DeltaSnapshot}
import org.icebergwritercompat.contract.Lifecycle
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.{ClientProperties, PublishedMetadata}
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.iceberg.target.PublishTargets
import org.icebergwritercompat.iceberg.translate.IcebergSchemas
import org.icebergwritercompat.iceberg.writeback.ClientChange
import org.icebergwritercompat.model.WriterCompat

import java.util.concurrent.ConcurrentHashMap
import scala.annotation.tailrec
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try, Using}

/**
 * A Delta table with the feature, as an Iceberg table that can be written.
 *
 * Delta's log is the only truth: a commit becomes a commit of Delta first, which notes the
 * snapshots of the client, and is then published as any other.
 */
final class DeltaTableOperations(tables: SessionTables, table: IcebergIdentifier)
    extends TableOperations {

  import DeltaTableOperations._

  private val name =
    TableStates.nameOf(
      org.apache.spark.sql.connector.catalog.Identifier.of(table.namespace.levels, table.name)
    )

  private lazy val change = new ClientChange(name)

  private lazy val files = new HadoopFileIO(tables.session.sessionState.newHadoopConf())

  @volatile private var seen: Option[Seen] = None

  /**
   * The metadata that was loaded. A commit of Delta in this process is seen without being asked
   * for: a catalog of Spark may keep this for long.
   */
  override def current(): TableMetadata = seen match {
    // A commit of a client asks for it in the threads of Iceberg's pool. Publishing needs these
    // threads itself, so that it would wait for ever.
    case Some(known) if isOfPool(Thread.currentThread)                            => known.metadata
    case Some(known) if known.log.unsafeVolatileSnapshot.version <= known.version => known.metadata
    case _                                                                        => refresh()
  }

  private def isOfPool(thread: Thread): Boolean =
    thread.getName.startsWith("iceberg-worker-pool")

  // The same object as long as nothing has changed: clients compare by identity.
  override def refresh(): TableMetadata = synchronized {
    Sessions.active(tables.session)(find()) match {
      case None if seen.isDefined =>
        throw new NoSuchTableException("Table does not exist any more: %s", table)
      case None                  => null
      case Some((log, entry, _)) =>
        val known = seen.filter { s =>
          (s.log eq log) && s.version == log.unsafeVolatileSnapshot.version
        }
        known.getOrElse(load(log, Some(entry))).metadata
    }
  }

  private def find(): Option[(DeltaLog, CatalogTable, DeltaSnapshot)] = for {
    entry <- tables.entry(table)
    log <- tables.log(entry)
    snapshot = log.update(catalogTableOpt = Some(entry))
    if snapshot.version >= 0 && Contracts.isEnabled(snapshot.metadata.configuration)
  } yield (log, entry, snapshot)

  private def load(log: DeltaLog, entry: Option[CatalogTable]): Seen =
    Sessions.active(tables.session) {
      val result = new SparkPublishing(tables.session, name, log, entry).publish()
      val location = result.metadataLocation
      val now = seen.filter(_.metadata.metadataFileLocation == location) match {
        case Some(same) => same.copy(log = log, version = result.deltaVersion)
        case None       =>
          val published = TableMetadataParser.read(files, location)
          Seen(log, entry, result.deltaVersion, ClientProperties.writable(published))
      }
      seen = Some(now)
      now
    }

  override def commit(base: TableMetadata, updated: TableMetadata): Unit =
    Sessions.active(tables.session) {
      if (base == null) create(updated)
      else if (base ne updated) DeltaTableOperations.locked(base.location)(commitOn(base, updated))
    }

  private def commitOn(base: TableMetadata, updated: TableMetadata): Unit = {
    val known = seen.filter(_.metadata eq base)
    if (known.isEmpty) lost(base, updated)
    else {
      val Seen(log, entry, version, _) = known.get
      PublishTargets.elsewhere(base).foreach { case (catalog, catalogTable) =>
        throw refusal(
          IcebergWriterCompatException.commitRefused(
            "ELSEWHERE",
            name,
            Map("catalog" -> catalog, "catalogTable" -> catalogTable)
          )
        )
      }
      val snapshot = log.update(catalogTableOpt = entry)
      if (snapshot.version != version) lost(base, updated)
      else
        change.proposed(Some(base), updated, Some(definition(snapshot)), files) match {
          case Left(refused)                        => throw refusal(refused)
          case Right(nothing) if isNothing(nothing) => ()
          case Right(proposed)                      =>
            val sink = new SparkDeltaSink(tables.session, name, log, entry)
            sink.commit(proposed, version) match {
              case CommitOutcome.Committed(_) => published(log, entry)
              case CommitOutcome.Repeated     => published(log, entry)
              case CommitOutcome.Overtaken(_) => lost(base, updated)
              case CommitOutcome.Refused(why) => throw refusal(why)
              case CommitOutcome.Unknown(why) => throw new CommitStateUnknownException(why)
            }
        }
    }
  }

  private def isNothing(proposed: ProposedCommit): Boolean =
    proposed.definition.isEmpty && proposed.set.isEmpty && proposed.unset.isEmpty &&
      proposed.added.isEmpty && proposed.removed.isEmpty && proposed.client.isEmpty

  /** Nothing was committed by this call; by an earlier one it may have been. */
  private def lost(base: TableMetadata, updated: TableMetadata): Unit = {
    val now = refresh()
    val ids = ClientChange.newIds(Option(base), updated)
    val isThere = now != null && ids.nonEmpty && ids.forall(now.snapshot(_) != null)
    if (!isThere)
      throw new CommitFailedException(
        s"Table $name has changed: its newest version is ${version(now)}"
      )
  }

  private def version(metadata: TableMetadata): String =
    Option(metadata).fold("none")(_.property(PublishedMetadata.DeltaVersionProperty, "none"))

  // It is committed, and nobody is to think that it is not.
  private def published(log: DeltaLog, entry: Option[CatalogTable]): Unit = {
    @tailrec def attempt(left: Int): Unit = Try(load(log, entry)) match {
      case Success(_)             => ()
      case Failure(_) if left > 0 => attempt(left - 1)
      case Failure(e)             => throw new CommitStateUnknownException(e)
    }
    attempt(retries)
  }

  private def refusal(why: IcebergWriterCompatException): ValidationException =
    new ValidationException(why, "%s", why.getMessage)

  /** Refuses what could not be committed, before a client writes files for it. */
  def check(base: Option[TableMetadata], updated: TableMetadata): Unit =
    change.refusal(base, updated).foreach(why => throw refusal(why))

  private def create(updated: TableMetadata): Unit = {
    val folder = tables.session.sessionState.newHadoopConf() match {
      case conf =>
        val path = new Path(updated.location)
        path.getFileSystem(conf).makeQualified(path)
    }
    DeltaTableOperations.locked(folder.toString) {
      val repeated = Option(refresh()).exists(_.uuid == updated.uuid)
      if (!repeated) {
        if (tables.exists(table))
          throw new AlreadyExistsException("Table already exists: %s", table)
        change.proposed(None, updated, None, files) match {
          case Left(refused)   => throw refusal(refused)
          case Right(proposed) => create(updated, folder, withFeature(proposed))
        }
      }
    }
  }

  private def withFeature(proposed: ProposedCommit): ProposedCommit =
    proposed.copy(set =
      proposed.set ++ Map(
        Contracts.default.property -> "true",
        WriterCompat.TypeWideningEnabled -> "true"
      )
    )

  private def create(updated: TableMetadata, folder: Path, proposed: ProposedCommit): Unit = {
    val log = tables.log(folder)
    val sink = new SparkDeltaSink(tables.session, name, log, None)
    val before = log.update()
    val outcome =
      if (before.version < 0) sink.commit(proposed, -1)
      else if (before.metadata.id == updated.uuid) CommitOutcome.Repeated
      else if (isHalfMade(log, before, updated))
        if (proposed.added.isEmpty) CommitOutcome.Repeated
        else
          sink.commit(
            proposed.copy(definition = None, set = Map.empty, client = None),
            before.version
          )
      else CommitOutcome.Overtaken(before.version)
    outcome match {
      case CommitOutcome.Committed(_) | CommitOutcome.Repeated =>
        val entry =
          try {
            val fs = folder.getFileSystem(log.newDeltaHadoopConf())
            Seq("data", "metadata").foreach(child => fs.mkdirs(new Path(folder, child)))
            tables.register(table, folder)
          } catch { case NonFatal(e) => throw new CommitStateUnknownException(e) }
        published(log, Some(entry))
      case CommitOutcome.Overtaken(_) =>
        throw new AlreadyExistsException(
          "There is a Delta table in %s, which has no name in the catalog. To give it the name back, " +
            "run CREATE TABLE %s USING delta LOCATION '%s'; if nobody needs it, remove the folder",
          folder,
          name,
          folder
        )
      case CommitOutcome.Refused(why) => throw refusal(why)
      case CommitOutcome.Unknown(why) => throw new CommitStateUnknownException(why)
    }
  }

  // What a client made that got no further: a table without rows, of the same columns.
  private def isHalfMade(log: DeltaLog, found: DeltaSnapshot, updated: TableMetadata): Boolean =
    found.version == 0 && Contracts.isEnabled(found.metadata.configuration) &&
      Try(IcebergSchemas.schema(found.metadata.schema).sameSchema(updated.schema))
        .getOrElse(false) &&
      found.metadata.partitionColumns == updated.spec.fields.asScala.map(_.name).toSeq &&
      found.numOfFiles == 0 && {
        val file = FileNames.unsafeDeltaFile(log.logPath, 0)
        Using.resource(log.store.readAsIterator(file, log.newDeltaHadoopConf())) { lines =>
          lines.map(Action.fromJson).exists {
            case info: CommitInfo => info.operation.startsWith("ICEBERG ")
            case _                => false
          }
        }
      }

  private def definition(snapshot: DeltaSnapshot): TableDefinition =
    TableDefinition.of(
      snapshot.metadata.id,
      TableStates.of(
        name,
        Lifecycle.Changing,
        snapshot.protocol,
        snapshot.metadata,
        TableStates.profile(tables.session)
      )
    )

  override def io(): FileIO = files

  override def metadataFileLocation(fileName: String): String = place(current(), fileName)

  private def place(metadata: TableMetadata, fileName: String): String =
    s"${metadata.location}/metadata/$fileName"

  override def locationProvider(): LocationProvider = locations(current())

  private def locations(metadata: TableMetadata): LocationProvider =
    LocationProviders.locationsFor(metadata.location, metadata.properties)

  // For a table that is to be made, of which there is nothing yet.
  override def temp(uncommitted: TableMetadata): TableOperations = new TableOperations {

    override def current(): TableMetadata = uncommitted

    override def refresh(): TableMetadata =
      throw new UnsupportedOperationException("Cannot refresh what is not committed")

    override def commit(base: TableMetadata, metadata: TableMetadata): Unit =
      throw new UnsupportedOperationException("Cannot commit to what is not committed")

    override def metadataFileLocation(fileName: String): String = place(uncommitted, fileName)

    override def locationProvider(): LocationProvider = locations(uncommitted)

    override def io(): FileIO = files
  }
}

private[writercompat] object DeltaTableOperations {

  /** What was loaded, and the version of Delta that it is of. */
  final case class Seen(
      log: DeltaLog,
      entry: Option[CatalogTable],
      version: Long,
      metadata: TableMetadata
  )

  // Clients of this process do not overtake each other for nothing.
  private val locks = new ConcurrentHashMap[String, Object]

  def locked[T](location: String)(body: => T): T =
    locks.computeIfAbsent(new Path(location).toUri.getPath, _ => new Object).synchronized(body)

  private val retries = 3
}
