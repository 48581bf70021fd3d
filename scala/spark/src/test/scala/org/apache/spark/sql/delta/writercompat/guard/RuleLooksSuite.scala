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
  val ofLayouts = new NotingRule("T1")
}

/** Each rule on tables looks once at each state that a statement makes of a table. */
class RuleLooksSuite extends TableSuite with BeforeAndAfterAll {

  private val property = "delta.enableNotingWriterCompat"

  private val noting = V1.contract.copy(
    feature = "notingWriterCompat",
    property = property,
    features = V1.contract.features
      .copy(allowed = V1.contract.features.allowed - V1.contract.feature + "notingWriterCompat"),
    rules = V1.rules.copy(layout = V1.rules.layout :+ NotingRules.ofLayouts)
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

  test("the rules look once at each state that a CREATE makes of a table") {
    val found = looks(NotingRules.ofLayouts) {
      sql(
        s"CREATE TABLE ${managed().name} (a INT, b INT) USING delta " +
          s"TBLPROPERTIES ('$property' = 'true')"
      )
    }
    // When Delta prepares the first commit of a table, it adds a property of its own.
    assert(found.values.toSet == Set(1) && found.size <= 2, found.values)
  }
}
