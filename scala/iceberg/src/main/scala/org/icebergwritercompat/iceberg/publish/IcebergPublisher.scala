package org.icebergwritercompat.iceberg.publish

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.iceberg._
import org.apache.iceberg.exceptions.{CommitFailedException, ValidationException}
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.SupportedTypes
import org.slf4j.LoggerFactory
import org.icebergwritercompat.iceberg.metadata.{
  ClientProperties,
  DefinitionStamp,
  ManifestMerging,
  MetadataTimes
}
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
  SnapshotHistory,
  StagedOperations
}
import org.icebergwritercompat.iceberg.translate.{
  DataFilePaths,
  IcebergMetrics,
  IcebergSchemas,
  PartitionValues
}

import java.util.UUID
import java.util.concurrent.atomic.LongAdder
import java.util.concurrent.{
  ArrayBlockingQueue,
  ConcurrentLinkedQueue,
  ExecutionException,
  Executors,
  TimeUnit
}
import scala.annotation.tailrec
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * Puts versions of a Delta table into its Iceberg metadata, each in one atomic commit.
 *
 * A commit of Iceberg that another publisher was faster with throws Iceberg's
 * `CommitFailedException`; nothing has happened then. A call is for what comes next after
 * `publishedVersion`, and the caller asks anew after each failure.
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
) {

  import IcebergPublisher._
  import PublishedMetadata._

  /** The metadata that readers see; `None` if there is none yet. */
  def metadata: Option[TableMetadata] = Option(operations.current())

  /** What there is to go on with. */
  def found: Found = operations.found()

  /** Begins a new line, whatever there is but what goes on elsewhere. */
  def abandon(why: String): Unit = {
    found match {
      case _: Found.Unreadable =>
      case _                   => metadata.foreach(operations.check)
    }
    operations.abandon(Found.Lost(why, Nil))
  }

  /** Begins a new line if a manifest cannot be read that is there as long as it was written. */
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

  /** The files that could not be read, by the names under which they are kept. */
  def setAside: Seq[String] = operations.setAside

  /** What misleads readers to other metadata than this, if anything. */
  def misleading: Option[String] = operations.misleading

  /** Snapshots before the current one that readers cannot open, and why. */
  def unreadableHistory: Map[Long, String] = found match {
    // Nothing of another place is there.
    case theirs: Found.ByOthers if theirs.lost.nonEmpty => Map.empty
    case _                                              =>
      metadata.fold(Map.empty[Long, String]) { published =>
        Damage.ofOlder(published, operations.io).map { case (id, damage) => id -> damage.toString }
      }
  }

  /** Forgets those, and tells why. */
  def forgetUnreadable(): Seq[String] = metadata.toSeq.flatMap { published =>
    val damaged = Damage.ofOlder(published, operations.io)
    if (damaged.nonEmpty) {
      val without =
        builderOf(published).removeSnapshots(damaged.keys.map(Long.box).asJavaCollection)
      operations.commit(published, MetadataTimes.build(without, Some(published)))
      damaged.values.toSet.filter(_.isThere).foreach(damage => operations.putAside(damage.file))
      operations.refresh()
    }
    damaged.toSeq.map { case (id, damage) => s"snapshot $id is forgotten: $damage" }.sorted
  }

  /** Whether somebody has made an older snapshot the current one again. */
  def isRolledBack: Boolean = metadata.exists { published =>
    val newest = published.snapshots.asScala.flatMap(versionOf(_)).maxOption
    newest.exists(_ > Option(published.currentSnapshot).flatMap(versionOf(_)).getOrElse(-1L))
  }

  /** What others have committed after what was published, oldest first. */
  def foreign: Seq[ForeignCommit] = found match {
    case Found.Foreign(published, snapshots, lost) =>
      snapshots.map { snapshot =>
        ForeignCommit.of(published, operations, SnapshotHistory.copy(snapshot), lost)
      }
    case _ => Nil
  }

  /** What others have changed of the table, without a snapshot. */
  def altered: Seq[String] = found match {
    case Found.Altered(_, changes, _) => changes
    case _                            => Nil
  }

  /** Whether the current metadata, or one before it, is in a file of this name. */
  def hasBeen(file: String): Boolean = metadata.exists { published =>
    (published.previousFiles.asScala.map(_.file) :+ published.metadataFileLocation)
      .exists(PublishedMetadata.fileName(_) == file)
  }

  /** The Delta version that readers see. */
  def publishedVersion: Option[Long] = metadata.map { published =>
    val noted = versionOf(name, published)
    operations.check(published)
    // A catalog may let a property be set back by who lost a race, but never a snapshot.
    val seen = Option(published.currentSnapshot).flatMap(versionOf(_))
    math.max(noted, seen.getOrElse(noted))
  }

  /** The newest commit that is noted as published; metadata of before may have no such note. */
  def publishedCommit: Option[CommitMark] = metadata.flatMap { published =>
    val noted = Option(published.property(DeltaCommitProperty, null)).flatMap(CommitMark.parse)
    (noted ++ Option(published.currentSnapshot).flatMap(markOf)).maxByOption(_.version)
  }

  /** The commits of the snapshots from which readers have got to the current one, oldest first. */
  def publishedCommits: Seq[CommitMark] =
    metadata.toSeq.flatMap(SnapshotHistory.line(_).flatMap(markOf)).distinct.sortBy(_.version)

  /** The id of the Delta table that is published, if it is noted. */
  def publishedTable: Option[String] =
    metadata.flatMap(published => Option(published.property(DeltaTableProperty, null)))

  /** The snapshots of versions that are not those of a log that has this commit. */
  def partedAfter(common: CommitMark): Set[Long] =
    metadata.fold(Set.empty[Long])(partedAfter(_, common))

  private def partedAfter(table: TableMetadata, common: CommitMark): Set[Long] =
    table.snapshots.asScala.iterator
      .filter { snapshot =>
        versionOf(snapshot).exists { version =>
          version > common.version ||
          version == common.version && markOf(snapshot).exists(_ != common)
        }
      }
      .map(_.snapshotId)
      .toSet

  /** The name of the table in a catalog, for a person. */
  def catalogTable: Option[String] = operations.catalogTable

  /** Goes on here with what was published elsewhere. */
  def takeOver(): Unit = operations.takeOver()

  /** Completes what a publisher that did not get so far has left open. */
  def mend(): Unit = operations.mend()

  /**
   * Data files that readers need and Delta need not, by all snapshots but those that were replaced
   * before a time, and but those that are named.
   */
  def filesOnlyInHistory(endedBefore: Long, without: Set[Long]): Seq[String] =
    metadata.toSeq.flatMap { known =>
      // Snapshots remember their manifests, and these may be many.
      val published = SnapshotHistory.copy(known)
      val ended = SnapshotHistory.endedBefore(published, endedBefore)
      SnapshotHistory.onlyInOlder(published, operations, without = ended ++ without)
    }

  /** Forgets the snapshots that were replaced before a time. */
  def forget(endedBefore: Long): Unit = metadata.foreach { published =>
    val ended = SnapshotHistory.endedBefore(published, endedBefore)
    if (ended.nonEmpty) {
      val without = builderOf(published).removeSnapshots(ended.map(Long.box).asJava)
      operations.commit(published, MetadataTimes.build(without, Some(published)))
      operations.refresh()
      sweep()
      MetadataSweep.outnumbered(published, operations)
    }
  }

  /** Publishes a version whole, as the first one. */
  def create(
      version: DeltaVersion,
      definition: TableDefinition,
      live: Iterator[AddedFile]
  ): Published = {
    val prepared = define(None, definition)
    val staged = new StagedOperations(MetadataTimes.withoutPast(prepared), operations)
    val written = new ManifestsWriter(staged, new DataFiles(prepared))
    try {
      val manifests = written.all(live)
      val append = new BaseTable(staged, name).newFastAppend()
      manifests.foreach(append.appendManifest)
      if (manifests.nonEmpty)
        noting(append, version)
          // Manifests do not tell it.
          .set(SnapshotSummary.ADDED_FILE_SIZE_PROP, written.bytes.toString)
          .commit()
      val snapshot = newSnapshot(prepared, staged)
      commit(None, definition = Some(definition), snapshot, version)
      Published(snapshot.size, written.files, 0)
    } catch {
      case NonFatal(e) =>
        if (staged.current().currentSnapshot == null) written.discard() else discard(staged)
        throw e
    }
  }

  /**
   * Publishes the next commit.
   *
   * @param definition
   *   what the table is by now; `None` if that was published before
   * @param totals
   *   what the version has in all
   * @return
   *   `None`, and nothing has happened, if the commit does not fit to what was published
   */
  def append(
      commit: DeltaCommit,
      definition: Option[TableDefinition],
      totals: FileTotals
  ): Option[Published] = {
    val base = operations.current()
    val prepared = definition.fold(base)(define(Some(base), _))
    adopted(Some(base), prepared, commit, definition, totals)
      .orElse(appended(base, prepared, commit, definition, totals))
  }

  /**
   * Publishes the commit that a table began with, by the snapshots of the Iceberg client that made
   * it.
   *
   * @return
   *   `None`, and nothing has happened, if it has none or they do not fit to it
   */
  def create(
      commit: DeltaCommit,
      definition: TableDefinition,
      totals: FileTotals
  ): Option[Published] =
    adopted(None, define(None, definition), commit, Some(definition), totals)

  // The files are the client's, so that nothing is left of this if it fails.
  private def adopted(
      base: Option[TableMetadata],
      prepared: TableMetadata,
      commit: DeltaCommit,
      definition: Option[TableDefinition],
      totals: FileTotals
  ): Option[Published] =
    commit.client
      .flatMap(new ClientAdoption(root, operations.io).of(prepared, commit, _, totals))
      .map { snapshots =>
        this.commit(
          base,
          definition,
          snapshots.lastOption,
          commit.version,
          before = snapshots.dropRight(1)
        )
        Published(snapshots.size, commit.added.size.toLong, commit.removed.size.toLong)
      }

  private def appended(
      base: TableMetadata,
      prepared: TableMetadata,
      commit: DeltaCommit,
      definition: Option[TableDefinition],
      totals: FileTotals
  ): Option[Published] = {
    val staged = new StagedOperations(MetadataTimes.withoutPast(prepared), operations)
    try {
      mergeManifests(staged)
      val files = new DataFiles(prepared)
      val added = commit.added.map(files.of)
      val removed = found(staged.current(), replaced(commit).map(files.location))
      val missing = commit.removed.map(f => files.location(f.path)).toSet -- removed.map(_.location)
      val rearranged = !commit.added.exists(_.dataChange) && !commit.removed.exists(_.dataChange)
      change(staged, commit.version, added, removed, rearranged)
      val snapshot = newSnapshot(prepared, staged)
      val fits = missing.isEmpty && snapshot.forall { s =>
        count(s, SnapshotSummary.DELETED_FILES_PROP) == removed.size &&
        count(s, SnapshotSummary.ADDED_FILES_PROP) == added.size
      } && agrees(staged.current().currentSnapshot, totals)
      if (fits) {
        this.commit(Some(base), definition, snapshot, commit.version)
        tidy(staged)
        Some(Published(snapshot.size, added.size.toLong, removed.size.toLong))
      } else {
        discard(staged)
        None
      }
    } catch {
      // Iceberg itself misses a file that is to be rewritten.
      case _: ValidationException =>
        discard(staged)
        None
      case NonFatal(e) =>
        discard(staged)
        throw e
    }
  }

  /**
   * Publishes a version as the difference of its files to those that were published. What others
   * have committed since then is not current any more afterwards.
   *
   * @param common
   *   the last commit of those published that Delta's log has, if they have parted: the snapshots
   *   of later ones are forgotten
   */
  def reconcile(
      version: DeltaVersion,
      definition: TableDefinition,
      live: Iterator[AddedFile],
      common: Option[CommitMark] = None
  ): Published = {
    val base = operations.current()
    val prepared = steppedBack(base, define(Some(base), definition), common)
    val staged = new StagedOperations(MetadataTimes.withoutPast(prepared), operations)
    try {
      val files = new DataFiles(prepared)
      val gone = mutable.HashMap.empty[String, DataFile]
      // A file that is live twice is removed, and added once.
      val twice = mutable.HashSet.empty[String]
      val before = Option(staged.current().currentSnapshot).iterator
      before.flatMap(SnapshotHistory.live(prepared, operations.io, _)).foreach { file =>
        if (gone.put(file.location, file).isDefined) twice += file.location
      }
      var bytes = 0L
      val added = live.filter { file =>
        bytes += file.size
        val location = files.location(file.path)
        twice(location) || gone.remove(location).isEmpty
      }
      val addedFiles = added.map(files.of).toSeq
      change(staged, version, addedFiles, gone.values.toSeq, rearranged = false)
      val snapshot = newSnapshot(prepared, staged)
      val exact = snapshot.map(withTotal(_, SnapshotSummary.TOTAL_FILE_SIZE_PROP, bytes))
      commit(Some(base), Some(definition), exact, version, common)
      Published(snapshot.size, addedFiles.size.toLong, gone.size.toLong)
    } catch {
      case NonFatal(e) =>
        discard(staged)
        throw e
    }
  }

  /** Notes that a version without changes of files is published. */
  def note(version: DeltaVersion, definition: Option[TableDefinition]): Published = {
    commit(Some(operations.current()), definition, None, version)
    Published.nothing
  }

  // What a commit takes the place of: a file may also be added again, with other statistics.
  private def replaced(commit: DeltaCommit): Set[String] = {
    val removed = commit.removed.map(_.path).toSet
    val added = commit.added.map(_.path).toSet
    val again = (removed.isEmpty && commit.added.exists(!_.dataChange)) ||
      added.exists(removed) || added.size < commit.added.size
    if (again) removed ++ added else removed
  }

  // They say in which manifest they are, so that Iceberg looks into no other.
  private def found(table: TableMetadata, locations: Set[String]): Seq[DataFile] =
    if (locations.isEmpty) Nil
    else
      Option(table.currentSnapshot).toSeq.flatMap { snapshot =>
        val manifests = snapshot.dataManifests(operations.io).asScala.toSeq
        ManifestIndex
          .holding(manifests, locations, operations.io, table.specsById)
          .flatMap(SnapshotHistory.live(table, operations.io, _))
          .filter(file => locations(file.location))
      }

  private def change(
      staged: StagedOperations,
      version: DeltaVersion,
      added: Seq[DataFile],
      removed: Seq[DataFile],
      rearranged: Boolean
  ): Unit = {
    val table = new BaseTable(staged, name)
    if (removed.nonEmpty && rearranged) {
      val rewrite = table.newRewrite()
      removed.foreach(rewrite.deleteFile(_: DataFile))
      added.foreach(rewrite.addFile(_: DataFile))
      noting(rewrite, version).commit()
    } else if (removed.nonEmpty || added.nonEmpty) {
      val overwrite = table.newOverwrite()
      removed.foreach(overwrite.deleteFile)
      added.foreach(overwrite.addFile)
      noting(overwrite, version).commit()
    }
  }

  // The snapshot that this makes is not published: the next one has its manifests.
  private def mergeManifests(staged: StagedOperations): Unit =
    Option(staged.current().currentSnapshot).foreach { snapshot =>
      val due = ManifestMerging.due(snapshot.dataManifests(staged.io()).asScala)
      if (due.nonEmpty)
        new BaseTable(staged, name)
          .rewriteManifests()
          .rewriteIf(manifest => due(manifest.path))
          .clusterBy(_ => "")
          .commit()
    }

  private def noting[T <: SnapshotUpdate[T]](update: T, version: DeltaVersion): T = {
    update.set(DeltaVersionProperty, version.number.toString)
    version.mark.foreach(mark => update.set(DeltaCommitProperty, mark.toString))
    update
  }

  // None if there are only merged manifests.
  private def newSnapshot(before: TableMetadata, staged: StagedOperations): Option[Snapshot] =
    staged.made.lastOption.filter(_.summary.containsKey(DeltaVersionProperty)).map { made =>
      rewritten(made) { json =>
        Option(before.currentSnapshot).foreach { parent =>
          json.put("parent-snapshot-id", parent.snapshotId)
        }
        json.get("summary").asInstanceOf[ObjectNode].remove(unread.asJava)
        ()
      }
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

  private def commit(
      base: Option[TableMetadata],
      definition: Option[TableDefinition],
      snapshot: Option[Snapshot],
      version: DeltaVersion,
      common: Option[CommitMark] = None,
      before: Seq[Snapshot] = Nil
  ): Unit = {
    val prepared =
      definition.fold(builderOf(base.get))(changed => defining(base, changed))
    val defined = definition.fold(base.get)(define(base, _))
    val stamp =
      DefinitionStamp.of(defined, defined.properties.asScala.toMap ++ steering).toString
    // A server sets it whatever it is by then, so it goes only with what it tells of.
    val stamped = Map(DefinitionStamp.Property -> stamp).filterNot { case (key, value) =>
      base.exists(_.property(key, null) == value)
    }
    val now = System.currentTimeMillis()
    // Not for each snapshot by itself, because of what it takes to see which files go with it.
    val ended = base.toSeq.flatMap { table =>
      val overdue = SnapshotHistory.endedBefore(table, now - keptMillis - keptMillis / 10)
      if (overdue.isEmpty) Nil else SnapshotHistory.endedBefore(table, now - keptMillis)
    }
    if (ended.nonEmpty) prepared.removeSnapshots(ended.map(Long.box).asJava)
    prepared.setProperties(
      (steering ++ stamped ++ operations.properties ++ Map(
        DeltaVersionProperty -> version.number.toString,
        DeltaTimestampProperty -> version.timestamp.toString
      ) ++ version.mark.map(DeltaCommitProperty -> _.toString)).asJava
    )
    // That of another version would tell nothing.
    if (version.commit.isEmpty) prepared.removeProperties(java.util.Set.of(DeltaCommitProperty))
    if (snapshot.isEmpty) base.foreach(stepBack(_, prepared, common))
    before.foreach { made =>
      prepared.addSnapshot(MetadataTimes.dated(base, made, made.timestampMillis))
    }
    snapshot.foreach { made =>
      prepared.setBranchSnapshot(
        MetadataTimes.dated(base, made, version.timestamp),
        SnapshotRef.MAIN_BRANCH
      )
    }
    for { table <- base; last <- common } {
      val parted = partedAfter(table, last)
      if (parted.nonEmpty) prepared.removeSnapshots(parted.map(Long.box).asJava)
    }
    val changed = MetadataTimes.build(prepared, base)
    undecided = true
    try {
      operations.commit(base.orNull, changed)
      undecided = false
    } catch {
      case e: CommitFailedException =>
        undecided = false
        throw e
    }
    operations.refresh()
    if (ended.nonEmpty) sweep()
    base.foreach(MetadataSweep.outnumbered(_, operations))
  }

  private var undecided = false

  // It is published all the same.
  private def sweep(): Unit =
    try {
      val unreadSince = System.currentTimeMillis() - math.max(keptMillis, leastKeptMillis)
      MetadataSweep(operations.current(), operations, unreadSince)
    } catch {
      case NonFatal(e) => logger.warn(s"Old files of the Iceberg metadata of $name are left", e)
    }

  // Iceberg goes on from the totals of before, right or wrong.
  private def withTotal(made: Snapshot, property: String, total: Long): Snapshot =
    rewritten(made) { json =>
      json.get("summary").asInstanceOf[ObjectNode].put(property, total.toString)
      ()
    }

  private def rewritten(made: Snapshot)(change: ObjectNode => Unit): Snapshot = {
    val json = mapper.readTree(SnapshotParser.toJson(made)).asInstanceOf[ObjectNode]
    change(json)
    SnapshotParser.fromJson(json.toString)
  }

  private def define(base: Option[TableMetadata], definition: TableDefinition): TableMetadata =
    MetadataTimes.build(defining(base, definition), base)

  private def steppedBack(
      base: TableMetadata,
      prepared: TableMetadata,
      common: Option[CommitMark]
  ): TableMetadata =
    if (foreignTo(base).isEmpty && common.isEmpty) prepared
    else {
      val builder = builderOf(prepared)
      stepBack(base, builder, common)
      MetadataTimes.build(builder, Some(base))
    }

  // To what Delta's log has. The snapshots of others stay until they are as old as others that
  // were replaced.
  private def stepBack(
      base: TableMetadata,
      builder: TableMetadata.Builder,
      common: Option[CommitMark]
  ): Unit = common match {
    case Some(mark) =>
      SnapshotHistory.line(base).find(markOf(_).contains(mark)).foreach { last =>
        builder.setBranchSnapshot(last.snapshotId, SnapshotRef.MAIN_BRANCH)
      }
    case None =>
      foreignTo(base).headOption.foreach { first =>
        if (first.parentId == null) builder.removeRef(SnapshotRef.MAIN_BRANCH)
        else builder.setBranchSnapshot(first.parentId.longValue, SnapshotRef.MAIN_BRANCH)
      }
  }

  private def builderOf(base: TableMetadata): TableMetadata.Builder = TableMetadata.buildFrom(base)

  private def defining(
      base: Option[TableMetadata],
      definition: TableDefinition
  ): TableMetadata.Builder = {
    SupportedTypes.lossyPartitionColumn(definition.schema, definition.partitionColumns).foreach {
      column =>
        throw IcebergWriterCompatException.notPublishable(
          "PARTITION_TYPE",
          Map("table" -> name, "column" -> column)
        )
    }
    val schema = IcebergSchemas.schema(definition.schema)
    val known = base.map(freeNames(_, schema))
    val spec = IcebergSchemas.spec(
      schema,
      definition.partitionColumns,
      known.fold(Seq.empty[PartitionSpec])(_.specs.asScala.toSeq),
      known.fold(0)(_.lastAssignedPartitionId)
    )
    val lastColumnId =
      math.max(
        math.max(definition.maxColumnId, schema.highestFieldId),
        known.fold(0)(_.lastColumnId)
      )
    val loose = IcebergMetrics.looselyBounded(schema).map(metricsPrefix + _)
    val stale = known.fold(Set.empty[String])(_.properties.asScala.keySet.toSet)
    val ofClients = ClientProperties.published(definition.properties)
    val listed = known.fold(Set.empty[String])(ClientProperties.listed)
    val noted = Option.when(ofClients.nonEmpty || listed.nonEmpty) {
      ClientProperties.ListProperty -> ClientProperties.list(ofClients.keys)
    }
    val builder = known
      .map(builderOf)
      .getOrElse(
        TableMetadata
          .buildFromEmpty(formatVersion)
          .assignUUID(operations.lineId(definition.id))
          .setLocation(root.toString)
      )
      .setCurrentSchema(schema, lastColumnId)
      .setDefaultPartitionSpec(spec)
      .removeProperties(
        (stale.filter(_.startsWith(metricsPrefix)).diff(loose.toSet) ++
          (listed -- ofClients.keySet)).asJava
      )
      .setProperties(
        (ofClients ++ noted ++ loose.map(
          _ -> "counts"
        ) + (DeltaTableProperty -> definition.id)).asJava
      )
    if (base.isEmpty) builder.setDefaultSortOrder(SortOrder.unsorted) else builder
  }

  // A spec of the past may have a field called as a column is now that is not its source.
  private def freeNames(base: TableMetadata, schema: Schema): TableMetadata = {
    val columns = schema.columns.asScala.map(column => column.name -> column.fieldId).toMap
    def taken(field: PartitionField): Boolean = columns.get(field.name).exists(_ != field.sourceId)
    if (!base.specs.asScala.exists(_.fields.asScala.exists(taken))) base
    else {
      val json = mapper.readTree(TableMetadataParser.toJson(base))
      for {
        spec <- json.get("partition-specs").asScala
        field <- spec.get("fields").asScala
        source = field.get("source-id").asInt
        if columns.get(field.get("name").asText).exists(_ != source)
      } field.asInstanceOf[ObjectNode].put("name", s"${field.get("name").asText}-$source")
      TableMetadataParser.fromJson(base.metadataFileLocation, json.toString)
    }
  }

  // What a snapshot that never was has written is nobody's. A commit may have failed after others
  // could see it, or before they will, and then all of it is theirs.
  private def discard(staged: StagedOperations): Unit = {
    val made = staged.made
    if (!undecided && !made.exists(snapshot => isPublished(snapshot.snapshotId)))
      delete(made.flatMap(filesOf).distinct)
  }

  // Merged manifests of which the published snapshot has others again, and their own list.
  private def tidy(staged: StagedOperations): Unit = {
    val (published, merged) = staged.made.partition(_.summary.containsKey(DeltaVersionProperty))
    if (merged.nonEmpty) {
      val kept = published.flatMap(_.allManifests(operations.io).asScala.map(_.path)).toSet
      delete(merged.flatMap(filesOf).filterNot(kept))
    }
  }

  private def filesOf(made: Snapshot): Seq[String] = {
    val own = made.allManifests(operations.io).asScala.filter { manifest =>
      manifest.snapshotId == null || manifest.snapshotId == made.snapshotId
    }
    own.map(_.path).toSeq :+ made.manifestListLocation
  }

  private def isPublished(snapshotId: Long): Boolean =
    Option(operations.refresh()).exists(_.snapshot(snapshotId) != null)

  private def delete(files: Seq[String]): Unit = files.foreach { file =>
    try operations.io.deleteFile(file)
    catch { case NonFatal(_) => }
  }

  /** Makes Iceberg's files of Delta's. */
  private final class DataFiles(table: TableMetadata) {

    private val metrics = new IcebergMetrics(table.schema, table.spec)

    private val paths = new DataFilePaths(root)

    /** The path that Iceberg readers open. */
    def location(path: String): String = paths.location(path)

    def of(file: AddedFile): DataFile = {
      val tuple = PartitionValues.tuple(table.spec, file.partitionValues) match {
        case Right(values) => values
        case Left(column)  =>
          refuseFile(file, s"the partition value of $column cannot be told exactly")
      }
      val measured = metrics.of(file.statistics, tuple).getOrElse {
        refuseFile(file, "its statistics do not tell how many rows it has")
      }
      org.apache.iceberg.DataFiles
        .builder(table.spec)
        .withPath(location(file.path))
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(file.size)
        .withPartition(tuple)
        .withMetrics(measured)
        .build()
    }

    private def refuseFile(file: AddedFile, found: String): Nothing =
      throw IcebergWriterCompatException.notPublishable(
        "FILE",
        Map("table" -> name, "file" -> file.path, "found" -> found)
      )
  }

  /** Writes manifests of files that come one by one, none of which is kept, on some threads. */
  private final class ManifestsWriter(staged: StagedOperations, dataFiles: DataFiles) {

    private val table = staged.current()
    private val paths = new ConcurrentLinkedQueue[String]
    private val counted = new LongAdder
    private val size = new LongAdder

    def files: Long = counted.sum

    def bytes: Long = size.sum

    def all(added: Iterator[AddedFile]): Seq[ManifestFile] = {
      val batches = new ArrayBlockingQueue[Seq[AddedFile]](batchesAhead)
      val threads = Executors.newFixedThreadPool(writers + 1)
      try {
        // So that Spark computes the next of them while these are written.
        val reading =
          threads.submit[Unit](() => added.grouped(filesPerLook).foreach(batches.put))
        @tailrec def next(): Option[Seq[AddedFile]] =
          Option(batches.poll(10, TimeUnit.MILLISECONDS)) match {
            case None if reading.isDone && batches.isEmpty => None
            case None                                      => next()
            case batch                                     => batch
          }
        val writing = Seq.fill(writers)(threads.submit(() => write(() => next())))
        val manifests = writing.flatMap(_.get)
        reading.get
        manifests
      } catch {
        case e: ExecutionException => throw e.getCause
      } finally {
        threads.shutdownNow()
        threads.awaitTermination(1, TimeUnit.HOURS)
        ()
      }
    }

    def discard(): Unit = delete(paths.asScala.toSeq)

    private def write(next: () => Option[Seq[AddedFile]]): Seq[ManifestFile] = {
      val batches = Iterator.unfold(())(_ => next().map(_ -> ()))
      Iterator.continually(batches).takeWhile(_.hasNext).map(manifest).toVector
    }

    private def manifest(batches: Iterator[Seq[AddedFile]]): ManifestFile = {
      val path = staged.metadataFileLocation(s"${UUID.randomUUID}-m0.avro")
      paths.add(path)
      val writer =
        ManifestFiles.write(formatVersion, table.spec, staged.io.newOutputFile(path), null)
      val index = new ManifestIndex.Builder
      try
        // To ask for the length costs a flush.
        while (batches.hasNext && (index.isEmpty || writer.length < ManifestMerging.targetBytes))
          batches.next().foreach { added =>
            val file = dataFiles.of(added)
            writer.add(file)
            index.add(file.location)
            counted.increment()
            size.add(added.size)
          }
      finally writer.close()
      ManifestIndex.keep(path, index)
      writer.toManifestFile
    }
  }
}

private object IcebergPublisher {

  private val formatVersion = 2

  // Each version of the metadata has them for each snapshot, and no reader asks for them.
  private val unread =
    Seq("manifests-created", "manifests-kept", "manifests-replaced", "iceberg-version")

  private val filesPerLook = 250

  // 20 MB where statistics are long.
  private val batchesAhead = 40

  private val writers = math.min(Runtime.getRuntime.availableProcessors, 8)

  // Longer than anybody publishes, or reads from what was newest when he began.
  private val leastKeptMillis = 24L * 60 * 60 * 1000

  private val logger = LoggerFactory.getLogger(classOf[IcebergPublisher])

  private val mapper = new ObjectMapper
}
