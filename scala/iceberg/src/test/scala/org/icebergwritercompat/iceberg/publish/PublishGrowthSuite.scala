package org.icebergwritercompat.iceberg.publish

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.icebergwritercompat.testing.{CommitLine, TestFolders}
import org.scalatest.funsuite.AnyFunSuite
import org.icebergwritercompat.iceberg.target.{PathTableOperations, SnapshotHistory}

import java.nio.file.attribute.PosixFilePermissions
import java.nio.file.{Files, Path => LocalPath}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What many commits leave in the folder of the metadata. */
class PublishGrowthSuite extends AnyFunSuite {

  private def sizes(folder: LocalPath): Map[String, Long] =
    Using.resource(Files.list(folder)) { files =>
      files.iterator.asScala.map(f => f.getFileName.toString -> Files.size(f)).toMap
    }

  private def operations(root: Path): PathTableOperations =
    new PathTableOperations("grown", root, new Configuration)

  test("the folder of the metadata grows with the commits and no faster, and all can be read") {
    val home = Files.createDirectories(TestFolders.freshFolder())
    val root = new Path(home.toUri)
    val line = new CommitLine(root, operations(root), 20)
    line.begin()
    def grow(from: Int, to: Int): Map[String, Long] = {
      (from to to).foreach(version => line.append(version.toLong, f"$version%08d"))
      sizes(home.resolve("metadata"))
    }
    val few = grow(1, 50)
    val many = grow(51, 200)
    // Four times as many commits; their squares differ by 16 times.
    assert(many.values.sum <= 5 * few.values.sum)
    assert(many.size <= 5 * few.size)
    // 25 MB for a thousand.
    assert(many.values.sum <= 200 * 25000)
    val versions = many.keySet.filter(_.matches("v\\d+\\.metadata\\.json"))
    assert(versions == (193 to 201).map(version => s"v$version.metadata.json").toSet)
    val table = operations(root).current()
    val snapshots = table.snapshots.asScala.toSeq
    assert(snapshots.size == 200)
    snapshots.zipWithIndex.foreach { case (snapshot, i) =>
      val io = operations(root).io
      assert(snapshot.dataManifests(io).size <= 30)
      assert(SnapshotHistory.live(table, io, snapshot).map(_.location).toSet.size == i + 1)
    }
    // Merging leaves nothing that is in no snapshot, and no snapshot of its own.
    assert(snapshots.map(_.summary.get("delta-version").toInt) == (1 to 200))
    snapshots.zip(snapshots.tail).foreach { case (before, after) =>
      assert(after.parentId == before.snapshotId && after.sequenceNumber > before.sequenceNumber)
    }
    assert(avroFiles(home) == inSnapshots(root))
  }

  private def avroFiles(home: LocalPath): Set[String] =
    sizes(home.resolve("metadata")).keySet.filter(_.matches("[^.].*\\.avro"))

  private def inSnapshots(root: Path): Set[String] = {
    val found = operations(root).current().snapshots.asScala.flatMap { snapshot =>
      snapshot.manifestListLocation +:
        snapshot.allManifests(operations(root).io).asScala.map(_.path).toSeq
    }
    found.map(new Path(_).getName).toSet
  }

  test("what is merged and then rewritten for a removal leaves nothing behind") {
    val home = Files.createDirectories(TestFolders.freshFolder())
    val root = new Path(home.toUri)
    val line = new CommitLine(root, operations(root), 3)
    line.begin()
    // Each fourth takes the place of one that may be merged by then.
    val live = (1 to 60).foldLeft(Vector.empty[String]) { (live, version) =>
      val gone = Option.when(version % 4 == 0)(live(live.size / 2))
      line.append(version.toLong, f"$version%08d", gone.toSeq: _*)
      live.filterNot(gone.contains) :+ f"$version%08d"
    }
    val table = operations(root).current()
    val found = SnapshotHistory.live(table, operations(root).io, table.currentSnapshot)
    assert(
      found.map(file => new Path(file.location).getName.split('-')(2)).toSeq.sorted == live.sorted
    )
    assert(avroFiles(home) == inSnapshots(root))
    // Nor does a commit that does not fit, whether something is due to be merged or not.
    (61 to 72).foreach { version =>
      val before = sizes(home.resolve("metadata"))
      intercept[RuntimeException](line.append(version.toLong, "new", "unknown"))
      assert(sizes(home.resolve("metadata")) == before)
      line.append(version.toLong, f"$version%08d")
    }
  }

  test("files of the metadata have the mode that Hadoop's settings ask for") {
    Seq("022" -> "rw-r--r--", "077" -> "rw-------").foreach { case (mask, mode) =>
      val home = Files.createDirectories(TestFolders.freshFolder())
      val root = new Path(home.toUri)
      val conf = new Configuration
      conf.set("fs.permissions.umask-mode", mask)
      val target = new PathTableOperations("masked", root, conf)
      val line = new CommitLine(root, target, 3)
      line.begin()
      line.append(1, "one")
      val files = sizes(home.resolve("metadata")).keys
      assert(files.exists(_.endsWith(".avro")) && files.exists(_.endsWith("v2.metadata.json")))
      files.foreach { file =>
        val found = Files.getPosixFilePermissions(home.resolve("metadata").resolve(file))
        assert(PosixFilePermissions.toString(found) == mode)
      }
    }
  }

  test("what removes a file rewrites one small manifest of many") {
    val home = Files.createDirectories(TestFolders.freshFolder())
    val root = new Path(home.toUri)
    val line = new CommitLine(root, operations(root), 20)
    line.begin()
    (1 to 120).foreach(version => line.append(version.toLong, f"$version%08d"))
    val before = sizes(home.resolve("metadata")).filter(_._1.matches(".*-m\\d+\\.avro"))
    line.append(121, "new", f"${7}%08d")
    val written =
      sizes(home.resolve("metadata")).filter(_._1.matches(".*-m\\d+\\.avro")) -- before.keys
    assert(written.size <= 3)
    assert(written.values.max <= 300 * 1024)
    val table = operations(root).current()
    val live = SnapshotHistory.live(table, operations(root).io, table.currentSnapshot).size
    assert(live == 120)
  }
}
