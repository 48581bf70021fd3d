package org.icebergwritercompat.iceberg.publish

import org.apache.hadoop.fs.Path
import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.source.{DeltaSource, TableAtVersion}
import org.icebergwritercompat.model.WriterCompat

/** Why a table cannot be published at all. */
object PublishRefusals {

  /** Refuses a table without the feature, one that UniForm publishes, and an unreadable folder. */
  private[publish] def refuse(source: DeltaSource, newest: TableAtVersion): Unit = {
    if (!Contracts.isEnabled(newest.properties))
      throw IcebergWriterCompatException.notPublishable(
        "FEATURE_OFF",
        Map("table" -> source.name),
        contractOf(newest)
      )
    if (WriterCompat.isUniFormIceberg(newest.properties))
      throw byUniForm(source.name, newest.properties)
    ofFolder(source, newest).foreach(throw _)
  }

  private def contractOf(version: TableAtVersion): Contract =
    Contracts.ofOrFor(version.properties, version.state.protocol.listedFeatures)

  /** The refusal to publish a table that UniForm publishes. */
  def byUniForm(table: String, properties: Map[String, String]): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "UNIFORM",
      Map(
        "table" -> table,
        "formats" -> properties(WriterCompat.UniversalFormats),
        "others" -> WriterCompat.otherUniversalFormats(properties)
      )
    )

  /** The refusal of a folder whose name no metadata can spell so that all readers open it. */
  private[publish] def ofFolder(
      source: DeltaSource,
      newest: TableAtVersion
  ): Option[IcebergWriterCompatException] = {
    val folder = source.root.toUri.getPath
    unreadable(folder).map { case (shown, character) =>
      IcebergWriterCompatException.notPublishable(
        "FOLDER",
        Map("table" -> source.name, "folder" -> shown, "character" -> character),
        contractOf(newest)
      )
    }
  }

  /** A character that no metadata can spell in the path of a folder, and the path as text. */
  private[iceberg] def unreadable(folder: String): Option[(String, String)] =
    folder.find(c => c < ' ' || "#?\"".contains(c)).map { character =>
      folder.map(c => if (c < ' ') '\uFFFD' else c) ->
        (if (character < ' ') f"U+${character.toInt}%04X" else s"$character")
    }

  /** The refusal where a newer version is published than the log has. */
  private[publish] def ahead(
      source: DeltaSource,
      newest: TableAtVersion,
      published: Long
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "AHEAD",
      Map(
        "table" -> source.name,
        "published" -> published.toString,
        "version" -> newest.number.toString,
        "metadata" -> new Path(source.root, "metadata").toString
      )
    )

  /** The refusal to settle a snapshot that is not in the published metadata. */
  private[publish] def noSuchCommit(table: String, snapshotId: Long): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "NO_SUCH_COMMIT",
      Map("table" -> table, "snapshot" -> snapshotId.toString)
    )
}
