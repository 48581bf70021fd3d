package org.icebergwritercompat.docs

import java.nio.file.{Files, Path}

/** A page of the documents that is made from the code. */
abstract class GeneratedPage(name: String) {

  /** The text of the page. */
  def text: String

  /** Where the page is: in the nearest folder above that has a build. */
  lazy val path: Path = Iterator
    .iterate(Path.of("").toAbsolutePath)(_.getParent)
    .takeWhile(_ != null)
    .find(folder => Files.exists(folder.resolve("build.sbt")))
    .getOrElse(throw new IllegalStateException("no build.sbt in any folder above"))
    .resolve("docs")
    .resolve(name)

  /** Whether the page is there as it should be. */
  def isCurrent: Boolean = Files.exists(path) && Files.readString(path) == text

  /** Writes the page. */
  def write(): Unit = {
    Files.writeString(path, text)
    ()
  }
}

/** All pages that are made from the code. */
object GeneratedPages {

  /** The command that writes them. */
  val command = "make docs"

  /** The pages. */
  val all: Seq[GeneratedPage] = Seq(RulesPage, SettingsPage, ErrorsPage)

  /** Writes the pages, or fails if one is not what it should be. */
  def main(arguments: Array[String]): Unit = arguments.toSeq match {
    case Seq("write") => all.foreach(_.write())
    case Seq("check") =>
      val stale = all.filterNot(_.isCurrent).map(_.path)
      if (stale.nonEmpty) fail(1, s"${stale.mkString(", ")}: not up to date, run '$command'.")
    case _ => fail(2, "Usage: GeneratedPages write|check")
  }

  private def fail(code: Int, message: String): Unit = {
    System.err.println(message)
    sys.exit(code)
  }
}
