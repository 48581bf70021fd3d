package org.icebergwritercompat.bench

import scala.collection.mutable

/** A session in which samples are taken, and a kind of table in it. */
final case class Cell(session: String, layout: String)

/** Times commits and statements, one sample in each session by turns. */
object CommitBenchmark {

  private val compat = Cell(Sessions.Guarded, Layout.Compat)
  private val without = Cell(Sessions.Guarded, Layout.Twin)
  private val twin = Cell(Sessions.Stock, Layout.Twin)
  private val delta = Cell(Sessions.Stock, Layout.Uuid)
  private val control = Cell("control", Layout.Twin)

  private val columns = Seq(10, 100, 1000)
  private val manyFiles = Seq(1, 1000, 100000)
  private val columnsOfManyFiles = 10

  private type Key = (String, Int, Int, Cell)
  private val samples = mutable.HashMap.empty[Key, Vector[Double]]

  /** Takes all samples of the chosen benchmarks, then formats their results. */
  def run(settings: Settings): Seq[Section] = {
    if (settings.wants("append", "insert", "files", "start")) sampleAll(settings)
    Seq(
      Option.when(settings.wants("append", "insert"))(appends),
      Option.when(settings.wants("append", "insert"))(withoutProperty),
      Option.when(settings.wants("files"))(files),
      Option.when(settings.wants("start"))(starts)
    ).flatten
  }

  private def sampleAll(settings: Settings): Unit = ScratchFolder.use { folder =>
    val kinds = Seq(
      Sessions.Guarded -> Sessions.Guarded,
      Sessions.Stock -> Sessions.Stock,
      control.session -> Sessions.Stock
    )
    val workers = kinds.map { case (name, kind) =>
      name -> new ChildJvm("org.icebergwritercompat.bench.Worker", kind, s"$folder/$name")
    }.toMap
    try {
      workers.values.foreach(_.answer())
      val sampling = new Sampling(workers, settings)
      if (settings.wants("append")) {
        sampling.warmUp("commit", Seq(compat, without, twin, delta, control), 40)
        columns.zip(Seq(40, 60, 30)).foreach { case (size, times) =>
          sampling.measure("commit", Seq(compat, without, twin, delta, control), size, 1, times)
        }
      }
      if (settings.wants("insert")) {
        sampling.warmUp("insert", Seq(compat, without, twin, control), 8)
        columns.zip(Seq(15, 20, 6)).foreach { case (size, times) =>
          sampling.measure("insert", Seq(compat, without, twin, control), size, 0, times)
        }
      }
      if (settings.wants("files"))
        manyFiles.zip(Seq(20, 15, 5)).foreach { case (count, times) =>
          sampling.measure("files", Seq(compat, twin, control), columnsOfManyFiles, count, times)
        }
      if (settings.wants("start"))
        sampling.measure("start", Seq(compat, without, twin, control), 100, 1000, 20)
    } finally workers.values.foreach(_.close())
  }

  private final class Sampling(workers: Map[String, ChildJvm], settings: Settings) {

    private def times(full: Int): Int = if (settings.quick) math.max(2, full / 10) else full

    def warmUp(name: String, cells: Seq[Cell], full: Int): Unit = {
      freshTables(cells, 100)
      (1 to times(full)).foreach(_ => cells.foreach(sample(name, _, 100, 1)))
    }

    def measure(name: String, cells: Seq[Cell], size: Int, count: Int, full: Int): Unit = {
      val commitsOfOneTable = if (count >= 100000) 1 else 20
      val taken = (0 until warmUps(count) + times(full))
        .map { i =>
          if (i % commitsOfOneTable == 0) freshTables(cells, size)
          val order = if (i % 2 == 0) cells else cells.reverse
          val own =
            if (name == "commit" || name == "files")
              workers(compat.session).ask(s"own ${compat.layout} $size $count")
            else Nil
          val inTurn =
            order.map(cell => (name, size, count, cell) -> sample(name, cell, size, count))
          inTurn ++ Seq("own", "parse").map(part => (s"$name-$part", size, count, compat)).zip(own)
        }
        .drop(warmUps(count))
        .map(_.toMap[Key, Double])
      taken.head.keys.foreach(key => add(key, taken.map(_(key)).toVector))
    }

    // The code is compiled by now; only the tables and larger buffers are new for a size.
    private def warmUps(count: Int): Int = if (count >= 100000) 1 else times(10)

    private def freshTables(cells: Seq[Cell], size: Int): Unit =
      cells.foreach(cell => workers(cell.session).ask(s"fresh ${cell.layout} $size"))

