package org.icebergwritercompat.testing;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's {@code LocalFs}, through which Delta writes the checksum of each version, but permissions
 * are set and links are recognized by system calls. Without its native library Hadoop starts the
 * programs {@code chmod} and {@code readlink} for that, several times for each commit, 5 ms each.
 */
public final class QuickLocalFs extends ChecksumFs {

  /** The constructor that Hadoop calls. */
  public QuickLocalFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(new RawFs(conf));
  }

  /** The same for programs that use Hadoop's {@code FileSystem}, as Iceberg's library does. */
  public static final class AsFileSystem extends LocalFileSystem {

    /** The constructor that Hadoop calls. */
    public AsFileSystem() {
      super(new LocalFiles());
    }
  }

  private static final class RawFs extends DelegateToFileSystem {

    private RawFs(Configuration conf) throws IOException, URISyntaxException {
      super(FsConstants.LOCAL_FS_URI, new LocalFiles(), conf, "file", false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }

  private static final class LocalFiles extends RawLocalFileSystem {

    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      PosixFileAttributeView view =
          Files.getFileAttributeView(
              pathToFile(path).toPath(), PosixFileAttributeView.class);
      if (view == null || permission.getStickyBit()) super.setPermission(path, permission);
      else
        view.setPermissions(
            PosixFilePermissions.fromString(
                permission.getUserAction().SYMBOL
                    + permission.getGroupAction().SYMBOL
                    + permission.getOtherAction().SYMBOL));
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return Files.isSymbolicLink(pathToFile(path).toPath())
          ? super.getFileLinkStatus(path)
          : getFileStatus(path);
    }
  }
}
