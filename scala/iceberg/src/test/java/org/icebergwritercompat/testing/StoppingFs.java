package org.icebergwritercompat.testing;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Hadoop's local file system, in which a thread stops for good before it makes certain files or
 * folders, and says so on the standard output. The process can then be killed at that moment.
 *
 * <p>Each property {@code test.stop.<n>} is such a moment: a regular expression for the path, and,
 * after a space, a file that has to be there already.
 */
public final class StoppingFs extends LocalFileSystem {

  private static final class Stop {
    final Pattern path;
    final File needed;

    Stop(String text) {
      int space = text.indexOf(' ');
      path = Pattern.compile(text.substring(0, space));
      needed = new File(text.substring(space + 1));
    }
  }

  private final List<Stop> stops = new ArrayList<>();

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    for (int i = 0; conf.get("test.stop." + i) != null; i++)
      stops.add(new Stop(conf.get("test.stop." + i)));
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    stopBefore(path);
    return super.create(
        path, permission, overwrite, bufferSize, replication, blockSize, progress);
  }

  @Override
  public boolean mkdirs(Path path) throws IOException {
    stopBefore(path);
    return super.mkdirs(path);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    stopBefore(to);
    return super.rename(from, to);
  }

  private void stopBefore(Path path) throws IOException {
    String place = path.toUri().getPath();
    for (Stop stop : stops)
      if (stop.path.matcher(place).matches() && stop.needed.exists()) {
        System.out.println("stopped before " + place);
        System.out.flush();
        try {
          Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException e) {
          throw new IOException(e);
        }
      }
  }
}
