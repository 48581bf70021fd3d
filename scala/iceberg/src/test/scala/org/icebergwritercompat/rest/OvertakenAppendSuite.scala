package org.icebergwritercompat.rest

import org.apache.iceberg.UpdateRequirement.{AssertCurrentSchemaID, AssertTableUUID}
import org.apache.iceberg.catalog.{Namespace, TableIdentifier}
import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.types.Types
import org.apache.iceberg.types.Types.NestedField
import org.apache.iceberg.{
  BaseTable,
  DataFile,
  DataFiles,
  PartitionSpec,
  Schema,
  Snapshot,
  Table,
  UpdateRequirement
}
import org.scalatest.funsuite.AnyFunSuite

import java.util.concurrent.atomic.AtomicInteger
import scala.jdk.CollectionConverters._

/** What a client requires holds of the table that its append is put on top of, whenever that is. */
class OvertakenAppendSuite extends AnyFunSuite {

  private val name = TableIdentifier.of(Namespace.of("db"), "t")

  private val schema = new Schema(NestedField.optional(1, "a", Types.IntegerType.get))

  private def file(path: String): DataFile = DataFiles
    .builder(PartitionSpec.unpartitioned)
    .withPath(s"/$path.parquet")
    .withFileSizeInBytes(10)
    .withRecordCount(1)
    .build()

  private def append(to: Table, path: String): Unit =
    to.newFastAppend().appendFile(file(path)).commit()

  /** An append that was made on an older state of a table. */
  private final class Late {

    val served = new InMemoryServed

    private val table = served.catalog.createTable(name, schema)

    append(table, "first")

    val snapshot: Snapshot =
      served.catalog.loadTable(name).newFastAppend().appendFile(file("late")).apply()

    append(table, "between")

    def now: Table = served.catalog.loadTable(name)

    val uuid: String = now.uuid.toString

    def commit(requirements: UpdateRequirement*): Boolean = now match {
      case base: BaseTable =>
        val operations = base.operations.asInstanceOf[WatchedOperations]
        OvertakenAppend(snapshot, requirements).commit(operations, name.toString)
      case other => fail(s"$other")
    }

    /** Something that happens just before the first commit, after all was looked at. */
    def justBefore(change: => Unit): AtomicInteger = {
      val times = new AtomicInteger
      served.before = _ => if (times.getAndIncrement() == 0) change
      times
    }

    def snapshots: Set[Long] = now.snapshots.asScala.map(_.snapshotId).toSet
  }

  test("it is put on top of what came first, also of what comes while that is done") {
    val late = new Late
    late.justBefore(append(late.now, "just before"))
    assert(late.commit(new AssertTableUUID(late.uuid), new AssertCurrentSchemaID(0)))
    assert(late.snapshots.size == 4 && late.snapshots(late.snapshot.snapshotId))
  }

  test("what is required does not hold any more after a lost race") {
    val late = new Late
    late.justBefore(
      late.now.updateSchema().addColumn("b", Types.StringType.get).commit()
    )
    intercept[CommitFailedException](late.commit(new AssertCurrentSchemaID(0)))
    assert(!late.snapshots(late.snapshot.snapshotId))
  }
}
