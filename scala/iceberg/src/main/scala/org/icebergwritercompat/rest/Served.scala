package org.icebergwritercompat.rest

import org.apache.iceberg.catalog.{Catalog, Namespace, SupportsNamespaces, TableIdentifier}

/** What a server offers. */
trait Served {

  /** The tables. Those that it loads have [[WatchedOperations]]. */
  def catalog: Catalog with SupportsNamespaces

  /**
   * Runs what needs the tables where they are, on any thread.
   *
   * @param key
   *   what the client knows the request by; the commit that is made for it is found by it
   */
  def within[T](key: Option[RequestKey])(body: => T): T

  /**
   * Whether a commit of a table was made for the request with a key. Fails if it was made for
   * another one with the same key.
   */
  def isCommitted(table: TableIdentifier, key: RequestKey): Boolean

  /** Whether the tables can be reached at all. */
  def isAlive: Boolean

  /** Why there is no Iceberg table of a name that is taken, for a person. */
  def whyNone(table: TableIdentifier): Option[String]

  /** What is wrong with a table that cannot be read, for a person, if that made a request fail. */
  def whyUnreadable(table: TableIdentifier, failure: Throwable): Option[String]

  /** The folders in which tables of a namespace may be made. */
  def folders(namespace: Namespace): Seq[String]

  /** Makes the folders that clients write to, of a table that is to be made. */
  def makeFolders(location: String): Unit

  /** What is wrong with a name for a new table or namespace, for a person. */
  def wrongName(name: String): Option[String]
}
