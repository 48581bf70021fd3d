package org.icebergwritercompat.iceberg.target

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{FileSystem, LocalFileSystem, Path, RawLocalFileSystem}

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
