ThisBuild / organization := "org.icebergwritercompat"
ThisBuild / version := IO.read(file("VERSION")).trim
ThisBuild / licenses := Seq(License.Apache2)
ThisBuild / description := "Delta tables that are safe to read and write as Apache Iceberg tables"
ThisBuild / versionScheme := Some("early-semver")
ThisBuild / homepage := Some(url("https://github.com/icebergwritercompat/iceberg-writer-compat"))
ThisBuild / scmInfo := homepage.value.map { page =>
  ScmInfo(page, s"scm:git:$page.git")
}
ThisBuild / developers := homepage.value.toList.map { page =>
  Developer("icebergwritercompat", "The authors of Iceberg Writer Compat", "", page)
}

// The projects of each Spark line, such as `spark41`.
lazy val lines = SparkLine.all.map(line => new LineProjects(line))

lazy val ofAllLines = new CompositeProject {
  override def componentProjects: Seq[Project] = lines.flatMap(_.componentProjects)
}

lazy val root = (project in file("."))
  .aggregate(LocalProject(SparkLine.tested.projectId))
  .settings(publish / skip := true)

// What a release puts into Maven Central, each with its sources, documentation and POM: `publishM2`
// into the user's own folder, `publish` into `target/maven`.
val publishAll = taskKey[Unit]("Publishes the jars of all Spark lines to target/maven.")

publishAll := LineProjects.together(lines.map(_.spark / publish)).value

// sbt runs one JVM with tests at a time, and compiles meanwhile.
val testAll =
  taskKey[Unit]("Every test on one Spark line, and a few on other Spark lines and Deltas.")

testAll := LineProjects.allTests(lines).value
