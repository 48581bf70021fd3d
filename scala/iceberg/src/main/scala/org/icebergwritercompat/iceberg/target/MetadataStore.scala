package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Options.Rename
import org.apache.hadoop.fs.{
  EtagSource,
  FSDataOutputStream,
  FileAlreadyExistsException,
  FileContext,
  FileStatus,
  FileSystem,
  Path
}
import org.apache.hadoop.fs.permission.FsPermission
import org.icebergwritercompat.errors.Causes
import org.icebergwritercompat.iceberg.metadata.MetadataFileNames

import java.io.{
  BufferedOutputStream,
  ByteArrayOutputStream,
  FileNotFoundException,
  IOException,
  OutputStream
}
import java.nio.channels.FileChannel
import java.nio.file.{Files, StandardCopyOption, StandardOpenOption}
import java.util.concurrent.ConcurrentHashMap
import java.util.{Locale, UUID}
import scala.annotation.{nowarn, tailrec}
import scala.util.control.NonFatal
import scala.util.{Failure, Success, Try, Using}

/** The text of a small file, and its ETag if the file system has one. */
private[iceberg] final case class ReadFile(text: String, etag: Option[String])

/**
 * Writes the metadata files of a table on one kind of file system: a version is created only once,
 * also with concurrent writers, and the hint is replaced in one step.
 *
 * Delta's log store must not be used for files outside of `_delta_log`: `S3DynamoDBLogStore` adds
 * each file that it writes to the commits of the table, and then does not find its own commits.
 */
private[iceberg] sealed trait MetadataStore {

  protected def fs: FileSystem

  /** Creates a file completely; returns false, and changes nothing, if the file exists. */
  def create(file: Path)(write: OutputStream => Unit): Boolean

  /**
   * Replaces a small file in one step.
   *
   * @param before
   *   the file as it was read; `None` if it did not exist
   * @return
   *   false, and nothing was changed, if the file system knows that the file has changed since
   */
  def replace(file: Path, text: String, before: Option[ReadFile]): Boolean

  /** Whether `replace` returns false if the file has changed since it was read. */
  def comparesBefore: Boolean = false

  /** Whether a file exists. */
  def isThere(file: Path): Boolean = fs.exists(file)

  /** Reads a small file; `None` if it cannot be read. */
  def read(file: Path): Option[ReadFile] = Try {
    ReadFile(MetadataStore.text(fs.open(file)), None)
  }.toOption
}

