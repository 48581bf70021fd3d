package org.apache.spark.sql.delta.writercompat.remedies

import org.apache.spark.sql.delta.DeltaOperations
import org.apache.spark.sql.delta.actions.Action
import org.apache.spark.sql.delta.writercompat.{Offered, TableSuite}
import org.apache.spark.sql.delta.writercompat.read.DeltaTables
import org.apache.spark.sql.types._
import org.icebergwritercompat.contract.{ChangeRule, Rule}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.docs.{
  BrokenTables,
  FooterExample,
  LogExample,
  OtherFault,
  RuleExample,
  RuleExamples,
  SqlExample
}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.report.{Finding, Severity}
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.rules.{ActionRules, PropertyRules}
import org.icebergwritercompat.testing.TestTable

import java.nio.file.Files
import scala.annotation.tailrec
import scala.util.{Failure, Success, Try}

/**
 * The promise of docs/rules.md, for every rule: what a refusal or a report offers runs, loses no
 * row, takes the fault away, and keeps what the user had written.
 *
 * A rule that a statement can break is broken by the statement of its example. The others are
 * broken by a writer that keeps no rules: of a table with the feature, where a report finds it, and
 * of one without, where the statement that switches the feature on is refused.
 */
class EveryRuleSuite extends TableSuite with Places {

  /** Rules whose fault is in values that are lost: who wrote what is all that can be told. */
  private val lost: Set[String] = Set("E1f")

  /** Rules whose fault keeps Delta from reading the table, so that nothing can be copied. */
  private val unread: Set[String] =
    Set("A3", "A4", "A8", "C1", "C8", "C14", "C14r", "C18", "E0", "E10")

  /** Rules that Delta keeps itself where a program commits by its interface. */
  private val byDelta: Set[String] =
    Set("C18", "C1", "C3", "B4", "A2", "A3", "C8", "A9", "D1", "D2", "D5", "B11")

  /** Rules on actions that leave no trace in the newest version; a commit alone can be refused. */
  private val ofCommits: Set[String] = Set("B7+", "B11", "D6", "D8", "C16")

  /** Rules whose fault Delta itself refuses: C3 to switch anything on, C15 in a table by path. */
  private val refusedByDelta: Set[String] = Set("C3")
  private val byName: Set[String] = Set("C15")

  // The vector of the example is none of a file that is there; see `test_rewrite`.
  private val elsewhere: Set[String] = Set("D5")

  // Without the feature, what C14p moves is lost to Delta too: in id mode it reads null.
  private val lostWithoutFeature: Set[String] = lost + "C14p"

  for ((rule, i) <- V1.rules.all.zipWithIndex) RuleExamples.of(rule) match {
    case example: SqlExample =>
      // Every place, and by name always; each rule at two of them.
      for {
        (place, table) <- Seq(places.head, places(1 + i % (places.size - 1)))
        if place == places.head._1 || !byName(rule.id)
      }
        test(s"${rule.id}: the statement that is refused, for a table $place") {
          refusedStatement(rule, example, table())
        }
    case example @ (_: LogExample | _: FooterExample) =>
      val (place, table) = places(i % places.size)
      if (!ofCommits(rule.id)) {
        test(s"${rule.id}: a fault of a table with the feature, $place") {
          found(rule, broken(table(), example, enabled = true))
        }
        if (!refusedByDelta(rule.id) && !elsewhere(rule.id))
          test(s"${rule.id}: a fault of a table that is to get the feature, $place") {
            enabled(rule, broken(table(), example, enabled = false))
          }
        if (!refusedByDelta(rule.id) && !elsewhere(rule.id) && !unread(rule.id))
          pairs(rule, example, i)
      }
      if (example.isInstanceOf[LogExample])
        test(s"${rule.id}: a commit of a program, $place") {
          committed(rule, example, begun(table(), example, enabled = true))
        }
  }

  // --- Two faults -----------------------------------------------------------------------------

