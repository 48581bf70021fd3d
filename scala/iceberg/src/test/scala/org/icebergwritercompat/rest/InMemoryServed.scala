package org.icebergwritercompat.rest

import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}
import org.apache.iceberg.inmemory.InMemoryCatalog
import org.apache.iceberg.{TableMetadata, TableOperations}

/**
 * Tables in memory, with something that happens before and after each commit, in the thread that
 * makes it.
 */
final class InMemoryServed extends Served {

  /** What happens before a commit of a table. */
  @volatile var before: TableIdentifier => Unit = _ => ()

  /** What happens when a commit is made, before anybody hears of it. */
  @volatile var after: TableIdentifier => Unit = _ => ()

  /** What happens when a table is looked at. */
  @volatile var looking: TableIdentifier => Unit = _ => ()

  private final class Tables extends InMemoryCatalog {
    override protected def newTableOps(table: TableIdentifier): TableOperations =
      new WatchedOperations(new Hooked(super.newTableOps(table), table), table.toString, Seq("/"))
  }

  private final class Hooked(operations: TableOperations, table: TableIdentifier)
      extends TableOperations {
    override def current(): TableMetadata = {
      looking(table)
      operations.current()
    }
    override def refresh(): TableMetadata = operations.refresh()
    override def commit(base: TableMetadata, updated: TableMetadata): Unit = {
      before(table)
      operations.commit(base, updated)
      after(table)
    }
    override def io() = operations.io
    override def metadataFileLocation(name: String): String = operations.metadataFileLocation(name)
    override def locationProvider() = operations.locationProvider
  }

  override val catalog: Catalog with SupportsNamespaces = {
    val made = new Tables
    made.initialize("memory", java.util.Map.of())
    made.createNamespace(Namespace.of("db"))
    made
  }

  override def within[T](key: Option[RequestKey])(body: => T): T = body

  override def isCommitted(table: TableIdentifier, key: RequestKey): Boolean = false

  override def isAlive: Boolean = true

  override def whyNone(table: TableIdentifier): Option[String] = None

  override def whyUnreadable(table: TableIdentifier, failure: Throwable): Option[String] = None

  override def folders(namespace: Namespace): Seq[String] = Seq("/")

  override def makeFolders(location: String): Unit = ()

  override def wrongName(name: String): Option[String] = None
}
