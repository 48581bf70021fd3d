package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.delta.DeltaLog
import org.apache.spark.sql.delta.writercompat.TableSuite
import org.icebergwritercompat.IcebergWriterCompat
import org.icebergwritercompat.testing.{ForeignFiles, Malformation, MalformedLogs, TestTable}

import java.nio.file.{Files, Path}
import java.util.{ArrayList => JArrayList, Map => JMap}
import scala.util.{Failure, Try}

/**
 * Logs in which one field is malformed: every door answers, or says what is wrong by a condition,
 * and commits nothing.
 */
class MalformedLogSuite extends TableSuite {

  private type Door = (String, TestTable => Any)

  /** Ours. */
  private val doors: Seq[Door] = Seq(
    "check" -> (t => IcebergWriterCompat.check(spark, t.name, null)),
    "publish" -> (t => IcebergWriterCompat.publish(spark, t.name)),
    "status" -> (t => IcebergWriterCompat.publishStatus(spark, t.name)),
    "verify" -> (t => IcebergWriterCompat.verify(spark, t.name, null, null)),
    "history" -> (t => IcebergWriterCompat.history(spark, t.name)),
    "would_break" -> (t =>
      IcebergWriterCompat.wouldBreak(spark, s"ALTER TABLE ${t.name} ADD COLUMN z INT")
    ),
    "dry run" -> (t =>
      IcebergWriterCompat.upgradePlan(spark, t.name, "auto", false, new JArrayList[String], null)
    ),
    "enable" -> (t => IcebergWriterCompat.enable(spark, t.name)),
    "table function" -> (t => sql(s"SELECT * FROM iceberg_writer_compat_check('${t.name}')"))
  )

  /** Delta's, which ours is asked by. */
  private val statements: Seq[Door] = Seq(
    "INSERT" -> (t => sql(s"INSERT INTO ${t.name} VALUES (2, array(1, 2), 'y')")),
    "UPDATE" -> (t => sql(s"UPDATE ${t.name} SET a = 5")),
    "ALTER" -> (t => sql(s"ALTER TABLE ${t.name} ADD COLUMN z INT")),
    "VACUUM" -> (t => sql(s"VACUUM ${t.name} DRY RUN"))
  )

  private lazy val good: TestTable =
    partitionedByP("a INT, l ARRAY<INT>, p STRING", "(1, array(1, 2), 'x')")

  private def conditionOf(e: Throwable): Option[String] = e match {
    case e: SparkThrowable => Option(e.getCondition)
    case _                 => None
  }

  private def isOurs(condition: String) = condition.contains("ICEBERG_WRITER_COMPAT_")

  private def problemsAt(door: Door, m: Malformation, table: TestTable): Seq[String] = {
    val (name, go) = door
    val version = table.log.version
    Try(go(table)) match {
      case Failure(e) =>
        val condition = conditionOf(e)
        val what = s"$m: $name: ${condition.getOrElse(e.getClass.getName)}: ${e.getMessage}"
        val clear = condition.exists(c => isOurs(c) || c.startsWith("DELTA_"))
        Option.unless(clear)(what).toSeq ++ malformedProblems(e, m, table).map(_ + what) ++
          Option.when(table.log.version != version)(s"committed: $what")
      case _ => Nil
    }
  }

  // By the path that was given, or by the one that Delta has made of it.
  private def isNamed(said: JMap[String, String], table: TestTable): Boolean =
    Set(table.name, table.name.replace("`/", "`file:/"))(said.get("table"))

  private def malformedProblems(e: Throwable, m: Malformation, table: TestTable): Seq[String] =
    e match {
      case e: SparkThrowable
          if Option(e.getCondition).contains("ICEBERG_WRITER_COMPAT_MALFORMED_LOG") =>
        val said = e.getMessageParameters
        val version = if (m.field.head == "add") "1" else "0"
        // A part that is not there may be what is missing in the whole, and the other way round.
        val field = said.get("field")
        Option.unless(isNamed(said, table))("names another table: ").toSeq ++
          Option.unless(said.get("version") == version)("names another version: ") ++
          Option.unless(field.startsWith(m.place) || m.place.startsWith(field))(
            "names another field: "
          )
      case _ => Nil
    }

