package org.icebergwritercompat.testing

import java.nio.file.{Files, Path}
import java.util.Comparator
import java.util.concurrent.atomic.AtomicInteger
import scala.util.Using

/** The folders of a test run, removed when its JVM ends. */
object TestFolders {

  /** The folder that holds all others. */
  val root: Path = Files.createTempDirectory("iceberg-writer-compat-tests")

  sys.addShutdownHook {
    Using.resource(Files.walk(root)) { paths =>
      paths.sorted(Comparator.reverseOrder[Path]()).forEach(path => path.toFile.delete())
    }
  }

  private val counter = new AtomicInteger

  /** A name no test has used. */
  def freshName(): String = s"t${counter.incrementAndGet()}"

  /** A folder no test has used, and that does not exist. */
  def freshFolder(): Path = root.resolve("paths").resolve(freshName())
}
