package org.icebergwritercompat.iceberg.publish

import org.apache.hadoop.fs.Path
import org.apache.hadoop.fs.permission.FsAction
import org.apache.hadoop.security.AccessControlException
import org.icebergwritercompat.contracts.Contracts
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.source.{DeltaSource, TableAtVersion}
import org.icebergwritercompat.iceberg.target.Found
import org.icebergwritercompat.model.WriterCompat
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.{PublishProblem, PublishStatus}

import scala.util.{Failure, Success, Try}

/** What a process knows of a table that is published after each of its commits. */
trait AfterCommits {

  /** Whether a commit is still to be published in the background. */
  def isWaiting: Boolean

  /** Why the newest commit could not be published. */
  def lastFailure: Option[PublishProblem]
}

/** Tells how far a table is published, and what is wrong with that; nothing is changed. */
final class PublishInspection(
    source: DeltaSource,
    publishing: Publishing,
    afterCommits: AfterCommits
) {

  private val name = source.name

  private val publish = Remedy.Publish(name)

  /** How far the table is published, and what is wrong. */
  def status(): PublishStatus = {
    val newest = source.newest()
    val publisher = publishing.open(newest)
    val published = Try(publisher.publishedVersion).toOption.flatten
    val metadata = published.flatMap(_ => publisher.metadata)
    val problems = problemsOf(newest, publisher, whole = false)
    PublishStatus(
      name,
      newest.number,
      published,
      published.map(newest.number - _),
      metadata.flatMap(m => Option(m.currentSnapshot)).map(_.snapshotId),
      metadata.map(_.metadataFileLocation),
      publisher.catalogTable,
      if (problems.isEmpty) unpublished(newest, published).toSeq else problems
    )
  }

  /** What is wrong; all manifests of the current snapshot are read. */
  def problems(): Seq[PublishProblem] = {
    val newest = source.newest()
    problemsOf(newest, publishing.open(newest), whole = true)
  }

  // Commits that should have been published when they were made.
  private def unpublished(
      newest: TableAtVersion,
      published: Option[Long]
  ): Option[PublishProblem] = {
    val properties = newest.properties
    val asked = Contracts.isEnabled(properties) && WriterCompat.isPublished(properties)
    Option.when(asked && !published.contains(newest.number) && !afterCommits.isWaiting) {
      val failure = afterCommits.lastFailure
      val cause = failure.map(_.text).orElse(obstacle).fold("")(": " + _)
      val since = published.fold("")(version => s" since version $version")
      PublishProblem(
        s"The table asks to be published after each commit, but was not$since$cause",
        failure.fold[Remedy](publish)(_.remedy)
      )
    }
  }

  // What keeps everybody from publishing, if the folder shows it.
  private def obstacle: Option[String] = {
    val fs = source.root.getFileSystem(source.configuration)
    val folder = new Path(source.root, "metadata")
    val found = Try(fs.getFileStatus(folder)).toOption
    if (found.exists(!_.isDirectory)) Some(s"$folder is a file, where a folder must be.")
    else if (Try(fs.getStatus(source.root).getRemaining).toOption.contains(0L))
      Some(s"No space is left for ${source.root}.")
    else
      Try(fs.access(found.fold(source.root)(_.getPath), FsAction.WRITE)).failed.toOption.collect {
        case _: AccessControlException => s"$folder cannot be written to by this user."
      }
  }

  private def problemsOf(
      newest: TableAtVersion,
      publisher: IcebergPublisher,
      whole: Boolean
  ): Seq[PublishProblem] = Try(publisher.publishedVersion) match {
    case Failure(refusal: IcebergWriterCompatException) => Seq(problem(refusal))
    case Failure(e)                                     => throw e
    case Success(published)                             =>
      if (whole) publisher.lookWhole()
      val ahead = published.filter(_ > newest.number)
      val divergence = if (ahead.isEmpty) LogDivergence.of(newest, publisher) else None
      problemsOf(newest, publisher) ++
        ahead.map(version => problem(PublishRefusals.ahead(source, newest, version))) ++
        divergence.map(how => PublishProblem(s"${how.found} ${how.remedy}", publish))
  }

  private def problemsOf(
      newest: TableAtVersion,
      publisher: IcebergPublisher
  ): Seq[PublishProblem] = {
    val state = publisher.found match {
      case Found.Lost(why, _) =>
        Seq(
          s"Iceberg readers cannot go by what is published: $why. Publishing begins a new line of " +
            "metadata, which has the newest version only."
        )
      case _: Found.ByOthers           => Nil
      case _ if publisher.isRolledBack =>
        Seq("Somebody has made an older Iceberg snapshot the current one again.")
      case _ => Nil
    }
    val older = publisher.unreadableHistory.toSeq.sorted.map { case (snapshot, why) =>
      PublishProblem(
        s"Iceberg readers cannot open the older snapshot $snapshot: $why. It can be forgotten.",
        Remedy.Publish(name, Seq("mend" -> None))
      )
    }
    ForeignCommits.refusal(name, publisher).map(problem).toSeq ++
      (state ++ publisher.misleading).map(PublishProblem(_, publish)) ++ older ++
      PublishRefusals.ofFolder(source, newest).map(problem)
  }

  private def problem(refusal: IcebergWriterCompatException): PublishProblem = {
    val (text, remedy) = IcebergWriterCompatException.inOneLine(refusal)
    PublishProblem(text, remedy.getOrElse(publish))
  }
}
