package org.apache.spark.sql.delta.writercompat.feature

import org.apache.xbean.asm9.Opcodes
import org.icebergwritercompat.bytecode.{ByteCode, Call, ClassFile, MethodCode, MethodText}

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.HexFormat
import scala.jdk.CollectionConverters._

/** A part of Delta's byte code that a join point depends on. */
sealed trait Watched

/** Class names are relative to `org/apache/spark/sql/delta/`, or full for other packages. */
object Watched {

  /** The bodies of all methods with these names, with their lambdas. */
  final case class Bodies(owner: String, methods: String*) extends Watched

  /** The order in which a method, and its lambdas, first call these. */
  final case class Order(owner: String, method: String, calls: String*) extends Watched

  /** Which methods call a method; `new` means the creation of an object, `catch` a handler. */
  final case class Callers(owner: String, called: String) extends Watched

  /** The modifiers and parents of a class, and its members that subclasses must implement. */
  final case class Shape(owner: String) extends Watched

  private[writercompat] val prefix = "org/apache/spark/sql/delta/"

  private[writercompat] def fullName(owner: String): String =
    if (owner.matches("(java|io|org)/.*")) owner else prefix + owner
}

/** The fingerprints of the join points in one Delta version. */
final class Fingerprints(classes: Seq[ClassFile]) {

  import Watched._

  private val byName = classes.map(file => file.name -> file).toMap

  private val bodies = new MethodText(byName.get)

  // Callers are searched in all classes, so these are read once.
  private lazy val calling: Seq[MethodCode] = {
    val called = JoinPoints.all.flatMap(_.watched).collect { case Callers(owner, _) => owner }
    val names = called.map(fullName).distinct
    classes.filter(_.mentions(names: _*)).flatMap(ByteCode.methods)
  }

  /** The SHA-256 of everything that a join point watches. */
  def of(joinPoint: JoinPoint): String = {
    val text = joinPoint.watched.flatMap(watched => s"$watched" +: seen(watched)).mkString("\n")
    HexFormat.of.formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)))
  }

  /** The text of a watched part; a missing method differs from an empty one. */
  private[writercompat] def seen(watched: Watched): Seq[String] = watched match {
    case Bodies(owner, methods @ _*) =>
      methods.flatMap { name =>
        val text = bodies.of(fullName(owner), name)
        if (text.isEmpty) Seq(s"$name is missing") else text
      }
    case Order(owner, method, wanted @ _*) =>
      byName.get(fullName(owner)).toSeq.flatMap { file =>
        ByteCode.methods(file).filter(_.name == method).flatMap { code =>
          ByteCode.calls(file, code).map(_.name).filter(wanted.toSet).distinct :+ code.descriptor
        }
      }
    case Callers(owner, called) =>
      ByteCode.callersOf(calling, Call(fullName(owner), called)).toSeq.sorted
    case Shape(owner) => byName.get(fullName(owner)).toSeq.flatMap(shape)
  }

  private def shape(file: ClassFile): Seq[String] = {
    val node = MethodText.parsed(file)
    val parents = (node.superName +: node.interfaces.asScala.toSeq).mkString(" ")
    val permitted = Option(node.permittedSubclasses).toSeq.flatMap(_.asScala)
    val open = node.methods.asScala.toSeq
      .filter(method => (method.access & Opcodes.ACC_ABSTRACT) != 0)
      .map(method => s"${method.name}${method.desc}")
      .sorted
    Seq(s"${node.access} $parents", s"permits $permitted") ++ open
  }
}
