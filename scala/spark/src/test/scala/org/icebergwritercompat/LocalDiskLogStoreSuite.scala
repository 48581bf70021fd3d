package org.icebergwritercompat

import io.delta.storage.LogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkConf
import org.icebergwritercompat.testing.{SharedSpark, TestFolders}
import org.scalatest.funsuite.AnyFunSuite

import java.nio.file.{FileAlreadyExistsException, Files}
import java.util.concurrent.{Callable, CyclicBarrier, Executors}
import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}

/** The store of Delta's log on a local disk. */
class LocalDiskLogStoreSuite extends AnyFunSuite with SharedSpark {

  private val conf = new Configuration

  private def folder(): java.nio.file.Path = Files.createDirectories(TestFolders.freshFolder())

  private def write(store: LogStore, file: java.nio.file.Path, text: String, over: Boolean): Unit =
    store.write(new Path(file.toUri), Iterator(text).asJava, over, conf)

  /** What each of the writers of one name has been told, each with a store of its own. */
  private def race(file: java.nio.file.Path, writers: Seq[LogStore]): Seq[Try[Unit]] = {
    val start = new CyclicBarrier(writers.size)
    val pool = Executors.newFixedThreadPool(writers.size)
    try {
      val calls = writers.zipWithIndex.map { case (store, number) =>
        pool.submit(new Callable[Try[Unit]] {
          override def call(): Try[Unit] = {
            start.await()
            Try(write(store, file, s"writer $number", over = false))
          }
        })
      }
      calls.map(_.get())
    } finally pool.shutdown()
  }

  test("of writers of one version, one succeeds, and the file is its own") {
    val there = folder()
    val writers = Seq.fill(4)(new LocalDiskLogStore(conf))
    (0 until 300).foreach { version =>
      val file = there.resolve(s"$version.json")
      val told = race(file, writers)
      assert(told.count(_.isSuccess) == 1, version)
      assert(Files.readString(file) == s"writer ${told.indexWhere(_.isSuccess)}\n")
      told.foreach {
        case Failure(e) => assert(e.isInstanceOf[FileAlreadyExistsException])
        case Success(_) =>
      }
    }
    val names = Files.list(there).iterator.asScala.map(_.getFileName.toString).toSet
    assert(names == (0 until 300).map(version => s"$version.json").toSet)
  }

  test("a file that is replaced is never seen in part, and an old checksum is gone") {
    val file = folder().resolve("_last_checkpoint")
    val path = new Path(file.toUri)
    val fs = path.getFileSystem(conf)
    fs.create(path).close()
    assert(Files.exists(file.resolveSibling("._last_checkpoint.crc")))
    val store = new LocalDiskLogStore(conf)
    write(store, file, "1", over = true)
    assert(store.read(path, conf).asScala.toSeq == Seq("1"))
    val kept = Files.readAttributes(file, "unix:ino")
    write(store, file, "2", over = true)
    assert(store.read(path, conf).asScala.toSeq == Seq("2"))
    assert(Files.readAttributes(file, "unix:ino") != kept)
    assert(Files.list(file.getParent).iterator.asScala.toSeq == Seq(file))
  }

  test("no log is made where there is no folder, or elsewhere") {
    val store = new LocalDiskLogStore(conf)
    val there = folder()
    intercept[java.io.FileNotFoundException](
      write(store, there.resolve("none/0.json"), "1", over = false)
    )
    val elsewhere = intercept[IllegalArgumentException](
      store.write(new Path(s"hdfs:$there/0.json"), Iterator("1").asJava, false, conf)
    )
    assert(elsewhere.getMessage.contains("hdfs:"))
    assert(Files.list(there).iterator.asScala.isEmpty)
  }

  test("a session with the extension has it, unless another was chosen") {
    val key = "spark.delta.logStore.file.impl"
    assert(spark.sparkContext.getConf.get(key) == classOf[LocalDiskLogStore].getName)
    Seq(
      key,
      "delta.logStore.file.impl",
      "spark.delta.logStore.class",
      "delta.logStore.class"
    ).foreach { chosen =>
      val before = new SparkConf(false).set(chosen, "org.example.Store")
      val after = before.clone
      LocalDiskLogStore.install(after)
      assert(after.getAll.toMap == before.getAll.toMap)
    }
  }
}
