package org.icebergwritercompat.rest

import org.apache.iceberg.encryption.EncryptionManager
import org.apache.iceberg.io.{FileIO, LocationProvider}
import org.apache.iceberg.{TableMetadata, TableOperations}

/** Operations that are those of another, but for what a subclass changes. */
abstract class PassedOnOperations(operations: TableOperations) extends TableOperations {

  override def current(): TableMetadata = operations.current()

  override def refresh(): TableMetadata = operations.refresh()

  override def commit(base: TableMetadata, updated: TableMetadata): Unit =
    operations.commit(base, updated)

  override def io(): FileIO = operations.io

  override def encryption(): EncryptionManager = operations.encryption

  override def metadataFileLocation(fileName: String): String =
    operations.metadataFileLocation(fileName)

  override def locationProvider(): LocationProvider = operations.locationProvider

  override def temp(uncommitted: TableMetadata): TableOperations = operations.temp(uncommitted)

  override def newSnapshotId(): Long = operations.newSnapshotId

  override def requireStrictCleanup(): Boolean = operations.requireStrictCleanup
}
