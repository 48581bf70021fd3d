package org.apache.spark.sql.delta.writercompat

import org.apache.hadoop.fs.permission.FsAction
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.security.AccessControlException
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.coordinatedcommits.CoordinatedCommitsUtils
import org.icebergwritercompat.WriterCompat
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg._
import org.icebergwritercompat.report.{PublishProblem, PublishResult, PublishStatus}
import org.icebergwritercompat.rules.Moment

import java.io.FileNotFoundException
import java.nio.file.FileAlreadyExistsException
import scala.annotation.tailrec
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * Publishes a Delta table as Iceberg, from its log.
 *
 * @param name
 *   how a statement refers to the table
 */
final class Publishing(
    spark: SparkSession,
    name: String,
    log: DeltaLog,
    catalogTable: Option[CatalogTable]
) {

  private def update(): Snapshot = log.update(catalogTableOpt = catalogTable)

  // Made anew for each attempt, so that it looks anew.
  private def open(newest: Snapshot): IcebergPublisher =
    new IcebergPublisher(name, log.dataPath, target(newest), keptMillis(newest))

  // So long Delta promises that a version can be read: the log is never kept shorter than files.
  private def keptMillis(newest: Snapshot): Long =
    DeltaLog.tombstoneRetentionMillis(newest.metadata)

  private def target(newest: Snapshot): PublishTarget = {
    val configuration = log.newDeltaHadoopConf()
    val writeOnce: WriteOnce = (file: Path, lines: Iterator[String]) =>
      try {
        log.store.write(file, lines, overwrite = false, configuration)
        true
      } catch { case _: FileAlreadyExistsException => false }
    PublishTargets.of(
      name,
      log.dataPath,
      configuration,
      writeOnce,
      CatalogSettings.of(spark.conf.getAll, spark.sessionState.conf.warehousePath),
      nameInCatalog(newest.metadata)
    )
  }

  private def nameInCatalog(metadata: Metadata): Option[Seq[String]] =
    metadata.configuration
      .get(WriterCompat.PublishTable)
      .map(DeltaTables.nameParts)
      .orElse(TableStates.identifierOf(spark, catalogTable, log.dataPath).map { table =>
        Seq(table.database.getOrElse(spark.sessionState.catalog.getCurrentDatabase), table.table)
      })

  /** Publishes every commit up to the newest, whoever else does. */
  def publish(): PublishResult = {
    var before: Option[Option[Long]] = None

    @tailrec def attempt(left: Int, done: Published): (IcebergPublisher, Published) = {
      val newest = update()
      val run = new Run(open(newest), done)
      if (before.isEmpty) before = Some(run.publisher.publishedVersion)
      val failure =
        try { run.to(newest); None }
        catch { case e: CommitFailedException => Some(e) }
      failure match {
        case None                => (run.publisher, run.done)
        case Some(_) if left > 0 => attempt(left - 1, run.done)
        case Some(e)             => throw e
      }
    }

    val (publisher, done) = attempt(Publishing.retries, Published.nothing)
    val metadata = publisher.metadata.get
    PublishResult(
      name,
      metadata.metadataFileLocation,
      metadata.property(IcebergPublisher.DeltaVersionProperty, null).toLong,
      before.flatten,
      Option(metadata.currentSnapshot).map(_.snapshotId),
      done.snapshots,
      done.filesAdded,
      done.filesRemoved,
      publisher.catalogTable
    )
  }

  /**
   * The data files that published snapshots need other than the newest, which is brought up to date
   * first, and snapshots forgotten whose files may be deleted.
   *
   * @param deletedBefore
   *   files that were removed from the table before this time may be deleted
   * @param dryRun
   *   nothing is changed
   */
  def filesNeededSince(deletedBefore: Long, dryRun: Boolean): Seq[String] = {
    @tailrec def attempt(left: Int): Unit = {
      publish()
      val lost =
        try { open(update()).forget(deletedBefore); None }
        catch { case e: CommitFailedException => Some(e) }
      if (lost.nonEmpty)
        if (left > 0) attempt(left - 1) else throw lost.get
    }
    if (!dryRun) attempt(Publishing.retries)
    val publisher = open(update())
    // Refuses what a dry run would not come to.
    publisher.publishedVersion.toSeq.flatMap(_ => publisher.filesOnlyInHistory(deletedBefore))
  }

  /** How far the table is published. */
  def status(): PublishStatus = {
    val newest = update()
    val publisher = open(newest)
    val version = newest.version
    val published = publisher.publishedVersion
    PublishStatus(
      name,
      version,
      published,
      published.map(version - _),
      publisher.metadata.flatMap(m => Option(m.currentSnapshot)).map(_.snapshotId),
      publisher.metadata.map(_.metadataFileLocation),
      publisher.catalogTable,
      unpublished(newest, published).toSeq
    )
  }

  /** The commits that should have been published when they were made. */
  private def unpublished(newest: Snapshot, published: Option[Long]): Option[PublishProblem] = {
    val properties = newest.metadata.configuration
    val asked = WriterCompat.isEnabled(properties) && WriterCompat.isPublished(properties)
    val path = log.dataPath.toString
    Option.when(asked && !published.contains(newest.version) && !PublishHook.isWaiting(path)) {
      val failure = PublishHook.lastFailure(path)
      val cause = failure.map(_.text).orElse(obstacle).fold("")(": " + _)
      val since = published.fold("")(version => s" since version $version")
      PublishProblem(
        s"The table asks to be published after each commit, but was not$since$cause",
        failure.fold(PublishHook.command(name))(_.remedy)
      )
    }
  }

  /** What keeps everybody from publishing, if the folder shows it. */
  private def obstacle: Option[String] = {
    val fs = log.dataPath.getFileSystem(log.newDeltaHadoopConf())
    val folder = new Path(log.dataPath, "metadata")
    val found = Try(fs.getFileStatus(folder)).toOption
    if (found.exists(!_.isDirectory)) Some(s"$folder is a file, where a folder must be.")
    else if (Try(fs.getStatus(log.dataPath).getRemaining).toOption.contains(0L))
      Some(s"No space is left for ${log.dataPath}.")
    else
      Try(fs.access(found.fold(log.dataPath)(_.getPath), FsAction.WRITE)).failed.toOption.collect {
        case _: AccessControlException => s"$folder cannot be written to by this user."
      }
  }

  /** One attempt; `done` is what was published even if the attempt then fails. */
  private final class Run(val publisher: IcebergPublisher, before: Published) {

    private var published = before

    def done: Published = published

    def to(newest: Snapshot): Unit = {
      if (!WriterCompat.isEnabled(newest.metadata.configuration))
        throw IcebergWriterCompatException.notPublishable("FEATURE_OFF", Map("table" -> name))
      if (WriterCompat.isUniFormIceberg(newest.metadata.configuration))
        throw PublishProperties.byUniForm(name, newest.metadata.configuration)
      publisher.takeOver()
      publisher.publishedVersion match {
        case None =>
          val files = live(newest)
          note(publisher.create(newest.version, newest.timestamp, definition(newest), files))
        case Some(version) if version == newest.version => publisher.mend()
        case Some(version) if version < newest.version  =>
          val judged = judge(newest)
          judged.refuse()
          val gap =
            try !follow(version, newest, judged)
            catch { case _: FileNotFoundException | _: Publishing.LogGap => true }
          if (gap) whole(newest)
        case Some(version) =>
          // Another publisher may have seen a newer version, but nobody one that is not there.
          if (update().version < version)
            throw IcebergWriterCompatException.notPublishable(
              "AHEAD",
              Map(
                "table" -> name,
                "published" -> version.toString,
                "version" -> newest.version.toString,
                "metadata" -> new Path(log.dataPath, "metadata").toString
              )
            )
      }
    }

    // False where the commits do not lead to the newest version.
    private def follow(from: Long, newest: Snapshot, judged: PublishRules): Boolean = {
      var pending: Option[TableDefinition] = None
      var reached = from
      val fits = commits(from + 1, newest, judged).forall { commit =>
        pending = commit.definition.orElse(pending)
        !commit.changesFiles || {
          val known = newest.checksumOpt.filter(_ => commit.version == newest.version)
          val totals = FileTotals(known.map(_.numFiles), known.map(_.tableSizeBytes))
          val appended = publisher.append(commit, pending, totals)
          appended.foreach { what =>
            note(what)
            pending = None
            reached = commit.version
          }
          appended.isDefined
        }
      }
      if (fits && reached < newest.version)
        note(publisher.note(newest.version, newest.timestamp, pending))
      fits
    }

    private def whole(newest: Snapshot): Unit =
      note(publisher.reconcile(newest.version, newest.timestamp, definition(newest), live(newest)))

    private def note(what: Published): Unit = published = published.and(what)
  }

  private def commits(
      from: Long,
      newest: Snapshot,
      judgedNewest: PublishRules
  ): Iterator[DeltaCommit] = {
    val files = CoordinatedCommitsUtils.commitFilesIterator(log, catalogTable, from)
    var judged = judgedNewest
    Iterator.iterate(from)(_ + 1).takeWhile(_ <= newest.version).map { version =>
      if (!files.hasNext) throw new Publishing.LogGap
      val (file, found) = files.next()
      if (found != version) throw new Publishing.LogGap
      val actions = log.store.read(file, log.newDeltaHadoopConf()).map(Action.fromJson)
      actions.collectFirst { case changed: Metadata => changed }.foreach { changed =>
        judged = judge(version, newest.protocol, changed)
      }
      // What one commit broke, a later one may have mended: then the version counts.
      if (isBroken(judged, actions) && isBroken(judge(at(version)), actions))
        throw new Publishing.LogGap
      commit(version, file, actions)
    }
  }

  private def at(version: Long): Snapshot =
    log.getSnapshotAt(version, catalogTableOpt = catalogTable)

  private def isBroken(judged: PublishRules, actions: Seq[Action]): Boolean =
    judged.isBroken || {
      val shown = judged.ofCommit
      actions.exists { case add: AddFile => shown(add).nonEmpty; case _ => false }
    }

  private def judge(version: Snapshot): PublishRules =
    judge(version.version, version.protocol, version.metadata)

  private def judge(version: Long, protocol: Protocol, metadata: Metadata): PublishRules =
    new PublishRules(
      version,
      TableStates.of(name, Moment.Changing, protocol, metadata, TableStates.profile(spark)),
      new KnownSchemes(log.newDeltaHadoopConf())
    )

  private def commit(version: Long, file: FileStatus, actions: Seq[Action]): DeltaCommit = {
    val info = actions.collectFirst { case info: CommitInfo => info }
    DeltaCommit(
      version,
      info.flatMap(_.inCommitTimestamp).getOrElse(file.getModificationTime),
      actions.collectFirst { case metadata: Metadata => definition(metadata) },
      actions.collect { case add: AddFile => added(add) },
      actions.collect { case remove: RemoveFile => RemovedFile(remove.path, remove.dataChange) }
    )
  }

  // The same pass refuses a file that breaks a rule.
  private def live(snapshot: Snapshot): Iterator[AddedFile] = {
    val judged = judge(snapshot)
    judged.refuse()
    snapshot.allFiles.toLocalIterator().asScala.map { add =>
      judged.refuse(add)
      added(add)
    }
  }

  private def added(add: AddFile): AddedFile =
    AddedFile(add.path, add.partitionValues, add.size, add.stats, add.dataChange)

  private def definition(snapshot: Snapshot): TableDefinition = definition(snapshot.metadata)

  private def definition(metadata: Metadata): TableDefinition =
    TableDefinition(
      metadata.id,
      metadata.schema,
      metadata.partitionColumns,
      metadata.configuration.get(WriterCompat.MaxColumnId).flatMap(_.toIntOption).getOrElse(0)
    )
}

object Publishing {

  /** That of a table by name or path. */
  def of(spark: SparkSession, tableName: String): Publishing = {
    val table = DeltaTables.find(spark, tableName)
    new Publishing(spark, TableStates.nameOf(table), table.deltaLog, table.catalogTable)
  }

  // Each lost race means that somebody else published.
  private val retries = 20

  /** A commit is not there any more, or breaks a rule. */
  private final class LogGap extends RuntimeException
}
