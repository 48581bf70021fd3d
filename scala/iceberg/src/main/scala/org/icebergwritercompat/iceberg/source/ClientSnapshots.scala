package org.icebergwritercompat.iceberg.source

import com.fasterxml.jackson.databind.ObjectMapper

import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * The snapshots of an Iceberg client that a commit of Delta was made from. The commit notes them,
 * and whoever publishes it puts them into the metadata instead of a snapshot of its own, so that
 * the client finds its ids again.
 *
 * @param tableId
 *   the id of the line of metadata that they continue
 * @param base
 *   the current snapshot that they were made on; `None` if the table had none
 * @param snapshots
 *   each as JSON of Iceberg, oldest first; the last is to be the current one
 * @param ownFiles
 *   whether the manifests of the snapshots are not to be published, but only their ids: because
 *   deleted rows were taken out of their files, or because readers fail with what they say of files
 */
final case class ClientSnapshots(
    tableId: String,
    base: Option[Long],
    snapshots: Seq[String],
    ownFiles: Boolean = false
) {

  /** The note, as the commit has it. */
  def json: String = {
    val root = ClientSnapshots.mapper.createObjectNode()
    root.put("table-uuid", tableId)
    base.foreach(root.put("base-snapshot-id", _))
    if (ownFiles) root.put("own-files", true)
    val list = root.putArray("snapshots")
    snapshots.foreach(snapshot => list.add(ClientSnapshots.mapper.readTree(snapshot)))
    root.toString
  }
}

object ClientSnapshots {

  /** The key of the note in the tags of a commit. */
  val Tag = "icebergWriterCompat.snapshots"

  /** Reads a note; `None` where it is none. */
  def parse(json: String): Option[ClientSnapshots] = Try {
    val root = mapper.readTree(json)
    ClientSnapshots(
      root.get("table-uuid").asText,
      Option(root.get("base-snapshot-id")).map(_.asLong),
      root.get("snapshots").elements.asScala.map(_.toString).toSeq,
      Option(root.get("own-files")).exists(_.asBoolean)
    )
  }.toOption

  /** The note in the tags of a commit, if there is one. */
  def in(tags: Map[String, String]): Option[ClientSnapshots] =
    tags.get(Tag).filter(_ != null).flatMap(parse)

  private val mapper = new ObjectMapper
}
