package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.iceberg.ManifestFile
import org.apache.iceberg.exceptions.{NotFoundException, RuntimeIOException}
import org.apache.iceberg.hadoop.{HadoopFileIO, HadoopInputFile, HadoopOutputFile}
import org.apache.iceberg.inmemory.InMemoryInputFile
import org.apache.iceberg.io.{InputFile, OutputFile, PositionOutputStream, SeekableInputStream}

import java.io.{ByteArrayOutputStream, FileNotFoundException, IOException}
import java.util.concurrent.ConcurrentHashMap
import java.util.{LinkedHashMap, Map => JMap}
import scala.jdk.CollectionConverters._
import scala.util.Using

/**
 * Files of Iceberg's metadata.
 *
 * On an object store with conditional PUT, few requests are made: one to write a file, one to read
 * a file of known length, none to read what this object has written or read before.
 */
private[iceberg] final class MetadataFiles(conf: Configuration, root: Path, disk: => FileSystem)
    extends HadoopFileIO(conf) {

  private lazy val fs = disk

  // All files that are written are in the folder of one table; others may be read.
  private lazy val isStore = MetadataStore.isConditional(fs, root)

  private val recent = new ConcurrentHashMap[String, Array[Byte]]

  private def isHere(path: String): Boolean = isStore && stored(path).toString.startsWith(s"$root/")

  // Metadata may contain another scheme of S3.
  private def stored(path: String): Path = StoreSchemes.as(root, new Path(path))

  override def newOutputFile(path: String): OutputFile =
    if (isHere(path)) new StoredOutput(path)
    else HadoopOutputFile.fromPath(stored(path), fs, conf)

  override def newInputFile(path: String): InputFile =
    if (isHere(path)) new StoredInput(path, None) else super.newInputFile(stored(path).toString)

  override def newInputFile(path: String, length: Long): InputFile =
    if (isHere(path)) new StoredInput(path, Some(length))
    else super.newInputFile(stored(path).toString, length)

  override def deleteFile(path: String): Unit =
    if (isHere(path)) deleteFiles(java.util.List.of(path))
    else super.deleteFile(stored(path).toString)

  // Hadoop's `delete` makes several requests for each file.
  override def deleteFiles(paths: java.lang.Iterable[String]): Unit = {
    val (here, others) = paths.asScala.toSeq.partition(isHere)
    if (here.nonEmpty)
      Using.resource(fs.createBulkDelete(root)) { deleting =>
        here.grouped(math.max(1, deleting.pageSize)).foreach { some =>
          val failed = deleting.bulkDelete(some.map(stored).asJava).asScala
          failed.headOption.foreach { f =>
            throw new RuntimeIOException(new IOException(f.getValue), "Not deleted: %s", f.getKey)
          }
        }
      }
    if (others.nonEmpty) super.deleteFiles(others.map(stored(_).toString).asJava)
  }

  /** Whether this process has checked the length of a manifest, or has written it, lately. */
  def hasSeen(manifest: ManifestFile): Boolean = isStore && SeenManifests.has(manifest.path)

  /** Records that the length of a manifest is right. */
  def seen(manifest: ManifestFile): Unit = if (isStore) SeenManifests.add(manifest.path)

  private final class StoredInput(path: String, known: Option[Long]) extends InputFile {

    private val file = stored(path)

    override def location(): String = path

    override def exists(): Boolean = recent.containsKey(path) || fs.exists(file)

    override def getLength: Long =
      Option(recent.get(path)).map(_.length.toLong).orElse(known).getOrElse {
        finding(fs.getFileStatus(file).getLen)
      }

    override def newStream(): SeekableInputStream =
      Option(recent.get(path)).orElse(finding(read())) match {
        case Some(bytes) => new InMemoryInputFile(path, bytes).newStream()
        case None        => HadoopInputFile.fromPath(file, fs, conf).newStream()
      }

    /** All bytes of the file, by one request; `None` if there are too many. */
    private def read(): Option[Array[Byte]] = known.filter(_ > 0) match {
      case Some(length) if length > MetadataFiles.mostBytes => None
      case length                                           =>
        val opening = fs.openFile(file).opt("fs.option.openfile.read.policy", "whole-file")
        length.foreach(l => opening.opt("fs.option.openfile.length", l.toString))
        val opened =
          try opening.build().get()
          catch { case e: java.util.concurrent.ExecutionException => throw e.getCause }
        val bytes = Using.resource(opened)(_.readAllBytes)
        remember(path, bytes)
        Some(bytes)
    }

    private def finding[T](answer: => T): T =
      try answer
      catch {
        case e: FileNotFoundException =>
          throw new NotFoundException(e, "File does not exist: %s", path)
        case e: IOException => throw new RuntimeIOException(e, "Failed to read %s", path)
      }
  }

  private final class StoredOutput(path: String) extends OutputFile {

    override def location(): String = path

    override def toInputFile: InputFile = new StoredInput(path, None)

    // The names contain a new id, so the files do not exist.
    override def create(): PositionOutputStream = createOrOverwrite()

    override def createOrOverwrite(): PositionOutputStream = new PositionOutputStream {

      private val out = MetadataStore.createUnprobed(fs, stored(path))
      private var copy = new ByteArrayOutputStream
      private var closed = false

      override def getPos: Long = out.getPos

      override def write(byte: Int): Unit = {
        out.write(byte)
        if (copy != null) copy.write(byte)
      }

      override def write(bytes: Array[Byte], from: Int, length: Int): Unit = {
        out.write(bytes, from, length)
        if (copy != null && copy.size + length > MetadataFiles.mostRemembered) copy = null
        if (copy != null) copy.write(bytes, from, length)
      }

      override def flush(): Unit = ()

      override def close(): Unit = if (!closed) {
        closed = true
        out.close()
        if (copy != null) remember(path, copy.toByteArray)
        SeenManifests.add(path)
      }
    }
  }

  private def remember(path: String, bytes: Array[Byte]): Unit =
    if (bytes.length <= MetadataFiles.mostRemembered && recent.size < MetadataFiles.mostFiles) {
      recent.put(path, bytes)
      ()
    }
}

private object MetadataFiles {

  // Larger files are read in parts.
  private val mostBytes = 32L * 1024 * 1024

  // Larger files are not cached; the cache has at most 64 MB while a table is published.
  private val mostRemembered = 1024 * 1024

  private val mostFiles = 64
}

/** Manifests that this process has written or checked within an hour; they never change. */
private object SeenManifests {

  private val most = 100000

  private val nanos = 3600L * 1000 * 1000 * 1000

  private val seen = new LinkedHashMap[String, Long](16, 0.75f, false) {
    override def removeEldestEntry(eldest: JMap.Entry[String, Long]): Boolean = size > most
  }

  def add(path: String): Unit = seen.synchronized {
    seen.put(path, System.nanoTime)
    ()
  }

  def has(path: String): Boolean = seen.synchronized {
    Option(seen.get(path)).exists(System.nanoTime - _ < nanos)
  }
}