  /** The fault of the example beside one in the properties, and beside one in the columns. */
  private def pairs(rule: Rule, example: RuleExample, i: Int): Unit = {
    val property = OtherFault.inProperties(i % OtherFault.inProperties.size)
    val column = OtherFault.inColumns(i % OtherFault.inColumns.size)
    val (place, table) = places((i + 2) % places.size)
    // A column more would raise the maximum that this rule is about.
    val isAboutMaximum = rule == PropertyRules.MaxColumnIdCoversAllIds
    (property +: Seq(column).filterNot(_ => isAboutMaximum)).foreach { other =>
      test(s"${rule.id} and ${other.rule}: a table that is to get the feature, $place") {
        val both = broken(table(), example, enabled = false)
        BrokenTables.also(both, other)
        enabled(rule, both, Some(other.rule))
      }
    }
    // The column would change what a rule on a step between versions has found.
    val isStep = rule.isInstanceOf[ChangeRule]
    val other = if (i % 2 == 0 || isStep || isAboutMaximum) property else column
    test(s"${rule.id} and ${other.rule}: a table with the feature, $place") {
      val both = broken(table(), example, enabled = true)
      BrokenTables.also(both, other)
      found(rule, both, Some(other.rule))
    }
  }

  // --- A statement that is refused ------------------------------------------------------------

  private def refusedStatement(rule: Rule, example: SqlExample, table: TestTable): Unit = {
    def told(statement: String): String = statement
      .replaceAll("\\bsales\\b", java.util.regex.Matcher.quoteReplacement(table.name))
      .replace("USING delta", s"USING delta COMMENT '${BrokenTables.Description}'")
      .replace(
        "TBLPROPERTIES (",
        s"TBLPROPERTIES ('${BrokenTables.Owner._1}' = '${BrokenTables.Owner._2}', "
      )
    val settings = example.fails.collect { case setting(key) => key }
    withConf(settings.map(key => key -> spark.conf.get(key)): _*) {
      def exists = Files.exists(table.folder.resolve("_delta_log"))
      example.setUp.foreach(statement => sql(told(statement)))
      if (exists) fill(table)
      example.fails.init.foreach(statement => sql(told(statement)))
      val before = if (exists) rowsOf(table) else Set.empty[String]
      val width = if (exists) spark.table(table.name).columns.length else 0
      val statement = told(example.fails.last)
      val replaces = statement.contains("REPLACE")
      val error = refused(table)(sql(statement))
      assert(error.getMessageParameters.get("rule").split(", ").contains(rule.id))
      assertReplacesNothing(error.remedy, replaces)
      Offered.run(spark, error.remedy)
      error.remedy match {
        case _: Remedy.Create | _: Remedy.Again | _: Remedy.AddColumn | _: Remedy.RenameColumn =>
        // What was asked for is possible now.
        case _ => sql(statement)
      }
      val after = rowsOf(table, width)
      if (!replaces) assert((before -- after) == Set.empty)
      assertKept(table)
      if (table.log.properties.get("delta.enableIcebergWriterCompatV1").contains("true"))
        assertCompliant(table)
      else assert(error.remedy.isInstanceOf[Remedy.DropFeature])
    }
  }

  private val setting = "SET ([^=]+)=.*".r

  // --- A fault that is there ------------------------------------------------------------------

  private def begun(table: TestTable, example: RuleExample, enabled: Boolean): TestTable = {
    BrokenTables.begin(table, example, enabled)
    if (isNamed(table)) sql(s"CREATE TABLE ${table.name} USING delta LOCATION '${table.folder}'")
    fill(table)
    table
  }

  private def broken(table: TestTable, example: RuleExample, enabled: Boolean): TestTable = {
    begun(table, example, enabled)
    BrokenTables.break(table, example, enabled)
    table
  }

