package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.delta.writercompat.TableSuite
import org.apache.spark.sql.delta.writercompat.feature.WriterCompatProperty
import org.icebergwritercompat.contract.{TableRule, TableState, Violation}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.testing.SecondContract
import org.scalatest.BeforeAndAfterAll

import java.util.concurrent.ConcurrentLinkedQueue
import scala.jdk.CollectionConverters._

/** A rule that every table keeps, and that notes which states of tables it is asked about. */
final class NotingRule(id: String) extends TableRule(id, "Every table is a table.", "It is not.") {

  val asked = new ConcurrentLinkedQueue[TableState]

  override def check(table: TableState): Seq[Violation] = {
    asked.add(table)
    Nil
  }
}

object NotingRules {
  val ofDeclarations = new NotingRule("T1")
  val ofLayouts = new NotingRule("T2")
}

/** Each rule on tables looks once at each state that a statement makes of a table. */
class RuleLooksSuite extends TableSuite with BeforeAndAfterAll {

  private val property = "delta.enableNotingWriterCompat"

  private val noting = V1.contract.copy(
    feature = "notingWriterCompat",
    property = property,
    features = V1.contract.features
      .copy(allowed = V1.contract.features.allowed - V1.contract.feature + "notingWriterCompat"),
    rules = V1.rules.copy(
      declaration = V1.rules.declaration :+ NotingRules.ofDeclarations,
      layout = V1.rules.layout :+ NotingRules.ofLayouts
    )
  )

  override def beforeAll(): Unit = {
    super.beforeAll()
    // The session installs the guard first.
    assert(spark.sessionState != null)
    SecondContract.add(noting)
    WriterCompatProperty.register()
  }

  /** How often a rule is asked about each state of a table during `body`. */
  private def looks(rule: NotingRule)(body: => Any): Map[TableState, Int] = {
    rule.asked.clear()
    body
    rule.asked.asScala.toSeq.groupBy(identity).view.mapValues(_.size).toMap
  }

  test("the rules look once at each state that a statement makes of a table") {
    val table = managed()
    def alter(change: String) = s"ALTER TABLE ${table.name} $change"
    val statements = Seq(
      s"CREATE TABLE ${table.name} (a INT, b INT) USING delta TBLPROPERTIES ('$property' = 'true')",
      s"INSERT INTO ${table.name} VALUES (1, 2), (3, 4)",
      s"UPDATE ${table.name} SET b = 5 WHERE a = 1",
      alter("ADD COLUMNS (c INT)"),
      alter("RENAME COLUMN c TO d"),
      alter("DROP COLUMN d"),
      alter("SET TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 7 days')"),
      s"INSERT OVERWRITE ${table.name} VALUES (6, 7)",
      s"OPTIMIZE ${table.name}",
      s"RESTORE TABLE ${table.name} TO VERSION AS OF 1"
    )
    statements.foreach { statement =>
      val declared = looks(NotingRules.ofDeclarations) {
        val whole = looks(NotingRules.ofLayouts)(sql(statement))
        // The layout of a version is known once Delta has given out ids, and there is only one.
        assert(whole.values.toSeq == Seq(1), s"$statement: ${whole.keys
            .map(s => (s.moment, s.protocol, s.properties, s.schema.json))
            .mkString("\n")}")
      }
      assert(declared.values.toSet == Set(1), s"$statement: ${declared.values}")
    }
    assert(rows(s"SELECT * FROM ${table.name}") == Set("[1,2]", "[3,4]"))
  }
}
