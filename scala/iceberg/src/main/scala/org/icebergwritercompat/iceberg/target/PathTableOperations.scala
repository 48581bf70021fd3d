package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FilterFileSystem, Path}
import org.apache.iceberg.{CatalogUtil, LocationProviders, TableMetadata}
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.icebergwritercompat.iceberg.metadata.MetadataFileNames
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.slf4j.{Logger, LoggerFactory}
import org.icebergwritercompat.iceberg.metadata.MetadataJson

import java.io.{BufferedOutputStream, FileNotFoundException}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, StandardCopyOption}
import java.util.UUID
import scala.util.control.NonFatal
import scala.util.matching.Regex
import scala.util.{Try, Using}

/** Writes the lines of a new file; returns false if the file exists. */
trait WriteOnce {

  /** Creates the file completely or not at all, also with concurrent writers. */
  def apply(file: Path, lines: Iterator[String]): Boolean
}

/**
 * The Iceberg metadata of a path table: `metadata/vN.metadata.json`, and a hint with the newest N.
 *
 * The files are those of Iceberg's `HadoopTableOperations`, which readers use. That class checks
 * whether a version exists and then renames a file, so that two processes can both succeed. Here
 * the file system, or Delta's log store, creates the file atomically. `HadoopTableOperations` also
 * fails if the newest version cannot be read or the hint is wrong.
 *
 * @param name
 *   the table, for messages
 * @param catalogTable
 *   its name in a Hadoop catalog
 */
