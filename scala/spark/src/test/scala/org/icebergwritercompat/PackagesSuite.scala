package org.icebergwritercompat

import org.icebergwritercompat.bytecode.{ClassFile, ClassFiles}
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.scalatest.funsuite.AnyFunSuite
import org.icebergwritercompat.iceberg.publish.IcebergPublisher

/** Which package of the project depends on which, read from the class files. */
class PackagesSuite extends AnyFunSuite {

  // One class of each layer.
  private val classes: Seq[ClassFile] = Seq(
    classOf[IcebergWriterCompatException],
    classOf[IcebergPublisher],
    classOf[IcebergWriterCompatExtension]
  ).flatMap(ClassFiles.inLocationOf)

  private def packageOf(name: String): String = name.substring(0, name.lastIndexOf('/'))

  private def simple(name: String): String = name.substring(name.lastIndexOf('/') + 1)

  private val own: Set[String] = classes.map(file => packageOf(file.name)).toSet

  /** For each package those it depends on, with the classes that make it so. */
  private val dependencies: Map[String, Map[String, Set[String]]] = {
    val uses = for {
      file <- classes
      used <- file.references
      to = packageOf(used) if own(to) && to != packageOf(file.name)
    } yield (packageOf(file.name), to, s"${simple(file.name)} uses ${simple(used)}")
    uses.groupBy(_._1).view.mapValues(_.groupMap(_._2)(_._3).view.mapValues(_.toSet).toMap).toMap
  }

  private def usedBy(name: String): Set[String] =
    dependencies.get(name).fold(Set.empty[String])(_.keySet)

  private def reachable(from: String): Set[String] =
    Iterator
      .iterate(usedBy(from))(known => known ++ known.flatMap(usedBy))
      .sliding(2)
      .collectFirst { case Seq(before, after) if before == after => after }
      .get

  test("the classes of all layers are found, and what they use") {
    assert(own.sizeIs >= 10)
    assert(reachable("org/icebergwritercompat")("org/icebergwritercompat/rules"))
  }

  test("no package depends on itself by way of others") {
    val cycles = own.filter(name => reachable(name)(name))
    val edges = for {
      from <- cycles.toSeq.sorted
      (to, uses) <- dependencies(from) if cycles(to)
    } yield s"$from -> $to: ${uses.toSeq.sorted.take(5).mkString(", ")}"
    assert(cycles.isEmpty, edges.mkString("\n", "\n", "\n"))
  }
}
