package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FilterFileSystem, Path}
import org.apache.iceberg.{CatalogUtil, LocationProviders, TableMetadata}
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.io.{FileIO, LocationProvider}
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

/** Writes the lines of a file that is not there yet; false if it is. */
trait WriteOnce {

  /** Either the whole file is there afterwards or nothing of it, whoever else tries. */
  def apply(file: Path, lines: Iterator[String]): Boolean
}

/**
 * The Iceberg metadata of a path table: `metadata/vN.metadata.json` and the hint which is newest.
 *
 * The files are those of Iceberg's `HadoopTableOperations`, with which readers open the table. That
 * looks whether a version is there and then renames, which lets two processes both succeed: here
 * the file system, or Delta's log store for it, decides. It also fails where the newest version
 * cannot be read, and where the hint is wrong.
 *
 * @param name
 *   the table, for a person
 * @param catalogTable
 *   its name in a catalog that is nothing but folders
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

  // What was looked at and is then changed here is as it was written.
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

  override def takeOver(): Unit = ()

  override def properties: Map[String, String] = Map.empty

  // From an older version readers go on to the newest by themselves.
  override def misleading: Option[String] = {
    val number = look().number
    def right(hinted: Int) =
      hinted > 0 && hinted <= number && (hinted to number).forall(fileOf(_).isDefined)
    Option.when(number > 0 && !hint().exists(right) && fs.exists(new Path(folder, hintName))) {
      s"$hintName names a version of the metadata that is not there; the newest is $number."
    }
  }

  /** Lets the hint name the newest version. */
  override def mend(): Unit = {
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

  /** Where the newest metadata that can be read says that it goes on. */
  private[iceberg] def goesOnIn: Option[CatalogPlace] =
    (look().number to 1 by -1).iterator.flatMap(readable).nextOption().flatMap(CatalogPlace.of)

  override def putAside(file: String): Unit = {
    val from = new Path(file)
    val names = from.getName +: Iterator.from(2).take(100).map(i => s"${from.getName}-$i").toSeq
    val kept = names.iterator.map(n => new Path(from.getParent, s"$n.unreadable"))
    // It may be that somebody else has done it.
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
        // What is somebody else's is not to be taken for ours for being damaged.
        (number - 1 to 1 by -1).iterator.flatMap(readable).nextOption() match {
          case Some(older) if !Found.isOurs(older) => Found.Line(older)
          case _ => Found.Lost(s"$damage", Some(damage.file).filter(_ => damage.isThere).toSeq)
        }
      case Right(metadata) =>
        if (!Found.isOurs(metadata)) Found.Line(metadata)
        else if (!isHere(metadata)) {
          val why = s"it was published in the folder ${metadata.location}, and is in $root now"
          // A catalog that it was in has gone on from it.
          val last = lastByCatalog(metadata) :+ metadata
          val back = s"$why (moved back there, it could be taken over)"
          last.flatMap(Found.byOthers(_, Some(back))).headOption.getOrElse(Found.Lost(why, Nil))
        } else
          Found.byOthers(metadata, None).getOrElse {
            // A catalog goes on from it, and has forgotten what it began with.
            if (changed || CatalogPlace.of(metadata).isDefined) Found.Line(metadata)
            else PublishTarget.whole(metadata, io())
          }
    }

  private def isHere(metadata: TableMetadata): Boolean =
    Found.samePlace(new Path(metadata.location), root)

  /**
   * The newest metadata that a catalog has written of a line that was begun here: two of a number,
   * if one of them lost a race. Numbers begin anew with each line.
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

  /** Metadata files that a catalog has written, and that break off or have other bytes. */
  private[iceberg] def damagedByCatalog: Seq[Damage] = byCatalog.flatMap { case (_, file) =>
    Try(read(file).left.toOption).toOption.flatten.filter(_.isThere)
  }

  private def read(file: Path): Either[Damage, TableMetadata] =
    Damage.orElse(io(), file.toString)(RecentMetadata.read(file, fs, io()))

  private def readable(number: Int): Option[TableMetadata] =
    fileOf(number).flatMap(read(_).toOption)

  // Readers go by the hint, and from there to what follows.
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
    // Compressed, it would not be found in a folder by all readers.
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
    // It is committed all the same, and readers go on from the hint by themselves.
    try writeHint(number)
    catch { case NonFatal(e) => logger.warn(s"The version hint of $name is left as it was", e) }
  }

  private def lost(number: Int): CommitFailedException =
    new CommitFailedException(s"Version $number of the metadata of $name is there already")

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

  /** The newest version of the metadata, 0 if there is none, and what it is. */
  final case class Seen(number: Int, found: Found)

  val hintName = "version-hint.text"

  val version: Regex = """v(\d+)\..*""".r

  val PathFile: Regex = """v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?""".r

  val CatalogFile: Regex = """(\d+)-[0-9a-f-]{36}(?:\.gz)?\.metadata\.json(?:\.gz)?""".r

  val endings: Seq[String] = Seq(".metadata.json", ".gz.metadata.json", ".metadata.json.gz")

  val logger: Logger = LoggerFactory.getLogger(classOf[PathTableOperations])
}

/** A file system where a metadata file is written once, and the hint is never missing. */
private final class CommittingFileSystem(inner: FileSystem, writeOnce: WriteOnce)
    extends FilterFileSystem(inner) {

  override def rename(from: Path, to: Path): Boolean =
    if (to.getName == PathTableOperations.hintName) replace(from, to) else publish(from, to)

  /** Gives a file another name, under which there is none. */
  def keep(from: Path, to: Path): Boolean = inner.rename(from, to)

  // What a rename replaces on a local file system need not be deleted first.
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

  // Whoever slept since he published is not to send readers back to what may be gone by now.
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
    // The version may have been free because it was removed since the first look.
    val published = written && (goesOn(to) || { inner.delete(to, false); false })
    // It is published whatever becomes of the file it was made of.
    if (published) Try(inner.delete(from, false))
    published
  }

  // Old versions are cleared away from the oldest on, so that a version may seem free to whoever
  // slept, but not with the one before it there.
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
