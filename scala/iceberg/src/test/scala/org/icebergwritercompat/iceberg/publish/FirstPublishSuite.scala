package org.icebergwritercompat.iceberg.publish

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.{CommitLine, TestFolders}
import org.scalatest.funsuite.AnyFunSuite
import org.icebergwritercompat.iceberg.source.{AddedFile, DeltaVersion}
import org.icebergwritercompat.iceberg.target.{PathTableOperations, SnapshotHistory}

import java.net.URI
import java.nio.file.{Files, Path => LocalPath}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** A table that is published for the first time, from state that is read while it is written. */
class FirstPublishSuite extends AnyFunSuite {

  private def file(path: String, statistics: String = "{\"numRecords\":7}"): AddedFile =
    AddedFile(path, Map.empty, 1000, statistics, dataChange = true)

  private def newFolder(name: String): LocalPath =
    Files.createDirectories(TestFolders.freshFolder().resolve(name))

  private def publish(home: LocalPath, live: Iterator[AddedFile]): PathTableOperations = {
    val root = new Path(home.toUri)
    def operations = new PathTableOperations(
      "first",
      root,
      new Configuration
    )
    val target = operations
    new IcebergPublisher("first", root, target, Long.MaxValue / 4)
      .create(
        DeltaVersion(0, 0, None),
        new CommitLine(root, target, 3).definition,
        live.map(f => () => f)
      )
    operations
  }

  private def locations(table: PathTableOperations): Seq[String] =
    SnapshotHistory
      .live(table.current(), table.io(), table.current().currentSnapshot)
      .map(_.location)
      .toSeq

  private def left(home: LocalPath): Set[String] =
    if (!Files.exists(home.resolve("metadata"))) Set.empty
    else
      Using.resource(Files.list(home.resolve("metadata"))) {
        _.iterator.asScala.map(_.getFileName.toString).toSet
      }

  test("each path leads where Delta reads it, plain or not") {
    val paths = Seq(
      "part-00000-1.c000.snappy.parquet",
      "p=1/part.parquet",
      "p=a%20b/part.parquet",
      "a%2520b.parquet",
      "a//b.parquet",
      "a/./b.parquet",
      "a/../c.parquet",
      "./d.parquet",
      "_e/.f.parquet",
      ".g.parquet",
      "h+i~j.parquet",
      "\u00e9.parquet",
      "file:/elsewhere/k%20l.parquet",
      "/elsewhere/m.parquet",
      "s3a://bucket/n.parquet"
    )
    Seq("plain", "with blank").foreach { name =>
      val home = newFolder(name)
      val root = new Path(home.toUri)
      val expected = paths.map { path =>
        val relative = new Path(new URI(path))
        (if (relative.toUri.isAbsolute) relative else new Path(root, relative)).toString
      }
      val found = locations(publish(home, paths.iterator.map(file(_))))
      assert(found.sorted == expected.sorted)
    }
  }

  test("all files are there once, however many are read ahead") {
    val names = (1 to 30000).map(i => f"part-$i%08d.parquet")
    // Slow to come at the end, so that those who write wait.
    val live = names.iterator.zipWithIndex.map { case (name, i) =>
      if (i == names.size - 1) Thread.sleep(50)
      file(name)
    }
    val found = locations(publish(newFolder("many"), live)).map(new Path(_).getName)
    assert(found.size == names.size && found.toSet == names.toSet)
  }

  test("what fails on either side ends both, with its own error, and leaves nothing") {
    def many(at: Int)(there: => AddedFile): Iterator[AddedFile] =
      Iterator.range(0, 100000).map(i => if (i == at) there else file(f"part-$i%08d.parquet"))
    Seq(0, 20000, 99999).foreach { at =>
      val home = newFolder("read")
      val error = intercept[IllegalStateException] {
        publish(home, many(at)(throw new IllegalStateException(s"state $at")))
      }
      assert(error.getMessage == s"state $at" && left(home).isEmpty)
    }
    Seq(0, 20000, 99999).foreach { at =>
      val home = newFolder("write")
      val error = intercept[IcebergWriterCompatException] {
        publish(home, many(at)(file("no-statistics.parquet", "{}")))
      }
      assert(error.getMessage.contains("no-statistics.parquet") && left(home).isEmpty)
    }
  }
}
