package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.spark.sql.delta.DeltaConcurrentModificationException
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.reports.Reports
import org.icebergwritercompat.testing.TestTable

import scala.util.{Failure, Success}

/** Upgrades of tables that others write to meanwhile. */
class UpgradeRacesSuite extends UpgradeTests {

  private def statement(text: String)(table: TestTable): Unit = micros {
    sql(text.replace("{t}", table.name))
  }

  private val kinds = Seq[(String, () => TestTable, String)](
    ("by metadata", () => flat(mapped), "metadata"),
    ("by a rewrite", () => flat(Nil), "rewrite")
  )

  private val merge = "MERGE INTO {t} t USING (SELECT 5L AS key UNION ALL SELECT 100L) s " +
    "ON t.id = s.key WHEN MATCHED THEN UPDATE SET name = 'merged' " +
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (key)"

  // Whatever they leave is what gets the feature.
  private val overtaking = Seq(
    "an append" -> "INSERT INTO {t} (id) VALUES (100)",
    "a DELETE" -> "DELETE FROM {t} WHERE id < 15",
    "an UPDATE" -> "UPDATE {t} SET name = 'new' WHERE id IN (3, 25)",
    "a MERGE" -> merge,
    "an OPTIMIZE" -> "OPTIMIZE {t}",
    "a new column" -> "ALTER TABLE {t} ADD COLUMN more INT",
    "a RESTORE" -> "RESTORE TABLE {t} TO VERSION AS OF 1",
    "an overwrite" -> "INSERT OVERWRITE {t} (id) VALUES (1)"
  )

  for ((how, make, mode) <- kinds; (what, text) <- overtaking)
    test(s"a table is upgraded $how as $what that came before has left it") {
      val table = make()
      var rows = Seq.empty[String]
      race(upgrade(table, mode)) {
        statement(text)(table)
        rows = all(table)
      }.get
      assert(all(table) == rows)
      assertUpgraded(table, table.log.version - 1, rows)
    }

  for (
    (how, make, mode) <- kinds;
    (what, text) <- Seq(
      "a constraint" -> "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",
      "deletion vectors" -> "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
  ) test(s"an upgrade $how is refused if $what came before, and leaves no version") {
    val table = make()
    var (version, rows) = (-1L, Seq.empty[String])
    val outcome = race(upgrade(table, mode)) {
      statement(text)(table)
      version = table.log.version
      rows = all(table)
    }
    outcome match {
      case Failure(refusal: IcebergWriterCompatException) =>
        assert(refusal.getCondition.endsWith(".UPGRADE_BLOCKED"), refusal)
      case other => fail(other.toString)
    }
    assert(table.log.version == version && all(table) == rows)
    assert(!table.log.properties.contains("delta.enableIcebergWriterCompatV1"))
  }

  for ((how, make, mode) <- kinds) test(s"of two upgrades $how one has nothing to do") {
    val table = make()
    val (version, rows) = (table.log.version, all(table))
    race(assert(!upgrade(table, mode).changed)) {
      assert(upgrade(table, mode).changed)
    }.get
    assert(table.log.version == version + 1)
    assertUpgraded(table, version, rows)
  }

  private def appended(table: TestTable): Unit =
    spark.range(100, 101).toDF("id").write.format("delta").mode("append").saveAsTable(table.name)

  for (
    (how, make, mode) <- kinds;
    (what, late) <- Seq[(String, TestTable => Unit)](
      "an append" -> (appended(_)),
      "an UPDATE" -> statement("UPDATE {t} SET name = 'late' WHERE id = 3"),
      "a MERGE" -> statement(merge),
      "a new column" -> statement("ALTER TABLE {t} ADD COLUMN more INT")
    )
  ) test(s"$what that began before an upgrade $how fails, and leaves no version") {
    val table = make()
    val rows = all(table)
    race(late(table))(upgrade(table, mode)) match {
      case Failure(_: DeltaConcurrentModificationException) =>
      case Success(_)                                       => fail("it was committed")
      case Failure(other)                                   => throw other
    }
    assertUpgraded(table, table.log.version - 1, rows)
  }

  // Without column statistics, the log does not show that the file is an older one.
  for ((how, statistics) <- Seq("with statistics" -> 32, "without" -> 0))
    test(s"an OPTIMIZE that began before an upgrade is refused, of columns $how") {
      val table = flat(mapped :+ ("delta.dataSkippingNumIndexedCols" -> s"$statistics"))
      val rows = all(table)
      race(sql(s"OPTIMIZE ${table.name}"))(upgrade(table, "metadata")) match {
        case Failure(refusal: IcebergWriterCompatException) =>
          assert(refusal.getCondition.endsWith(".WRITTEN_BEFORE_ENABLING"), refusal)
          sql(refusal.getMessageParameters.get("fix"))
        case other => fail(other.toString)
      }
      assert(all(table) == rows && table.log.liveFiles.size == 1)
      assertCompliant(table)
      assert(Reports.verify(spark, table.name, None, None).compliant)
    }
}
