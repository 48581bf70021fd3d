package org.icebergwritercompat.bytecode

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, Handle, Label, MethodVisitor, Opcodes}

import scala.annotation.unused
import scala.collection.mutable

/**
 * A call in a method body; the name is `new` for the creation of an object, and `catch` for an
 * exception handler.
 */
final case class Call(owner: String, name: String) {
  override def toString: String = s"${owner.split('/').last}.$name"
}

/** One method of a class file. */
final case class MethodCode(
    owner: String,
    name: String,
    descriptor: String,
    steps: Seq[Either[Handle, Call]]
) {

  /** The source method that this method implements, or whose lambda it is. */
  def source: String =
    if (name.startsWith("$anonfun$")) name.stripPrefix("$anonfun$").replaceAll("\\$\\d+$", "")
    else name
}

/** What the methods of a class file call, in order. */
object ByteCode {

  def methods(file: ClassFile): Seq[MethodCode] = {
    val found = mutable.ArrayBuffer.empty[StepVisitor]
    val visitor = new ClassVisitor(Opcodes.ASM9) {
      override def visitMethod(
          access: Int,
          name: String,
          descriptor: String,
          signature: String,
          exceptions: Array[String]
      ): MethodVisitor = {
        found += new StepVisitor(name, descriptor)
        found.last
      }
    }
    file.reader.accept(visitor, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES)
    found.toSeq.map(m => MethodCode(file.name, m.name, m.descriptor, m.steps.toSeq))
  }

  /**
   * The methods that call a method or create an object, as `Class.method`; a lambda counts as the
   * method that contains it.
   */
  def callersOf(methods: Seq[MethodCode], called: Call): Set[String] =
    methods
      .filter(_.steps.contains(Right(called)))
      // Every method of a trait has a static twin, which only passes the call on.
      .filterNot(method => method.name == s"${called.name}$$")
      .map(method => s"${method.owner.split('/').last}.${method.source}")
      .toSet

  /** The calls of the only method of this name; those of a lambda are where it is created. */
  def calls(file: ClassFile, method: String): Seq[Call] =
    methods(file).filter(_.name == method) match {
      case Seq(one) => calls(file, one)
      case found    =>
        throw new NoSuchMethodException(
          s"the class has ${found.size} methods " +
            s"$method"
        )
    }

  /** The calls of a method; those of a lambda are where it is created. */
  def calls(file: ClassFile, method: MethodCode): Seq[Call] = {
    val all = methods(file)
    def of(code: MethodCode): Seq[Call] = code.steps.flatMap {
      case Right(call)  => Seq(call)
      case Left(handle) =>
        all
          .filter { m =>
            m.owner == handle.getOwner && m.name == handle.getName &&
            m.descriptor == handle.getDesc && m.name != code.name
          }
          .flatMap(of)
    }
    of(method)
  }
}

/** Collects the calls of one method. */
final class StepVisitor(val name: String, val descriptor: String)
    extends MethodVisitor(Opcodes.ASM9) {

  val steps: mutable.Buffer[Either[Handle, Call]] = mutable.Buffer.empty

  override def visitMethodInsn(
      opcode: Int,
      owner: String,
      name: String,
      descriptor: String,
      isInterface: Boolean
  ): Unit = { steps += Right(Call(owner, name)); () }

  override def visitTypeInsn(opcode: Int, owner: String): Unit =
    opcode match {
      case Opcodes.NEW        => steps += Right(Call(owner, "new")); ()
      case Opcodes.INSTANCEOF => tested += owner; ()
      case _                  =>
    }

  // Scala compiles a catch to a handler of everything, followed by type tests.
  override def visitTryCatchBlock(start: Label, end: Label, handler: Label, caught: String): Unit =
    if (caught != null && caught != "java/lang/Throwable") tested += caught

  override def visitEnd(): Unit = steps ++= tested.map(caught => Right(Call(caught, "catch")))

  private val tested = mutable.LinkedHashSet.empty[String]

  override def visitInvokeDynamicInsn(
      @unused name: String,
      @unused descriptor: String,
      @unused bootstrap: Handle,
      arguments: AnyRef*
  ): Unit =
    steps ++= arguments.collect { case handle: Handle => Left(handle) }
}
