package org.icebergwritercompat.bench

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.icebergwritercompat.IcebergWriterCompatExtension

import java.lang.management.ManagementFactory

/** The sessions that are compared. */
object Sessions {

  private val delta = "io.delta.sql.DeltaSparkSessionExtension"
  private val guard = "org.icebergwritercompat.IcebergWriterCompatExtension"

  val Guarded = "guarded"
  val Stock = "stock"

  /** A new session of this kind; the kinds differ only in the extension. */
  def start(
      kind: String,
      folder: String,
      more: Map[String, Any] = Map.empty
  ): SparkSession =
    SparkSession
      .builder()
      .master("local[2]")
      .appName("iceberg-writer-compat-bench")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.extensions", if (kind == Guarded) s"$delta,$guard" else delta)
      .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
      .config("spark.sql.shuffle.partitions", "2")
      .config("spark.databricks.delta.snapshotPartitions", "2")
      .config("spark.sql.warehouse.dir", s"$folder/warehouse")
      .config(more)
      .getOrCreate()
}

/**
 * Started in a new JVM: prints the milliseconds from its start until the session exists, and from
 * then until a first Delta table has a row.
 */
object SessionStart {

  def main(args: Array[String]): Unit = {
    val (kind, folder) = (args(0), args(1))
    val spark = Sessions.start(kind, folder)
    spark.sessionState
    val ready = System.currentTimeMillis
    spark.sql(s"CREATE TABLE delta.`$folder/first` (id INT) USING delta")
    spark.sql(s"INSERT INTO delta.`$folder/first` VALUES (1)")
    val used = System.currentTimeMillis
    val started = ManagementFactory.getRuntimeMXBean.getStartTime
    println(s"${ChildJvm.Answer}${ready - started} ${used - ready}")
    spark.stop()
  }
}

/**
 * Started in a new JVM: prints the milliseconds and the CPU time of installing the extension in a
 * stock session that has not used Delta yet.
 */
object Installation {

  def main(args: Array[String]): Unit = {
    val spark = Sessions.start(Sessions.Stock, args(0))
    spark.sessionState
    val threads = ManagementFactory.getThreadMXBean
    val (begin, ran) = (System.nanoTime, threads.getCurrentThreadCpuTime)
    new IcebergWriterCompatExtension().apply(new SparkSessionExtensions)
    val (wall, cpu) = (System.nanoTime - begin, threads.getCurrentThreadCpuTime - ran)
    println(s"${ChildJvm.Answer}${wall / 1e6} ${cpu / 1e6}")
    spark.stop()
  }
}