  // Each case goes through one of the doors, and each field through all that it has cases for.
  for {
    ((place, malformations), first) <-
      MalformedLogs.all.groupBy(_.place).toSeq.sortBy(_._1).zipWithIndex
  } test(s"$place is malformed in ${malformations.size} ways") {
    val problems = malformations.zipWithIndex.flatMap { case (m, i) =>
      val table = MalformedLogs.copyOf(good, m)
      problemsAt(doors((first + i) % doors.size), m, table)
    }
    assert(problems == Nil, problems.mkString("\n", "\n", ""))
  }

  private def isDeltas(table: TestTable): Boolean =
    Try(spark.table(table.name).collect()).isFailure

  for {
    place <- Seq(
      "metaData.format",
      "metaData.format.options",
      "metaData.schemaString.fields.1.metadata.delta.columnMapping.nested.ids",
      "metaData.schemaString.fields.1.metadata.delta.columnMapping.nested.ids.col-2.element",
      "metaData.configuration",
      "metaData.configuration.delta.columnMapping.mode",
      "metaData.configuration.delta.enableIcebergCompatV2",
      "metaData.schemaString.fields.0.metadata.delta.columnMapping.id",
      "metaData.configuration.delta.columnMapping.maxColumnId",
      "add.size"
    )
  } test(s"statements where $place is malformed are refused by a condition, or are Delta's") {
    val problems = for {
      m <- MalformedLogs.all.filter(_.place == place)
      table = MalformedLogs.copyOf(good, m)
      if !isDeltas(table)
      statement <- statements
      problem <- problemsAt(statement, m, table)
    } yield problem
    assert(problems == Nil, problems.mkString("\n", "\n", ""))
  }

  test("commands that read a partition column null name it, at no other cost than a failure") {
    val m = MalformedLogs.all.find(m =>
      m.place == "metaData.partitionColumns" && m.what == "is a list with null"
    )
    Seq("OPTIMIZE {t}", "CREATE TABLE delta.`{f}_clone` SHALLOW CLONE {t}").foreach { text =>
      val table = MalformedLogs.copyOf(good, m.get)
      val statement = text.replace("{t}", table.name).replace("{f}", table.folder.toString)
      val said = malformedAt(text -> (_ => sql(statement)), table)
      assert(said.get("field").startsWith("metaData.partitionColumns"))
      assert(said.get("version") == "0")
      assert(!Files.exists(table.folder.resolveSibling(s"${table.folder.getFileName}_clone")))
    }
  }

  // Delta cannot even read such a table, and only finds out while it works.
  for (value <- Seq("is text", "is missing", "is null"))
    test(s"a column id that $value is refused before a task runs") {
      val id = "metaData.schemaString.fields.0.metadata.delta.columnMapping.id"
      val m = MalformedLogs.all.find(m => m.place == id && m.what == value).get
      val table = MalformedLogs.copyOf(good, m)
      Seq[TestTable => Any](
        t => sql(s"INSERT INTO ${t.name} VALUES (2, array(1, 2), 'y')"),
        t =>
          spark
            .sql("SELECT 2 AS a, array(1, 2) AS l, 'y' AS p")
            .write
            .format("delta")
            .mode("append")
            .save(t.folder.toString),
        t => sql(s"ALTER TABLE ${t.name} ADD COLUMN z INT")
      ).foreach { write =>
        refusedFor("MISSING_COLUMN_MAPPING_METADATA", "C1", table)(write(table))
      }
    }

  private def malformedAt(door: Door, table: TestTable): JMap[String, String] = {
    val (name, go) = door
    val version = table.log.version
    val error = Try(go(table)) match {
      case Failure(e: SparkThrowable) => e
      case other                      => fail(s"$name: $other")
    }
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_MALFORMED_LOG", s"$name: $error")
    assert(isNamed(error.getMessageParameters, table))
    assert(table.log.version == version)
    error.getMessageParameters
  }

  private def doorsNamed(names: String*): Seq[Door] = doors.filter(door => names.contains(door._1))

