package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.fs.Path
import org.apache.iceberg.io.{FileIO, FileInfo, SupportsPrefixOperations}
import org.apache.iceberg.util.Tasks
import org.apache.iceberg.{CatalogUtil, TableMetadata, TableOperations}
import org.icebergwritercompat.iceberg.metadata.MetadataFileNames.{
  Avro,
  OfCatalog,
  OfPath,
  Temporary
}
import org.icebergwritercompat.iceberg.metadata.PublishedMetadata.ClientProperty
import org.icebergwritercompat.iceberg.metadata.MetadataCopies

import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * Removes unused files from the metadata folder of a table.
 *
 * A file is removed only if it has a name of this project or of Iceberg's library, the metadata
 * does not refer to it, and it is so old that no writer or reader can still use it.
 */
object MetadataSweep {

  /**
   * @param table
   *   the metadata that readers see
   * @param before
   *   files that were written later are kept; in milliseconds
   * @param whole
   *   whether to read the lists of all snapshots, to find what commits have left that were refused
   *   or given up since the oldest snapshot
   */
  def apply(
      table: TableMetadata,
      operations: TableOperations,
      before: Long,
      whole: Boolean
  ): Unit =
    operations.io match {
      case io: FileIO with SupportsPrefixOperations =>
        val files = io.listPrefix(folderOf(operations).toString).asScala.toSeq
        val inUse = this.inUse(table)
        val current = line(new Path(table.metadataFileLocation).getName)
        def isPast(file: FileInfo): Boolean = line(name(file)).exists { of =>
          !inUse(key(file.location)) && current.exists(c =>
            of.kind == c.kind && of.number < c.number
          )
        }
        // The version in the folder that names the catalog is kept.
        val others = files.filter { file =>
          line(name(file)).exists(of => of.kind == catalogs || current.forall(_.kind == of.kind)) &&
          !inUse(key(file.location)) && !isPast(file)
        }
        // Metadata of another line may refer to any file.
        if (others.isEmpty) {
          val old = files.filter(_.createdAtMillis < before)
          val unused = old.filter { file =>
            Temporary.matches(name(file)) || isPast(file)
          }
          delete(io, unused ++ unreferenced(table, io, files, before, whole))
        }
      case _ =>
    }

  /**
   * Removes the versions of the metadata that a commit has dropped from its list of previous ones.
   *
   * Versions in the folder are kept if the table is in a catalog, and vice versa.
   *
   * @param before
   *   the metadata before the commit
   */
  def outnumbered(before: TableMetadata, operations: TableOperations): Unit = {
    val table = operations.current()
    val listed = table.previousFiles.asScala.map(_.file).toSet
    val dropped = before.previousFiles.asScala.map(_.file).filterNot(listed)
    if (dropped.nonEmpty) {
      val current = line(new Path(table.metadataFileLocation).getName)
      val folder = key(folderOf(operations).toString)
      dropped
        .filter { file =>
          val path = new Path(file)
          key(path.getParent.toString) == folder && line(path.getName).exists { of =>
            current.exists(c => of.kind == c.kind && of.number < c.number)
          }
        }
        // Oldest first: a reader that finds one version must find the following ones.
        .foreach(file => Try(operations.io.deleteFile(file)))
    }
  }

  private def inUse(table: TableMetadata): Set[String] =
    (table.metadataFileLocation +: table.previousFiles.asScala.toSeq.map(_.file)).map(key).toSet

  private def folderOf(operations: TableOperations): Path =
    new Path(operations.metadataFileLocation("x")).getParent

  /**
   * A snapshot of the publisher has manifests of the previous one and new ones. So a manifest that
   * was written before the oldest remaining snapshot, and is not in it, is in no later one. That
   * does not hold for snapshots of Iceberg clients, who may write manifests, lose a race, and
   * commit the same manifests later.
   */
  private def unreferenced(
      table: TableMetadata,
      io: FileIO,
      files: Seq[FileInfo],
      before: Long,
      whole: Boolean
  ): Seq[FileInfo] = {
    val snapshots = table.snapshots.asScala.toSeq
    val lists = snapshots.map(snapshot => key(snapshot.manifestListLocation)).toSet
    val line = SnapshotHistory.line(table).toSeq
    val oldest = line.lastOption
    val since = oldest.filterNot(_ => whole).fold(Option(before)) { snapshot =>
      val list = key(snapshot.manifestListLocation)
      files.find(file => key(file.location) == list).map(_.createdAtMillis)
    }
    val settled = files.filter { file =>
      Avro.matches(name(file)) && !lists(key(file.location)) &&
      file.createdAtMillis < before && since.exists(file.createdAtMillis <= _)
    }
    if (settled.isEmpty) Nil
    else {
      val inLine = line.map(_.snapshotId).toSet
      val asked = snapshots.filter { snapshot =>
        whole || !inLine(snapshot.snapshotId) || snapshot.summary.containsKey(ClientProperty)
      }
      val needed = java.util.concurrent.ConcurrentHashMap.newKeySet[String]
      Tasks
        .foreach((asked ++ oldest).distinctBy(_.snapshotId): _*)
        .executeWith(PublishThreads.pool)
        .stopOnFailure()
        .throwFailureWhenFinished()
        .run { snapshot =>
          MetadataCopies
            .of(snapshot)
            .allManifests(io)
            .forEach { manifest => needed.add(key(manifest.path)); () }
        }
      settled.filterNot(file => needed.contains(key(file.location)))
    }
  }

  private def delete(io: FileIO, files: Seq[FileInfo]): Unit =
    if (files.nonEmpty) CatalogUtil.deleteFiles(io, files.map(_.location).asJava, "metadata")

  private val (paths, catalogs) = ("v", "")

  private final case class Line(kind: String, number: BigInt)

  // Metadata files have numbers, in different forms for path tables and for catalogs.
  private def line(name: String): Option[Line] = name match {
    case OfPath(number)    => Some(Line(paths, BigInt(number)))
    case OfCatalog(number) => Some(Line(catalogs, BigInt(number)))
    case _                 => None
  }

  private def name(file: FileInfo): String = new Path(file.location).getName

  // The path of a file may be with or without its authority.
  private def key(location: String): String = new Path(location).toUri.getPath
}