final class PathTableOperations(
    name: String,
    root: Path,
    conf: Configuration,
    writeOnce: WriteOnce,
    override val catalogTable: Option[String] = None
) extends PublishTarget {

  import PathTableOperations._

  private lazy val disk = LocalDisk.fileSystem(root, conf)

  private val files = new MetadataFiles(conf, disk)

  private val folder = new Path(root, "metadata")

  private lazy val fs = new CommittingFileSystem(disk, writeOnce)

  private var seen: Option[Seen] = None

  // After an own change, the metadata is known and need not be read.
  private var changed = false

  private var aside: Seq[String] = Nil

  override def io(): FileIO = files

  override def metadataFileLocation(fileName: String): String = new Path(folder, fileName).toString

  override def locationProvider(): LocationProvider =
    LocationProviders.locationsFor(root.toString, java.util.Map.of[String, String]())

  override def found(): Found = look().found

  override def refresh(): TableMetadata = { seen = None; current() }

  override def abandon(lost: Found.Lost): Unit = seen = Some(look().copy(found = lost))

  override def setAside: Seq[String] = aside

  override def check(metadata: TableMetadata): Unit =
    CatalogPlace.of(metadata).filter(_ => isHere(metadata)).foreach { place =>
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

  override def continueHere(): Unit = ()

  override def properties: Map[String, String] = Map.empty

  // From an older version readers proceed to the newest.
  override def misleading: Option[String] = {
    val number = look().number
    def right(hinted: Int) =
      hinted > 0 && hinted <= number && (hinted to number).forall(fileOf(_).isDefined)
    Option.when(number > 0 && !hint().exists(right) && fs.exists(new Path(folder, hintName))) {
      s"$hintName names a version of the metadata that does not exist; the newest is $number."
    }
  }

  /** Writes the newest version into the hint. */
  override def repair(): Unit = {
    val number = look().number
    if (number > 0 && !hint().contains(number)) writeHint(number)
  }

  override def commit(base: TableMetadata, metadata: TableMetadata): Unit = {
    val (number, unreadable) = look() match {
      case Seen(number, Found.Lost(_, unreadable)) => number -> unreadable
      case Seen(number, _)                         => number -> Nil
    }
    if (base ne current()) throw lost(number + 1)
    write(number + 1, metadata)
    CatalogUtil.deleteRemovedMetadataFiles(io(), base, metadata)
    unreadable.foreach(putAside)
    changed = true
    seen = None
  }

  /** The place where the newest readable metadata is continued, according to its properties. */
  private[iceberg] def goesOnIn: Option[CatalogPlace] =
    (look().number to 1 by -1).iterator.flatMap(readable).nextOption().flatMap(CatalogPlace.of)

  override def putAside(file: String): Unit = {
    val from = new Path(file)
    val names = from.getName +: Iterator.from(2).take(100).map(i => s"${from.getName}-$i").toSeq
    val kept = names.iterator.map(n => new Path(from.getParent, s"$n.unreadable"))
    // Another process may have done it.
    Try(kept.find(!fs.exists(_)).filter(fs.keep(from, _))).toOption.flatten.foreach { to =>
      aside :+= to.toString
    }
  }

  private def look(): Seen = seen.getOrElse {
    val number = newest()
    val now = Seen(number, fileOf(number).fold[Found](Found.Absent)(classify(number, _)))
    seen = Some(now)
    now
  }

  private def classify(number: Int, file: Path): Found =
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

  private def byCatalog: Seq[(BigInt, Path)] = list().collect { case file @ CatalogFile(number) =>
    BigInt(number) -> new Path(folder, file)
  }

  /** Metadata files of a catalog that are truncated or damaged. */
  private[iceberg] def damagedByCatalog: Seq[Damage] = byCatalog.flatMap { case (_, file) =>
    Try(read(file).left.toOption).toOption.flatten.filter(_.isThere)
  }

  private def read(file: Path): Either[Damage, TableMetadata] =
    Damage.orElse(io(), file.toString)(RecentMetadata.read(file, fs, io()))

  private def readable(number: Int): Option[TableMetadata] =
    fileOf(number).flatMap(read(_).toOption)

  // Readers start at the version of the hint and look for later ones.
  private def newest(): Int =
    hint().filter(number => number > 0 && fileOf(number).isDefined) match {
      case Some(hinted) =>
        Iterator
          .from(hinted)
          .takeWhile(n => n == hinted || fileOf(n).isDefined)
          .foldLeft(0)(_ max _)
      case None => list().flatMap(numberOf).maxOption.getOrElse(0)
    }

  private def numberOf(file: String): Option[Int] = file match {
    case PathFile(number) => number.toIntOption
    case _                => None
  }

  private def fileOf(number: Int): Option[Path] =
    endings.iterator.map(ending => new Path(folder, s"v$number$ending")).find(fs.exists(_))

  private def list(): Seq[String] =
    try fs.listStatus(folder).toSeq.map(_.getPath.getName)
    catch { case _: FileNotFoundException => Nil }

  private def hint(): Option[Int] = {
    val file = new Path(folder, hintName)
    Try(Using.resource(fs.open(file))(in => new String(in.readAllBytes, UTF_8))).toOption
      .flatMap(_.trim.toIntOption)
  }

  private def write(number: Int, metadata: TableMetadata): Unit = {
    // Not all readers find compressed metadata in a folder.
    val ending = endings.head
    val written = new Path(folder, s"${UUID.randomUUID}$ending")
    val file = new Path(folder, s"v$number$ending")
    def won = fileOf(number).isEmpty && fs.rename(written, file)
    try {
      Using.resource(new BufferedOutputStream(io().newOutputFile(written.toString).create())) {
        MetadataJson.write(metadata, _)
      }
      if (!won) throw lost(number)
    } catch {
      case NonFatal(e) =>
        Try(fs.delete(written, false))
        throw e
    }
    RecentMetadata.keep(file, fs, metadata)
    // The commit is made; readers look for later versions than that of the hint.
    try writeHint(number)
    catch { case NonFatal(e) => logger.warn(s"The version hint of $name could not be updated", e) }
  }

  private def lost(number: Int): CommitFailedException =
    new CommitFailedException(s"Version $number of the metadata of $name exists already")

  private def writeHint(number: Int): Unit = {
    val file = new Path(folder, hintName)
    val written = new Path(folder, s"${UUID.randomUUID}-$hintName")
    Using.resource(fs.create(written, false))(_.write(number.toString.getBytes(UTF_8)))
    fs.delete(file, false)
    fs.rename(written, file)
    ()
  }
}

private object PathTableOperations {

  /** The number of the newest version of the metadata, 0 if there is none, and its state. */
  final case class Seen(number: Int, found: Found)

  val hintName = "version-hint.text"

  val version: Regex = """v(\d+)\..*""".r

  val PathFile: Regex = MetadataFileNames.OfPath

  val CatalogFile: Regex = MetadataFileNames.OfCatalog

  val endings: Seq[String] = MetadataFileNames.Endings

  val logger: Logger = LoggerFactory.getLogger(classOf[PathTableOperations])
}

/** A file system that creates a metadata file only once, and replaces the hint atomically. */
private final class CommittingFileSystem(inner: FileSystem, writeOnce: WriteOnce)
    extends FilterFileSystem(inner) {

  override def rename(from: Path, to: Path): Boolean =
    if (to.getName == PathTableOperations.hintName) replace(from, to) else publish(from, to)

  /** Renames a file to a name that does not exist. */
  def keep(from: Path, to: Path): Boolean = inner.rename(from, to)

  // On a local file system a rename replaces the existing file.
  override def delete(path: Path, recursive: Boolean): Boolean =
    if (isLocal && path.getName == PathTableOperations.hintName) true
    else inner.delete(path, recursive)

  private def isLocal: Boolean = inner.getScheme == "file"

  private def local(path: Path): java.nio.file.Path = java.nio.file.Path.of(path.toUri.getPath)

  private def replace(from: Path, to: Path): Boolean =
    if (wouldGoBack(from, to)) inner.delete(from, false)
    else if (!isLocal) inner.rename(from, to)
    else {
      Files.deleteIfExists(checksum(to))
      Files.move(
        local(from),
        local(to),
        StandardCopyOption.ATOMIC_MOVE,
        StandardCopyOption.REPLACE_EXISTING
      )
      Files.deleteIfExists(checksum(from))
      true
    }

  // A publisher that was suspended must not set the hint back to a version that may be removed.
  private def wouldGoBack(from: Path, to: Path): Boolean = {
    def version(hint: Path): Option[BigInt] =
      Try(
        Using.resource(inner.open(hint))(in => BigInt(new String(in.readAllBytes, UTF_8).trim))
      ).toOption
    version(to).zip(version(from)).exists { case (there, next) =>
      there > next && isThere(to.getParent, there)
    }
  }

  private def checksum(path: Path): java.nio.file.Path =
    local(path).resolveSibling(s".${path.getName}.crc")

  private def publish(from: Path, to: Path): Boolean = {
    val written =
      if (!goesOn(to)) false
      else if (isLocal) link(from, to)
      else {
        val text = Using.resource(inner.open(from))(in => new String(in.readAllBytes, UTF_8))
        writeOnce(to, text.linesIterator)
      }
    // The version may not have existed because it was removed since the metadata was read.
    val published = written && (goesOn(to) || { inner.delete(to, false); false })
    // The version is published; the temporary file does not matter.
    if (published) Try(inner.delete(from, false))
    published
  }

  // Old versions are removed from the oldest on. So to a publisher that was suspended a version can
  // seem not to exist, but then the previous one does not exist either.
  private def goesOn(to: Path): Boolean = to.getName match {
    case PathTableOperations.version("1") =>
      inner
        .listStatus(to.getParent)
        .forall(_.getPath.getName match {
          case PathTableOperations.PathFile(number) => number == "1"
          case _                                    => true
        })
    case PathTableOperations.version(number) => isThere(to.getParent, BigInt(number) - 1)
    case _                                   => true
  }

  private def isThere(folder: Path, version: BigInt): Boolean =
    PathTableOperations.endings.exists { ending =>
      inner.exists(new Path(folder, s"v$version$ending"))
    }

  private def link(from: Path, to: Path): Boolean =
    try { Files.createLink(local(to), local(from)); true }
    catch { case _: FileAlreadyExistsException => false }
}