  /** A program that commits by Delta's own interface is refused. */
  private def committed(rule: Rule, example: RuleExample, table: TestTable): Unit = {
    val (before, width) = (rowsOf(table), spark.table(table.name).columns.length)
    val version = table.log.version
    val actions = BrokenTables
      .actions(table, example, enabled = true)
      .map(action => Action.fromJson(action.toString))
    val delta = DeltaTables.find(spark, table.name)
    val commit = Try {
      delta.startTransaction(None).commit(actions, DeltaOperations.ManualUpdate)
    }
    assert(table.log.version == version)
    commit match {
      case Failure(error: IcebergWriterCompatException) =>
        // What a version must meet may be refused for the change that leads to it.
        assert(Seq(rule.id, rule.id + "+").exists(isIn(error.getMessage)), error.getMessage)
        assert(!byDelta(rule.id))
        val whole = run(error.remedy, table)
        assert(rowsOf(whole, width) == before)
        assertKept(table)
        if (!leaves(error.remedy)) assert(errors(whole).map(_.rule) == Nil)
      case Failure(error) => assert(byDelta(rule.id), error)
      case Success(_)     => fail("it was not refused")
    }
    ()
  }

  private def leaves(remedy: Remedy): Boolean = remedy match {
    case drop: Remedy.DropFeature => drop.feature == V1.contract.feature
    case _                        => false
  }

  private def found(rule: Rule, table: TestTable, other: Option[String] = None): Unit = {
    val shown = Try(rowsOf(table))
    if (shown.isFailure) assert(unread(rule.id), shown)
    else mendedAsFound(rule, table, shown.get, other)
    ()
  }

  private def mendedAsFound(
      rule: Rule,
      table: TestTable,
      shown: Set[String],
      other: Option[String]
  ): Unit = {
    val faults = rule.id +: other.toSeq
    val first = still(faults, table)
    assert(faults.forall(fault => first.exists(_.rule == fault)), s"found: ${first.map(_.rule)}")
    @tailrec def mended(table: TestTable, now: Seq[Finding], rounds: Int): TestTable =
      now.find(isFirst(rule)).orElse(now.headOption) match {
        case Some(finding) =>
          assert(rounds > 0, s"still there: ${now.map(f => f.rule -> f.remedy)}")
          if (isLost(rule, finding.remedy)) table
          else {
            val next = run(finding.remedy, table)
            val left = still(Seq(rule.id), next)
            assert(left.map(_.rule).toSet.subsetOf(first.map(_.rule).toSet))
            mended(next, left, rounds - 1)
          }
        case None => table
      }
    val whole = mended(table, first, rounds = 4)
    assert(rowsOf(whole) == values(rule, shown))
    if (whole == table) assertKept(table)
  }

  // As a report says: what is an error is mended before anything else.
  private def isFirst(rule: Rule)(finding: Finding): Boolean =
    finding.severity == Severity.Error && finding.rule == rule.id

  // The errors, and after them what else is said of some rules.
  private def still(rules: Seq[String], table: TestTable): List[Finding] = {
    val (errors, others) = findings(table).toList.partition(_.severity == Severity.Error)
    errors ++ others.filter(found => rules.contains(found.rule))
  }

  private def enabled(rule: Rule, table: TestTable, other: Option[String] = None): Unit = {
    val shown = Try(rowsOf(table))
    if (shown.isFailure) assert(unread(rule.id), shown)
    else {
      val isLost = lostWithoutFeature(rule.id)
      val whole = switchedOn(table, isLost, other)
      assert(rowsOf(whole) == values(rule, shown.get))
      if (whole == table) assertKept(table)
      if (!isLost) assert(errors(whole).map(_.rule) == Nil)
    }
    ()
  }

  // What this rule is about is a text that Delta turns into null sooner or later.
  private def values(rule: Rule, rows: Set[String]): Set[String] =
    if (rule == ActionRules.NoMarkersOfNull)
      rows.map(_.replace(ActionRules.MarkerOfNull, "null"))
    else rows

