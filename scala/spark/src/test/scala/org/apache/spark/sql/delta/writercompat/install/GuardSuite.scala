package org.apache.spark.sql.delta.writercompat.install

import io.delta.exceptions.MetadataChangedException
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.delta._
import org.apache.spark.sql.delta.actions.AddFile
import org.apache.spark.sql.delta.writercompat.{OnThread, RecordingObserver, TableSuite}
import org.apache.spark.sql.delta.writercompat.feature.JoinPoints
import org.apache.spark.sql.delta.writercompat.guard.{GuardedTransaction, GuardingObserver}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.testing.TestTable
import org.apache.spark.sql.delta.writercompat.read.Copies

import java.nio.file.Files
import java.util.concurrent.{Callable, Executors, TimeUnit}
import scala.jdk.CollectionConverters._

/** The guard cannot be bypassed. */
class GuardSuite extends TableSuite {

  private def log(table: TestTable): DeltaLog = DeltaLog.forTable(spark, table.folder.toString)

  private def addShort(table: TestTable, session: SparkSession = spark): Unit = {
    session.sql(s"ALTER TABLE ${table.name} ADD COLUMNS (b SMALLINT)").collect()
    ()
  }

  private def assertGuarded(table: TestTable, session: SparkSession = spark): Unit = {
    refusedFor("UNSUPPORTED_DATA_TYPE", "C7", table)(addShort(table, session))
    ()
  }

  test("a second installation does nothing") {
    assert(spark.version.nonEmpty)
    val (before, mine) = (ThreadObservers.get(), TransactionExecutionObserver.getObserver)
    WriterCompatHooks.install()
    WriterCompatHooks.install()
    assert(ThreadObservers.get() eq before)
    assert(TransactionExecutionObserver.getObserver eq mine)
    assert(WriterCompatHooks.isInstalled)
  }

  test("the guard wraps an observer once") {
    val observer = new RecordingObserver
    val guarding = GuardingObserver.around(observer)
    assert(guarding.wrapped eq observer)
    assert(GuardingObserver.around(guarding) eq guarding)
  }

  test("a session of the same context is guarded") {
    val table = compliant()
    val other = spark.newSession()
    assert(other ne spark)
    assertGuarded(table, other)
    other.sql(s"INSERT INTO ${table.name} $someRows").collect()
    assertCompliant(table)
    val made = managed()
    other.sql(s"CREATE TABLE ${made.name} ($columns) USING delta TBLPROPERTIES ($on)").collect()
    assertCompliant(made)
  }

  test("a session default is that of one session") {
    val other = spark.newSession()
    byDefault {
      val table = managed()
      other.sql(s"CREATE TABLE ${table.name} ($columns) USING delta").collect()
      assert(table.log.properties == Map.empty)
    }
  }

  test("the threads of a pool, each with a table of its own and one in common, are guarded") {
    val table = compliant()
    val threads = Executors.newFixedThreadPool(4)
    try {
      val tasks: Seq[Callable[TestTable]] = (1 to 6).map { i => () =>
        val own = managed()
        spark
          .sql(s"CREATE TABLE ${own.name} USING delta TBLPROPERTIES ($on) AS $someRows")
          .collect()
        spark.sql(s"ALTER TABLE ${own.name} ADD COLUMNS (tags.element.c$i ARRAY<INT>)").collect()
        intercept[IcebergWriterCompatException](addShort(own))
        spark.sql(s"INSERT INTO ${table.name} $someRows").collect()
        own
      }
      val made = threads.invokeAll(tasks.asJava, 3, TimeUnit.MINUTES).asScala.map(_.get()).toSeq
      made.foreach(assertCompliant)
    } finally threads.shutdown()
    assertCompliant(table)
    assert(count(table) == 2 + 6 * 2)
  }

  private val reset = NoOpTransactionExecutionObserver

  test("an observer that is set by other code sees everything, and is guarded") {
    val table = compliant()
    val observer = new RecordingObserver
    TransactionExecutionObserver.withObserver(observer) {
      assertGuarded(table)
      insert(table)
    }
    assertCompliant(table)
    assert(observer.seen.count(_ == "start") >= 2)
    assert(
      observer.seen.filterNot(Set("child", "start", "aborted")).toSeq ==
        Seq("prepare", "commit", "backfill", "post", "committed")
    )
    assert(TransactionExecutionObserver.getObserver.isInstanceOf[GuardingObserver])
    assertGuarded(table)
  }

  test("an observer set for good, on another thread, is guarded") {
    val table = compliant()
    OnThread {
      TransactionExecutionObserver.setObserver(new RecordingObserver)
      val started = log(table).startTransaction(None)
      assert(started.isInstanceOf[GuardedTransaction])
      intercept[IcebergWriterCompatException](addShort(table))
    }
  }

  test("the next observer in a chain is guarded") {
    val table = compliant()
    val (first, second) = (new RecordingObserver, new RecordingObserver)
    first.setNextObserver(second)
    OnThread {
      TransactionExecutionObserver.setObserver(first)
      TransactionExecutionObserver.advanceToNextObserver()
      assert(log(table).startTransaction(None).isInstanceOf[GuardedTransaction])
      assert(first.seen.isEmpty && second.seen.contains("start"))
      TransactionExecutionObserver.advanceToNextObserver()
      assert(log(table).startTransaction(None).isInstanceOf[GuardedTransaction])
    }
  }

