package org.icebergwritercompat.testing

import org.apache.spark.sql.SparkSession
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.scalatest.Assertions

import java.nio.file.{Files, Path}
import scala.util.Using

/** The one guarded session of a test run, made when the first suite asks for it. */
object SharedSpark {

  val warehouse: Path = TestFolders.root.resolve("warehouse")

  lazy val session: SparkSession = SparkSession
    .builder()
    .master("local[2]")
    .appName("iceberg-writer-compat-tests")
    .config(
      "spark.sql.extensions",
      "io.delta.sql.DeltaSparkSessionExtension,org.icebergwritercompat.IcebergWriterCompatExtension"
    )
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.warehouse.dir", warehouse.toUri.toString)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    .config("spark.databricks.delta.snapshotPartitions", "1")
    // Compiling the many small queries would take longer than running them.
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    // Nobody looks at the text of the plans, which is made for each query.
    .config("spark.sql.ui.explainMode", "simple")
    .config("spark.hadoop.fs.AbstractFileSystem.file.impl", classOf[QuickLocalFs].getName)
    // Delta keeps 10 000 tables for an hour, about 1 MB each: more than the heap holds.
    .config("spark.databricks.delta.delta.log.cacheSize", "100")
    .getOrCreate()

  /** A name no test has used. */
  def freshName(): String = TestFolders.freshName()

  /** A folder no test has used, and that does not exist. */
  def freshFolder(): Path = TestFolders.freshFolder()
}

/** A table by the name that statements use, and the folder that an observer looks into. */
final case class TestTable(name: String, folder: Path) {

  /** What the table's log and files say. */
  def log: LoggedTable = new LoggedTable(folder)
}

/** What a test with a session needs. */
trait SharedSpark extends Assertions {

  def spark: SparkSession = SharedSpark.session

  /** A managed table that does not exist yet. */
  def managed(): TestTable = {
    val name = SharedSpark.freshName()
    TestTable(name, SharedSpark.warehouse.resolve(name))
  }

  /** A table by path that does not exist yet. */
  def byPath(): TestTable = {
    val folder = SharedSpark.freshFolder()
    TestTable(s"delta.`$folder`", folder)
  }

  def sql(statement: String): Unit = { spark.sql(statement).collect(); () }

  /** The rows of a table or query as strings, in no order. */
  def rows(query: String): Set[String] = spark.sql(query).collect().map(_.toString).toSet

  /** Runs `body` with these session confs. */
  def withConf[T](confs: (String, String)*)(body: => T): T = {
    val before = confs.map { case (key, _) => key -> spark.conf.getOption(key) }
    confs.foreach { case (key, value) => spark.conf.set(key, value) }
    try body
    finally
      before.foreach {
        case (key, Some(value)) => spark.conf.set(key, value)
        case (key, None)        => spark.conf.unset(key)
      }
  }

  /** Runs `body` while new tables have the feature by a session default. */
  def byDefault[T](body: => T): T = withConf(
    "spark.databricks.delta.properties.defaults.enableIcebergWriterCompatV1" -> "true"
  )(body)

  /** The refusal of `body`, which must leave nothing behind in the tables' folders. */
  def refused(tables: TestTable*)(body: => Any): IcebergWriterCompatException = {
    val before = tables.map(table => FolderListing.of(table.folder))
    val error = intercept[IcebergWriterCompatException](body)
    assert(tables.map(table => FolderListing.of(table.folder)) == before)
    error
  }

  /** The refusal of `body` for one violation: sub-condition and rule. */
  def refusedFor(condition: String, rule: String, tables: TestTable*)(
      body: => Any
  ): IcebergWriterCompatException = {
    val error = refused(tables: _*)(body)
    assert(
      (error.getCondition, error.getMessageParameters.get("rule")) ==
        (s"DELTA_ICEBERG_WRITER_COMPAT_VIOLATION.$condition", rule),
      error.getMessage
    )
    error
  }
}

/** What is in a folder, hidden files and checksums aside. */
object FolderListing {

  def of(folder: Path): Set[String] =
    if (!Files.exists(folder)) Set("(no folder)")
    else
      Using.resource(Files.walk(folder)) { paths =>
        paths
          .filter(path => Files.isRegularFile(path))
          .map[String](path => folder.relativize(path).toString)
          .filter(name => !name.endsWith(".crc"))
          .toArray
          .map(_.toString)
          .toSet
      }
}
