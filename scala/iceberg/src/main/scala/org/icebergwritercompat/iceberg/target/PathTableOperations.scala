package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.iceberg.{CatalogUtil, LocationProviders, TableMetadata}
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.icebergwritercompat.iceberg.metadata.{MetadataFileNames, MetadataTimes}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.slf4j.{Logger, LoggerFactory}
import org.icebergwritercompat.iceberg.metadata.MetadataJson

import java.io.FileNotFoundException
import scala.annotation.tailrec
import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal
import scala.util.matching.Regex

/**
 * The Iceberg metadata of a path table: `metadata/vN.metadata.json`, and a hint with the newest N.
 *
 * The files are those of Iceberg's `HadoopTableOperations`, which readers use. That class checks
 * whether a version exists and then renames a file, so that two processes can both succeed. Here
 * the file system creates the file atomically ([[MetadataStore]]); if it cannot, publishing is
 * refused. `HadoopTableOperations` also fails if the newest version cannot be read or the hint is
 * wrong.
 *
 * @param name
 *   the table, for messages
 * @param catalogTable
 *   its name in a Hadoop catalog
 * @param scheme
 *   the scheme of S3 in the locations that metadata contains, if not that of the folder
 * @param goesOn
 *   where metadata that names a place in a catalog is continued; `None` if here
 */
