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

// Every test on Spark 4.1. The other lines compile in full and run one suite; KernelConnectorSuite is
// for what only Spark 4.2 has. Last, what the classes that were compiled against the first Delta do
// with each of the others. sbt runs one JVM with tests at a time, and compiles meanwhile.
val testAll = taskKey[Unit]("Every test on Spark 4.1, and a few on other Spark lines and Deltas.")

testAll := LineProjects
  .together(
    spark41.allTests ++ Seq(spark40.suites("*SmokeSuite")) ++
      Seq(spark42.suites("*SmokeSuite", "*KernelConnectorSuite")) ++
      spark40.onOtherDeltas("*SmokeSuite") ++ spark42.onOtherDeltas("*SmokeSuite") ++
      spark41.onOtherDeltas("*SmokeSuite", "*GuardSuite", "*JoinPointSuite")
  )
  .value
