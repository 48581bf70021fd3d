ThisBuild / organization := "org.icebergwritercompat"
ThisBuild / version := IO.read(file("VERSION")).trim
ThisBuild / licenses := Seq(License.Apache2)
ThisBuild / description := "Delta tables that are safe to read and write as Apache Iceberg tables"

lazy val spark40 = new LineProjects(SparkLine.spark40)
lazy val spark41 = new LineProjects(SparkLine.spark41)
lazy val spark42 = new LineProjects(SparkLine.spark42)

lazy val root = (project in file("."))
  .aggregate(LocalProject(SparkLine.spark41.projectId))
  .settings(publish / skip := true)

// What the classes that were compiled against the first Delta do with each of the others.
addCommandAlias(
  "testOtherDeltas",
  SparkLine.all
    .flatMap { l =>
      val suites =
        if (l == SparkLine.spark41) "*SmokeSuite *GuardSuite *JoinPointSuite" else "*SmokeSuite"
      l.deltas.tail
        .map(version => s"${l.projectId}/${Layers.deltaTests(version).id}/testOnly $suites")
    }
    .mkString("; ")
)
