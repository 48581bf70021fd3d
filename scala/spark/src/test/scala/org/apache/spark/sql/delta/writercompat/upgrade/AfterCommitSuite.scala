package org.apache.spark.sql.delta.writercompat.upgrade

import org.apache.spark.sql.delta.TransactionExecutionObserver
import org.apache.spark.sql.delta.writercompat.RecordingObserver

import scala.util.Try

/** A commit that is in the log is never told as one that failed. */
class AfterCommitSuite extends UpgradeTests {

  /** Fails once Delta has written a commit. */
  private class Failing extends RecordingObserver {
    override def beginPostCommit(): Unit = throw new IllegalStateException("no memory left")
  }

  private def failing[T](body: => T): T =
    TransactionExecutionObserver.withObserver(new Failing)(body)

  test("an upgrade whose commit is made says what failed afterwards") {
    val table = plain()
    val before = all(table)
    val result = failing(upgrade(table, rewrite = true))
    assert(result.changed && result.version == table.log.version)
    assert(result.filesRewritten == 1 && result.orphans == Nil)
    assert(result.warnings.size == 1)
    assert(result.warnings.head.text.contains("The commit is made"))
    assert(result.warnings.head.text.contains("IllegalStateException: no memory left"))
    assertCompliant(table)
    assert(all(table) == before)
    val again = upgrade(table, rewrite = true)
    assert(!again.changed && again.warnings == Nil)
  }

  test("an upgrade that is refused is not taken for made") {
    val table = plain()
    val refusal = Try(failing(upgrade(table)))
    assert(refusal.isFailure && table.log.version == 1)
  }
}
