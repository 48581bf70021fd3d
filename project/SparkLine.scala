import sbt._

/**
 * One supported Spark line: every version that differs between lines is here.
 *
 * @param spark
 *   the Spark release the jar is compiled and tested against
 * @param scala
 *   the Scala release that Spark line is built with
 * @param hive
 *   the release of `spark-hive`, for tests: the newest in Maven Central whose sources are those of
 *   `spark`
 * @param icebergRuntime
 *   Iceberg's own connector for this line, if there is one: `prove` reads published tables with it
 * @param suites
 *   the suites that `testAll` runs on this line; all others are only compiled
 * @param s3
 *   the S3 client for the tests of Python: the release of Hadoop that this line ships, and the AWS
 *   SDK that this release is built with
 */
final case class SparkLine(
    spark: String,
    scala: String,
    hive: String,
    icebergRuntime: Option[String] = None,
    suites: Seq[String] = Seq("*SmokeSuite", "*SessionsSuite"),
    s3: Option[S3Client] = None
) {

  /** The short name users know, such as `4.1`. */
  val name: String = spark.split('.').take(2).mkString(".")

  /** The Delta releases that serve this line and are tested on it, the newest first. */
  val deltas: Seq[String] = SparkLine.testedDeltas.collect {
    case (version, lines) if lines(name) => version
  }

  /** The sbt project that builds this line, such as `spark41`. */
  val projectId: String = "spark" + name.replace(".", "")
}

/** Releases of `hadoop-aws` and of the AWS SDK. */
final case class S3Client(hadoop: String, sdk: String)

/** The lines this project supports. */
object SparkLine {

  /** The Delta releases that are tested, the newest first, with the Spark lines they serve. */
  val testedDeltas: Seq[(String, Set[String])] = Seq(
    "4.4.0" -> Set("4.0", "4.1", "4.2"),
    "4.3.1" -> Set("4.0", "4.1")
  )

  /** The Delta release that everything is compiled against. */
  val delta: String = testedDeltas.head._1

  /** The Iceberg release that tables are published with. */
  val iceberg = "1.12.0"

  /** The SQLite driver for a JDBC catalog that is a file. */
  val sqlite = "3.54.1.0"

  val spark40: SparkLine = SparkLine(spark = "4.0.4", scala = "2.13.17", hive = "4.0.2")

  val spark41: SparkLine =
    SparkLine(
      spark = "4.1.3",
      scala = "2.13.17",
      hive = "4.1.1",
      icebergRuntime = Some("iceberg-spark-runtime-4.1_2.13"),
      s3 = Some(S3Client(hadoop = "3.4.2", sdk = "2.29.52"))
    )

  // KernelConnectorSuite is about what only Spark 4.2 has.
  val spark42: SparkLine =
    SparkLine(
      spark = "4.2.0",
      scala = "2.13.18",
      hive = "4.2.0",
      suites = Seq("*SmokeSuite", "*SessionsSuite", "*KernelConnectorSuite")
    )

  val all: Seq[SparkLine] = Seq(spark40, spark41, spark42)

  /** The line that all tests run on. */
  val tested = spark41
}
