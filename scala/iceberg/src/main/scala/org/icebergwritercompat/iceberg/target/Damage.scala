package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.fs.ChecksumException
import org.apache.iceberg.exceptions.NotFoundException
import org.apache.iceberg.io.FileIO
import org.apache.iceberg.util.Tasks
import org.apache.iceberg.{DataFile, ManifestFile, ManifestFiles, Snapshot, TableMetadata}
import org.icebergwritercompat.errors.Causes
import org.icebergwritercompat.iceberg.metadata.MetadataCopies

import java.util.concurrent.ConcurrentHashMap
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try, Using}

/**
 * A file of the metadata that readers cannot open.
 *
 * @param found
 *   a description
 * @param isThere
 *   false if the file is missing
 */
private[iceberg] final case class Damage(file: String, found: String, isThere: Boolean) {

  override def toString: String = s"$file $found"
}

/**
 * Looks for files that are missing or damaged. If the file system fails, for example because of
 * permissions or the network, that is an error and not damage.
 */
private[iceberg] object Damage {

  /** The content of a file, or its damage. */
  def orElse[T](io: FileIO, file: String)(read: => T): Either[Damage, T] =
    try Right(read)
    catch {
      case NonFatal(e) =>
        def bytes = Using.resource(io.newInputFile(file).newStream())(_.readAllBytes)
        Try(bytes) match {
          case Success(read) => Left(cannotBeRead(file, read.length))
          case Failure(_: NotFoundException) if !io.newInputFile(file).exists() =>
            Left(missing(file))
          case Failure(f) if isChecksum(f) => Left(cannotBeRead(file, -1))
          case Failure(_)                  => throw e
        }
    }

  /**
   * The first file of the current snapshot that readers cannot open.
   *
   * @param whole
   *   whether manifests are read completely, or only their lengths are checked
   */
  def ofCurrent(table: TableMetadata, io: FileIO, whole: Boolean): Seq[Damage] =
    Option(table.currentSnapshot).toSeq.flatMap { snapshot =>
      manifests(snapshot, io) match {
        case Left(damage) => Seq(damage)
        case Right(found) =>
          val files = Some(io).collect { case files: MetadataFiles => files }
          val unseen = found.filter(manifest => whole || !files.exists(_.hasSeen(manifest)))
          inParallel(unseen) { manifest =>
            val looked = lengthOf(io, manifest.path)
            val damage = damageOf(manifest, looked).orElse {
              if (whole) orElse(io, manifest.path)(readAll(table, io, manifest)).left.toOption
              else None
            }
            if (damage.isEmpty) files.foreach(_.seen(manifest))
            damage
          }.flatten
      }
    }

  /** Snapshots other than the current one that readers cannot open, each with the reason. */
  def ofOlder(table: TableMetadata, io: FileIO): Map[Long, Damage] = {
    val current = Option(table.currentSnapshot).map(_.snapshotId)
    val older = table.snapshots.asScala.toSeq.filterNot(s => current.contains(s.snapshotId))
    if (older.isEmpty) Map.empty
    else {
      val known = new ConcurrentHashMap[String, Option[Damage]]
      inParallel(older) { snapshot =>
        val damage = manifests(snapshot, io) match {
          case Left(damage) => Some(damage)
          case Right(found) =>
            found.iterator
              .flatMap { manifest =>
                known.computeIfAbsent(manifest.path, file => damageOf(manifest, lengthOf(io, file)))
              }
              .nextOption()
        }
        damage.map(snapshot.snapshotId -> _)
      }.flatten.toMap
    }
  }

  // Snapshots cache their manifests, of which there may be many.
  private def manifests(snapshot: Snapshot, io: FileIO): Either[Damage, Seq[ManifestFile]] =
    orElse(io, snapshot.manifestListLocation) {
      MetadataCopies.of(snapshot).allManifests(io).asScala.toSeq
    }

  /** The first of some data files that is missing or has another length. */
  def ofFiles(files: Seq[DataFile], io: FileIO): Option[Damage] =
    inParallel(files) { file =>
      damageOf(file.location, file.fileSizeInBytes, lengthOf(io, file.location))
    }.flatten.headOption

  private def damageOf(manifest: ManifestFile, length: Option[Long]): Option[Damage] =
    damageOf(manifest.path, manifest.length, length)

  private def damageOf(file: String, written: Long, length: Option[Long]): Option[Damage] =
    length match {
      case None                            => Some(missing(file))
      case Some(bytes) if bytes != written =>
        Some(Damage(file, s"has $bytes bytes instead of $written", isThere = true))
      case _ => None
    }

  private def readAll(table: TableMetadata, io: FileIO, manifest: ManifestFile): Unit =
    if (manifest.content == org.apache.iceberg.ManifestContent.DATA)
      Using.resource(ManifestFiles.read(manifest, io, table.specsById)) { reader =>
        Using.resource(reader.iterator())(_.forEachRemaining(_ => ()))
      }

  private def lengthOf(io: FileIO, file: String): Option[Long] =
    try Some(io.newInputFile(file).getLength)
    catch { case _: NotFoundException => None }

  private def missing(file: String): Damage = Damage(file, "is missing", isThere = false)

  private def cannotBeRead(file: String, bytes: Int): Damage = {
    val found = if (bytes < 0) "does not match its checksum" else s"cannot be read ($bytes bytes)"
    Damage(file, found, isThere = true)
  }

  private def isChecksum(e: Throwable): Boolean =
    Causes.of(e).exists(_.isInstanceOf[ChecksumException])

  private def inParallel[A, B](items: Seq[A])(look: A => B): Seq[B] = {
    val results = new ConcurrentHashMap[Int, B]
    Tasks
      .foreach(items.indices.map(Int.box).asJava)
      .executeWith(PublishThreads.pool)
      .stopOnFailure()
      .throwFailureWhenFinished()
      .run { i => results.put(i.intValue, look(items(i.intValue))); () }
    items.indices.map(results.get(_))
  }
}
