package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.commands.{ConvertToDeltaCommand, DeltaCommand}
import org.apache.spark.sql.delta.writercompat.feature.Weaving
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}
import org.icebergwritercompat.errors.IcebergWriterCompatException

/**
 * Refuses CONVERT TO DELTA before it has done anything, where the table would have the feature.
 *
 * The statement and `DeltaTable.convertToDelta`, which is none, run the same command. It makes the
 * folder of the log before its transaction sees any metadata, so the command asks
 * [[ConvertGuard.beforeConvert]] first, by a change to its bytes.
 */
object ConvertGuard {

  private val method = "run"
  private val targetClass = "org.apache.spark.sql.delta.commands.ConvertToDeltaCommandBase"

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
    Weaving.define(targetClass, classOf[DeltaCommand])(weave)
    defined = true
  }

  /** Called by the command before anything else. */
  def beforeConvert(command: Object, spark: SparkSession): Unit = command match {
    case convert: ConvertToDeltaCommand =>
      for (converted <- Converted.of(spark, convert); contract <- converted.contract)
        throw IcebergWriterCompatException.notConvertible(
          converted.folder,
          contract,
          converted.setting,
          converted.copyInto(contract)
        )
    case _ =>
  }

  /** The bytes of the class with one call at the start of the method. */
  private[writercompat] def weave(original: Array[Byte]): Array[Byte] = {
    val session = Type.getType(classOf[SparkSession])
    val descriptor = Type.getMethodDescriptor(Type.getType(classOf[Seq[_]]), session)
    var woven = 0
    val changed = Weaving.methods(original) { (_, name, desc, next) =>
      if (name != method || desc != descriptor) next
      else
        new MethodVisitor(Opcodes.ASM9, next) {
          override def visitCode(): Unit = {
            woven += 1
            super.visitCode()
            super.visitVarInsn(Opcodes.ALOAD, 0)
            super.visitVarInsn(Opcodes.ALOAD, 1)
            super.visitMethodInsn(
              Opcodes.INVOKESTATIC,
              forwarder,
              "beforeConvert",
              Type.getMethodDescriptor(Type.VOID_TYPE, Type.getType(classOf[Object]), session),
              false
            )
          }
        }
    }
    if (woven != 1) throw new IllegalStateException(s"$targetClass has $woven methods $method")
    changed
  }

  // The class in which scalac puts this object's methods as static ones.
  private val forwarder = Weaving.internalName(getClass.getName.stripSuffix("$"))
}
