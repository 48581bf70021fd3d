package org.apache.spark.sql.delta.writercompat.feature

import org.apache.xbean.asm9.{ClassReader, ClassVisitor, ClassWriter, MethodVisitor, Opcodes, Type}

import java.lang.invoke.MethodHandles
import scala.util.Using

/** Changes the byte code of Delta classes just before Delta's class loader defines them. */
private[writercompat] object Weaving {

  /**
   * Defines a class with changed byte code.
   *
   * @param neighbour
   *   any class of the same package that is loaded without the target
   * @throws java.lang.LinkageError
   *   if Delta loaded the class before
   */
  def define(target: String, neighbour: Class[_])(change: Array[Byte] => Array[Byte]): Unit = {
    val resource = s"/${internalName(target)}.class"
    val bytes = change(Using.resource(neighbour.getResourceAsStream(resource))(_.readAllBytes()))
    MethodHandles.privateLookupIn(neighbour, MethodHandles.lookup()).defineClass(bytes)
    ()
  }

  /**
   * The byte code of a class with changed methods.
   *
   * @param change
   *   the visitor of a method, given its access, name, descriptor and the visitor that writes it
   */
  def methods(original: Array[Byte])(
      change: (Int, String, String, MethodVisitor) => MethodVisitor
  ): Array[Byte] = {
    val reader = new ClassReader(original)
    val writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS)
    val visitor = new ClassVisitor(Opcodes.ASM9, writer) {
      override def visitMethod(
          access: Int,
          name: String,
          desc: String,
          signature: String,
          exceptions: Array[String]
      ): MethodVisitor =
        change(access, name, desc, super.visitMethod(access, name, desc, signature, exceptions))
    }
    reader.accept(visitor, 0)
    writer.toByteArray
  }

  /** The internal name of a class in class files. */
  def internalName(name: String): String = name.replace('.', '/')
}

/**
 * A method of a class that is changed.
 *
 * @param writer
 *   writes the method
 * @param changed
 *   to be called for each change
 */
private[writercompat] final class WovenMethod(
    access: Int,
    name: String,
    val descriptor: String,
    val writer: MethodVisitor,
    val changed: () => Unit
) {

  /** Whether it has no object. */
  def isStatic: Boolean = (access & Opcodes.ACC_STATIC) != 0

  /** Whether it is the method of this name, result and parameters. */
  def is(name: String, result: Type, parameters: Type*): Boolean =
    this.name == name && descriptor == Type.getMethodDescriptor(result, parameters: _*)
}

/**
 * A class of Delta with one change: a call of a method of the object that extends this.
 *
 * @param target
 *   the name of the class
 * @param neighbour
 *   any class of the same package that is loaded without the target
 */
abstract class WovenClass(target: String, neighbour: Class[_]) {

  @volatile private var defined = false

  /** Whether the changed class is in use. */
  def isDefined: Boolean = defined

  /**
   * Defines the changed class in Delta's class loader.
   *
   * @throws java.lang.LinkageError
   *   if Delta loaded the class before
   */
  def define(): Unit = if (!defined) {
    Weaving.define(target, neighbour)(weave)
    defined = true
  }

  /** The bytes of the class with its one change. */
  private[writercompat] final def weave(original: Array[Byte]): Array[Byte] = {
    var places = 0
    val changed = Weaving.methods(original) { (access, name, descriptor, next) =>
      changing(new WovenMethod(access, name, descriptor, next, () => places += 1))
    }
    if (places != 1) throw new IllegalStateException(s"$target has $places places to change, not 1")
    changed
  }

  /** What reads a method and writes it changed; `method.writer` if it stays as it is. */
  protected def changing(method: WovenMethod): MethodVisitor

  /** Writes a call of a method of this object. */
  protected final def call(visitor: MethodVisitor, method: String, descriptor: String): Unit =
    visitor.visitMethodInsn(Opcodes.INVOKESTATIC, forwarder, method, descriptor, false)

  // The class that has this object's methods as static methods.
  private val forwarder = Weaving.internalName(getClass.getName.stripSuffix("$"))
}