  test("setting Delta's own default observer does not take the guard away") {
    val table = compliant()
    TransactionExecutionObserver.withObserver(reset)(assertGuarded(table))
  }

  test("a transaction of an unknown kind is refused") {
    val table = compliant()
    val observer = new RecordingObserver {
      override def startingTransaction(f: => OptimisticTransaction): OptimisticTransaction = {
        val plain = f
        new UnknownTransaction(plain.deltaLog, plain.catalogTable, plain.snapshot)
      }
    }
    val error = refused(table)(TransactionExecutionObserver.withObserver(observer)(insert(table)))
    assert(error.getCondition == "ICEBERG_WRITER_COMPAT_NOT_INSTALLED.JOIN_POINT")
    assert(error.getMessageParameters.get("joinPoint") == JoinPoints.StartTransaction.id)
  }

  test("the parts of a split transaction are guarded, and know what the whole has read") {
    val table = compliant()
    insert(table)
    val observer = new RecordingObserver
    TransactionExecutionObserver.withObserver(observer) {
      val whole = log(table).startTransaction(None)
      val files = whole.filterFiles()
      assert(files.size == 2)
      val part = whole.split(files.take(1))
      assert(part.isInstanceOf[GuardedTransaction])
      assert(part.readVersion == whole.readVersion)
      assert(observer.seen.contains("child"))

      val metadata = part.metadata
      val schema = metadata.schema.add("b", org.apache.spark.sql.types.ShortType)
      val error = intercept[IcebergWriterCompatException] {
        part.updateMetadata(metadata.copy(schemaString = schema.json))
      }
      assert(error.getCondition.endsWith(".UNSUPPORTED_DATA_TYPE"))
      // Both parts commit by themselves.
      Seq(files.take(1), files.drop(1)).foreach { some: Seq[AddFile] =>
        whole.split(some).commit(some.map(_.remove), DeltaOperations.ManualUpdate)
      }
    }
    assert(count(table) == 0)
    assertCompliant(table)
  }

  test("a part of a transaction conflicts with a commit that removes what it has read") {
    val table = compliant()
    val whole = log(table).startTransaction(None)
    val files = whole.filterFiles(Nil, keepNumRecords = true)
    val part = whole.split(files)
    sql(s"DELETE FROM ${table.name}")
    val version = table.log.version
    intercept[DeltaConcurrentModificationException] {
      part.commit(
        files.map(file => Copies.of(file, "path" -> s"new-${file.path}")),
        DeltaOperations.ManualUpdate
      )
    }
    assert(table.log.version == version)
  }

  test("a commit through Delta's own interface is guarded") {
    val table = compliant()
    val started = log(table).startTransaction(None)
    val file = started.filterFiles(Nil, keepNumRecords = true).head
    refusedFor("INCOMPATIBLE_FILE_ACTION", "D6", table) {
      started.commit(Seq(file, file), DeltaOperations.ManualUpdate)
    }
  }

  test("a protocol set by hand is guarded") {
    val table = compliant()
    refusedFor("INCOMPATIBLE_TABLE_FEATURE", "A6", table) {
      val started = log(table).startTransaction(None)
      started.updateProtocol(started.protocol.withFeature(RowTrackingFeature))
      started.commit(Nil, DeltaOperations.ManualUpdate)
    }
  }

  test("OPTIMIZE and auto-compaction keep names and ids") {
    val table = compliant()
    insert(table)
    insert(table)
    sql(s"OPTIMIZE ${table.name}")
    assert(table.log.liveFiles.size == 1)
    assertCompliant(table)
    withConf(
      "spark.databricks.delta.autoCompact.enabled" -> "true",
      "spark.databricks.delta.autoCompact.minNumFiles" -> "2"
    )(insert(table))
    assertCompliant(table)
    assert(count(table) == 8)
  }

  test("a table whose log ends in a checkpoint is guarded as any other") {
    val table = compliant()
    (1 to 10).foreach(i => sql(s"UPDATE ${table.name} SET name = 'n$i' WHERE id = 0"))
    assert(Files.exists(table.folder.resolve("_delta_log").resolve("_last_checkpoint")))
    DeltaLog.clearCache()
    assertGuarded(table)
    assertCompliant(table)
  }

  // Delta itself sees this: the property is not among those that may change under a writer.
  test("a writer that loses a race against the feature fails as for any change of metadata") {
    val table = plain(rows = false)
    val late = log(table).startTransaction(None)
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ($on)")
    val metadata = late.metadata
    val schema = metadata.schema.add("b", org.apache.spark.sql.types.ShortType)
    late.updateMetadata(metadata.copy(schemaString = schema.json))
    val version = table.log.version
    intercept[MetadataChangedException](late.commit(Nil, DeltaOperations.ManualUpdate))
    assert(table.log.version == version)
    assertCompliant(table)
  }

  private class UnknownTransaction(
      deltaLog: DeltaLog,
      catalogTable: Option[CatalogTable],
      snapshot: Snapshot
  ) extends OptimisticTransaction(deltaLog, catalogTable, snapshot)
}
