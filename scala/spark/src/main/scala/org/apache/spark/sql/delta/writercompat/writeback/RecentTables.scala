package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.iceberg.catalog.{TableIdentifier => IcebergIdentifier}
import org.apache.spark.sql.delta.{Snapshot => DeltaSnapshot}
import org.apache.spark.sql.delta.writercompat.read.FileLooks
import org.apache.spark.sql.delta.writercompat.writeback.DeltaTableOperations.Seen
import org.icebergwritercompat.iceberg.metadata.MetadataFileNames

import java.lang.ref.SoftReference
import java.util.concurrent.TimeUnit.SECONDS
import java.util.{LinkedHashMap => JLinkedHashMap, Map => JMap}
import scala.util.Try

/**
 * What a server has loaded of its tables, for a request that asks for the same again.
 *
 * Delta's log decides: a table is loaded anew when it has another version. It is also loaded anew
 * when the published metadata is not what it was; damage of manifests, which loading mends, is
 * looked for when the answer is older than [[RecentTables.MostSeconds]].
 */
final class RecentTables {

  import RecentTables._

  private val entries =
    new JLinkedHashMap[IcebergIdentifier, SoftReference[Entry]](16, 0.75f, true) {
      override def removeEldestEntry(
          eldest: JMap.Entry[IcebergIdentifier, SoftReference[Entry]]
      ): Boolean = size > MostTables
    }

  /**
   * What was loaded of a table, if it is still what there is.
   *
   * @param newest
   *   the newest version of the table, which was looked for just now
   */
  private[writercompat] def of(table: IcebergIdentifier, newest: DeltaSnapshot): Option[Seen] =
    Option(entries.synchronized(entries.get(table)))
      .flatMap(known => Option(known.get))
      .filter(known => (known.snapshot eq newest) && known.isCurrent)
      .map(_.seen)

  /** Keeps what was loaded. */
  private[writercompat] def put(table: IcebergIdentifier, seen: Seen): Unit = {
    val entry = Entry.of(seen)
    entries.synchronized {
      entry.fold(entries.remove(table))(made => entries.put(table, new SoftReference(made)))
      ()
    }
  }
}

private object RecentTables {

  private val MostTables = 64

  /** How long metadata is given out without a look at its manifests. */
  val MostSeconds = 60

  private final case class Entry(
      seen: Seen,
      snapshot: DeltaSnapshot,
      fs: FileSystem,
      files: Seq[FileStatus],
      next: Seq[Path],
      since: Long
  ) {

    def isCurrent: Boolean = System.nanoTime - since < SECONDS.toNanos(MostSeconds.toLong) &&
      Try(files.forall(FileLooks.isSame(fs, _)) && !next.exists(FileLooks.isThere(fs, _)))
        .getOrElse(false)
  }

  private object Entry {

    /**
     * `None` for a table that is published elsewhere, or in a place where looking costs as much.
     */
    def of(seen: Seen): Option[Entry] = {
      val folder = new Path(seen.log.dataPath, "metadata")
      val file = new Path(seen.metadata.metadataFileLocation)
      val snapshot = seen.log.unsafeVolatileSnapshot
      for {
        number <- Option(file.getName).collect { case MetadataFileNames.OfPath(n) => n.toInt }
        fs <- Try(FileLooks.quickIn(seen.log)).toOption.flatten
        if snapshot.version == seen.version &&
          fs.makeQualified(folder) == fs.makeQualified(file.getParent)
        list = Option(seen.metadata.currentSnapshot).map(s => new Path(s.manifestListLocation))
        statuses <- Try((file +: list.toSeq).map(fs.getFileStatus)).toOption
      } yield {
        val next =
          MetadataFileNames.Endings.map(ending => new Path(folder, s"v${number + 1}$ending"))
        Entry(seen, snapshot, fs, statuses, next, System.nanoTime)
      }
    }
  }
}
