package org.icebergwritercompat.iceberg.publish

import org.apache.iceberg.TableMetadata
import org.apache.iceberg.exceptions.CommitFailedException
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.iceberg.source.{DeltaSource, TableAtVersion}
import org.icebergwritercompat.iceberg.target.PublishTarget
import org.icebergwritercompat.report.PublishResult

import scala.annotation.tailrec
import scala.util.control.NonFatal

/**
 * Publishes a Delta table as Iceberg.
 *
 * @param place
 *   where the table is published, as its newest version says; asked again for each attempt
 */
final class Publishing(source: DeltaSource, place: TableAtVersion => PublishTarget) {

  /** What writes the published metadata; it reads what is there by now. */
  private[publish] def open(newest: TableAtVersion): IcebergPublisher =
    new IcebergPublisher(source.name, source.root, place(newest), newest.keptMillis)

  /**
   * Publishes every commit up to the newest. Other publishers of the table may run at the same
   * time.
   */
  def publish(way: PublishWay = PublishWay.Quick): PublishResult = published(way)._1

  /**
   * The same, with the metadata that readers see then. Its snapshots are shared: who reads
   * manifests takes a copy.
   */
  def published(way: PublishWay): (PublishResult, TableMetadata) = {
    val progress = new PublishProgress

    @tailrec def attempt(left: Int, suspicious: Boolean): IcebergPublisher = {
      val newest = source.newest()
      val run = new PublishRun(source, open(newest), progress, way)
      val failure =
        try { run.to(newest, suspicious); None }
        catch { case NonFatal(e) => Some(e) }
      failure match {
        case None                                       => run.publisher
        case Some(_: CommitFailedException) if left > 0 => attempt(left - 1, suspicious)
        case Some(e) if PublishRefusals.isDenied(e)     =>
          throw PublishRefusals.notWritable(source, e)
        // A manifest may have the length that it should have, and other bytes.
        case Some(e) if !suspicious && PublishRun.mayBeDamage(e, open(source.newest())) =>
          attempt(left, suspicious = true)
        case Some(e) => throw e
      }
    }

    val publisher = attempt(Publishing.retries, suspicious = false)
    val metadata = publisher.metadata.get
    val result = PublishResult(
      source.name,
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
    (result, metadata)
  }

  /**
   * The data files that older published snapshots need and the newest does not. Before, the newest
   * version is published, and snapshots are removed from the metadata whose files may be deleted.
   *
   * @param deletedBefore
   *   files that were removed from the table before this time may be deleted
   * @param dryRun
   *   whether to change nothing
   */
  def filesNeededSince(deletedBefore: Long, dryRun: Boolean): Seq[String] = {
    @tailrec def attempt(left: Int): Unit = {
      publish(PublishWay.Mending)
      val lost =
        try { open(source.newest()).expireSnapshots(deletedBefore); None }
        catch { case e: CommitFailedException => Some(e) }
      if (lost.nonEmpty)
        if (left > 0) attempt(left - 1) else throw lost.get
    }
    if (!dryRun) attempt(Publishing.retries)
    val publisher = open(source.newest())
    // A dry run refuses what publishing would refuse.
    publisher.publishedVersion.toSeq.flatMap { _ =>
      ForeignCommits.refuse(source.name, publisher)
      val forgotten = if (dryRun) publisher.unreadableHistory.keySet else Set.empty[Long]
      publisher.filesOnlyInHistory(deletedBefore, forgotten)
    }
  }

  /** The metadata file that readers open; refused if it is not of this table. */
  def metadataLocation(): Option[String] = {
    val publisher = open(source.newest())
    publisher.publishedVersion.flatMap(_ => publisher.metadata).map(_.metadataFileLocation)
  }
}

private object Publishing {

  // Each lost race means that another publisher has published something.
  private val retries = 20
}
