package org.icebergwritercompat.iceberg

import org.apache.hadoop.fs.Path
import org.apache.iceberg.io.{FileIO, FileInfo, SupportsPrefixOperations}
import org.apache.iceberg.{CatalogUtil, TableMetadata, TableOperations}

import scala.jdk.CollectionConverters._

/**
 * Removes from the folder of a table's metadata what no reader can need any more.
 *
 * A file goes only if it is called as this project and Iceberg's library call theirs, the metadata
 * does not lead to it, and it is so old that nobody who writes or reads it can still be at work.
 */
object MetadataSweep {

  /**
   * @param table
   *   the metadata that readers see
   * @param before
   *   what was written later is kept, in milliseconds
   */
  def apply(table: TableMetadata, operations: TableOperations, before: Long): Unit =
    operations.io match {
      case io: FileIO with SupportsPrefixOperations =>
        val folder = new Path(operations.metadataFileLocation("x")).getParent
        val files = io.listPrefix(folder.toString).asScala.toSeq
        val inUse = (table.metadataFileLocation +: table.previousFiles.asScala.toSeq.map(_.file))
          .map(key)
          .toSet
        val current = line(new Path(table.metadataFileLocation).getName)
        def isPast(file: FileInfo): Boolean = line(name(file)).exists { of =>
          !inUse(key(file.location)) && current.exists(c =>
            of.kind == c.kind && of.number < c.number
          )
        }
        // What a catalog goes on with was begun in the folder, and stays a sign of that.
        val others = files.filter { file =>
          line(name(file)).exists(of => of.kind == catalogs || current.forall(_.kind == of.kind)) &&
          !inUse(key(file.location)) && !isPast(file)
        }
        // Metadata that is not of this line may lead to any file.
        if (others.isEmpty) {
          val old = files.filter(_.createdAtMillis < before)
          val unused = old.filter { file =>
            temporaryFile.matches(name(file)) || isPast(file)
          }
          delete(io, unused ++ unreferenced(table, io, old.filter(f => avroFile.matches(name(f)))))
        }
      case _ =>
    }

  private def unreferenced(
      table: TableMetadata,
      io: FileIO,
      candidates: Seq[FileInfo]
  ): Seq[FileInfo] = {
    val snapshots = table.snapshots.asScala.toSeq
    val lists = snapshots.map(snapshot => key(snapshot.manifestListLocation)).toSet
    val left = candidates.filterNot(file => lists(key(file.location)))
    if (left.isEmpty) Nil
    else {
      val manifests =
        snapshots.iterator.flatMap(_.allManifests(io).asScala).map(m => key(m.path)).toSet
      left.filterNot(file => manifests(key(file.location)))
    }
  }

  private def delete(io: FileIO, files: Seq[FileInfo]): Unit =
    if (files.nonEmpty) CatalogUtil.deleteFiles(io, files.map(_.location).asJava, "metadata")

  private val (paths, catalogs) = ("v", "")

  private final case class Line(kind: String, number: BigInt)

  // Metadata files are numbered, those of path tables and those of catalogs in their own way.
  private def line(name: String): Option[Line] = name match {
    case pathFile(number)    => Some(Line(paths, BigInt(number)))
    case catalogFile(number) => Some(Line(catalogs, BigInt(number)))
    case _                   => None
  }

  private def name(file: FileInfo): String = new Path(file.location).getName

  // The same file may be spelled with and without its authority.
  private def key(location: String): String = new Path(location).toUri.getPath

  private val uuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
  private val pathFile = """v(\d+)(?:\.gz)?\.metadata\.json""".r
  private val catalogFile = s"(\\d+)-$uuid(?:\\.gz)?\\.metadata\\.json".r
  private val temporaryFile =
    s"$uuid(?:\\.gz)?\\.metadata\\.json|$uuid-version-hint\\.(?:temp|text)".r
  private val avroFile = s"$uuid-m\\d+\\.avro|snap-\\d+-\\d+-$uuid\\.avro".r
}
