package org.icebergwritercompat.iceberg.source

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.icebergwritercompat.contract.TableState

/**
 * A Delta table, as far as publishing reads it.
 *
 * Publishing asks for nothing else, so an implementation needs neither a Spark session nor Delta's
 * library: whatever can read `_delta_log` can be one.
 */
trait DeltaSource {

  /** How a statement names the table, such as `db.t` or a quoted path. */
  def name: String

  /** The folder of the table. */
  def root: Path

  /** The Hadoop configuration with which the files of the table are opened. */
  def configuration: Configuration

  /** The newest version; the log is listed again at each call. */
  def newest(): TableAtVersion

  /** One version; it may be older than what the log's clean-up has kept. */
  def at(version: Long): TableAtVersion

  /**
   * The commits from a version up to and with another, one for each number, read one by one.
   *
   * The iterator throws [[MissingCommit]] where the log does not have a commit any more.
   */
  def commits(from: Long, to: TableAtVersion): Iterator[DeltaCommit]
}

/** A version of a Delta table. Its parts are read when they are first asked for, and once. */
trait TableAtVersion {

  /** The number of the version. */
  def number: Long

  /** When the version was committed, in milliseconds since 1970. */
  def timestamp: Long

  /** The id of the table. */
  def tableId: String

  /** The table properties. */
  def properties: Map[String, String]

  /** Protocol and metadata, for the rules. */
  def state: TableState

  /** Columns and partitioning, for Iceberg. */
  def definition: TableDefinition

  /** Number and size of the live files, if they are known without reading the log. */
  def totals: FileTotals

  /** How long Delta promises that a removed file can still be read, in milliseconds. */
  def keptMillis: Long

  /**
   * The live files, in any order. They are read one after the other, and each is decoded by whoever
   * asks for it, on any thread.
   */
  def live: Iterator[() => AddedFile]

  /** The id of the commit of this version or an older one; `None` if the log does not have it. */
  def commitId(version: Long): Option[String]

  /** Number, time and commit id of this version. */
  final def version: DeltaVersion = DeltaVersion(number, timestamp, commitId(number))
}

/** The log does not have the commit of a version, or does not have it any more. */
final class MissingCommit(version: Long)
    extends RuntimeException(s"The log has no commit of version $version.")
