package org.apache.spark.sql.delta.writercompat.publish

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.fs.permission.FsAction
import org.apache.hadoop.security.AccessControlException
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.delta.actions._
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.coordinatedcommits.CoordinatedCommitsUtils
import org.icebergwritercompat.iceberg.metadata.{ClientProperties, PublishedMetadata}
import org.icebergwritercompat.contract.Moment
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.{PublishProblem, PublishResult, PublishStatus}
import org.apache.spark.sql.delta.writercompat.read.{
  CommitIds,
  DeltaTables,
  FileSystemsInReach,
  TableStates
}
import org.icebergwritercompat.iceberg.IcebergLibrary
import org.icebergwritercompat.iceberg.publish.{ForeignCommit, IcebergPublisher}
import org.icebergwritercompat.iceberg.source.{
  AddedFile,
  ClientSnapshots,
  CommitMark,
  DeltaCommit,
  DeltaVersion,
  FileTotals,
  Published,
  RemovedFile,
  TableDefinition
}
import org.icebergwritercompat.iceberg.target.{
  CatalogSettings,
  Found,
  PublishTarget,
  PublishTargets,
  WriteOnce
}

import java.io.FileNotFoundException
import java.nio.file.FileAlreadyExistsException
import scala.annotation.tailrec
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try}

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
  def publish(way: PublishWay = PublishWay.Quick): PublishResult = {
    val progress = new Progress

    @tailrec def attempt(left: Int, suspicious: Boolean): IcebergPublisher = {
      val newest = update()
      val run = new Run(open(newest), progress, way)
      val failure =
        try { run.to(newest, suspicious); None }
        catch { case NonFatal(e) => Some(e) }
      failure match {
        case None                                       => run.publisher
        case Some(_: CommitFailedException) if left > 0 => attempt(left - 1, suspicious)
        // It may be that a manifest has the length that it should have, and not the bytes.
        case Some(e) if !suspicious && run.mayBeDamage(e) => attempt(left, suspicious = true)
        case Some(e)                                      => throw e
      }
    }

    val publisher = attempt(Publishing.retries, suspicious = false)
    val metadata = publisher.metadata.get
    PublishResult(
      name,
      metadata.metadataFileLocation,
      metadata.property(PublishedMetadata.DeltaVersionProperty, null).toLong,
      progress.before.flatten,
      Option(metadata.currentSnapshot).map(_.snapshotId),
      progress.published.snapshots,
      progress.published.filesAdded,
      progress.published.filesRemoved,
      publisher.catalogTable,
      progress.mended,
      progress.setAside
    )
  }

  /**
   * Appends to the table what an Iceberg writer has committed past it, and publishes that.
   *
   * Each of the writer's snapshots is one commit, which notes the snapshot: called again, or by two
   * at once, it is made once.
   *
   * @param snapshotId
   *   the last one; what comes after it is not taken
   */
  def take(snapshotId: Long): PublishResult = {
    val newest = update()
    refuseAsItIs(newest)
    val publisher = open(newest)
    publisher.publishedVersion
    val commits = publisher.foreign
    def writer = new ForeignRows(log, catalogTable, publisher.metadata.get)
    if (commits.lastOption.exists(_.snapshotId == snapshotId)) {
      val obstacles = Iterator(
        (commit: ForeignCommit) => commit.obstacle,
        writer.obstacle(_),
        writer.unreadable(_)
      ).flatMap(commits.flatMap(_))
      if (obstacles.hasNext) throw foreign("NOT_TAKEN", publisher, commits, obstacles.nextOption())
      PublishHook.quietly(commits.foreach(writer.append))
    } else if (commits.isEmpty && publisher.metadata.isDefined && !writer.has(snapshotId))
      throw noSuchCommit(snapshotId)
    publish(PublishWay.Settled(snapshotId))
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
      publish(PublishWay.Mending)
      val lost =
        try { open(update()).forget(deletedBefore); None }
        catch { case e: CommitFailedException => Some(e) }
      if (lost.nonEmpty)
        if (left > 0) attempt(left - 1) else throw lost.get
    }
    if (!dryRun) attempt(Publishing.retries)
    val publisher = open(update())
    // Refuses what a dry run would not come to.
    publisher.publishedVersion.toSeq.flatMap { _ =>
      refuseForeign(publisher)
      val forgotten = if (dryRun) publisher.unreadableHistory.keySet else Set.empty[Long]
      publisher.filesOnlyInHistory(deletedBefore, forgotten)
    }
  }

  /** The metadata file that readers open; refused where that is not of this table. */
  def metadataLocation(): Option[String] = {
    val publisher = open(update())
    publisher.publishedVersion.flatMap(_ => publisher.metadata).map(_.metadataFileLocation)
  }

  /** How far the table is published, and what is wrong with it. */
  def status(): PublishStatus = {
    val newest = update()
    val publisher = open(newest)
    val version = newest.version
    val published = Try(publisher.publishedVersion).toOption.flatten
    val metadata = published.flatMap(_ => publisher.metadata)
    val problems = problemsOf(newest, publisher, whole = false)
    PublishStatus(
      name,
      version,
      published,
      published.map(version - _),
      metadata.flatMap(m => Option(m.currentSnapshot)).map(_.snapshotId),
      metadata.map(_.metadataFileLocation),
      publisher.catalogTable,
      if (problems.isEmpty) unpublished(newest, published).toSeq else problems
    )
  }

  /** The commits that should have been published when they were made. */
  private def unpublished(newest: Snapshot, published: Option[Long]): Option[PublishProblem] = {
    val properties = newest.metadata.configuration
    val asked = Contracts.isEnabled(properties) && WriterCompat.isPublished(properties)
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

  /** What keeps readers from what is published; all manifests of the current snapshot are read. */
  def problems(): Seq[PublishProblem] = {
    val newest = update()
    problemsOf(newest, open(newest), whole = true)
  }

  private def problemsOf(
      newest: Snapshot,
      publisher: IcebergPublisher,
      whole: Boolean
  ): Seq[PublishProblem] = Try(publisher.publishedVersion) match {
    case Failure(refusal: IcebergWriterCompatException) => Seq(problem(refusal))
    case Failure(e)                                     => throw e
    case Success(published)                             =>
      if (whole) publisher.lookWhole()
      val parted = if (published.exists(_ > newest.version)) None else parting(newest, publisher)
      problemsOf(publisher) ++ published.filter(_ > newest.version).map { ahead =>
        problem(aheadOf(newest, ahead))
      } ++ parted.map { how =>
        PublishProblem(s"${how.found} ${how.remedy}", PublishHook.command(name))
      }
  }

  /** Where Delta's log has other commits than were published; `None` where it has the same. */
  private def parting(newest: Snapshot, publisher: IcebergPublisher): Option[Publishing.Parting] = {
    val commits = new CommitIds(log, newest)
    def found: Option[String] = publisher.publishedCommit.flatMap { noted =>
      commits.of(noted.version) match {
        case Some(commit) =>
          Option.when(commit != noted.commit) {
            s"its version ${noted.version} was published from the commit ${noted.commit}, but is " +
              s"the commit $commit in Delta's log"
          }
        // What the log has cleaned up is not told by its commit any more.
        case None =>
          publisher.publishedTable.filter(_ != newest.metadata.id).map { id =>
            s"its version ${noted.version} was published from the Delta table with the id $id, but " +
              s"the log is that of ${newest.metadata.id}"
          }
      }
    }
    found.map { what =>
      val common = commits.lastOf(publisher.publishedCommits)
      Publishing.Parting(
        s"Iceberg readers may see rows that Delta does not have: $what. The log was put back to an " +
          "earlier version, or the table was replaced or made anew.",
        common,
        common.fold(0)(publisher.partedAfter(_).size)
      )
    }
  }

  private def problem(refusal: IcebergWriterCompatException): PublishProblem = {
    val (text, remedy) = IcebergWriterCompatException.inOneLine(refusal)
    PublishProblem(text, remedy.getOrElse(PublishHook.command(name)))
  }

  private def problemsOf(publisher: IcebergPublisher): Seq[PublishProblem] = {
    val state = publisher.found match {
      case Found.Lost(why, _) =>
        Seq(
          s"Iceberg readers cannot go by what is published: $why. Publishing begins a new line of " +
            "metadata, which has the newest version only."
        )
      case _: Found.ByOthers           => Nil
      case _ if publisher.isRolledBack =>
        Seq("Somebody has made an older Iceberg snapshot the current one again.")
      case _ => Nil
    }
    val older = publisher.unreadableHistory.toSeq.sorted.map { case (snapshot, why) =>
      PublishProblem(
        s"Iceberg readers cannot open the older snapshot $snapshot: $why. It can be forgotten.",
        Remedy.Publish(name, Seq("mend" -> None))
      )
    }
    foreignCommits(publisher).map(problem).toSeq ++
      (state ++ publisher.misleading).map(PublishProblem(_, PublishHook.command(name))) ++ older ++
      Try(refuseFolder()).failed.toOption.collect { case e: IcebergWriterCompatException =>
        problem(e)
      }
  }

  private def foreignCommits(publisher: IcebergPublisher): Option[IcebergWriterCompatException] =
    Option(publisher.foreign)
      .filter(_.nonEmpty)
      .map { commits =>
        val obstacle = commits.flatMap(_.obstacle).headOption
        val reason = if (obstacle.isDefined) "NOT_TAKEN" else "FOREIGN_COMMIT"
        foreign(reason, publisher, commits, obstacle)
      }
      .orElse(foreignChange(publisher))

  private def foreignChange(publisher: IcebergPublisher): Option[IcebergWriterCompatException] =
    Option(publisher.altered).filter(_.nonEmpty).map { changes =>
      val metadata = publisher.metadata.fold("")(_.metadataFileLocation)
      IcebergWriterCompatException.notPublishable(
        "FOREIGN_CHANGE",
        Map(
          "table" -> name,
          "metadata" -> metadata,
          "changes" -> changes.mkString("; ")
        ),
        Remedy.Publish(name, Seq("discard-changes" -> Some(PublishedMetadata.fileName(metadata))))
      )
    }

  private def foreign(
      reason: String,
      publisher: IcebergPublisher,
      commits: Seq[ForeignCommit],
      obstacle: Option[String]
  ): IcebergWriterCompatException = {
    val last = commits.last.snapshotId
    def way(option: String) = Remedy.Publish(name, Seq(option -> Some(last.toString)))
    val (take, discard) = (way("take-snapshot"), way("discard-snapshot"))
    val all = Map(
      "table" -> name,
      "metadata" -> publisher.metadata.fold("")(_.metadataFileLocation),
      "commits" -> commits.map(_.text).mkString("; ")
    )
    val more = obstacle.fold("discard" -> discard.text)("obstacle" -> _)
    IcebergWriterCompatException
      .notPublishable(reason, all + more, if (obstacle.isEmpty) take else discard)
  }

  private def noSuchCommit(snapshot: Long): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "NO_SUCH_COMMIT",
      Map("table" -> name, "snapshot" -> snapshot.toString)
    )

  private def refuseForeign(publisher: IcebergPublisher): Unit =
    foreignCommits(publisher).foreach(throw _)

  private def refuseAsItIs(newest: Snapshot): Unit = {
    if (!Contracts.isEnabled(newest.metadata.configuration))
      throw IcebergWriterCompatException.notPublishable("FEATURE_OFF", Map("table" -> name))
    if (WriterCompat.isUniFormIceberg(newest.metadata.configuration))
      throw PublishProperties.byUniForm(name, newest.metadata.configuration)
    refuseFolder()
  }

  // There is no form of such a path that all readers open.
  private def refuseFolder(): Unit = {
    val folder = log.dataPath.toUri.getPath
    folder.find(c => c < ' ' || "#?\"".contains(c)).foreach { character =>
      throw IcebergWriterCompatException.notPublishable(
        "FOLDER",
        Map(
          "table" -> name,
          "folder" -> folder.map(c => if (c < ' ') '\uFFFD' else c),
          "character" -> (if (character < ' ') f"U+${character.toInt}%04X" else s"$character")
        )
      )
    }
  }

  private def aheadOf(newest: Snapshot, published: Long): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "AHEAD",
      Map(
        "table" -> name,
        "published" -> published.toString,
        "version" -> newest.version.toString,
        "metadata" -> new Path(log.dataPath, "metadata").toString
      )
    )

  /** What was done so far, in one attempt after another. */
  private final class Progress {
    var before: Option[Option[Long]] = None
    var published: Published = Published.nothing
    var mended: Seq[String] = Nil
    var setAside: Seq[String] = Nil
  }

  /** One attempt. */
  private final class Run(val publisher: IcebergPublisher, progress: Progress, way: PublishWay) {

    /** @param suspicious whether what failed before may have failed for damaged manifests */
    def to(newest: Snapshot, suspicious: Boolean): Unit = {
      refuseAsItIs(newest)
      if (way == PublishWay.Anew) publisher.abandon("a new line was asked for")
      else publisher.takeOver()
      if (suspicious) publisher.lookWhole()
      // Refuses what is not ours, before it could be taken for damaged.
      val published = publisher.publishedVersion
      if (progress.before.isEmpty) progress.before = Some(published)
      if (way == PublishWay.Mending) publisher.lookWhole()
      settle()
      val lost = publisher.found match {
        case Found.Lost(why, _) => Seq(why)
        case _                  => Nil
      }
      follow(newest)
      progress.mended ++= lost
      if (way == PublishWay.Mending) progress.mended ++= publisher.forgetUnreadable()
      progress.setAside ++= publisher.setAside
    }

    /** Whether an attempt that looks at more may know better. */
    def mayBeDamage(e: Throwable): Boolean = e match {
      case _: IcebergWriterCompatException | _: CommitFailedException => false
      case _ => Try(open(update()).lookWhole()).getOrElse(false)
    }

    // What others have committed goes only if it is named.
    private def settle(): Unit = (publisher.found, way) match {
      case (theirs: Found.Foreign, PublishWay.Settled(snapshot))
          if theirs.snapshots.last.snapshotId == snapshot =>
        theirs.dead.foreach(publisher.abandon)
      case (theirs: Found.Altered, PublishWay.Discarding(file))
          if PublishedMetadata.fileName(theirs.metadata.metadataFileLocation) == file =>
        theirs.dead.foreach(publisher.abandon)
      case (_: Found.ByOthers, _)                                       => refuseForeign(publisher)
      case (_, PublishWay.Discarding(file)) if !publisher.hasBeen(file) =>
        throw IcebergWriterCompatException.notPublishable(
          "NO_SUCH_CHANGE",
          Map("table" -> name, "metadata" -> file)
        )
      case (_, PublishWay.Settled(snapshot))
          if publisher.metadata.forall(_.snapshot(snapshot) == null) =>
        throw noSuchCommit(snapshot)
      case _ =>
    }

    private def follow(newest: Snapshot): Unit =
      publisher.publishedVersion match {
        case None                                      => note(begun(newest))
        case Some(version) if version > newest.version =>
          // Another publisher may have seen a newer version, but nobody one that is not there.
          if (update().version < version) throw aheadOf(newest, version)
        case Some(version) =>
          parting(newest, publisher) match {
            case Some(parted) => goBack(newest, parted)
            case None         => follow(version, newest)
          }
      }

    // A table that an Iceberg client has made begins with the client's snapshots.
    private def begun(newest: Snapshot): Published = {
      val first = Option
        .when(newest.version == 0)(commits(0, newest, judge(newest)).next())
        .filter(_.client.isDefined)
      first
        .flatMap(publisher.create(_, definition(newest), FileTotals(None, None)))
        .getOrElse(publisher.create(at(newest), definition(newest), live(newest)))
    }

    // To the last commit that Delta's log has too, or to nothing.
    private def goBack(newest: Snapshot, parted: Publishing.Parting): Unit = {
      if (parted.common.isDefined) whole(newest, parted.common)
      else {
        publisher.abandon(parted.found)
        follow(newest)
      }
      progress.mended :+= s"${parted.found} ${parted.done}"
    }

    private def follow(published: Long, newest: Snapshot): Unit =
      published match {
        case _ if publisher.foreign.nonEmpty || publisher.altered.nonEmpty => whole(newest)
        case _ if publisher.isRolledBack                                   => whole(newest)
        case version if version == newest.version                          => publisher.mend()
        case version                                                       =>
          val judged = judge(newest)
          judged.refuse()
          val gap =
            try !follow(version, newest, judged)
            catch { case _: FileNotFoundException | _: Publishing.LogGap => true }
          if (gap) whole(newest)
      }

    // False where the commits do not lead to the newest version.
    private def follow(from: Long, newest: Snapshot, judged: PublishRules): Boolean = {
      var pending: Option[TableDefinition] = None
      var reached = from
      var last = Option.empty[DeltaVersion]
      val fits = commits(from + 1, newest, judged).forall { commit =>
        pending = commit.definition.orElse(pending)
        last = Some(commit.version)
        !commit.changesFiles || {
          val known = newest.checksumOpt.filter(_ => commit.version.number == newest.version)
          val totals = FileTotals(known.map(_.numFiles), known.map(_.tableSizeBytes))
          val appended = publisher.append(commit, pending, totals)
          appended.foreach { what =>
            note(what)
            pending = None
            reached = commit.version.number
          }
          appended.isDefined
        }
      }
      if (fits && reached < newest.version)
        note(publisher.note(last.get.copy(timestamp = newest.timestamp), pending))
      fits
    }

    private def whole(newest: Snapshot, common: Option[CommitMark] = None): Unit =
      note(publisher.reconcile(at(newest), definition(newest), live(newest), common))

    private def note(what: Published): Unit = progress.published = progress.published.and(what)
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
      val lines = log.store.read(file, log.newDeltaHadoopConf())
      val actions = lines.map(Action.fromJson)
      actions.collectFirst { case changed: Metadata => changed }.foreach { changed =>
        judged = judge(version, newest.protocol, changed)
      }
      // What one commit broke, a later one may have mended: then the version counts.
      if (isBroken(judged, actions) && isBroken(judge(at(version)), actions))
        throw new Publishing.LogGap
      commit(version, file, actions, CommitIds.of(lines.iterator))
    }
  }

  private def at(newest: Snapshot): DeltaVersion =
    DeltaVersion(newest.version, newest.timestamp, new CommitIds(log, newest).of(newest.version))

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
      new FileSystemsInReach(log.newDeltaHadoopConf())
    )

  private def commit(
      version: Long,
      file: FileStatus,
      actions: Seq[Action],
      id: String
  ): DeltaCommit = {
    val info = actions.collectFirst { case info: CommitInfo => info }
    DeltaCommit(
      DeltaVersion(
        version,
        info.flatMap(_.inCommitTimestamp).getOrElse(file.getModificationTime),
        Some(id)
      ),
      actions.collectFirst { case metadata: Metadata => definition(metadata) },
      actions.collect { case add: AddFile => added(add) },
      actions.collect { case remove: RemoveFile => RemovedFile(remove.path, remove.dataChange) },
      info.flatMap(_.tags).flatMap(ClientSnapshots.in)
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
      metadata.configuration.get(WriterCompat.MaxColumnId).flatMap(_.toIntOption).getOrElse(0),
      ClientProperties.in(metadata.configuration)
    )
}

