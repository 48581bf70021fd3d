package org.apache.spark.sql.delta.writercompat.publish;

import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.commands.VacuumCommand;
import org.apache.spark.sql.delta.commands.VacuumCommand$;
import org.apache.spark.sql.delta.commands.VacuumCommandImpl;
import org.apache.spark.util.Clock;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;

/**
 * The method by which Delta's VACUUM finds the files that must stay.
 *
 * <p>Written in Java because Scala hides it; javac checks that it is still there.
 */
final class DeltaValidFiles {

  private DeltaValidFiles() {}

  static VacuumCommand.ValidFilesResult valid(
      SparkSession spark,
      String basePath,
      Snapshot snapshot,
      Option<Object> retentionMillis,
      Broadcast<SerializableConfiguration> hadoopConf,
      Clock clock,
      VacuumCommandImpl.ValidFilesConfig config) {
    return VacuumCommand$.MODULE$.getValidFilesFromSnapshot(
        spark, basePath, snapshot, retentionMillis, hadoopConf, clock, config);
  }
}
