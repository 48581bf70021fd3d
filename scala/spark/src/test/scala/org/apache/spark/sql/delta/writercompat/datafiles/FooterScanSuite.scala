package org.apache.spark.sql.delta.writercompat.datafiles

import org.apache.spark.sql.delta.writercompat.read.Footers
import org.apache.spark.sql.delta.writercompat.upgrade.UpgradeTests
import org.icebergwritercompat.report.PlanMode
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.{ForeignFiles, TestTable}

import java.nio.file.{Files, Path, StandardOpenOption}

/** Each footer is read once, by few requests, whatever is asked of the files. */
class FooterScanSuite extends UpgradeTests {

  /** The requests for each of these files during `body`, which finds no other file system. */
  private def requests(files: => Iterable[Path])(body: => Any): Map[Path, Map[Request, Int]] = {
    CountingFileSystem.reset()
    withConf(CountingFileSystem.settings: _*)(body)
    val counted = CountingFileSystem.requests
    files.map { file =>
      file -> counted.collect { case ((path, what), n) if path == file.toString => what -> n }
    }.toMap
  }

  private val once: Map[Request, Int] = Map(Request.Open -> 1, Request.Range -> 1)

  private def assertOnce(files: Iterable[Path])(body: => Any): Unit = {
    val found = requests(files)(body)
    assert(found.size > 1 && found.values.toSet == Set(once), found)
    ()
  }

  private def live(table: TestTable): Set[Path] = table.log.liveFiles.keySet.toSet

  test("verify of a table with the feature") {
    val table = compliant()
    insert(table)
    assertOnce(live(table)) {
      assert(Reports.verify(spark, table.name, None, None).compliant)
    }
  }

  for (
    (what, make) <- Seq[(String, () => TestTable)](
      "that can keep its files" -> (() => flat(mapped)),
      "whose files have to be rewritten" -> (() => flat(Nil))
    )
  ) test(s"verify of a table without the feature $what") {
    val table = make()
    assertOnce(live(table)) {
      val report = Reports.verify(spark, table.name, None, None)
      assert(report.facts.enabling.exact && report.audit.map(_.filesRead).contains(3L))
    }
    // What it has found out is not asked again.
    val again = requests(live(table))(plan(table))
    assert(again.values.toSet == Set(Map.empty))
  }

  test("enable by metadata") {
    val table = flat(mapped)
    assertOnce(live(table)) {
      assert(upgrade(table).mode == PlanMode.Metadata)
    }
    assertCompliant(table)
  }

  test("enable with a rewrite, of the files that stay") {
    val table = flat(Nil)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    val before = live(table)
    for (id <- 100 to 101) micros(sql(s"INSERT INTO ${table.name} (id) VALUES ($id)"))
    val kept = live(table) -- before
    val rows = all(table)
    assertOnce(kept) {
      assert(upgrade(table, rewrite = true).filesKept == 2)
    }
    assert(kept.subsetOf(live(table)) && all(table) == rows)
    assertCompliant(table)
  }

  test("a plain ALTER that switches the feature on") {
    val table = compliant()
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    insert(table)
    assertOnce(live(table)) {
      sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
    }
    assertCompliant(table)
  }

  test("a RESTORE that switches the feature on") {
    val table = compliant()
    insert(table)
    val version = table.log.version
    sql(s"ALTER TABLE ${table.name} DROP FEATURE icebergWriterCompatV1")
    val files = live(table)
    sql(s"DELETE FROM ${table.name} WHERE id = 0")
    val found = requests(files)(sql(s"RESTORE TABLE ${table.name} TO VERSION AS OF $version"))
    // Delta itself looks whether a file is still there.
    assert(found.values.map(_ - Request.Status).toSet == Set(once), found)
    assert(live(table) == files)
    assertCompliant(table)
  }

  // One file, by the size that the log has and another one

  private def footer(file: Path, size: Option[Long]) =
    Footers.read("file:/nowhere", file.toUri.toString, spark.sessionState.newHadoopConf(), size)

  private def written(columns: Int = 1): Path = {
    val file = Files.createTempFile("footer", ".parquet")
    Files.delete(file)
    val fields = (1 to columns).map(i => s"optional int32 ${"long" * 20}$i = $i;")
    ForeignFiles.write(file, fields: _*)(_ => ())
  }

  test("a footer that is longer than what is fetched at first takes one request more") {
    val file = written(2000)
    assert(Files.size(file) > 128 * 1024)
    val found = requests(Seq(file)) {
      val read = footer(file, Some(Files.size(file)))
      assert(read.exists(_.schema.getFieldCount == 2000))
    }
    assert(found(file) == Map(Request.Open -> 1, Request.Range -> 2))
  }

  test("without a size the file system is asked for it") {
    val file = written()
    val found = requests(Seq(file)) {
      assert(footer(file, None).exists(_.rowCount == 1))
    }
    assert(found(file) == once + (Request.Status -> 1))
  }

  for (
    (what, by) <- Seq[(String, Long => Long)](
      "one byte less" -> (_ - 1),
      "one byte more" -> (_ + 1),
      "next to nothing" -> (_ => 5L),
      "nothing" -> (_ => 0L),
      "less than nothing" -> (_ => -1L),
      "far more" -> (_ => Long.MaxValue)
    )
  ) test(s"a log that says $what is told from the file") {
    val file = written()
    val size = Files.size(file)
    assert(
      footer(file, Some(by(size))).map(read => (read.size, read.rowCount)) == Right((size, 1L))
    )
  }

  test("bytes behind a whole Parquet file are noticed") {
    val file = written()
    val size = Files.size(file)
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    Files.write(file, Array[Byte](1), StandardOpenOption.APPEND)
    val found = footer(file, Some(size))
    assert(found.left.exists(_.reason == "it is not a whole Parquet file"), found)
  }
}
