package org.icebergwritercompat.bench

import java.nio.file.{Files, Path}

/** The options of a run. */
final case class Settings(quick: Boolean, verbose: Boolean, names: Set[String]) {

  /** Whether one of these benchmarks is to be run. */
  def wants(any: String*): Boolean = names.isEmpty || any.exists(names)
}

object Settings {

  val command = "make bench"

  val names: Seq[String] =
    Seq(
      "rules",
      "append",
      "insert",
      "files",
      "start",
      "session",
      "publish",
      "growth",
      "upgrade",
      "writeback",
      "rest"
    )
}

/**
 * Prints the cost of the guard, and writes it to `docs/benchmarks.md` if everything was measured.
 *
 * Arguments: `--quick` for few samples, `--verbose` for each of them, and the names of benchmarks.
 */
object Benchmarks {

  def main(args: Array[String]): Unit = {
    val (options, names) = args.toSeq.partition(_.startsWith("--"))
    val unknown = options.filterNot(Set("--quick", "--verbose")) ++ names.diff(Settings.names)
    if (unknown.nonEmpty)
      sys.error(s"Unknown: ${unknown.mkString(" ")}. Known: ${Settings.names.mkString(" ")}")
    val settings = Settings(options.contains("--quick"), options.contains("--verbose"), names.toSet)
    val machine = new Machine
    Console.err.println(s"Logs of the sessions: ${ChildJvm.log}")
    val sections = CommitBenchmark.run(settings) ++
      Option.when(settings.wants("rules"))(RulesBenchmark.run(settings)) ++
      Option.when(settings.wants("session"))(SessionBenchmark.run(settings)) ++
      Option.when(settings.wants("publish"))(PublishBenchmark.run(settings)) ++
      Option.when(settings.wants("publish", "growth"))(GrowthBenchmark.run(settings)) ++
      Option.when(settings.wants("upgrade"))(UpgradeBenchmark.run(settings)) ++
      Option.when(settings.wants("writeback"))(WriteBackBenchmark.run(settings)) ++
      Option.when(settings.wants("rest"))(RestBenchmark.run(settings))
    val text = Report.markdown(sections, settings, machine)
    println(text)
    if (names.isEmpty && !settings.quick)
      Report.write(projectRoot.resolve("docs/benchmarks.md"), text)
  }

  // sbt starts tests in a folder below the build output.
  private def projectRoot: Path =
    Iterator
      .iterate(Path.of("").toAbsolutePath)(_.getParent)
      .takeWhile(_ != null)
      .find(folder => Files.exists(folder.resolve("build.sbt")))
      .getOrElse(sys.error("Run this inside the project."))
}

/** The time from the start of a JVM until its session is usable. */
object SessionBenchmark {

  private val installation = "installation"

  def run(settings: Settings): Section = {
    val kinds = Seq(Sessions.Guarded, installation, Sessions.Stock)
    val times = if (settings.quick) 2 else 6
    // The first start of each kind is not measured, because it fills the caches of the disk.
    val taken = (0 to times)
      .map { i =>
        val order = if (i % 2 == 0) kinds else kinds.reverse
        order.map(kind => kind -> start(kind)).toMap
      }
      .drop(1)
    def samples(kind: String)(part: Seq[Double] => Double): Estimate.Samples =
      taken.map(one => part(one(kind))).toVector
    def difference(what: String)(part: Seq[Double] => Double): Row =
      Row.difference(what, samples(Sessions.Guarded)(part), samples(Sessions.Stock)(part), goal)
    Section(
      "Session start",
      s"A fresh JVM each, $times of each kind by turns, guarded − stock. The installation is also measured separately, " +
        "because start times vary by more than it takes. Most of its time is spent on loading classes that Delta loads in " +
        "any case with its first table, so the second row is the cost for a program that uses Delta.",
      Seq(
        difference("from JVM start until the session is there")(_(0)),
        difference("the same until a first table has a row")(_.sum),
        Row.time("the installation alone", samples(installation)(_(0)), goal),
        Row.time("the installation alone, CPU time of its thread", samples(installation)(_(1)))
      )
    )
  }

  private val goal = Some(Goal.atMost("150 ms", 150))

  private def start(kind: String): Seq[Double] = ScratchFolder.use { folder =>
    val child =
      if (kind == installation)
        new ChildJvm("org.icebergwritercompat.bench.Installation", folder.toString)
      else new ChildJvm("org.icebergwritercompat.bench.SessionStart", kind, folder.toString)
    try child.answer().map(_.toDouble)
    finally child.close()
  }
}
