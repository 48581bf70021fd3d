package org.icebergwritercompat.iceberg

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.icebergwritercompat.testing.{CommitLine, SharedSpark}
import org.scalatest.funsuite.AnyFunSuite

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
    new PathTableOperations("grown", root, new Configuration, (_, _) => fail("not a local disk"))

  test("the folder of the metadata grows with the commits and no faster, and all can be read") {
    val home = Files.createDirectories(SharedSpark.freshFolder())
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
    val versions = many.keySet.filter(_.matches("v\\d+\\.metadata\\.json"))
    assert(versions == (193 to 201).map(version => s"v$version.metadata.json").toSet)
    val table = operations(root).current()
    val snapshots = table.snapshots.asScala.toSeq
    assert(snapshots.size == 200)
    snapshots.zipWithIndex.foreach { case (snapshot, i) =>
      val io = operations(root).io
      assert(snapshot.dataManifests(io).size <= 40)
      assert(SnapshotHistory.live(table, io, snapshot).map(_.location).toSet.size == i + 1)
    }
  }

  test("what removes a file rewrites one small manifest of many") {
    val home = Files.createDirectories(SharedSpark.freshFolder())
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
