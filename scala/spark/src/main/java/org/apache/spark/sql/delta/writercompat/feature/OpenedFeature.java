package org.apache.spark.sql.delta.writercompat.feature;

import org.apache.spark.sql.delta.FeatureAutomaticallyEnabledByMetadata;
import org.apache.spark.sql.delta.PreDowngradeTableFeatureCommand;
import org.apache.spark.sql.delta.RemovableFeature;
import org.apache.spark.sql.delta.WriterFeature;

/**
 * Delta's base types for features, opened for {@link WriterCompatTableFeature}.
 *
 * <p>Written in Java because they are sealed for Scala.
 */
abstract class OpenedFeature extends WriterFeature
    implements FeatureAutomaticallyEnabledByMetadata, RemovableFeature {

  private static final long serialVersionUID = 1L;

  OpenedFeature(String name) {
    super(name);
  }

  /** The same for what DROP FEATURE runs before it changes the protocol. */
  abstract static class OpenedPreDowngradeCommand extends PreDowngradeTableFeatureCommand {}
}
