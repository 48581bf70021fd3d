package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.delta.actions.{Action, AddFile, RemoveFile}
import org.apache.spark.sql.delta.{DeltaLog, Snapshot}
import org.apache.spark.sql.functions.col
import org.icebergwritercompat.iceberg.translate.DataFilePaths

import scala.annotation.tailrec
import scala.collection.mutable
import scala.util.Using

/**
 * Finds live files of a version by their paths: first in the newest commits, which is where a
 * client finds most of what it replaces, then by a query of Spark.
 */
private[writercompat] final class LiveFilesByPath(log: DeltaLog, snapshot: Snapshot) {

  import LiveFilesByPath._

  /** Those that are live, by the paths that were given. */
  def of(paths: Seq[String]): Map[String, AddFile] = {
    val newest = inCommits(paths)
    val others = paths.filterNot(newest.contains)
    if (others.isEmpty) newest
    else {
      val found = newest ++ inState(others)
      val missing = paths.filterNot(found.contains)
      if (missing.isEmpty) found else found ++ inOtherSpelling(missing)
    }
  }

  private def inCommits(paths: Seq[String]): Map[String, AddFile] = {
    val open = mutable.HashSet.from(paths)
    val found = mutable.HashMap.empty[String, AddFile]
    // What a later commit says of a path holds.
    @tailrec def read(commits: List[FileStatus], left: Long): Unit = commits match {
      case commit :: before if open.nonEmpty && commit.getLen <= left =>
        val lines = log.store.readAsIterator(commit.getPath, log.newDeltaHadoopConf())
        Using.resource(lines)(_.filter(isOfFile).map(Action.fromJson).toVector).foreach {
          case add: AddFile if open.remove(add.path) && add.deletionVector == null =>
            found(add.path) = add
          case remove: RemoveFile if !found.contains(remove.path) => open.remove(remove.path)
          case _                                                  =>
        }
        read(before, left - commit.getLen)
      case _ =>
    }
    read(snapshot.logSegment.deltas.reverse.take(mostCommits).toList, mostBytes)
    found.toMap
  }

  private def isOfFile(line: String): Boolean =
    line.contains("\"add\"") || line.contains("\"remove\"")

  private def inState(paths: Seq[String]): Map[String, AddFile] = {
    val files = snapshot.allFiles
    // Delta makes 50 tasks of a few files too.
    val few = snapshot.checksumOpt.map(_.numFiles / filesPerTask + 1).filter(_ < mostTasks)
    few
      .fold(files)(number => files.coalesce(number.toInt))
      .where(col("path").isin(paths: _*))
      .collect()
      .map(file => file.path -> file)
      .toMap
  }

  // The log may spell a path in another way.
  private def inOtherSpelling(paths: Seq[String]): Map[String, AddFile] = {
    val locations = new DataFilePaths(new Path(log.dataPath.toString))
    val byLocation = paths.map(path => locations.location(path) -> path).toMap
    val found = mutable.HashMap.empty[String, AddFile]
    snapshot.allFiles.toLocalIterator().forEachRemaining { file =>
      byLocation.get(locations.location(file.path)).foreach(found.put(_, file))
    }
    found.toMap
  }
}

private object LiveFilesByPath {

  // Less than a query of Spark takes.
  private val (mostCommits, mostBytes) = (16, 2L * 1024 * 1024)

  private val (filesPerTask, mostTasks) = (10000L, 50L)
}
