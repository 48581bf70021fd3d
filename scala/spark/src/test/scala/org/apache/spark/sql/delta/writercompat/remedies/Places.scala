package org.apache.spark.sql.delta.writercompat.remedies

import org.icebergwritercompat.testing.{SharedSpark, TestTable}

/** The ways to say where a table is, which a statement that is offered has to get right. */
trait Places { self: SharedSpark =>

  /** A kind of place, and a table there that does not exist yet. */
  protected val places: Seq[(String, () => TestTable)] = Seq(
    "by name" -> (() => managed()),
    "by path" -> (() => byPath()),
    "by a path with spaces" -> (() => at("a b")),
    "by a path with a backtick" -> (() => at("a`b")),
    "by a path in the warehouse" -> { () =>
      val folder = SharedSpark.warehouse.resolve(SharedSpark.freshName())
      TestTable(s"delta.`$folder`", folder)
    }
  )

  private def at(name: String): TestTable = {
    val folder = SharedSpark.freshFolder().resolve(name)
    TestTable(s"delta.`${folder.toString.replace("`", "``")}`", folder)
  }

  /** Whether a table goes by a name of the catalog. */
  protected def isNamed(table: TestTable): Boolean = !table.name.startsWith("delta.")
}
