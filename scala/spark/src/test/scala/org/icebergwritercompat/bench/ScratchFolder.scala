package org.icebergwritercompat.bench

import java.nio.file.{Files, Path}
import java.util.Comparator

/** A folder for tables, which is removed at the end. */
object ScratchFolder {

  def use[T](block: Path => T): T = {
    val folder = Files.createTempDirectory("iceberg-writer-compat-bench")
    try block(folder)
    finally delete(folder)
  }

  /** Removes the folder and all in it. */
  def delete(folder: Path): Unit = {
    val all = Files.walk(folder)
    try all.sorted(Comparator.reverseOrder[Path]).forEach { path => Files.deleteIfExists(path); () }
    finally all.close()
  }
}
