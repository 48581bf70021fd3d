import sbt.Keys._
import sbt._

import scala.xml.transform.{RewriteRule, RuleTransformer}
import scala.xml.{Elem, Node, NodeSeq}

/** What is published: the jar of a Spark line, with its sources, its documentation and its POM. */
object Published {

  /** The legal texts that every jar has. */
  private val legal = Seq("LICENSE", "NOTICE")

  /** A layer's classes, sources and documentation belong to the jar of the layer `spark`. */
  def inOneJar(layer: Project): Seq[Setting[_]] = Seq(
    Compile / packageBin / mappings ++= (layer / Compile / packageBin / mappings).value,
    Compile / packageSrc / mappings ++= (layer / Compile / packageSrc / mappings).value,
    Compile / doc / sources ++= (layer / Compile / doc / sources).value
  )

  val nothing: Seq[Setting[_]] = Seq(publish / skip := true)

  val settings: Seq[Setting[_]] = Seq(
    publishMavenStyle := true,
    publishConfiguration := publishConfiguration.value.withOverwrite(true),
    publishTo := Some(
      Resolver.file("folder", (ThisBuild / baseDirectory).value / "target" / "maven")
    ),
    projectInfo := ModuleInfo(
      moduleName.value,
      description.value,
      homepage.value,
      startYear.value,
      licenses.value.toVector,
      organizationName.value,
      organizationHomepage.value,
      scmInfo.value,
      developers.value.toVector
    ),
    pomPostProcess := withoutTests,
    // Scala refuses Java sources that extend its sealed classes, but not their class files.
    Compile / doc / sources := (Compile / doc / sources).value.filter(_.ext == "scala"),
    Compile / doc / dependencyClasspath += {
      (Compile / compile).value
      Attributed.blank((Compile / classDirectory).value)
    },
    // Links from one member to another are for reading the source.
    Compile / doc / scalacOptions ++= Seq("-no-link-warnings", "-nowarn"),
    Compile / doc / scalacOptions -= "-Werror"
  ) ++ Seq(packageBin, packageSrc, packageDoc).map { jar =>
    Compile / jar / mappings ++= legal.map { name =>
      (ThisBuild / baseDirectory).value / name -> s"META-INF/$name"
    }
  }

  // All layers are in one jar, and Spark has the Scala library: a session that takes the jar by its
  // coordinate gets no other.
  private def isOfBuild(dependency: Node): Boolean =
    (dependency \ "groupId").text == "org.icebergwritercompat" ||
      (dependency \ "groupId").text == "org.scala-lang" ||
      !Set("", "compile", "provided").contains((dependency \ "scope").text)

  private def withoutTests(pom: Node): Node =
    new RuleTransformer(new RewriteRule {
      override def transform(node: Node): NodeSeq = node match {
        case dependency: Elem if dependency.label == "dependency" && isOfBuild(dependency) =>
          NodeSeq.Empty
        case other => other
      }
    }).transform(pom).head
}
