package org.apache.spark.sql.delta.writercompat.writeback;

import org.apache.spark.sql.delta.DeltaOperations;

/**
 * Delta's base type for what a commit calls itself, opened for {@link IcebergOperation}.
 *
 * <p>Written in Java because it is sealed for Scala.
 */
abstract class OpenedOperation extends DeltaOperations.Operation {

  OpenedOperation(String name) {
    super(name);
  }
}
