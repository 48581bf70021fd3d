package org.icebergwritercompat.iceberg.publish

import org.apache.hadoop.fs.Path
import org.apache.iceberg._
import org.apache.iceberg.exceptions.{CommitFailedException, ValidationException}
import org.icebergwritercompat.iceberg.manifest.{
  DataFileBuilder,
  FileCheck,
  ManifestIndex,
  ManifestsWriter
}
import org.icebergwritercompat.iceberg.metadata.{ManifestMerging, MetadataTimes}
import org.icebergwritercompat.iceberg.source.{
  AddedFile,
  CommitMark,
  DeltaCommit,
  DeltaVersion,
  FileTotals,
  Published,
  TableDefinition
}
import org.icebergwritercompat.iceberg.target.{
  Damage,
  Found,
  MetadataSweep,
  PublishTarget,
  PublishThreads,
  SnapshotHistory,
  StagedOperations,
  StoreSchemes
}
import org.icebergwritercompat.iceberg.translate.DataFilePaths

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * Puts versions of a Delta table into its Iceberg metadata, each in one atomic commit.
 *
 * If another publisher commits first, a call throws Iceberg's `CommitFailedException` and has
 * changed nothing. Each call publishes what comes next after `publishedVersion`, so after a failure
 * the caller makes a new instance, which reads the metadata again.
 *
 * @param name
 *   the table, for a person
 * @param root
 *   the folder of the table
 * @param operations
 *   where it is published
 * @param keptMillis
 *   how long a snapshot is kept after it was replaced
 */
