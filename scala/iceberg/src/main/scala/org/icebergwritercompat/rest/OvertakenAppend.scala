package org.icebergwritercompat.rest

import org.apache.iceberg.UpdateRequirement.AssertRefSnapshotID
import org.apache.iceberg.rest.requests.UpdateTableRequest
import org.apache.iceberg.{
  BaseTable,
  DataOperations,
  EnvironmentContext,
  MetadataUpdate,
  Snapshot,
  SnapshotRef,
  TableMetadata,
  TableOperations,
  UpdateRequirement
}

import scala.jdk.CollectionConverters._

/**
 * An append of a client whose table has gone on since the client read it. Appends commute, and
 * clients would only make the same commit again on top, so the server does it for them.
 *
 * @param snapshot
 *   the snapshot of the client
 * @param requirements
 *   what must hold of the table as it is now
 */
private[rest] final case class OvertakenAppend(
    snapshot: Snapshot,
    requirements: Seq[UpdateRequirement]
) {

  import OvertakenAppend._

  /**
   * Commits the files of the client on top of what is there now, as a snapshot with the id that the
   * client gave it. The manifests are the server's: a client removes its own when it finds that the
   * snapshot does not have them.
   *
   * @return
   *   whether it was committed; if not, nothing was
   */
  def commit(operations: WatchedOperations, table: String): Boolean = {
    val now = operations.refresh()
    requirements.foreach(_.validate(now))
    operations.appended(now, snapshot).exists { files =>
      val append = new BaseTable(new OnTop(operations), table).newFastAppend()
      val counted = EnvironmentContext.get.keySet.asScala
      snapshot.summary.asScala.foreach { case (key, value) =>
        if (!counted(key) && !counts.exists(key.startsWith)) append.set(key, value)
      }
      files.foreach(append.appendFile)
      append.commit()
      true
    }
  }

  /**
   * The operations for the append: its snapshot has the id that the client gave it, and what is
   * required holds of each state that it is tried on, as the table may go on meanwhile.
   */
  private final class OnTop(operations: TableOperations) extends PassedOnOperations(operations) {

    override def newSnapshotId(): Long = snapshot.snapshotId

    override def commit(base: TableMetadata, updated: TableMetadata): Unit = {
      requirements.foreach(_.validate(base))
      operations.commit(base, updated)
    }
  }
}

private[rest] object OvertakenAppend {

  // What a snapshot says of its files, which is counted anew.
  private val counts =
    Seq("operation", "added-", "removed-", "deleted-", "total-", "changed-partition", "partition")

  /** The append that a request asks for, if it asks for nothing else. */
  def of(change: UpdateTableRequest): Option[OvertakenAppend] = {
    val (bases, others) = change.requirements.asScala.toSeq.partitionMap {
      case base: AssertRefSnapshotID if base.refName == SnapshotRef.MAIN_BRANCH => Left(base)
      case other                                                                => Right(other)
    }
    (change.updates.asScala.toSeq, bases) match {
      case (Seq(added: MetadataUpdate.AddSnapshot, ref: MetadataUpdate.SetSnapshotRef), Seq(base))
          if isAppend(added.snapshot, base) && isOfMain(ref, added.snapshot) =>
        Some(OvertakenAppend(added.snapshot, others))
      case _ => None
    }
  }

  private def isAppend(snapshot: Snapshot, base: AssertRefSnapshotID): Boolean =
    snapshot.operation == DataOperations.APPEND && snapshot.parentId == base.snapshotId

  private def isOfMain(ref: MetadataUpdate.SetSnapshotRef, snapshot: Snapshot): Boolean =
    ref.name == SnapshotRef.MAIN_BRANCH && ref.snapshotId == snapshot.snapshotId
}
