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
import org.apache.spark.sql.delta.writercompat.publish.SparkPublishing
import org.apache.spark.sql.delta.writercompat.read.{NewestVersion, Sessions, TableStates}
import org.apache.spark.sql.delta.{CommittedTransaction, DeltaLog, Snapshot => DeltaSnapshot}
import org.icebergwritercompat.contract.Lifecycle
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.{
  ClientProperties,
  PublishedMetadata,
  RowLevelDeletes
}
import org.icebergwritercompat.iceberg.source._
import org.icebergwritercompat.iceberg.target.PublishTargets
import org.icebergwritercompat.iceberg.writeback.ClientChange
import org.icebergwritercompat.model.WriterCompat

import java.util.concurrent.ConcurrentHashMap
import scala.annotation.tailrec
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

/**
 * A Delta table with the feature, as an Iceberg table that can be written.
 *
 * Delta's log is the only truth: a commit becomes a commit of Delta first, which notes the
 * snapshots of the client, and is then published as any other.
 *
 * @param recent
 *   what was loaded for others, which need not be loaded again
 */
final class DeltaTableOperations(
    tables: SessionTables,
    table: IcebergIdentifier,
    rowDeletes: RowLevelDeletes = RowLevelDeletes.Refuse,
    recent: Option[RecentTables] = None
) extends TableOperations {

  import DeltaTableOperations._

  private val name =
    TableStates.nameOf(
      org.apache.spark.sql.connector.catalog.Identifier.of(table.namespace.levels, table.name)
    )

  private lazy val change = new ClientChange(name, rowDeletes)

  private lazy val files = new HadoopFileIO(tables.session.sessionState.newHadoopConf())

  @volatile private var seen: Option[Seen] = None

  /**
   * The metadata that was loaded. A commit of Delta in this process is seen without being asked
   * for: a catalog of Spark may keep this for long.
   */
  override def current(): TableMetadata = seen match {
    case Some(known) if known.log.unsafeVolatileSnapshot.version <= known.version => known.metadata
    case _                                                                        => refresh()
  }

  // The same object as long as nothing has changed: clients compare by identity.
  override def refresh(): TableMetadata = synchronized {
    Sessions.active(tables.session)(find()) match {
      case None if seen.isDefined =>
        throw new NoSuchTableException("Table does not exist any more: %s", table)
      case None                       => null
      case Some((log, entry, newest)) =>
        val known = seen.filter { s =>
          (s.log eq log) && s.version == log.unsafeVolatileSnapshot.version
        }
        known
          .orElse {
            val loaded = recent.filter(_ => seen.isEmpty).flatMap(_.of(table, newest))
            loaded.foreach(found => seen = Some(found.copy(entry = Some(entry))))
            loaded
          }
          .getOrElse(load(log, Some(entry)))
          .metadata
    }
  }

  private def find(): Option[(DeltaLog, CatalogTable, DeltaSnapshot)] = for {
    entry <- tables.entry(table)
    log <- tables.log(entry)
    snapshot = NewestVersion.of(log, Some(entry))
    if snapshot.version >= 0 && Contracts.isEnabled(snapshot.metadata.configuration)
  } yield (log, entry, snapshot)

  private def load(
      log: DeltaLog,
      entry: Option[CatalogTable],
      committed: Option[CommittedTransaction] = None
  ): Seen =
    Sessions.active(tables.session) {
      val (result, published) =
        new SparkPublishing(tables.session, name, log, entry, committed).published()
      val now = seen.filter(_.metadata.metadataFileLocation == result.metadataLocation) match {
        case Some(same) => same.copy(log = log, version = result.deltaVersion)
        case None       =>
          val properties = log.unsafeVolatileSnapshot.metadata.configuration
          val chosen = TableDefinition.ofClients(properties)
          val writable = ClientProperties.writable(published, rowDeletes, chosen)
          Seen(log, entry, result.deltaVersion, writable)
      }
      seen = Some(now)
      recent.foreach(_.put(table, now))
      now
    }

  override def commit(base: TableMetadata, updated: TableMetadata): Unit =
    Sessions.active(tables.session) {
      if (base == null) create(updated)
      else if (base ne updated) DeltaTableOperations.locked(base.location)(commitOn(base, updated))
    }

  private def commitOn(base: TableMetadata, updated: TableMetadata): Unit = {
    val known = seen.filter(_.metadata eq base)
    if (ClientRequest.current.exists(isCommitted)) answered(refresh())
    else if (known.isEmpty) lost(base, updated)
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
      val snapshot = SparkDeltaSink.recent(log, entry)
      if (snapshot.version != version) lost(base, updated)
      else
        proposed(Some(base), updated, Some(definition(snapshot))) match {
          case Left(refused)                        => throw refusal(refused)
          case Right(nothing) if isNothing(nothing) => ()
          case Right(proposed)                      =>
            val sink = new SparkDeltaSink(tables.session, name, log, entry)
            sink.commit(proposed, version) match {
              case CommitOutcome.Committed(_) => published(log, entry, sink.committed)
              case CommitOutcome.Repeated     => published(log, entry)
              case CommitOutcome.Overtaken(_) => lost(base, updated)
              case CommitOutcome.Refused(why) => throw refusal(why)
              case CommitOutcome.Unknown(why) => throw new CommitStateUnknownException(why)
            }
        }
    }
  }

  private def proposed(
      base: Option[TableMetadata],
      updated: TableMetadata,
      known: Option[TableDefinition]
  ): Either[IcebergWriterCompatException, ProposedCommit] =
    change
      .proposed(base, updated, known, files)
      .map(_.copy(request = ClientRequest.current.map(_.mark)))

  /** Whether a commit of the table was made for a request. */
  def isCommitted(request: ClientRequest): Boolean = Sessions.active(tables.session) {
    find().exists { case (_, _, snapshot) => request.isIn(snapshot) }
  }

  private def isNothing(proposed: ProposedCommit): Boolean =
    proposed.definition.isEmpty && proposed.set.isEmpty && proposed.unset.isEmpty &&
      proposed.added.isEmpty && proposed.removed.isEmpty && proposed.client.isEmpty

  /** Nothing was committed by this call; by an earlier one it may have been. */
  private def lost(base: TableMetadata, updated: TableMetadata): Unit = {
    val now = refresh()
    val ids = ClientChange.newIds(Option(base), updated)
    val isThere = now != null && ids.nonEmpty && ids.forall(now.snapshot(_) != null)
    if (!isThere && !ClientRequest.current.exists(isCommitted))
      throw new CommitFailedException(
        s"Table $name has changed: its newest version is ${version(now)}"
      )
  }

  private def version(metadata: TableMetadata): String =
    Option(metadata).fold("none")(_.property(PublishedMetadata.DeltaVersionProperty, "none"))

  private def published(
      log: DeltaLog,
      entry: Option[CatalogTable],
      committed: Option[CommittedTransaction] = None
  ): Unit = answered(load(log, entry, committed))

  // It is committed, and nobody is to think that it is not.
  private def answered(loaded: => Any): Unit = {
    @tailrec def attempt(left: Int): Unit = Try(loaded) match {
      case Success(_)             => ()
      case Failure(_) if left > 0 => attempt(left - 1)
      case Failure(e)             => throw new CommitStateUnknownException(e)
    }
    attempt(retries)
  }

  private def refusal(why: IcebergWriterCompatException): ValidationException =
    new ValidationException(why, "%s", why.getMessage)

  /** Refuses a table that could not be committed, before a client writes files for it. */
  def check(base: Option[TableMetadata], updated: TableMetadata): Unit =
    Sessions.active(tables.session) {
      val found = base.flatMap(_ => find())
      val known = found.map { case (_, _, snapshot) => definition(snapshot) }
      change.defined(base, updated, known) match {
        case Left(why)      => throw refusal(why)
        case Right(defined) =>
          if (found.isEmpty) checkFolder(folderOf(updated))
          val (log, entry, wanted) = found.fold {
            (tables.log(folderOf(updated)), Option.empty[CatalogTable], withFeature(defined))
          } { case (log, entry, _) => (log, Some(entry), defined) }
          new SparkDeltaSink(tables.session, name, log, entry)
            .refusal(wanted, isNew = found.isEmpty)
            .foreach(why => throw refusal(why))
      }
    }

  // A table whose metadata cannot be published is none of this catalog.
  private def checkFolder(folder: Path): Unit =
    try SparkPublishing.checkFolder(tables.session, name, folder)
    catch { case why: IcebergWriterCompatException => throw refusal(why) }

  private def folderOf(metadata: TableMetadata): Path = {
    val path = new Path(metadata.location)
    path.getFileSystem(tables.session.sessionState.newHadoopConf()).makeQualified(path)
  }

  private def create(updated: TableMetadata): Unit = {
    val folder = folderOf(updated)
    DeltaTableOperations.locked(folder.toString) {
      val repeated = Option(refresh()).exists(_.uuid == updated.uuid) ||
        ClientRequest.current.exists(isCommitted)
      if (!repeated) {
        if (tables.exists(table))
          throw new AlreadyExistsException("Table already exists: %s", table)
        proposed(None, updated, None) match {
          case Left(refused)   => throw refusal(refused)
          case Right(proposed) =>
            checkFolder(folder)
            create(updated, folder, withFeature(proposed))
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
    if (before.version < 0) sink.commit(proposed, -1) match {
      case CommitOutcome.Committed(_) | CommitOutcome.Repeated =>
        published(log, Some(unsurely(named(log, folder))))
      case CommitOutcome.Overtaken(_) => throw alreadyThere(folder)
      case CommitOutcome.Refused(why) => throw refusal(why)
      case CommitOutcome.Unknown(why) => throw new CommitStateUnknownException(why)
    }
    else if (isCreated(before, updated)) published(log, Some(unsurely(named(log, folder))))
    else
      new HalfMadeTable(log, before).completed(proposed) match {
        case None           => throw alreadyThere(folder)
        case Some(complete) =>
          // Who has the name goes on, so that nothing is taken from a create that is still running.
          val entry = named(log, folder)
          val outcome =
            if (complete.isEmpty) CommitOutcome.Repeated
            else sink.commit(complete.get, before.version)
          outcome match {
            case CommitOutcome.Committed(_) | CommitOutcome.Repeated => published(log, Some(entry))
            case CommitOutcome.Overtaken(_)                          =>
              throw new AlreadyExistsException("Table already exists: %s", table)
            case CommitOutcome.Refused(why) =>
              tables.drop(table, purge = false)
              throw refusal(why)
            case CommitOutcome.Unknown(why) => throw new CommitStateUnknownException(why)
          }
      }
  }

  // The answer to the same request before, or to one with the same key, was lost.
  private def isCreated(found: DeltaSnapshot, updated: TableMetadata): Boolean =
    found.metadata.id == updated.uuid || ClientRequest.current.exists(_.isIn(found))

  private def named(log: DeltaLog, folder: Path): CatalogTable = {
    val fs = folder.getFileSystem(log.newDeltaHadoopConf())
    Seq("data", "metadata").foreach(child => fs.mkdirs(new Path(folder, child)))
    tables.register(table, folder)
  }

  private def unsurely[T](step: => T): T =
    try step
    catch { case NonFatal(e) => throw new CommitStateUnknownException(e) }

  private def alreadyThere(folder: Path): AlreadyExistsException =
    new AlreadyExistsException(
      "There is a Delta table in %s, which has no name in the catalog. To give it the name back, " +
        "run CREATE TABLE %s USING delta LOCATION '%s'; if nobody needs it, remove the folder",
      folder,
      name,
      folder
    )

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
