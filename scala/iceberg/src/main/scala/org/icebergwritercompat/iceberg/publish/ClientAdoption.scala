package org.icebergwritercompat.iceberg.publish

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.iceberg.io.FileIO
import org.apache.iceberg.{Snapshot, SnapshotParser, SnapshotSummary, TableMetadata}
import org.icebergwritercompat.iceberg.metadata.{EngineKeys, MetadataCopies, PublishedMetadata}
import org.icebergwritercompat.iceberg.source.{ClientSnapshots, DeltaCommit, FileTotals}
import org.icebergwritercompat.iceberg.target.{LiveDifference, StoreSchemes}
import org.icebergwritercompat.iceberg.translate.DataFilePaths

import scala.util.Try

/**
 * Takes the snapshots of an Iceberg client into the published metadata, with the ids, manifests and
 * summaries that the client gave them.
 *
 * @param paths
 *   the paths that readers open
 */
private[publish] final class ClientAdoption(paths: DataFilePaths, io: FileIO) {

  import ClientAdoption._

  /**
   * The snapshots as they are to be published, oldest first; only the last is that of the version.
   *
   * @param prepared
   *   the metadata that they go on top of, with the columns of the commit
   * @return
   *   `None` if they were made on something else, or do not say what the commit says
   */
  def of(
      prepared: TableMetadata,
      commit: DeltaCommit,
      client: ClientSnapshots,
      totals: FileTotals
  ): Option[Seq[Snapshot]] = Try {
    val made = client.snapshots.map(SnapshotParser.fromJson)
    Option
      .when(
        !client.ownFiles && follows(prepared, client, made) &&
          isSame(prepared, commit, totals, made.last)
      ) {
        made.init.map(published(_, prepared, Nil)) :+
          published(made.last, prepared, notes(commit, totals))
      }
  }.toOption.flatten // A manifest that cannot be read says nothing.

  /**
   * The snapshots of a client whose manifests are not published, oldest first. Of these only the
   * ids, and what the client says of itself, can be published.
   */
  def named(prepared: TableMetadata, client: ClientSnapshots): Seq[ClientName] = Try {
    val made = client.snapshots.map(SnapshotParser.fromJson)
    if (!client.ownFiles || !follows(prepared, client, made)) Nil
    else
      made.map { snapshot =>
        val told =
          EngineKeys.all.flatMap(key => Option(snapshot.summary.get(key)).map(key -> _)).toMap
        ClientName(snapshot.snapshotId, told + (PublishedMetadata.ClientProperty -> "true"))
      }
  }.getOrElse(Nil)

  private def follows(
      prepared: TableMetadata,
      client: ClientSnapshots,
      made: Seq[Snapshot]
  ): Boolean = {
    val numbers = prepared.lastSequenceNumber +: made.map(_.sequenceNumber)
    made.nonEmpty && client.base == Option(prepared.currentSnapshot).map(_.snapshotId) &&
    numbers.zip(numbers.drop(1)).forall { case (before, after) => before < after } &&
    made.forall(snapshot => prepared.snapshot(snapshot.snapshotId) == null)
  }

  private def isSame(
      prepared: TableMetadata,
      commit: DeltaCommit,
      totals: FileTotals,
      last: Snapshot
  ): Boolean = {
    val before = Option(prepared.currentSnapshot).map(MetadataCopies.of(_: Snapshot))
    val difference = LiveDifference.of(prepared, before, Some(last), io)
    // A commit that leaves nothing of what came before may be the first that is published.
    val isAll = prepared.currentSnapshot == null && totals.files.contains(commit.added.size.toLong)
    difference.twice.isEmpty && last.deleteManifests(io).isEmpty &&
    keys(difference.added.map(_.location)) == logged(commit.added.map(_.path)) &&
    (isAll || keys(difference.removed.map(_.location)) == logged(commit.removed.map(_.path)))
  }

  private def logged(files: Seq[String]): Set[String] = keys(files.map(paths.location))

  private def keys(locations: Seq[String]): Set[String] = locations.map(StoreSchemes.key).toSet

  // Clients may count wrongly, or not at all, and Iceberg goes on from what they say.
  private def notes(commit: DeltaCommit, totals: FileTotals): Seq[(String, String)] =
    Seq(PublishedMetadata.DeltaVersionProperty -> commit.version.number.toString) ++
      commit.version.mark.map(PublishedMetadata.DeltaCommitProperty -> _.toString) ++
      totals.files.map(SnapshotSummary.TOTAL_DATA_FILES_PROP -> _.toString) ++
      totals.bytes.map(SnapshotSummary.TOTAL_FILE_SIZE_PROP -> _.toString)

  private def published(
      made: Snapshot,
      prepared: TableMetadata,
      notes: Seq[(String, String)]
  ): Snapshot = {
    val json = mapper.readTree(SnapshotParser.toJson(made)).asInstanceOf[ObjectNode]
    json.put("schema-id", prepared.currentSchemaId)
    val summary = json.get("summary").asInstanceOf[ObjectNode]
    summary.put(PublishedMetadata.ClientProperty, "true")
    notes.foreach { case (key, value) => summary.put(key, value) }
    SnapshotParser.fromJson(json.toString)
  }
}

/** The id of a snapshot of a client, and what its summary says of the client. */
private[publish] final case class ClientName(id: Long, told: Map[String, String])

private object ClientAdoption {

  private val mapper = new ObjectMapper
}