  /** The table with the feature, or its copy that has it, after all that is offered on the way. */
  private def switchedOn(
      table: TestTable,
      isLost: Boolean = false,
      alsoNamed: Option[String] = None
  ): TestTable = {
    var named = Set.empty[String]
    @tailrec def mended(rounds: Int): TestTable =
      Try(sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")) match {
        case Success(_)                                   => table
        case Failure(error: IcebergWriterCompatException) =>
          assert(rounds > 0, error.getMessage)
          val rules = V1.rules.all.map(_.id).filter(isIn(error.getMessage))
          // A refusal that comes next is about another fault, which was named before.
          if (named.isEmpty) {
            named = rules.toSet
            alsoNamed.foreach(rule => assert(named(rule), error.getMessage))
          } else assert(rules.exists(named), s"$named: ${error.getMessage}")
          if (isLost && error.remedy.isInstanceOf[Remedy.History]) {
            Offered.run(spark, error.remedy)
            table
          } else {
            val next = run(error.remedy, table)
            if (next == table) mended(rounds - 1) else next
          }
        case Failure(other) => throw other
      }
    mended(rounds = 5)
  }

  private def isIn(message: String)(rule: String): Boolean =
    s"(?<![\\w+])${java.util.regex.Pattern.quote(rule)}(?![\\w+])".r
      .findFirstIn(message)
      .isDefined

  private def isLost(rule: Rule, remedy: Remedy): Boolean = {
    val isHistory = remedy.isInstanceOf[Remedy.History]
    if (isHistory) {
      Offered.run(spark, remedy)
      assert(lost.contains(rule.id), s"$remedy")
    }
    isHistory
  }

  /** Runs what is offered; the table that is in order then. */
  private def run(remedy: Remedy, table: TestTable): TestTable = {
    assertReplacesNothing(remedy, replaces = false)
    Offered.run(spark, remedy)
    remedy match {
      case copy: Remedy.CopyInto =>
        val folder = spark
          .sql(s"DESCRIBE DETAIL ${copy.target}")
          .select("location")
          .head()
          .getString(0)
        TestTable(
          copy.target,
          java.nio.file.Path.of(new org.apache.hadoop.fs.Path(folder).toUri.getPath)
        )
      case _ => table
    }
  }

  private def errors(table: TestTable): Seq[Finding] =
    findings(table).filter(_.severity == Severity.Error)

  // What a step between two versions breaks is found in the history alone.
  private def findings(table: TestTable): Seq[Finding] =
    Reports.verify(spark, table.name, None, None).findings ++
      Reports.history(spark, table.name).findings.filter { finding =>
        finding.mendedVersion.isEmpty && V1.rules.change.exists(_.id == finding.rule)
      }

  // --- What has to stay -----------------------------------------------------------------------

  private def assertReplacesNothing(remedy: Remedy, replaces: Boolean): Unit = {
    val words = Seq("REPLACE", "OVERWRITE", "TRUNCATE TABLE", "DELETE FROM", "DROP TABLE")
    if (!replaces)
      remedy.sql.foreach(statement => assert(!words.exists(statement.startsWith), statement))
    assert(replaces || !remedy.sql.exists(_.startsWith("CREATE OR REPLACE")))
    ()
  }

  private def assertKept(table: TestTable): Unit = {
    val (key, value) = BrokenTables.Owner
    assert(table.log.properties.get(key).contains(value))
    assert(table.log.metadata.path("description").asText == BrokenTables.Description)
    ()
  }

  private def rowsOf(table: TestTable): Set[String] = rowsOf(table, Int.MaxValue)

  /** The rows, of the first columns. */
  private def rowsOf(table: TestTable, width: Int): Set[String] =
    spark.table(table.name).collect().map(_.toSeq.take(width).mkString("|")).toSet

  /** Two rows with values in every column. */
  private def fill(table: TestTable): Unit = {
    val schema = spark.table(table.name).schema
    val rows = (1 to 2).map(i => schema.map(f => value(f.dataType, i)).mkString("(", ", ", ")"))
    sql(s"INSERT INTO ${table.name} VALUES ${rows.mkString(", ")}")
  }

