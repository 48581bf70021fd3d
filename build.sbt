ThisBuild / organization := "org.icebergwritercompat"
ThisBuild / version := IO.read(file("VERSION")).trim
ThisBuild / licenses := Seq(License.Apache2)
ThisBuild / description := "Delta tables that are safe to read and write as Apache Iceberg tables"

// The projects of each Spark line, such as `spark41`.
lazy val lines = SparkLine.all.map(line => new LineProjects(line))

lazy val ofAllLines = new CompositeProject {
  override def componentProjects: Seq[Project] = lines.flatMap(_.componentProjects)
}

lazy val root = (project in file("."))
  .aggregate(LocalProject(SparkLine.tested.projectId))
  .settings(publish / skip := true)

// sbt runs one JVM with tests at a time, and compiles meanwhile.
val testAll =
  taskKey[Unit]("Every test on one Spark line, and a few on other Spark lines and Deltas.")

testAll := LineProjects.allTests(lines).value
