package org.icebergwritercompat.testing

import io.delta.storage.{CloseableIterator, LocalLogStore}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.SparkEnv

import java.util.concurrent.ConcurrentLinkedQueue
import scala.jdk.CollectionConverters._

/**
 * A log store that notes every file it is asked for. `S3DynamoDBLogStore` would note each file that
 * it writes in DynamoDB, as a commit of the table.
 */
class NotingLogStore(conf: Configuration) extends LocalLogStore(conf) {

  override def write(
      path: Path,
      actions: java.util.Iterator[String],
      overwrite: java.lang.Boolean,
      conf: Configuration
  ): Unit = {
    NotingLogStore.written.add(path)
    super.write(path, actions, overwrite, conf)
  }

  override def read(path: Path, conf: Configuration): CloseableIterator[String] = {
    NotingLogStore.read.add(path)
    super.read(path, conf)
  }

  override def listFrom(path: Path, conf: Configuration): java.util.Iterator[FileStatus] = {
    NotingLogStore.read.add(path)
    super.listFrom(path, conf)
  }
}

object NotingLogStore {

  private val written = new ConcurrentLinkedQueue[Path]

  private val read = new ConcurrentLinkedQueue[Path]

  /** The files that were written, and those that were read or listed, while `body` ran. */
  def of(scheme: String)(body: => Unit): (Seq[Path], Seq[Path]) = {
    val key = s"spark.delta.logStore.$scheme.impl"
    written.clear()
    read.clear()
    // Delta asks for it when it opens a log.
    SparkEnv.get.conf.set(key, classOf[NotingLogStore].getName)
    try body
    finally SparkEnv.get.conf.remove(key)
    (written.asScala.toSeq, read.asScala.toSeq)
  }
}
