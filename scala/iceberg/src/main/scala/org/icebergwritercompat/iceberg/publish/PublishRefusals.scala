package org.icebergwritercompat.iceberg.publish

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException
import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.{Causes, IcebergWriterCompatException}
import org.icebergwritercompat.iceberg.source.{DeltaSource, TableAtVersion}
import org.icebergwritercompat.iceberg.target.MetadataStore
import org.icebergwritercompat.model.WriterCompat

import java.nio.file.AccessDeniedException

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

  /** Whether a file system has refused to read or write a file, or has no space left. */
  private[publish] def isDenied(e: Throwable): Boolean = e match {
    case _: IcebergWriterCompatException => false
    case _                               =>
      Causes.of(e).exists {
        case _: AccessDeniedException | _: AccessControlException => true
        case cause                                                =>
          val message = String.valueOf(cause.getMessage)
          reasons.exists(message.contains) || MetadataStore.httpStatusOf(cause).exists(denying)
      }
  }

  // What Java and Hadoop take over from the operating system.
  private val reasons =
    Seq(
      "Permission denied",
      // What Hadoop's local file system makes of all reasons for which there is no new folder.
      "Mkdirs failed to create",
      "Read-only file system",
      "No space left on device",
      "quota exceeded",
      "Not a directory",
      "not a directory"
    )

  // Forbidden, and insufficient storage.
  private val denying = Set(403, 507)

  /** The refusal where the metadata cannot be written. */
  private[publish] def notWritable(
      source: DeltaSource,
      cause: Throwable
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.notWritable(
      source.name,
      new Path(source.root, "metadata").toString,
      cause
    )

  /** The refusal to settle a snapshot that is not in the published metadata. */
  private[publish] def noSuchCommit(table: String, snapshotId: Long): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "NO_SUCH_COMMIT",
      Map("table" -> table, "snapshot" -> snapshotId.toString)
    )
}
