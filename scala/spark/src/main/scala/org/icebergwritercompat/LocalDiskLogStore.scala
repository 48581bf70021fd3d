package org.icebergwritercompat

import io.delta.storage.LocalLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkConf

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets
import java.nio.file.{
  FileAlreadyExistsException,
  FileSystemException,
  Files,
  NoSuchFileException,
  Path => LocalPath,
  StandardCopyOption
}
import java.util.UUID
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/**
 * Writes Delta's log on a local disk so that of two writers of a version, in any processes, only
 * one succeeds. The store that Delta takes by default looks whether the file exists and then
 * renames over it, so that one of two commits made at the same moment is lost though its writer was
 * told that it succeeded.
 */
final class LocalDiskLogStore(conf: Configuration) extends LocalLogStore(conf) {

  override def write(
      path: Path,
      actions: java.util.Iterator[String],
      overwrite: java.lang.Boolean,
      conf: Configuration
  ): Unit = {
    val file = LocalDiskLogStore.local(path)
    // A reader ignores it, as it is no file of the log, and VACUUM does not look into the log.
    val written = file.resolveSibling(s".${file.getFileName}.${UUID.randomUUID}.tmp")
    try {
      if (!overwrite && Files.exists(file)) throw new FileAlreadyExistsException(file.toString)
      LocalDiskLogStore.lines(written, actions)
      // Hadoop would check the new text against the old checksum.
      Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
      if (overwrite) LocalDiskLogStore.replace(written, file)
      else LocalDiskLogStore.link(written, file)
    } catch {
      case missing: NoSuchFileException => throw new FileNotFoundException(missing.getMessage)
    } finally {
      // A link remains.
      Try(Files.deleteIfExists(written))
      ()
    }
  }
}

private object LocalDiskLogStore {

  private val scheme = "file"

  /** Makes this the store of local disks, unless somebody has chosen one. */
  def install(conf: SparkConf): Unit = {
    val key = s"delta.logStore.$scheme.impl"
    val chosen = Seq(key, "delta.logStore.class").flatMap(k => Seq(k, s"spark.$k"))
    if (!chosen.exists(conf.contains)) conf.set(s"spark.$key", classOf[LocalDiskLogStore].getName)
  }

  private def local(path: Path): LocalPath = {
    val found = Option(path.toUri.getScheme).getOrElse(scheme)
    require(found == scheme, s"${classOf[LocalDiskLogStore].getName} cannot write $path")
    LocalPath.of(path.toUri.getPath)
  }

  private def lines(file: LocalPath, lines: java.util.Iterator[String]): Unit =
    Using.resource(Files.newBufferedWriter(file, StandardCharsets.UTF_8)) { out =>
      lines.asScala.foreach { line =>
        out.write(line)
        out.write('\n')
      }
    }

  private def replace(written: LocalPath, file: LocalPath): Unit = {
    Files.move(
      written,
      file,
      StandardCopyOption.ATOMIC_MOVE,
      StandardCopyOption.REPLACE_EXISTING
    )
    ()
  }

  // A hard link fails if the name exists.
  private def link(written: LocalPath, file: LocalPath): Unit =
    try {
      Files.createLink(file, written)
      ()
    } catch {
      case exists: FileAlreadyExistsException => throw exists
      case _: UnsupportedOperationException | _: FileSystemException if !Files.exists(file) =>
        withoutLinks(written, file)
    }

  // Where the file system has no links, the threads of this process are kept apart.
  private def withoutLinks(written: LocalPath, file: LocalPath): Unit = synchronized {
    if (Files.exists(file)) throw new FileAlreadyExistsException(file.toString)
    replace(written, file)
  }
}