  private def value(dataType: DataType, i: Int): String = dataType match {
    case StringType               => s"'n$i'"
    case DateType                 => s"DATE'2026-01-0$i'"
    case TimestampType            => s"TIMESTAMP'2026-01-0$i 00:00:00Z'"
    case TimestampNTZType         => s"TIMESTAMP_NTZ'2026-01-0$i 00:00:00'"
    case BinaryType               => s"X'0$i'"
    case BooleanType              => s"${i % 2 == 0}"
    case ArrayType(element, _)    => s"array(${value(element, i)})"
    case MapType(key, element, _) => s"map(${value(key, i)}, ${value(element, i)})"
    case s: StructType            =>
      s.map(f => s"'${f.name}', ${value(f.dataType, i)}").mkString("named_struct(", ", ", ")")
    case other => s"CAST($i AS ${other.sql})"
  }

  // --- Two faults of a table that exists ------------------------------------------------------

  /** What is wrong: in its columns, in its properties, or by a statement. */
  private case class Fault(
      kind: String,
      what: String,
      column: String = "",
      property: String = "",
      statement: String = ""
  )

  private val faults: Seq[Fault] = Seq(
    Fault("column", "a reserved name", column = "_file STRING"),
    Fault("column", "a name with a dot", column = "s STRUCT<a: INT>, `s.a` INT"),
    Fault("column", "a short", column = "b SMALLINT"),
    Fault("column", "a type without a counterpart", column = "v VARIANT"),
    Fault("column", "a generated column", column = "g BIGINT GENERATED ALWAYS AS (k + 1)"),
    Fault("property", "change data", property = "'delta.enableChangeDataFeed' = 'true'"),
    Fault(
      "property",
      "a constraint",
      statement = "ALTER TABLE @ ADD CONSTRAINT `at least` CHECK (k > 0)"
    ),
    Fault("feature", "row tracking", property = "'delta.feature.rowTracking' = 'supported'"),
    Fault(
      "feature",
      "defaults",
      property = "'delta.feature.allowColumnDefaults' = 'supported'"
    )
  )

  for {
    (first, i) <- faults.zipWithIndex
    (second, j) <- faults.zipWithIndex.drop(i + 1)
    (place, make) = places((i + j) % places.size)
  } test(s"${first.kind} and ${second.kind}: ${first.what} and ${second.what}, $place") {
    val table = make()
    val columns = Seq("k BIGINT COMMENT 'the key'", first.column, second.column, "t TIMESTAMP")
    val (key, value) = BrokenTables.Owner
    val properties = Seq(s"'$key' = '$value'", first.property, second.property)
    sql(
      s"CREATE TABLE ${table.name} (${columns.filter(_.nonEmpty).mkString(", ")}) USING delta " +
        s"COMMENT '${BrokenTables.Description}' " +
        s"TBLPROPERTIES (${properties.filter(_.nonEmpty).mkString(", ")})"
    )
    Seq(first, second).map(_.statement).filter(_.nonEmpty).foreach { statement =>
      sql(statement.replace("@", table.name))
    }
    // The files are a fault of their own: they have no ids, and timestamps of 96 bits.
    withConf("spark.sql.parquet.outputTimestampType" -> "INT96") {
      sql(
        s"INSERT INTO ${table.name} (k, t) VALUES (1, TIMESTAMP'2026-01-01 00:00:00Z'), (2, NULL)"
      )
    }
    def keys(table: TestTable) = rows(s"SELECT k, t FROM ${table.name}")
    val (before, width) = (keys(table), spark.table(table.name).columns.length)
    val whole = switchedOn(table)
    assert(keys(whole) == before)
    assert(spark.table(whole.name).columns.length == width)
    assertCompliant(whole)
    if (whole == table) {
      assertKept(table)
      assert(spark.table(table.name).schema("k").getComment().contains("the key"))
    }
  }
}
