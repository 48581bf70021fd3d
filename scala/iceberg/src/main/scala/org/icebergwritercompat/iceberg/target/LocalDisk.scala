package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.iceberg.hadoop.{HadoopFileIO, HadoopOutputFile}
import org.apache.iceberg.io.OutputFile

import java.nio.file.Files
import java.nio.file.attribute.{PosixFileAttributeView, PosixFilePermissions}

/**
 * Hadoop's local file system, except that the permissions of a new file are set by a system call.
 * Without its native library Hadoop starts the program `chmod`, once for the file and once for its
 * checksum, which takes longer than writing them.
 */
private[iceberg] final class LocalDisk extends RawLocalFileSystem {

  override def setPermission(path: Path, permission: FsPermission): Unit = {
    val file = pathToFile(path).toPath
    val modes = Files.getFileAttributeView(file, classOf[PosixFileAttributeView])
    if (modes == null || permission.getStickyBit) super.setPermission(path, permission)
    else modes.setPermissions(PosixFilePermissions.fromString(LocalDisk.textOf(permission)))
  }
}

private[iceberg] object LocalDisk {

  /** The file system of a path. */
  def fileSystem(path: Path, conf: Configuration): FileSystem =
    path.getFileSystem(conf) match {
      case known if known.getClass == classOf[LocalFileSystem] =>
        val quick = new LocalFileSystem(new LocalDisk)
        quick.initialize(known.getUri, conf)
        quick
      case other => other
    }

  private def textOf(permission: FsPermission): String =
    Seq(permission.getUserAction, permission.getGroupAction, permission.getOtherAction)
      .map(_.SYMBOL)
      .mkString
}

/** Files of Iceberg's metadata. */
private[iceberg] final class MetadataFiles(conf: Configuration, fs: => FileSystem)
    extends HadoopFileIO(conf) {

  // All files that are written are in the folder of one table.
  override def newOutputFile(path: String): OutputFile =
    HadoopOutputFile.fromPath(new Path(path), fs, conf)
}
