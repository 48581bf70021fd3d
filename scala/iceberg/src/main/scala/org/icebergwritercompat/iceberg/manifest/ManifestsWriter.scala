package org.icebergwritercompat.iceberg.manifest

import org.apache.iceberg.{ManifestFile, ManifestFiles, TableProperties}
import org.icebergwritercompat.iceberg.metadata.ManifestMerging
import org.icebergwritercompat.iceberg.source.AddedFile
import org.icebergwritercompat.iceberg.target.StagedOperations

import java.util.UUID
import java.util.concurrent.atomic.LongAdder
import java.util.concurrent.{
  ArrayBlockingQueue,
  ConcurrentLinkedQueue,
  ExecutionException,
  Executors,
  TimeUnit
}
import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

/**
 * Writes manifests of files that are read one after the other. One thread reads, others decode the
 * files and write them; no file is kept.
 */
private[iceberg] final class ManifestsWriter(staged: StagedOperations, dataFiles: DataFileBuilder) {

  import ManifestsWriter._

  private val table = staged.current()
  private val written = new ConcurrentLinkedQueue[String]
  private val counted = new LongAdder
  private val size = new LongAdder

  /** The number of files in the manifests. */
  def files: Long = counted.sum

  /** The size of the files in the manifests. */
  def bytes: Long = size.sum

  /** The manifests that were begun, whole or not. */
  def paths: Seq[String] = written.asScala.toSeq

  /** Writes all files. */
  def all(added: Iterator[() => AddedFile]): Seq[ManifestFile] = {
    val batches = new ArrayBlockingQueue[Seq[() => AddedFile]](batchesAhead)
    val threads = Executors.newFixedThreadPool(writers + 1)
    try {
      // Spark computes the next files while these are written.
      val reading = threads.submit[Unit](() => added.grouped(filesPerBatch).foreach(batches.put))
      @tailrec def next(): Option[Seq[() => AddedFile]] =
        Option(batches.poll(10, TimeUnit.MILLISECONDS)) match {
          case None if reading.isDone && batches.isEmpty => None
          case None                                      => next()
          case batch                                     => batch
        }
      val writing = Seq.fill(writers)(threads.submit(() => write(() => next())))
      val manifests = writing.flatMap(_.get)
      reading.get
      manifests
    } catch {
      case e: ExecutionException => throw e.getCause
    } finally {
      threads.shutdownNow()
      threads.awaitTermination(1, TimeUnit.HOURS)
      ()
    }
  }

  private def write(next: () => Option[Seq[() => AddedFile]]): Seq[ManifestFile] = {
    val batches = Iterator.unfold(())(_ => next().map(_ -> ()))
    Iterator.continually(batches).takeWhile(_.hasNext).map(manifest).toVector
  }

  private def manifest(batches: Iterator[Seq[() => AddedFile]]): ManifestFile = {
    val path = staged.metadataFileLocation(s"${UUID.randomUUID}-m0.avro")
    written.add(path)
    val output = staged.io.newOutputFile(path)
    val writer = ManifestFiles.write(table.formatVersion, table.spec, output, null, compression)
    val index = new ManifestIndex.Builder
    try
      // To ask for the length flushes the writer, so it is asked once a batch.
      while (batches.hasNext && (index.isEmpty || writer.length < ManifestMerging.targetBytes))
        batches.next().foreach { decode =>
          val added = decode()
          val file = dataFiles.of(added)
          writer.add(file)
          index.add(file.location)
          counted.increment()
          size.add(added.size)
        }
    finally writer.close()
    ManifestIndex.keep(path, index)
    writer.toManifestFile
  }
}

private object ManifestsWriter {

  // Iceberg's default is 9, which takes 1.6 times the time of 3 for 1.4 % less.
  private val compression = java.util.Map.of(TableProperties.AVRO_COMPRESSION_LEVEL, "3")

  private val filesPerBatch = 250

  // 20 MB where statistics are long.
  private val batchesAhead = 40

  private val writers = math.min(Runtime.getRuntime.availableProcessors, 8)
}