final class PathTableOperations(
    name: String,
    root: Path,
    conf: Configuration,
    override val catalogTable: Option[String] = None,
    scheme: Option[String] = None,
    goesOn: TableMetadata => Option[CatalogPlace] = CatalogPlace.of
) extends PublishTarget {

  import PathTableOperations._

  private lazy val fs = LocalDisk.fileSystem(root, conf)

  private val files = new MetadataFiles(conf, root, fs)

  private val folder = new Path(root, "metadata")

  private val hintFile = new Path(folder, hintName)

  private lazy val exclusive = MetadataStore.of(fs, root, conf)

  // Reading works on every file system.
  private lazy val store = exclusive.getOrElse(MetadataStore.unexclusive(fs))

  private var seen: Option[Seen] = None

  // After an own change, the metadata is known and need not be read.
  private var changed = false

  private var aside: Seq[String] = Nil

  override def io(): FileIO = files

  override def spelled(location: Path): Path =
    scheme.fold(location)(StoreSchemes.spelled(location, _))

  override def metadataFileLocation(fileName: String): String =
    spelled(new Path(folder, fileName)).toString

  override def locationProvider(): LocationProvider =
    LocationProviders.locationsFor(spelled(root).toString, java.util.Map.of[String, String]())

  override def found(): Found = look().found

  override def refresh(): TableMetadata = { seen = None; current() }

  override def abandon(lost: Found.Lost): Unit = seen = Some(look().copy(found = lost))

  override def setAside: Seq[String] = aside

  override def checkExclusive(): Unit = if (exclusive.isEmpty) refuseFileSystem()

  override def check(metadata: TableMetadata): Unit =
    (if (isHere(metadata)) goesOn(metadata) else None).foreach { place =>
      throw IcebergWriterCompatException.notPublishable(
        "ELSEWHERE",
        Map(
          "table" -> name,
          "catalog" -> place.catalog,
          "catalogTable" -> place.table,
          "metadata" -> metadata.metadataFileLocation
        )
      )
    }

  // Metadata that names a place where it was never registered.
  override def continueHere(): Unit = look().found match {
    case Found.Line(metadata) if CatalogPlace.of(metadata).isDefined && isHere(metadata) =>
      check(metadata)
      val released =
        TableMetadata.buildFrom(metadata).removeProperties(CatalogPlace.properties.toSet.asJava)
      commit(metadata, MetadataTimes.build(released, Some(metadata)))
    case _ =>
  }

  override def properties: Map[String, String] = Map.empty

  // From an older version readers proceed to the newest.
  override def misleading: Option[String] = {
    val Seen(number, _, hint) = look()
    def right(hinted: Int) =
      hinted > 0 && hinted <= number && (hinted to number).forall(fileOf(_).isDefined)
    def isThere = hint.isDefined || store.isThere(hintFile)
    Option.when(number > 0 && !hint.flatMap(numberIn).exists(right) && isThere) {
      s"$hintName names a version of the metadata that does not exist; the newest is $number."
    }
  }

  /** Writes the newest version into the hint. */
  override def repair(): Unit = {
    val Seen(number, _, hint) = look()
    if (number > 0 && !hint.flatMap(numberIn).contains(number)) writeHint(number, hint)
  }

  override def commit(base: TableMetadata, metadata: TableMetadata): Unit = {
    val Seen(number, found, hint) = look()
    val unreadable = found match {
      case Found.Lost(_, unreadable) => unreadable
      case _                         => Nil
    }
    if (base ne current()) throw lost(number + 1)
    val written = write(number + 1, MetadataTimes.asOfCommit(Option(base), metadata), hint)
    CatalogUtil.deleteRemovedMetadataFiles(io(), base, metadata)
    unreadable.foreach(putAside)
    changed = true
    seen = written
  }

  /** The place where the newest readable metadata is continued, according to its properties. */
  private[iceberg] def goesOnIn: Option[CatalogPlace] =
    (look().number to 1 by -1).iterator.flatMap(readable).nextOption().flatMap(CatalogPlace.of)

  override def putAside(file: String): Unit = {
    val from = StoreSchemes.as(root, new Path(file))
    val names = from.getName +: Iterator.from(2).take(100).map(i => s"${from.getName}-$i").toSeq
    val kept = names.iterator.map(n => new Path(from.getParent, s"$n.unreadable"))
    // Another process may have done it.
    Try(kept.find(!fs.exists(_)).filter(fs.rename(from, _))).toOption.flatten.foreach { to =>
      aside :+= to.toString
    }
  }

  private def look(): Seen = seen.getOrElse {
    val hint = store.read(hintFile)
    val newest = this.newest(hint)
    val now = Seen(
      newest.fold(0)(_.number),
      newest.fold[Found](Found.Absent)(version => classify(version.number, version.status)),
      hint
    )
    seen = Some(now)
    now
  }

  private def classify(number: Int, file: FileStatus): Found =
    read(file) match {
      case Left(damage) =>
        // Damaged metadata that this project did not publish is still not ours.
        (number - 1 to 1 by -1).iterator.flatMap(readable).nextOption() match {
          case Some(older) if !Found.isOurs(older) => Found.Line(older)
          case _ => Found.Lost(s"$damage", Some(damage.file).filter(_ => damage.isThere).toSeq)
        }
      case Right(metadata) =>
        if (!Found.isOurs(metadata)) Found.Line(metadata)
        else if (!isHere(metadata)) {
          val why = s"it was published in the folder ${metadata.location}, and is now in $root"
          // A catalog may have continued it.
          val last = lastByCatalog(metadata) :+ metadata
          val back = s"$why (if the table is moved back, it can be taken over)"
          last.flatMap(Found.byOthers(_, Some(back))).headOption.getOrElse(Found.Lost(why, Nil))
        } else
          Found.byOthers(metadata, None).getOrElse {
            // The table is in a catalog, whose metadata no longer lists this version.
            if (changed || CatalogPlace.of(metadata).isDefined) Found.Line(metadata)
            else PublishTarget.whole(metadata, io())
          }
    }

  private def isHere(metadata: TableMetadata): Boolean =
    Found.samePlace(new Path(metadata.location), root)

  /**
   * The newest metadata that a catalog has written for a line that began in this folder. After a
   * lost race two files have the same number. Numbers begin again with each line.
   */
  private[iceberg] def lastByCatalog(begun: TableMetadata): Seq[TableMetadata] =
    if (CatalogPlace.of(begun).isEmpty) Nil
    else {
      val written = byCatalog.flatMap { case (number, file) =>
        read(file).toOption.filter(_.uuid == begun.uuid).map(number -> _)
      }
      val newest = written.map(_._1).maxOption
      written.collect { case (number, metadata) if newest.contains(number) => metadata }
    }

  private def byCatalog: Seq[(BigInt, FileStatus)] = list().flatMap { file =>
    file.getPath.getName match {
      case CatalogFile(number) => Some(BigInt(number) -> file)
      case _                   => None
    }
  }

  /** Metadata files of a catalog that are truncated or damaged. */
  private[iceberg] def damagedByCatalog: Seq[Damage] = byCatalog.flatMap { case (_, file) =>
    Try(read(file).left.toOption).toOption.flatten.filter(_.isThere)
  }

  private def read(file: FileStatus): Either[Damage, TableMetadata] = {
    val path = new Path(metadataFileLocation(file.getPath.getName))
    Damage.orElse(io(), path.toString)(RecentMetadata.read(path, file, fs, io()))
  }

  private def readable(number: Int): Option[TableMetadata] =
    fileOf(number).flatMap(file => read(file).toOption)

  // Readers start at the version of the hint and look for later ones.
  private def newest(hint: Option[ReadFile]): Option[Version] =
    hint.flatMap(numberIn).filter(_ > 0).flatMap(version(_, isExpected = true)) match {
      case Some(hinted) =>
        Iterator
          .iterate(Option(hinted))(_.flatMap(v => version(v.number + 1, isExpected = false)))
          .takeWhile(_.isDefined)
          .foldLeft(Option(hinted))((_, next) => next)
      case None =>
        list().flatMap(file => numberOf(file).map(Version(_, file))).maxByOption(_.number)
    }

  private def numberIn(hint: ReadFile): Option[Int] = hint.text.trim.toIntOption

  private def numberOf(file: FileStatus): Option[Int] = file.getPath.getName match {
    case PathFile(number) => number.toIntOption
    case _                => None
  }

  private def fileOf(number: Int): Option[FileStatus] =
    version(number, isExpected = false).map(_.status)

  // The status of a file that exists takes one request on S3, and of one that does not exist, two.
  private def version(number: Int, isExpected: Boolean): Option[Version] = {
    def statusOf(file: Path): Option[FileStatus] =
      try Some(fs.getFileStatus(file))
      catch { case _: FileNotFoundException => None }
    val spelled = endings.iterator.map(ending => new Path(folder, s"v$number$ending"))
    val expected = if (isExpected) statusOf(spelled.next()) else None
    expected.orElse(spelled.filter(store.isThere).flatMap(statusOf).nextOption()).map {
      Version(number, _)
    }
  }

  private def list(): Seq[FileStatus] =
    try fs.listStatus(folder).toSeq
    catch { case _: FileNotFoundException => Nil }

  private def write(
      number: Int,
      metadata: TableMetadata,
      hint: Option[ReadFile]
  ): Option[Seen] = {
    // Not all readers find compressed metadata in a folder.
    val file = new Path(folder, s"v$number${endings.head}")
    val writing =
      exclusive.getOrElse(if (CatalogPlace.of(metadata).isDefined) store else refuseFileSystem())
    // Without a conditional PUT, a file would be written and then removed.
    if (!writing.comparesBefore && (fileOf(number).isDefined || !goesOn(number))) throw lost(number)
    if (!writing.create(file)(MetadataJson.write(metadata, _))) throw lost(number)
    // The version may not have existed because it was removed since the metadata was read.
    if (!goesOn(number)) {
      fs.delete(file, false)
      throw lost(number)
    }
    val asRead = RecentMetadata.keep(spelled(file), file, fs, metadata)
    // The commit is made; readers look for later versions than that of the hint.
    val hinted =
      try writeHint(number, hint)
      catch {
        case NonFatal(e) =>
          logger.warn(s"The version hint of $name could not be replaced", e)
          None
      }
    for { line <- asRead; _ <- hinted } yield Seen(number, Found.Line(line), hinted)
  }

  // Old versions are removed from the oldest on. So to a publisher that was suspended a version can
  // seem not to exist, but then the previous one does not exist either.
  private def goesOn(number: Int): Boolean =
    if (number == 1) list().flatMap(numberOf).forall(_ == 1)
    else endings.exists(ending => store.isThere(new Path(folder, s"v${number - 1}$ending")))

  private def refuseFileSystem(): Nothing =
    throw IcebergWriterCompatException.notPublishable(
      "NOT_EXCLUSIVE",
      Map(
        "table" -> name,
        "folder" -> root.toString,
        "fileSystem" -> fs.getClass.getName,
        "scheme" -> MetadataStore.schemeOf(fs),
        "setting" -> s"${MetadataStore.Setting}${MetadataStore.schemeOf(fs)}"
      )
    )

  private def lost(number: Int): CommitFailedException =
    new CommitFailedException(s"Version $number of the metadata of $name exists already")

  /** Writes a version into the hint; `None` if the hint already names a later version. */
  private def writeHint(number: Int, seen: Option[ReadFile]): Option[ReadFile] = {
    @tailrec def attempt(before: Option[ReadFile], left: Int): Option[ReadFile] = {
      // A publisher that was suspended must not set the hint back to a version that may be removed.
      val goesBack = before.flatMap(numberIn).exists(n => n > number && fileOf(n).isDefined)
      if (goesBack) None
      else if (store.replace(hintFile, number.toString, before))
        Some(ReadFile(number.toString, None))
      else if (left > 0) attempt(store.read(hintFile), left - 1)
      else None
    }
    val isKnown = store.comparesBefore && seen.forall(_.etag.isDefined)
    attempt(if (isKnown) seen else store.read(hintFile), hintRetries)
  }
}

private object PathTableOperations {

  /** The number of the newest version, 0 if there is none, its state, and the hint as read. */
  final case class Seen(number: Int, found: Found, hint: Option[ReadFile])

  final case class Version(number: Int, status: FileStatus)

  // Each retry means that another publisher has published a later version.
  val hintRetries = 20

  val hintName = "version-hint.text"

  val PathFile: Regex = MetadataFileNames.OfPath

  val CatalogFile: Regex = MetadataFileNames.OfCatalog

  val endings: Seq[String] = MetadataFileNames.Endings

  val logger: Logger = LoggerFactory.getLogger(classOf[PathTableOperations])
}