  test("a line that is no JSON is shown, and Delta fails at it") {
    val line = """{"add":{"path":"a"""
    val table = ForeignFiles.committed(good)(_ => Seq(line))
    for (door <- doorsNamed("check", "verify")) {
      val said = malformedAt(door, table)
      assert(said.get("field") == "line" && said.get("found") == line)
      assert(said.get("effect") == "Delta's own statements fail too.")
    }
    DeltaLog.clearCache()
    assert(intercept[Exception](rows(s"SELECT * FROM ${table.name}")).getMessage.nonEmpty)
  }

  private val file =
    """"partitionValues":{"col-3":"x"},"size":1,"modificationTime":1,"dataChange":true"""

  for (
    (line, field) <- Seq(
      "[]" -> "line",
      "{}" -> "line",
      """{"add":null}""" -> "add",
      s"""{"add":{"path":null,$file}}""" -> "add.path",
      s"""{"add":{$file}}""" -> "add.path",
      """{"remove":{"dataChange":true}}""" -> "remove.path"
    )
  ) test(s"the line $line, which Delta ignores, is reported") {
    val guarded = ForeignFiles.committed(good)(_ => Seq(line))
    assert(rows(s"SELECT * FROM ${guarded.name}").size == 1)
    val plain = ForeignFiles.committed(this.plain(Seq("delta.columnMapping.mode" -> "id"))) { _ =>
      Seq(line)
    }
    for {
      (table, names) <- Seq(
        guarded -> Seq("check", "verify", "enable", "dry run", "table function"),
        plain -> Seq("check", "enable", "dry run")
      )
      door <- doorsNamed(names: _*)
    } {
      val said = malformedAt(door, table)
      assert(said.get("field") == field)
      assert(said.get("version") == table.log.version.toString)
    }
    // A checkpoint leaves it out.
    val log = DeltaLog.forTable(spark, guarded.folder.toString)
    log.checkpoint(log.update(), None)
    DeltaLog.clearCache()
    IcebergWriterCompat.check(spark, guarded.name, null)
  }

  private lazy val withCheckpoint: TestTable = {
    val table = ForeignFiles.copyOf(good)
    val log = DeltaLog.forTable(spark, table.folder.toString)
    log.checkpoint(log.update(), None)
    table
  }

  /**
   * A copy without the commits that the checkpoint stands for, and with that checkpoint damaged.
   */
  private def damaged(damage: Path => Any): TestTable = {
    val copy = ForeignFiles.copyOf(withCheckpoint)
    val log = copy.folder.resolve("_delta_log")
    Files.delete(log.resolve(f"${0}%020d.json"))
    (0 to 1).foreach(version => Files.deleteIfExists(log.resolve(f"$version%020d.crc")))
    damage(log.resolve(f"${1}%020d.checkpoint.parquet"))
    copy
  }

  private val damages: Seq[(String, String, Path => Any)] = Seq(
    (
      "is cut off",
      "checkpoint",
      file => Files.write(file, Files.readAllBytes(file).dropRight(100))
    ),
    ("is empty", "checkpoint", file => Files.write(file, Array.emptyByteArray)),
    ("is text", "checkpoint", file => Files.writeString(file, "no Parquet file")),
    (
      "has text for a number",
      "protocol.minReaderVersion",
      file => {
        Files.delete(file)
        ForeignFiles.write(
          file,
          "optional group protocol { optional binary minReaderVersion (UTF8); }"
        )(_.addGroup("protocol").add("minReaderVersion", "3"))
        Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
      }
    )
  )

  for ((what, field, damage) <- damages)
    test(s"a checkpoint that $what is reported with its file") {
      val table = damaged(damage)
      doorsNamed("check", "publish", "status", "enable", "dry run", "table function").foreach {
        door =>
          val said = malformedAt(door, table)
          assert(said.get("field") == field)
          assert(said.get("version") == "1")
          assert(said.get("file").endsWith(f"${1}%020d.checkpoint.parquet"))
      }
    }

  test("a checkpoint that lacks a part is reported") {
    val part = f"${1}%020d.checkpoint.${1}%010d.${2}%010d.parquet"
    val table = damaged(file => Files.move(file, file.resolveSibling(part)))
    doors.filterNot(_._1 == "would_break").foreach { case (name, go) =>
      val condition = Try(go(table)).failed.toOption.flatMap(conditionOf)
      assert(condition.exists(c => isOurs(c) || c.startsWith("DELTA_")), s"$name: $condition")
    }
  }
}
