package org.icebergwritercompat.iceberg.metadata

/** The keys by which engines name themselves in the summaries of their snapshots. */
private[iceberg] object EngineKeys {

  /** All of them, the engine's own name first. */
  val all: Seq[String] = Seq(
    "engine-name",
    "engine-version",
    "iceberg-version",
    "pyiceberg-version",
    "app-id",
    "spark.app.id",
    "flink.job-id",
    "trino_query_id"
  )
}
