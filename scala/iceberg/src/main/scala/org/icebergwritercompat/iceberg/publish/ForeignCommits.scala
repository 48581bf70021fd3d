package org.icebergwritercompat.iceberg.publish

import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.remedy.Remedy

/** The refusals to publish over what Iceberg writers have committed or changed past Delta. */
private[publish] object ForeignCommits {

  /** Refuses to go on while there is something of other writers. */
  def refuse(table: String, publisher: IcebergPublisher): Unit =
    refusal(table, publisher).foreach(throw _)

  /** The refusal; `None` if nobody else has written. */
  def refusal(table: String, publisher: IcebergPublisher): Option[IcebergWriterCompatException] =
    Option(publisher.foreign)
      .filter(_.nonEmpty)
      .map { commits =>
        commits.flatMap(_.obstacle).headOption match {
          case None           => ofCommits(table, publisher, commits)
          case Some(obstacle) => notTaken(table, publisher, commits, obstacle)
        }
      }
      .orElse(ofChanges(table, publisher))

  private def ofChanges(
      table: String,
      publisher: IcebergPublisher
  ): Option[IcebergWriterCompatException] =
    Option(publisher.altered).filter(_.nonEmpty).map { changes =>
      val metadata = publisher.metadata.fold("")(_.metadataFileLocation)
      IcebergWriterCompatException.notPublishable(
        "FOREIGN_CHANGE",
        Map("table" -> table, "metadata" -> metadata, "changes" -> changes.mkString("; ")),
        Remedy.Publish(table, Seq("discard-changes" -> Some(PublishedMetadata.fileName(metadata))))
      )
    }

  private def ofCommits(
      table: String,
      publisher: IcebergPublisher,
      commits: Seq[ForeignCommit]
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "FOREIGN_COMMIT",
      parameters(table, publisher, commits),
      settling(table, "take-snapshot", commits)
    )

  /** The refusal of commits whose rows cannot be appended to the Delta table. */
  def notTaken(
      table: String,
      publisher: IcebergPublisher,
      commits: Seq[ForeignCommit],
      obstacle: String
  ): IcebergWriterCompatException =
    IcebergWriterCompatException.notPublishable(
      "NOT_TAKEN",
      parameters(table, publisher, commits) + ("obstacle" -> obstacle),
      settling(table, "discard-snapshot", commits)
    )

  private def settling(table: String, option: String, commits: Seq[ForeignCommit]): Remedy =
    Remedy.Publish(table, Seq(option -> Some(commits.last.snapshotId.toString)))

  private def parameters(
      table: String,
      publisher: IcebergPublisher,
      commits: Seq[ForeignCommit]
  ): Map[String, String] = Map(
    "table" -> table,
    "metadata" -> publisher.metadata.fold("")(_.metadataFileLocation),
    "commits" -> commits.map(_.text).mkString("; ")
  )
}
