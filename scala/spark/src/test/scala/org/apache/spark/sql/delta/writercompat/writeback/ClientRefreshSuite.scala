package org.apache.spark.sql.delta.writercompat.writeback

import org.apache.iceberg.util.ThreadPools
import org.apache.iceberg.{BaseTable, Table, TableMetadata}
import org.icebergwritercompat.testing.{SharedSpark, TestTable}

import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Path, StandardCopyOption}
import java.util.concurrent.{CountDownLatch, Executors, TimeUnit}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** When a client sees what was committed without it. */
class ClientRefreshSuite extends ClientSuite {

  private def filled(): TestTable = {
    val table = numbers()
    sql(s"INSERT INTO ${table.name} VALUES (1, 'a'), (2, 'b')")
    table
  }

  private def copyNew(from: Path, to: Path): Unit =
    Using.resource(Files.walk(from))(_.iterator.asScala.toVector).sorted.foreach { path =>
      val target = to.resolve(from.relativize(path).toString)
      if (!Files.exists(target)) Files.copy(path, target, StandardCopyOption.COPY_ATTRIBUTES)
    }

  /**
   * Commits to a table so that nothing in this process notices: to a copy, whose files come back.
   */
  private def elsewhere(table: TestTable)(commit: String => Any): Unit = {
    val copy = SharedSpark.freshFolder()
    Files.createDirectories(copy.getParent)
    copyNew(table.folder, copy)
    commit(s"delta.`$copy`")
    copyNew(copy, table.folder)
  }

  private def metadata(there: Table): TableMetadata =
    there.asInstanceOf[BaseTable].operations.current

  test("what another process has committed is seen by a refresh, and not written over") {
    val table = filled()
    val there = client(table)
    append(there, Seq(3L, "c"))
    elsewhere(table)(name => sql(s"INSERT INTO $name VALUES (4, 'd')"))
    val known = metadata(there)
    there.refresh()
    assert(metadata(there) ne known)
    assert(byClient(table) == Seq("{1, a}", "{2, b}", "{3, c}", "{4, d}"))
    // And between a refresh and the commit.
    val late = there.newAppend().appendFile(file(there, None, record(there.schema, 6L, "f")))
    elsewhere(table)(name => sql(s"INSERT INTO $name VALUES (5, 'e')"))
    late.commit()
    assert(table.log.version == 5)
    assert(byClient(table).size == 6)
    assertSame(table)
  }

  test("what another process has removed and added is found by its path") {
    val table = filled()
    val there = client(table)
    val made = append(there, Seq(3L, "c"))
    elsewhere(table)(name => sql(s"UPDATE $name SET name = 'x' WHERE id = 3"))
    intercept[org.apache.iceberg.exceptions.ValidationException] {
      there.newOverwrite().deleteFile(made).validateNoConflictingDeletes().commit()
    }
    assert(byClient(table) == Seq("{1, a}", "{2, b}", "{3, x}"))
    there.refresh()
    val replaced = Using.resource(there.newScan().planFiles())(_.asScala.map(_.file.copy).toVector)
    val one = file(there, None, record(there.schema, 9L, "z"))
    val overwrite = there.newOverwrite().addFile(one)
    replaced.foreach(overwrite.deleteFile)
    overwrite.commit()
    assert(byClient(table) == Seq("{9, z}"))
    assertSame(table)
  }

  test("files are found in the newest commits, in the checkpoint, and as they are spelled") {
    val table = filled()
    val there = client(table)
    val first = append(there, Seq(3L, "c"))
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    val second = append(there, Seq(4L, "d"))
    sql(s"ALTER TABLE ${table.name} SET TBLPROPERTIES ('delta.checkpointInterval' = '100')")
    val third = append(there, Seq(5L, "e"))
    there.newDelete().deleteFile(first).deleteFile(second).deleteFile(third).commit()
    assert(byClient(table) == Seq("{1, a}", "{2, b}"))
    // It was removed, so that an older commit that has it says nothing.
    append(there, Seq(6L, "f"))
    there.newAppend().appendFile(third).commit()
    there.newDelete().deleteFile(third).commit()
    assert(byClient(table) == Seq("{1, a}", "{2, b}", "{6, f}"))
    assertSame(table)
  }

  test("a table that another process has made anew is another one") {
    val table = filled()
    val there = client(table)
    append(there, Seq(3L, "c"))
    // The same versions, and one fewer.
    val other = filled()
    Using
      .resource(Files.walk(table.folder))(_.iterator.asScala.toVector)
      .sorted
      .reverse
      .foreach(Files.delete)
    Files.createDirectories(table.folder)
    copyNew(other.folder, table.folder)
    val commit = table.folder.resolve(f"_delta_log/${1}%020d.json")
    Files.setLastModifiedTime(commit, FileTime.fromMillis(1700000000000L))
    there.refresh()
    assert(byClient(table) == Seq("{1, a}", "{2, b}"))
  }

  test("the newest metadata can be asked for while all threads of Iceberg's pool are busy") {
    val table = filled()
    val there = client(table)
    append(there, Seq(3L, "c"))
    val (free, done) = (new CountDownLatch(1), Executors.newSingleThreadExecutor())
    try {
      val busy = new CountDownLatch(ThreadPools.WORKER_THREAD_POOL_SIZE)
      (1 to ThreadPools.WORKER_THREAD_POOL_SIZE).foreach { _ =>
        ThreadPools.getWorkerPool.execute { () =>
          busy.countDown()
          free.await()
        }
      }
      busy.await()
      // Published by the client, by versions that add, remove, rearrange and change columns.
      Seq(
        s"INSERT INTO ${table.name} VALUES (4, 'd')",
        s"UPDATE ${table.name} SET name = 'x' WHERE id = 4",
        s"OPTIMIZE ${table.name}",
        s"ALTER TABLE ${table.name} ADD COLUMN n INT",
        s"DELETE FROM ${table.name} WHERE id = 1"
      ).foreach { statement =>
        sql(statement)
        val seen = done.submit(() => metadata(there).property("delta-version", ""))
        assert(seen.get(1, TimeUnit.MINUTES) == table.log.version.toString)
      }
    } finally {
      free.countDown()
      done.shutdown()
    }
    assertSame(table)
  }
}
