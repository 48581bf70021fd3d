package org.icebergwritercompat.testing

import org.apache.spark.sql.catalyst.TableIdentifier

import java.nio.file.{Files, Path, StandardCopyOption}
import scala.collection.mutable
import scala.util.Using

/**
 * Tables that many tests begin with: made once by statements, and copied for each test, which costs
 * no statement. A copy has a folder of its own with the same log and the same files.
 */
object CopiedTables {

  private val made = mutable.Map.empty[(Any, Map[String, String]), TestTable]

  /**
   * Makes `table` a copy of the first table of its kind, or makes it by statements if it is neither
   * in the warehouse nor a table by path.
   *
   * @param kind
   *   what tells what `make` makes from everything else; the session's settings count as well
   */
  def copyTo(table: TestTable, kind: Any)(make: TestTable => Unit): TestTable = {
    val inWarehouse = table.folder == SharedSpark.warehouse.resolve(table.name)
    if (inWarehouse || table.name == s"delta.`${table.folder}`") {
      val first = synchronized {
        val settings = SharedSpark.session.conf.getAll
        made.getOrElseUpdate(((kind, inWarehouse), settings), original(inWarehouse)(make))
      }
      copyFiles(first.folder, table.folder)
      if (inWarehouse) enter(first, table)
    } else make(table)
    table
  }

  // By name or by path as its copies: some statements do more for a table with a name.
  private def original(inWarehouse: Boolean)(make: TestTable => Unit): TestTable = {
    val name = SharedSpark.freshName()
    val table =
      if (inWarehouse) TestTable(name, SharedSpark.warehouse.resolve(name))
      else {
        val folder = SharedSpark.freshFolder()
        TestTable(s"delta.`$folder`", folder)
      }
    make(table)
    table
  }

  // With their times, by which Delta dates its versions.
  private def copyFiles(from: Path, to: Path): Unit =
    Using.resource(Files.walk(from)) { paths =>
      paths.forEach { path =>
        val target = to.resolve(from.relativize(path).toString)
        if (Files.isDirectory(path)) Files.createDirectories(target)
        else Files.copy(path, target, StandardCopyOption.COPY_ATTRIBUTES)
        ()
      }
    }

  private def enter(from: TestTable, to: TestTable): Unit = {
    val catalog = SharedSpark.session.sessionState.catalog
    val entry = catalog.getTableMetadata(TableIdentifier(from.name))
    catalog.createTable(
      entry.copy(
        identifier = entry.identifier.copy(table = to.name),
        storage = entry.storage.copy(locationUri = Some(to.folder.toUri))
      ),
      ignoreIfExists = false,
      validateLocation = false
    )
  }
}