private[iceberg] object MetadataStore {

  /**
   * The prefix of a setting for file systems that this project does not know, followed by the
   * scheme: `create` if only one of several writers can create a file, `rename` if a rename never
   * replaces a file.
   */
  val Setting = "spark.icebergWriterCompat.exclusive."

  /** The store for a file system; `None` if two writers could write the same file there. */
  def of(fs: FileSystem, folder: Path, conf: Configuration): Option[MetadataStore] = {
    val scheme = schemeOf(fs)
    def declared = Option(conf.get(Setting + scheme)).map(_.trim.toLowerCase(Locale.ROOT))
    if (scheme == "file") Some(new Linking(fs))
    else if (isConditional(fs, folder)) Some(new Conditional(fs))
    else
      declared.orElse(known.get(scheme)).collect {
        case "create" => new Creating(fs)
        case "rename" => new Renaming(fs, conf)
      }
  }

  /** For tables of a catalog, which decides between writers; the folder has the first version. */
  def unexclusive(fs: FileSystem): MetadataStore = new Creating(fs)

  /** Whether the file system is an object store with conditional PUT. */
  def isConditional(fs: FileSystem, path: Path): Boolean =
    fs.hasPathCapability(path, onlyNew) && fs.hasPathCapability(path, onlyInPlaceOf)

  /**
   * The scheme that users know a file system by; `s3a` for S3A, whatever scheme it is used with.
   */
  def schemeOf(fs: FileSystem): String =
    Try(fs.getScheme).getOrElse(fs.getUri.getScheme).toLowerCase(Locale.ROOT)

  // According to the documentation and the source of each; see docs/object-stores.md.
  private val known = Map(
    "hdfs" -> "rename",
    "viewfs" -> "rename",
    "abfs" -> "rename",
    "abfss" -> "rename",
    "gs" -> "create"
  )

  private val onlyNew = "fs.option.create.conditional.overwrite"

  private val onlyInPlaceOf = "fs.option.create.conditional.overwrite.etag"

  private val unprobed = "fs.s3a.create.performance"

  /** Creates a file with a unique name by one request: nothing is looked up before. */
  def createUnprobed(fs: FileSystem, file: Path): FSDataOutputStream =
    fs.createFile(file).overwrite(true).recursive().opt(unprobed, true).build()

  private def text(in: java.io.InputStream): String =
    Using.resource(in)(stream => new String(stream.readAllBytes, "UTF-8"))

  /** Whether the file system refused because the condition of the write does not hold. */
  private def isRefused(e: Throwable): Boolean =
    Causes.of(e).exists {
      case _: FileAlreadyExistsException               => true
      case _: java.nio.file.FileAlreadyExistsException => true
      case cause                                       =>
        cause.getClass.getSimpleName == "RemoteFileChangedException" ||
        httpStatusOf(cause).exists(code => code == 409 || code == 412)
    }

  /** The HTTP status in an error of the client of an object store. */
  def httpStatusOf(cause: Throwable): Option[Int] =
    Seq("statusCode", "getStatusCode").iterator
      .flatMap(method => Try(cause.getClass.getMethod(method).invoke(cause)).toOption)
      .collectFirst { case code: Integer => code.intValue }

  private def bytesOf(write: OutputStream => Unit): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    write(bytes)
    bytes.toByteArray
  }

  // Closing the stream creates the file, so a failed write must abort it.
  private def put(out: FSDataOutputStream, bytes: Array[Byte]): Unit = {
    try out.write(bytes)
    catch {
      case NonFatal(e) =>
        Try(out.abort())
        throw e
    }
    out.close()
  }

  // MetadataSweep removes files with these names if a writer was killed.
  private def temporary(file: Path): Path = {
    val ending = MetadataFileNames.Endings
      .find(file.getName.endsWith)
      .getOrElse(s"-${file.getName}")
    new Path(file.getParent, s"${UUID.randomUUID}$ending")
  }

  /** On a local disk: a hard link fails if the name exists. */
  private final class Linking(val fs: FileSystem) extends MetadataStore {

    private def local(path: Path): java.nio.file.Path = java.nio.file.Path.of(path.toUri.getPath)

    private def checksum(path: Path): java.nio.file.Path =
      local(path).resolveSibling(s".${path.getName}.crc")

    override def create(file: Path)(write: OutputStream => Unit): Boolean = {
      val written = temporary(file)
      try {
        Using.resource(new BufferedOutputStream(fs.create(written, false)))(write)
        Files.createLink(local(file), local(written))
        true
      } catch {
        case _: java.nio.file.FileAlreadyExistsException => false
      } finally {
        // The link remains.
        Try(fs.delete(written, false))
        ()
      }
    }

    override def replace(file: Path, text: String, before: Option[ReadFile]): Boolean =
      exclusively(file) {
        val isAsRead = read(file).map(_.text) == before.map(_.text)
        if (isAsRead) {
          val written = temporary(file)
          Using.resource(fs.create(written, false))(_.write(text.getBytes("UTF-8")))
          Files.deleteIfExists(checksum(file))
          Files.move(
            local(written),
            local(file),
            StandardCopyOption.ATOMIC_MOVE,
            StandardCopyOption.REPLACE_EXISTING
          )
          Files.deleteIfExists(checksum(written))
        }
        isAsRead
      }

    // A file can be renamed over another, but not only if that has not changed. The lock is of the
    // operating system and ends with the process; a file system without locks goes without.
    private def exclusively(file: Path)(body: => Boolean): Boolean = {
      val lock = new Path(file.getParent, s".${file.getName}.lock")
      // The system does not keep threads apart.
      threads.computeIfAbsent(lock.toString, _ => new Object).synchronized {
        Try(opened(lock)) match {
          case Success(channel) => Using.resource(channel) { held => await(held, lock); body }
          // For example, because the lock is another user's.
          case Failure(_) => body
        }
      }
    }

    private def opened(lock: Path): FileChannel = {
      if (!Files.exists(local(lock)) && Try(Files.createFile(local(lock))).isSuccess)
        fs.setPermission(
          lock,
          FsPermission.getFileDefault.applyUMask(FsPermission.getUMask(fs.getConf))
        )
      FileChannel.open(local(lock), StandardOpenOption.WRITE)
    }

    @tailrec private def await(held: FileChannel, lock: Path, left: Int = patience): Unit =
      Try(Option(held.tryLock())) match {
        case Success(None) if left > 0 =>
          Thread.sleep(pauseMillis)
          await(held, lock, left - 1)
        case Success(None) => throw new IOException(s"$lock is locked by another process")
        case _             =>
      }
  }

  // Two seconds; the lock is held for the time of a rename.
  private val (patience, pauseMillis) = (200, 10L)

  private val threads = new ConcurrentHashMap[String, Object]

  /** On an object store with conditional PUT. */
  private final class Conditional(val fs: FileSystem) extends MetadataStore {

    override def create(file: Path)(write: OutputStream => Unit): Boolean =
      put(file, bytesOf(write), onlyNew, "true")

    override def comparesBefore: Boolean = true

    override def replace(file: Path, text: String, before: Option[ReadFile]): Boolean = {
      val bytes = text.getBytes("UTF-8")
      before match {
        case None                          => put(file, bytes, onlyNew, "true")
        case Some(ReadFile(_, Some(etag))) => put(file, bytes, onlyInPlaceOf, etag)
        case Some(_) => MetadataStore.put(createUnprobed(fs, file), bytes); true
      }
    }

    private def put(file: Path, bytes: Array[Byte], condition: String, value: String): Boolean =
      try {
        val out = fs
          .createFile(file)
          .overwrite(true)
          .recursive()
          .opt(unprobed, true)
          .must(condition, value)
          .build()
        MetadataStore.put(out, bytes)
        true
      } catch {
        // The file to be replaced does not exist any more.
        case _: FileNotFoundException if condition == onlyInPlaceOf => false
        case NonFatal(e) if isRefused(e)                            => false
      }

    // `exists` also lists the objects below the name.
    @nowarn("cat=deprecation")
    override def isThere(file: Path): Boolean = fs.isFile(file)

    override def read(file: Path): Option[ReadFile] = Try {
      val status = fs.getFileStatus(file)
      val in = fs.openFile(file).withFileStatus(status).build().get()
      ReadFile(MetadataStore.text(in), etagOf(status))
    }.toOption
  }

  /** The ETag of a file, if the file system has one. */
  def etagOf(status: FileStatus): Option[String] = status match {
    case source: EtagSource => Option(source.getEtag).filter(_.nonEmpty)
    case _                  => None
  }

  /** Where a rename fails if the target exists. */
  private final class Renaming(val fs: FileSystem, conf: Configuration) extends MetadataStore {

    private def context(file: Path): FileContext = FileContext.getFileContext(file.toUri, conf)

    override def create(file: Path)(write: OutputStream => Unit): Boolean =
      renamed(file, Rename.NONE)(write)

    override def replace(file: Path, text: String, before: Option[ReadFile]): Boolean =
      renamed(file, Rename.OVERWRITE)(_.write(text.getBytes("UTF-8")))

    private def renamed(file: Path, how: Rename)(write: OutputStream => Unit): Boolean = {
      val written = temporary(file)
      val bytes = bytesOf(write)
      try {
        put(fs.create(written, false), bytes)
        val qualified = fs.makeQualified(file)
        context(qualified).rename(fs.makeQualified(written), qualified, how)
        true
      } catch {
        case NonFatal(e) =>
          def isThere(path: Path): Boolean = Try(fs.exists(path)).getOrElse(false)
          // Some file systems say only that the rename has failed. To replace a file, some delete
          // it first, and another writer can create it before the rename.
          val isTaken = isRefused(e) || how == Rename.NONE && isThere(written) && isThere(file)
          Try(fs.delete(written, false))
          if (isTaken) false else throw e
      }
    }
  }

  /** Where only one writer can create a file, which becomes visible when it is closed. */
  private final class Creating(val fs: FileSystem) extends MetadataStore {

    override def create(file: Path)(write: OutputStream => Unit): Boolean = {
      val bytes = bytesOf(write)
      try { put(fs.create(file, false), bytes); true }
      catch { case NonFatal(e) if isRefused(e) => false }
    }

    override def replace(file: Path, text: String, before: Option[ReadFile]): Boolean = {
      put(fs.create(file, true), text.getBytes("UTF-8"))
      true
    }
  }
}
