package org.icebergwritercompat.bench

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.Locale

/**
 * The goal of a number.
 *
 * @param verdict
 *   whether an estimate meets it
 */
final case class Goal(text: String, verdict: Estimate => String)

object Goal {

  def atMost(text: String, limit: Double): Goal = Goal(
    s"≤ $text",
    found =>
      if (found.high <= limit) "met"
      else if (found.value <= limit) "met, but not beyond noise"
      else if (found.low <= limit) "missed, but not beyond noise"
      else "missed"
  )

  /** The difference is not larger than that between two equal sessions. */
  def noDifference(control: Estimate): Goal = Goal(
    "no difference",
    found =>
      if (found.low <= 1 && found.high >= 1 || found.overlaps(control)) "met"
      else if (found.high < 1) "met (faster)"
      else "missed"
  )
}

/** One row of a table. */
final case class Row(
    what: String,
    baseline: Option[Double],
    measured: Option[Double],
    estimate: Estimate,
    unit: String,
    goal: Option[Goal]
)

object Row {

  import Estimate.{median, Samples}

  def ratio(what: String, measured: Samples, baseline: Samples, goal: Option[Goal] = None): Row =
    Row(
      what,
      Some(median(baseline)),
      Some(median(measured)),
      Estimate.ratio(measured, baseline),
      "",
      goal
    )

  def difference(what: String, measured: Samples, baseline: Samples, goal: Option[Goal]): Row =
    Row(
      what,
      Some(median(baseline)),
      Some(median(measured)),
      Estimate.difference(measured, baseline),
      " ms",
      goal
    )

  def time(what: String, measured: Samples, goal: Option[Goal] = None): Row =
    Row(what, None, Some(median(measured)), Estimate.of(measured), " ms", goal)

  def exponent(what: String, estimate: Estimate, goal: Goal): Row =
    Row(what, None, None, estimate, "", Some(goal))
}

/** One table, and the text above it that explains it. */
final case class Section(title: String, text: String, rows: Seq[Row]) {

  def markdown: String = {
    val cells =
      Seq("", "baseline, ms", "measured, ms", "result", "95 % interval", "goal", "verdict") +:
        rows.map { row =>
          Seq(
            row.what,
            row.baseline.fold("")(Section.number),
            row.measured.fold("")(Section.number),
            Section.number(row.estimate.value) + row.unit,
            s"${Section.number(row.estimate.low)} to ${Section.number(row.estimate.high)}",
            row.goal.fold("")(_.text),
            row.goal.fold("")(_.verdict(row.estimate))
          )
        }
    val lines = cells.map(_.mkString("| ", " | ", " |"))
    val rule = "|---|---:|---:|---:|---:|---|---|"
    (Seq(s"## $title", "", text, "", lines.head, rule) ++ lines.tail).mkString("\n")
  }
}

object Section {

  private def number(value: Double): String = {
    val digits = if (math.abs(value) >= 100) 0 else if (math.abs(value) >= 10) 1 else 3
    s"%.${digits}f".formatLocal(Locale.ROOT, value)
  }
}

/** The page `docs/benchmarks.md`. */
object Report {

  def markdown(sections: Seq[Section], settings: Settings, machine: Machine): String = {
    val head =
      s"""# Benchmarks
         |
         |Made by `${Settings.command}`${if (settings.quick) " with few samples (`--quick`)"
        else ""}; do not edit.
         |
         |${machine.text}
         |
         |A *guarded* session has the extension, a *stock* session is the same without it. The guard is installed in a
         |whole JVM, so each session has a JVM of its own; they take turns sample by sample, in alternating order
         |(A, B, B, A). A result is the ratio (or difference) of medians, its interval is a bootstrap 95 % confidence
         |interval over pairs of samples. The *control* compares two stock sessions: its difference from 1 is noise.
         |The intervals do not include that the compiler optimizes one JVM better than another; the control shows that.
         |
         |The *twin* of a table with the feature is IcebergCompatV2 in id mode with the same physical names in its log,
         |so it shows the cost of the guard alone; *Delta's own* table has random names of 40 letters, which makes its
         |log longer.""".stripMargin
    (head +: sections.map(_.markdown)).mkString("", "\n\n", "\n")
  }

  def write(file: Path, text: String): Unit = { Files.writeString(file, text); () }
}

/** The machine, and how much of its CPU time other processes used. */
final class Machine {

  private val (busyBefore, ownBefore) = (busy, own)
  private val begin = System.nanoTime

  /**
   * The CPU time of the whole machine, and that of this process with the children that have ended,
   * in ticks of the kernel.
   */
  private def busy: Long = {
    val ticks = words("/proc/stat").slice(1, 9).map(_.toLong)
    if (ticks.isEmpty) 0 else ticks.sum - ticks(3) - ticks(4)
  }

  // The second word is the name of the program in brackets; for a JVM it has no spaces.
  private def own: Long = words("/proc/self/stat").slice(13, 17).map(_.toLong).sum

  private def words(file: String): Seq[String] = {
    val path = Path.of(file)
    if (Files.exists(path)) Files.readString(path).linesIterator.next().split("\\s+").toSeq else Nil
  }

  def text: String = {
    val system = ManagementFactory.getOperatingSystemMXBean
    val memory = system match {
      case os: com.sun.management.OperatingSystemMXBean => os.getTotalMemorySize >> 30
      case _                                            => 0
    }
    val minutes = (System.nanoTime - begin) / 60e9
    val others = {
      val all = busy - busyBefore
      if (all == 0) 0 else math.max(0, 100 * (all - own + ownBefore) / all)
    }
    f"${system.getAvailableProcessors} cores, $memory GiB of memory, JVM ${System.getProperty("java.vm.version")}, " +
      f"${System.getProperty("os.name")} ${System.getProperty("os.arch")}, file system of the temporary " +
      s"folder; Spark ${org.apache.spark.SPARK_VERSION}, Delta ${io.delta.VERSION}; each session `local[2]`, " +
      s"`${ChildJvm.Options.mkString(" ")}`. The run took ${minutes.round} minutes; of the CPU time the machine " +
      s"spent meanwhile, $others % went to other processes."
  }
}