/** Why a table is published, and with it what may be given up. */
sealed trait PublishWay

object PublishWay {

  /** As cheaply as that can be: only the newest snapshot is looked at. */
  case object Quick extends PublishWay

  /**
   * All snapshots are looked at, the current one whole, and those forgotten that cannot be read.
   */
  case object Mending extends PublishWay

  /** Whatever is published is left, and a new line begins. */
  case object Anew extends PublishWay

  /** What others have changed without a snapshot is not to be; named by the file that has it. */
  final case class Discarding(metadataFile: String) extends PublishWay

  /** What others have committed up to a snapshot is in Delta, or is not to be. */
  final case class Settled(snapshotId: Long) extends PublishWay
}

object Publishing {

  /** That of a table by name or path. */
  def of(spark: SparkSession, tableName: String): Publishing = {
    val table = DeltaTables.find(spark, tableName)
    new Publishing(spark, TableStates.nameOf(table), table.deltaLog, table.catalogTable)
  }

  /** What keeps readers from what is published of a table; nothing where that cannot be told. */
  def problems(spark: SparkSession, table: DeltaTableV2): Seq[PublishProblem] =
    Try(IcebergLibrary.needed {
      val name = TableStates.nameOf(table)
      new Publishing(spark, name, table.deltaLog, table.catalogTable).problems()
    }).getOrElse(Nil)

  /**
   * What is published and Delta's log have other commits of the same versions.
   *
   * @param common
   *   the newest published commit that the log has, if there is one
   * @param snapshots
   *   how many are of others
   */
  private final case class Parting(found: String, common: Option[CommitMark], snapshots: Int) {

    def remedy: String = common.fold(
      "Publishing begins a new line of metadata, which has the newest version only."
    ) { last =>
      s"Publishing goes back to version ${last.version}, forgets $snapshots snapshots of what came " +
        "after it, and goes on to the newest version."
    }

    def done: String = common.fold("A new line of metadata has begun.") { last =>
      s"Readers go on from version ${last.version}; $snapshots snapshots after it are forgotten."
    }
  }

  // Each lost race means that somebody else published.
  private val retries = 20

  /** A commit is not there any more, or breaks a rule. */
  private final class LogGap extends RuntimeException
}
