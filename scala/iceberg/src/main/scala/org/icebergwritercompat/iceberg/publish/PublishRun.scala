package org.icebergwritercompat.iceberg.publish

import org.apache.iceberg.exceptions.CommitFailedException
import org.icebergwritercompat.contract.TableState
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata
import org.icebergwritercompat.iceberg.source.{
  CommitMark,
  DeltaCommit,
  DeltaSource,
  DeltaVersion,
  FileSystemsInReach,
  FileTotals,
  MissingCommit,
  Published,
  TableAtVersion,
  TableDefinition
}
import org.icebergwritercompat.iceberg.target.Found

import java.io.FileNotFoundException
import scala.util.Try

/** What a call of `publish` has done so far, in all its attempts. */
private[publish] final class PublishProgress {
  var before: Option[Option[Long]] = None
  var published: Published = Published.nothing
  var mended: Seq[String] = Nil
  var setAside: Seq[String] = Nil
}

/** One attempt to publish every commit up to a version. */
private[publish] final class PublishRun(
    source: DeltaSource,
    val publisher: IcebergPublisher,
    progress: PublishProgress,
    way: PublishWay
) {

  import PublishRun._

  /**
   * Publishes up to `newest`.
   *
   * @param suspicious
   *   whether the attempt before may have failed because of damaged manifests
   */
  def to(newest: TableAtVersion, suspicious: Boolean): Unit = {
    PublishRefusals.refuse(source, newest)
    if (way == PublishWay.Anew) publisher.abandon("a new line was asked for")
    else publisher.continueHere()
    if (suspicious) publisher.lookWhole()
    // Refuses metadata of another table before it could be taken for damaged metadata of this one.
    val published = publisher.publishedVersion
    if (progress.before.isEmpty) progress.before = Some(published)
    if (way == PublishWay.Mending) publisher.lookWhole()
    settle()
    val lost = publisher.found match {
      case Found.Lost(why, _) => Seq(why)
      case _                  => Nil
    }
    // Before manifests are written, which nothing would refer to.
    publisher.checkExclusive()
    goOn(newest)
    progress.mended ++= lost
    if (way == PublishWay.Mending) progress.mended ++= publisher.forgetUnreadable()
    progress.setAside ++= publisher.setAside
  }

  // What others have committed is dropped only if the caller names it.
  private def settle(): Unit = (publisher.found, way) match {
    case (theirs: Found.Foreign, PublishWay.Settled(snapshot))
        if theirs.snapshots.last.snapshotId == snapshot =>
      theirs.dead.foreach(publisher.abandon)
    case (theirs: Found.Altered, PublishWay.Discarding(file))
        if PublishedMetadata.fileName(theirs.metadata.metadataFileLocation) == file =>
      theirs.dead.foreach(publisher.abandon)
    case (_: Found.ByOthers, _) => ForeignCommits.refuse(source.name, publisher)
    case (_, PublishWay.Discarding(file)) if !publisher.hasBeen(file) =>
      throw IcebergWriterCompatException.notPublishable(
        "NO_SUCH_CHANGE",
        Map("table" -> source.name, "metadata" -> file)
      )
    case (_, PublishWay.Settled(snapshot))
        if publisher.metadata.forall(_.snapshot(snapshot) == null) =>
      throw PublishRefusals.noSuchCommit(source.name, snapshot)
    case _ =>
  }

  private def goOn(newest: TableAtVersion): Unit =
    publisher.publishedVersion match {
      case None                                     => count(begun(newest))
      case Some(version) if version > newest.number =>
        // Another publisher may have seen a newer version, but then the log has it by now.
        if (source.newest().number < version)
          throw PublishRefusals.ahead(source, newest, version)
      case Some(version) =>
        LogDivergence.of(newest, publisher) match {
          case Some(divergence) => goBack(newest, divergence)
          case None             => follow(version, newest)
        }
    }

  // A table that an Iceberg client has made begins with the client's snapshots; in version 1 if the
  // client has taken over what another one had begun.
  private def begun(newest: TableAtVersion): Published = {
    val first = Option
      .when(newest.number <= 1)(source.commits(newest.number, newest))
      .flatMap(_.nextOption())
      .filter(_.client.isDefined)
    val rules = rulesOf(newest)
    rules.refuse()
    first.foreach(_.added.foreach(rules(_)))
    first
      .flatMap(publisher.create(_, newest.definition, newest.totals))
      .getOrElse(publisher.create(newest.version, newest.definition, newest.live, rules))
  }

  // To the last commit that Delta's log has too, or to new metadata if there is none.
  private def goBack(newest: TableAtVersion, divergence: LogDivergence): Unit = {
    if (divergence.common.isDefined) whole(newest, divergence.common)
    else {
      publisher.abandon(divergence.found)
      goOn(newest)
    }
    progress.mended :+= s"${divergence.found} ${divergence.done}"
  }

  private def follow(published: Long, newest: TableAtVersion): Unit =
    if (publisher.foreign.nonEmpty || publisher.altered.nonEmpty || publisher.isRolledBack)
      whole(newest)
    else if (published == newest.number) publisher.repair()
    else {
      val rules = rulesOf(newest)
      rules.refuse()
      val isMissing =
        try !follow(published, newest, rules)
        catch { case _: FileNotFoundException | _: MissingCommit | _: BrokenCommit => true }
      if (isMissing) whole(newest)
    }

  // Commit by commit; false if the commits do not lead to the files of the newest version.
  private def follow(from: Long, newest: TableAtVersion, ofNewest: PublishRules): Boolean = {
    var rules = ofNewest
    var pending: Option[TableDefinition] = None
    var reached = from
    var last = Option.empty[DeltaVersion]
    val fits = source.commits(from + 1, newest).forall { commit =>
      commit.state.foreach(state => rules = rulesOf(commit.version.number, state))
      val check = rules.of(commit, mayBeBroken(commit))
      pending = commit.definition.orElse(pending)
      last = Some(commit.version)
      commit.client.isEmpty && !commit.changesFiles || {
        val isNewest = commit.version.number == newest.number
        val totals = if (isNewest) newest.totals else FileTotals.unknown
        val appended = publisher.append(commit, pending, totals, check)
        appended.foreach { what =>
          count(what)
          pending = None
          reached = commit.version.number
        }
        appended.isDefined
      }
    }
    if (fits && reached < newest.number)
      count(publisher.recordVersion(last.get.copy(timestamp = newest.timestamp), pending))
    fits
  }

  // The rules of the newest metadata need not be those of the commit, so it is asked again, once.
  private def mayBeBroken(commit: DeltaCommit): () => Unit = {
    val number = commit.version.number
    lazy val isBroken = rulesOf(source.at(number)).isBrokenBy(commit)
    () => if (isBroken) throw new BrokenCommit
  }

  // Not commit by commit, but as the difference between the live files and the published ones.
  private def whole(newest: TableAtVersion, common: Option[CommitMark] = None): Unit = {
    val rules = rulesOf(newest)
    rules.refuse()
    count(publisher.reconcile(newest.version, newest.definition, newest.live, common, rules))
  }

  private def rulesOf(version: TableAtVersion): PublishRules =
    rulesOf(version.number, version.state)

  private def rulesOf(number: Long, state: TableState): PublishRules =
    new PublishRules(number, state, reached)

  private lazy val reached = new FileSystemsInReach(source.configuration)

  private def count(what: Published): Unit = progress.published = progress.published.and(what)
}

private[publish] object PublishRun {

  /** A commit breaks a rule, which a later commit may have mended. */
  private final class BrokenCommit extends RuntimeException

  /** Whether another attempt, which reads the whole of all manifests, may find damage. */
  def mayBeDamage(e: Throwable, publisher: => IcebergPublisher): Boolean = e match {
    case _: IcebergWriterCompatException | _: CommitFailedException => false
    case _ => Try(publisher.lookWhole()).getOrElse(false)
  }
}
