package org.icebergwritercompat.iceberg.publish

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.iceberg._
import org.apache.iceberg.exceptions.CommitFailedException
import org.icebergwritercompat.iceberg.metadata.{DefinitionStamp, MetadataTimes, PublishedMetadata}
import org.icebergwritercompat.iceberg.source.{CommitMark, DeltaVersion}
import org.icebergwritercompat.iceberg.target.{
  MetadataSweep,
  PublishTarget,
  PublishThreads,
  SnapshotHistory,
  StagedOperations
}
import org.slf4j.LoggerFactory

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * Turns snapshots that were made in memory into one atomic commit of Iceberg.
 *
 * @param name
 *   the table, for a person
 * @param keptMillis
 *   how long a snapshot is kept after it was replaced
 */
private[publish] final class MetadataCommit(
    name: String,
    operations: PublishTarget,
    line: PublishedLine,
    keptMillis: Long
) {

  import MetadataCommit._
  import PublishedMetadata._

  /**
   * The update, which notes the version in the snapshot that it makes, in threads of publishing.
   */
  def noting[T <: SnapshotUpdate[T]](update: T, version: DeltaVersion): T = {
    update.scanManifestsWith(PublishThreads.pool)
    update.writeManifestsWith(PublishThreads.pool, PublishThreads.size)
    update.set(DeltaVersionProperty, version.number.toString)
    version.mark.foreach(mark => update.set(DeltaCommitProperty, mark.toString))
    update
  }

  /**
   * The snapshot to be published of those that were made in memory; `None` if these have merged
   * manifests only.
   *
   * @param before
   *   the metadata with the snapshot that comes before it
   */
  def newSnapshot(before: TableMetadata, staged: StagedOperations): Option[Snapshot] =
    staged.made.lastOption.filter(_.summary.containsKey(DeltaVersionProperty)).map { made =>
      rewritten(made) { json =>
        Option(before.currentSnapshot).foreach { parent =>
          json.put("parent-snapshot-id", parent.snapshotId)
        }
        json.get("summary").asInstanceOf[ObjectNode].remove(unread.asJava)
        ()
      }
    }

  /**
   * Commits a version.
   *
   * @param base
   *   what is published; `None` for new metadata
   * @param defined
   *   the same with the definition of the version
   * @param snapshot
   *   the snapshot of the version, if it has other files than the one before
   * @param common
   *   the last commit that both the published metadata and the log have, if they differ
   * @param before
   *   snapshots that the version has besides its own, oldest first
   */
  def commit(
      base: Option[TableMetadata],
      defined: TableMetadata,
      snapshot: Option[Snapshot],
      version: DeltaVersion,
      common: Option[CommitMark] = None,
      before: Seq[Snapshot] = Nil
  ): Unit = {
    val prepared = builderOf(defined)
    val stamp =
      DefinitionStamp.of(defined, defined.properties.asScala.toMap ++ steering).toString
    // A catalog server sets it without comparing, so it is sent only when it changes.
    val stamped = Map(DefinitionStamp.Property -> stamp).filterNot { case (key, value) =>
      base.exists(_.property(key, null) == value)
    }
    val now = System.currentTimeMillis()
    // Several at once, because it is costly to find the files that only they have.
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
    // The commit of another version would be wrong here.
    if (version.commit.isEmpty) prepared.removeProperties(java.util.Set.of(DeltaCommitProperty))
    if (snapshot.isEmpty) base.foreach(stepBack(_, prepared, common))
    before.foreach { made =>
      // The clock of a client may be ahead.
      val time = math.min(made.timestampMillis, version.timestamp)
      prepared.addSnapshot(dated(base, made, time))
    }
    snapshot.foreach { made =>
      prepared.setBranchSnapshot(dated(base, made, version.timestamp), SnapshotRef.MAIN_BRANCH)
    }
    for { table <- base; last <- common } {
      val parted = line.partedAfter(table, last)
      if (parted.nonEmpty) prepared.removeSnapshots(parted.map(Long.box).asJava)
    }
    val changed = MetadataTimes.build(prepared, Some(defined))
    undecided = true
    try {
      operations.commit(base.orNull, changed)
      undecided = false
    } catch {
      case e: CommitFailedException =>
        undecided = false
        throw e
    }
    if (ended.nonEmpty) sweep()
    base.foreach(MetadataSweep.outnumbered(_, operations))
  }

  private def dated(base: Option[TableMetadata], made: Snapshot, committed: Long): Snapshot =
    MetadataTimes.withCommitTime(base, made, committed, recent = operations.refusesOldSnapshots)

  // Whether a commit has failed in a way that leaves open if it was made.
  private var undecided = false

  /** Removes snapshots from what is published, in a commit of their own. */
  def remove(published: TableMetadata, snapshots: Set[Long]): Unit = {
    val without = builderOf(published).removeSnapshots(snapshots.map(Long.box).asJava)
    operations.commit(published, MetadataTimes.build(without, Some(published)))
    operations.refresh()
    ()
  }

  /**
   * Deletes old files of the metadata that nothing refers to; a failure is logged only.
   *
   * @param whole
   *   see [[MetadataSweep]]
   */
  def sweep(whole: Boolean = false): Unit =
    try {
      val unreadSince = System.currentTimeMillis() - math.max(keptMillis, leastKeptMillis)
      MetadataSweep(operations.current(), operations, unreadSince, whole)
    } catch {
      case NonFatal(e) => logger.warn(s"Old files of the Iceberg metadata of $name are left", e)
    }

  /** The snapshot with another total, where that of the snapshot before may be wrong. */
  def withTotal(made: Snapshot, property: String, total: Long): Snapshot =
    rewritten(made) { json =>
      json.get("summary").asInstanceOf[ObjectNode].put(property, total.toString)
      ()
    }

  /** The snapshot as one of a client, with what the client says of itself. */
  def byClient(made: Snapshot, client: ClientName): Snapshot = rewritten(made) { json =>
    val summary = json.get("summary").asInstanceOf[ObjectNode]
    summary.remove(unread.asJava)
    client.told.foreach { case (key, value) => summary.put(key, value) }
  }

  private def rewritten(made: Snapshot)(change: ObjectNode => Unit): Snapshot = {
    val json = mapper.readTree(SnapshotParser.toJson(made)).asInstanceOf[ObjectNode]
    change(json)
    SnapshotParser.fromJson(json.toString)
  }

  /** The metadata with a current snapshot that Delta's log has. */
  def steppedBack(
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

  // The snapshots of other writers are kept as long as other replaced ones.
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

  /**
   * Deletes the files of snapshots that were not published. Nothing is deleted if readers see such
   * a snapshot, or may come to see it.
   */
  def discard(staged: StagedOperations): Unit = {
    val made = staged.made
    if (!undecided && !made.exists(snapshot => isPublished(snapshot.snapshotId)))
      delete(made.flatMap(filesOf).distinct)
  }

  /** Deletes merged manifests that the published snapshot does not use, and their list. */
  def tidy(staged: StagedOperations): Unit = {
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

  /** Deletes files, those that cannot be deleted excepted. */
  def delete(files: Seq[String]): Unit = files.foreach { file =>
    try operations.io.deleteFile(file)
    catch { case NonFatal(_) => }
  }
}

private object MetadataCommit {

  // Each version of the metadata would have them for each snapshot, and no reader asks for them.
  private val unread =
    Seq("manifests-created", "manifests-kept", "manifests-replaced", "iceberg-version")

  // Longer than a publisher runs, or a reader that began with the newest metadata.
  private val leastKeptMillis = 24L * 60 * 60 * 1000

  private val logger = LoggerFactory.getLogger(classOf[MetadataCommit])

  private val mapper = new ObjectMapper
}