final class IcebergPublisher(
    name: String,
    root: Path,
    operations: PublishTarget,
    keptMillis: Long
) extends PublishedLine(name, operations) {

  import StoreSchemes.key

  private val paths = new DataFilePaths(operations.spelled(root), operations.spelled)

  private val definer = new TableDefiner(name, root, operations)

  private val step = new MetadataCommit(name, operations, this, keptMillis)

  /**
   * Leaves the published metadata as it is; the next commit begins a new line. Refused where the
   * metadata continues in another place.
   */
  def abandon(why: String): Unit = {
    found match {
      case _: Found.Unreadable =>
      case _                   => metadata.foreach(operations.check)
    }
    operations.abandon(Found.Lost(why, Nil))
  }

  /**
   * Reads all manifests of the current snapshot, and begins a new line if one is damaged, even if
   * its length is right; true if so.
   */
  def lookWhole(): Boolean = {
    operations.refresh()
    operations.found() match {
      case Found.Line(published) =>
        Damage.ofCurrent(published, operations.io, whole = true) match {
          case Nil     => false
          case damages => operations.abandon(PublishTarget.lost(damages)); true
        }
      case _ => false
    }
  }

  /** Removes the snapshots that readers cannot open; the answer says which and why. */
  def forgetUnreadable(): Seq[String] = metadata.toSeq.flatMap { published =>
    val damaged = Damage.ofOlder(published, operations.io)
    if (damaged.nonEmpty) {
      step.remove(published, damaged.keySet)
      damaged.values.toSet.filter(_.isThere).foreach(damage => operations.putAside(damage.file))
    }
    damaged.toSeq.map { case (id, damage) => s"snapshot $id is forgotten: $damage" }.sorted
  }

  /** Refuses a place where two publishers could write the same version. */
  def checkExclusive(): Unit = operations.checkExclusive()

  /** Continues here the metadata that was published in another place before. */
  def continueHere(): Unit = operations.continueHere()

  /** Completes what an interrupted publisher has left open. */
  def repair(): Unit = operations.repair()

  /** Removes the snapshots that were replaced before a time, and old files that nothing needs. */
  def expireSnapshots(endedBefore: Long): Unit = metadata.foreach { published =>
    val ended = SnapshotHistory.endedBefore(published, endedBefore)
    if (ended.nonEmpty) step.remove(published, ended.toSet)
    step.sweep(whole = true)
    if (ended.nonEmpty) MetadataSweep.outnumbered(published, operations)
  }

  /**
   * Publishes the first version, with all its files.
   *
   * @param live
   *   its files, each of which is decoded when it is written, by one of several threads
   * @param check
   *   what must hold of each file
   */
  def create(
      version: DeltaVersion,
      definition: TableDefinition,
      live: Iterator[() => AddedFile],
      check: FileCheck = FileCheck.none
  ): Published = {
    val defined = definer.define(None, definition)
    val staged = new StagedOperations(MetadataTimes.withoutPast(defined), operations)
    val written = new ManifestsWriter(staged, new DataFileBuilder(name, paths, defined, check))
    try {
      val manifests = written.all(live)
      val append = new BaseTable(staged, name).newFastAppend()
      manifests.foreach(append.appendManifest)
      if (manifests.nonEmpty)
        step
          .noting(append, version)
          // Manifests do not tell it.
          .set(SnapshotSummary.ADDED_FILE_SIZE_PROP, written.bytes.toString)
          .commit()
      val snapshot = step.newSnapshot(defined, staged)
      step.commit(None, defined, snapshot, version)
      Published(snapshot.size, written.files, 0)
    } catch {
      case NonFatal(e) =>
        if (staged.current().currentSnapshot == null) step.delete(written.paths)
        else step.discard(staged)
        throw e
    }
  }

  /**
   * Publishes the next commit.
   *
   * @param definition
   *   the definition of the table at this commit; `None` if it is published already
   * @param totals
   *   number and size of all live files after the commit
   * @param check
   *   what must hold of each file that the commit adds
   * @return
   *   `None` if the commit does not fit to what is published, for example because it removes a file
   *   that is not published; nothing has changed then
   */
  def append(
      commit: DeltaCommit,
      definition: Option[TableDefinition],
      totals: FileTotals,
      check: FileCheck = FileCheck.none
  ): Option[Published] = {
    val base = before(commit.version.number)
    val defined = definedBy(definition, base)
    // The manifests of an Iceberg client are taken as they are, without decoding the files.
    if (commit.client.isDefined) commit.added.foreach(check(_))
    adopted(Some(base), defined, commit, totals)
      .orElse(appended(base, defined, commit, totals, check))
  }

  /**
   * Publishes the commit that a table began with, by the snapshots of the Iceberg client that made
   * it.
   *
   * @return
   *   `None`, and nothing has changed, if the commit notes no snapshots or they do not fit to it
   */
  def create(
      commit: DeltaCommit,
      definition: TableDefinition,
      totals: FileTotals
  ): Option[Published] =
    adopted(None, definer.define(None, definition), commit, totals)

  private def adoption = new ClientAdoption(paths, operations.io)

  // The manifests are the client's, so a failure leaves no file behind that is to be deleted.
  private def adopted(
      base: Option[TableMetadata],
      defined: TableMetadata,
      commit: DeltaCommit,
      totals: FileTotals
  ): Option[Published] =
    commit.client
      .flatMap(adoption.of(defined, commit, _, totals))
      .map { snapshots =>
        step.commit(
          base,
          defined,
          snapshots.lastOption,
          commit.version,
          before = snapshots.dropRight(1)
        )
        Published(snapshots.size, commit.added.size.toLong, commit.removed.size.toLong)
      }

  private def appended(
      base: TableMetadata,
      defined: TableMetadata,
      commit: DeltaCommit,
      totals: FileTotals,
      check: FileCheck
  ): Option[Published] = {
    val names = commit.client.toSeq.flatMap(adoption.named(defined, _))
    val between = new StagedOperations(MetadataTimes.withoutPast(defined), operations)
    lazy val staged = new StagedOperations(between.current(), operations)
    def discard(): Unit = Seq(staged, between).foreach(step.discard)
    try {
      // The commit is the net effect of all of them, which the last one gets.
      names.dropRight(1).foreach(empty(between, _).commit())
      mergeManifests(staged)
      val files = new DataFileBuilder(name, paths, defined, check)
      val added = commit.added.map(files.of)
      val removed = found(staged.current(), replaced(commit).map(files.location))
      val missing = commit.removed.map(f => key(files.location(f.path))).toSet --
        removed.map(file => key(file.location))
      val rearranged = !commit.added.exists(_.dataChange) && !commit.removed.exists(_.dataChange)
      change(staged, commit.version, added, removed, rearranged, names.lastOption)
      val snapshot = step
        .newSnapshot(between.current(), staged)
        .map(made => names.lastOption.fold(made)(step.byClient(made, _)))
      val others = between.made.zip(names).map { case (made, name) => step.byClient(made, name) }
      val fits = missing.isEmpty && snapshot.forall { s =>
        count(s, SnapshotSummary.DELETED_FILES_PROP) == removed.size &&
        count(s, SnapshotSummary.ADDED_FILES_PROP) == added.size
      } && agrees(staged.current().currentSnapshot, totals)
      if (fits) {
        step.commit(Some(base), defined, snapshot, commit.version, before = others)
        step.tidy(staged)
        Some(
          Published(others.size + snapshot.size, added.size.toLong, removed.size.toLong)
        )
      } else {
        discard()
        None
      }
    } catch {
      // Iceberg does not find a file that is to be rewritten.
      case _: ValidationException =>
        discard()
        None
      case NonFatal(e) =>
        discard()
        throw e
    }
  }

  /** A snapshot that changes nothing, by the name that a client gave it. */
  private def empty(staged: StagedOperations, client: ClientName): AppendFiles = {
    staged.nextId(client.id)
    new BaseTable(staged, name).newFastAppend()
  }

  /**
   * Publishes a version as the difference between its files and the published ones. Snapshots of
   * other writers are not current any more afterwards.
   *
   * @param common
   *   if the published commits and those of Delta's log differ, the last one that both have; the
   *   snapshots of later commits are removed
   * @param check
   *   what must hold of each live file
   */
  def reconcile(
      version: DeltaVersion,
      definition: TableDefinition,
      live: Iterator[() => AddedFile],
      common: Option[CommitMark] = None,
      check: FileCheck = FileCheck.none
  ): Published = {
    val base = before(version.number + 1)
    val defined = definer.define(Some(base), definition)
    val prepared = step.steppedBack(base, defined, common)
    val staged = new StagedOperations(MetadataTimes.withoutPast(prepared), operations)
    try {
      val files = new DataFileBuilder(name, paths, prepared, check)
      val gone = mutable.HashMap.empty[String, DataFile]
      // A file that is live twice is removed, and added once.
      val twice = mutable.HashSet.empty[String]
      val before = Option(staged.current().currentSnapshot).iterator
      before.flatMap(SnapshotHistory.live(prepared, operations.io, _)).foreach { file =>
        if (gone.put(key(file.location), file).isDefined) twice += key(file.location)
      }
      var bytes = 0L
      val addedFiles = live.flatMap { decode =>
        val logged = decode()
        val file = files.checked(logged)
        bytes += logged.size
        val location = key(file.location)
        val isPublished = !twice(location) && gone.remove(location).isDefined
        Option.unless(isPublished)(file.dataFile)
      }.toSeq
      change(staged, version, addedFiles, gone.values.toSeq, rearranged = false)
      val snapshot = step.newSnapshot(prepared, staged)
      val exact = snapshot.map(step.withTotal(_, SnapshotSummary.TOTAL_FILE_SIZE_PROP, bytes))
      step.commit(Some(base), defined, exact, version, common)
      Published(snapshot.size, addedFiles.size.toLong, gone.size.toLong)
    } catch {
      case NonFatal(e) =>
        step.discard(staged)
        throw e
    }
  }

  /** Publishes a version that has the files of the version before. */
  def recordVersion(version: DeltaVersion, definition: Option[TableDefinition]): Published = {
    val base = before(version.number)
    step.commit(Some(base), definedBy(definition, base), None, version)
    Published.nothing
  }

  /**
   * What is published, which has an older version than this one. What was seen is read again after
   * an own commit, and by then another publisher may have published more.
   */
  private def before(version: Long): TableMetadata = {
    val published = publishedVersion.filter(_ >= version)
    published.foreach { newer =>
      throw new CommitFailedException("Version %s of %s is published by now", newer, name)
    }
    operations.current()
  }

  private def definedBy(
      definition: Option[TableDefinition],
      base: TableMetadata
  ): TableMetadata = definition.fold(base)(changed => definer.define(Some(base), changed))

  // The paths that a commit replaces: it may also add a live file again, with other statistics.
  private def replaced(commit: DeltaCommit): Set[String] = {
    val removed = commit.removed.map(_.path).toSet
    val added = commit.added.map(_.path).toSet
    val again = (removed.isEmpty && commit.added.exists(!_.dataChange)) ||
      added.exists(removed) || added.size < commit.added.size
    if (again) removed ++ added else removed
  }

  // The published entries of files. They name their manifest, so Iceberg reads no other.
  private def found(table: TableMetadata, locations: Set[String]): Seq[DataFile] =
    if (locations.isEmpty) Nil
    else
      Option(table.currentSnapshot).toSeq.flatMap { snapshot =>
        val keys = locations.map(key)
        val manifests = snapshot.dataManifests(operations.io).asScala.toSeq
        ManifestIndex
          .holding(manifests, locations, operations.io, table.specsById)
          .flatMap(SnapshotHistory.live(table, operations.io, _))
          .filter(file => keys(key(file.location)))
      }

  private def change(
      staged: StagedOperations,
      version: DeltaVersion,
      added: Seq[DataFile],
      removed: Seq[DataFile],
      rearranged: Boolean,
      client: Option[ClientName] = None
  ): Unit = {
    val table = new BaseTable(staged, name)
    client.foreach(name => staged.nextId(name.id))
    if (removed.nonEmpty && rearranged) {
      val rewrite = table.newRewrite()
      removed.foreach(rewrite.deleteFile(_: DataFile))
      added.foreach(rewrite.addFile(_: DataFile))
      step.noting(rewrite, version).commit()
    } else if (removed.nonEmpty || added.nonEmpty) {
      val overwrite = table.newOverwrite()
      removed.foreach(overwrite.deleteFile)
      added.foreach(overwrite.addFile)
      step.noting(overwrite, version).commit()
    } else client.foreach(name => step.noting(empty(staged, name), version).commit())
  }

  // This makes a snapshot in memory, which is not published; the next one takes its manifests.
  private def mergeManifests(staged: StagedOperations): Unit =
    Option(staged.current().currentSnapshot).foreach { snapshot =>
      val due = ManifestMerging.due(snapshot.dataManifests(staged.io()).asScala)
      if (due.nonEmpty)
        new BaseTable(staged, name)
          .rewriteManifests()
          .scanManifestsWith(PublishThreads.pool)
          .writeManifestsWith(PublishThreads.pool, PublishThreads.size)
          .rewriteIf(manifest => due(manifest.path))
          .clusterBy(_ => "")
          .commit()
    }

  private def agrees(snapshot: Snapshot, totals: FileTotals): Boolean = {
    def same(property: String, expected: Option[Long]): Boolean = expected.forall { number =>
      if (snapshot == null) number == 0 else count(snapshot, property) == number
    }
    same(SnapshotSummary.TOTAL_DATA_FILES_PROP, totals.files) &&
    same(SnapshotSummary.TOTAL_FILE_SIZE_PROP, totals.bytes)
  }

  private def count(snapshot: Snapshot, property: String): Long =
    snapshot.summary.asScala.get(property).fold(0L)(_.toLong)
}