    private def sample(name: String, cell: Cell, size: Int, count: Int): Double = {
      val question = name match {
        case "insert" => s"insert ${cell.layout} $size"
        case "start"  => s"start ${cell.layout} $size $count"
        case _        => s"commit ${cell.layout} $size $count"
      }
      workers(cell.session).ask(question).head
    }

    private def add(key: Key, taken: Vector[Double]): Unit = {
      samples(key) = taken
      if (settings.verbose)
        Console.err.println(s"$key: ${taken.map(v => f"$v%.2f").mkString(" ")}")
    }
  }

  private def ratio(
      what: String,
      measured: Key,
      baseline: Key,
      goal: Option[Goal] = None
  ): Option[Row] =
    for {
      m <- samples.get(measured)
      b <- samples.get(baseline)
    } yield Row.ratio(what, m, b, goal)

  private def appends: Section = Section(
    "A small append",
    "`commit` is one call of `OptimisticTransaction.commit` with one added file, which has statistics of all columns; " +
      "`INSERT` is a whole statement of one row. Table with the feature, guarded ÷ its twin or Delta's own table, stock. The " +
      "share of the guard is measured separately, by turns with the commits, so it has less noise.",
    columns.flatMap { size =>
      val goal = Option.when(size == 100)(Goal.atMost("1.01", 1.01))
      ratio(
        s"commit, $size columns, ÷ twin",
        ("commit", size, 1, compat),
        ("commit", size, 1, twin),
        goal
      ) ++
        ratio(
          s"commit, $size columns, ÷ Delta's own",
          ("commit", size, 1, compat),
          ("commit", size, 1, delta),
          goal
        ) ++
        ratio(
          s"all of the guard ÷ the commit it is part of, $size columns",
          ("commit-own", size, 1, compat),
          ("commit", size, 1, compat),
          Option.when(size == 100)(Goal.atMost("0.01", 0.01))
        ) ++
        ratio(
          s"`INSERT`, $size columns, ÷ twin",
          ("insert", size, 0, compat),
          ("insert", size, 0, twin)
        )
    } ++ controls
  )

  private def controls: Seq[Row] = columns.flatMap { size =>
    ratio(
      s"control: commit, $size columns",
      ("commit", size, 1, control),
      ("commit", size, 1, twin)
    ) ++
      ratio(
        s"control: `INSERT`, $size columns",
        ("insert", size, 0, control),
        ("insert", size, 0, twin)
      )
  }

  private def withoutProperty: Section = Section(
    "A table without the property",
    "The same IcebergCompatV2 table, guarded ÷ stock; the controls are those above. A result is a " +
      "difference if its interval excludes 1 and does not overlap with that of the control.",
    columns.flatMap { size =>
      Seq(("commit", 1, "commit"), ("insert", 0, "`INSERT`")).flatMap { case (name, count, shown) =>
        val baseline: Key = (name, size, count, twin)
        val noise = ratio("", (name, size, count, control), baseline).map(_.estimate)
        ratio(
          s"$shown, $size columns",
          (name, size, count, without),
          baseline,
          noise.map(Goal.noDifference)
        )
      }
    }
  )

  private def files: Section = Section(
    "Commits of many files",
    s"$columnsOfManyFiles columns, statistics of all of them in each file. The guard reads the statistics of each file " +
      "once, in one pass and without a tree, in the commit that adds it; Delta parses them once itself, for " +
      "the row count that IcebergCompatV2 asks for.",
    manyFiles.flatMap { count =>
      def key(name: String, cell: Cell): Key = (name, columnsOfManyFiles, count, cell)
      ratio(s"$count files ÷ twin", key("files", compat), key("files", twin)) ++
        ratio(s"control: $count files", key("files", control), key("files", twin)) ++
        ratio(
          s"$count files: all of the guard ÷ the commit",
          key("files-own", compat),
          key("files", compat)
        ) ++
        ratio(
          s"$count files: statistics alone ÷ the commit",
          key("files-parse", compat),
          key("files", compat)
        )
    }
  )

  private def starts: Section = {
    val baseline: Key = ("start", 100, 1000, twin)
    Section(
      "Making a transaction",
      "The guard replaces Delta's transaction by its own, so two are created; 100 columns, 1 000 at a time.",
      Seq(
        ratio("with the feature ÷ twin", ("start", 100, 1000, compat), baseline),
        ratio("without the property ÷ stock", ("start", 100, 1000, without), baseline),
        ratio("control", ("start", 100, 1000, control), baseline)
      ).flatten
    )
  }
}
