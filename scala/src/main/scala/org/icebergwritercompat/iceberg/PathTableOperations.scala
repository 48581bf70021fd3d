package org.icebergwritercompat.iceberg

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, FilterFileSystem, Path}
import org.apache.iceberg.hadoop.{HadoopFileIO, HadoopTableOperations}
import org.apache.iceberg.TableMetadata
import org.apache.iceberg.util.LockManagers
import org.icebergwritercompat.errors.IcebergWriterCompatException

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{FileAlreadyExistsException, Files, StandardCopyOption}
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
 * Iceberg's own operations look whether a version is there and then rename, which lets two
 * processes both succeed. Here the file system, or Delta's log store for it, decides.
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
) extends HadoopTableOperations(
      root,
      new HadoopFileIO(conf),
      conf,
      LockManagers.defaultLockManager
    )
    with PublishTarget {

  override protected def getFileSystem(path: Path, hadoopConf: Configuration): FileSystem =
    new CommittingFileSystem(super.getFileSystem(path, hadoopConf), writeOnce)

  override def check(metadata: TableMetadata): Unit =
    CatalogPlace.of(metadata).foreach { place =>
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

  /** Lets the hint name the newest version. */
  override def mend(): Unit = {
    val metadata = new Path(root, "metadata")
    val newest =
      new Path(current().metadataFileLocation).getName.stripPrefix("v").takeWhile(_.isDigit)
    val hint = new Path(metadata, PathTableOperations.hint)
    val fs = getFileSystem(hint, conf)
    val found = Try(Using.resource(fs.open(hint))(in => new String(in.readAllBytes, UTF_8).trim))
    if (!found.toOption.contains(newest)) {
      val written = new Path(metadata, s"${java.util.UUID.randomUUID}-${PathTableOperations.hint}")
      Using.resource(fs.create(written, false))(_.write(newest.getBytes(UTF_8)))
      fs.delete(hint, false)
      fs.rename(written, hint)
      ()
    }
  }
}

private object PathTableOperations {

  val hint = "version-hint.text"

  val version: Regex = """v(\d+)\..*""".r
}

/** A file system where a metadata file is written once, and the hint is never missing. */
private final class CommittingFileSystem(inner: FileSystem, writeOnce: WriteOnce)
    extends FilterFileSystem(inner) {

  override def rename(from: Path, to: Path): Boolean =
    if (to.getName == PathTableOperations.hint) replace(from, to) else publish(from, to)

  // What a rename replaces on a local file system need not be deleted first.
  override def delete(path: Path, recursive: Boolean): Boolean =
    if (isLocal && path.getName == PathTableOperations.hint) true
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
          case PathTableOperations.version(number) => number == "1"
          case _                                   => true
        })
    case PathTableOperations.version(number) => isThere(to.getParent, BigInt(number) - 1)
    case _                                   => true
  }

  private def isThere(folder: Path, version: BigInt): Boolean =
    Seq(".metadata.json", ".gz.metadata.json", ".metadata.json.gz").exists { ending =>
      inner.exists(new Path(folder, s"v$version$ending"))
    }

  private def link(from: Path, to: Path): Boolean =
    try { Files.createLink(local(to), local(from)); true }
    catch { case _: FileAlreadyExistsException => false }
}
