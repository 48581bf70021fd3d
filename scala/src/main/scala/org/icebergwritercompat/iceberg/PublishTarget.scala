package org.icebergwritercompat.iceberg

import org.apache.iceberg.exceptions.CommitFailedException
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg.{LocationProviders, TableMetadata, TableOperations}

/**
 * Where a table is published: the metadata that readers see there, and the atomic step to the next.
 *
 * `current` is null before the first step, whose base is null too. A step that somebody else was
 * faster with throws `CommitFailedException`, and nothing has happened then; after any other
 * failure it is open whether it was taken.
 */
trait PublishTarget extends TableOperations {

  /** Refuses metadata that is not the one to go on with here. */
  def check(metadata: TableMetadata): Unit

  /** Makes this the place where the metadata goes on, if it was begun elsewhere. */
  def takeOver(): Unit

  /** Completes what a publisher that did not get so far has left open. */
  def mend(): Unit

  /** Properties that tell where the metadata goes on. */
  def properties: Map[String, String]

  /** The name of the table in a catalog, for a person. */
  def catalogTable: Option[String]
}

/** Operations in memory, for a change that is to become part of a commit elsewhere. */
private[iceberg] final class StagedOperations(start: TableMetadata, real: TableOperations)
    extends TableOperations {

  private var metadata = start

  override def current(): TableMetadata = metadata

  override def refresh(): TableMetadata = metadata

  override def commit(base: TableMetadata, updated: TableMetadata): Unit = {
    if (base ne metadata) throw new CommitFailedException("the staged table has changed")
    metadata = updated
  }

  override def io(): FileIO = real.io()

  override def metadataFileLocation(fileName: String): String = real.metadataFileLocation(fileName)

  override def locationProvider(): LocationProvider =
    LocationProviders.locationsFor(metadata.location, metadata.properties)
}
