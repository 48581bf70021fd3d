package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.commands.{ConvertToDeltaCommand, DeltaCommand}
import org.apache.spark.sql.delta.writercompat.feature.Weaving
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}
import org.icebergwritercompat.errors.IcebergWriterCompatException

/**
 * Refuses CONVERT TO DELTA before it writes anything, if the table would have the feature.
 *
 * The SQL statement and `DeltaTable.convertToDelta` run the same command. It creates the folder of
 * the log before its transaction has any metadata. A call of [[ConvertGuard.beforeConvert]] is
 * therefore added at the start of the command, by changing its byte code.
 */
object ConvertGuard {

  private val method = "run"
  private val targetClass = "org.apache.spark.sql.delta.commands.ConvertToDeltaCommandBase"

  @volatile private var defined = false

  /** Whether the changed class is loaded. */
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

  /** Called by the command before it does anything. */
  def beforeConvert(command: Object, spark: SparkSession): Unit = command match {
    case convert: ConvertToDeltaCommand =>
      Converted.of(spark, convert).filter(_.hasFeature).foreach { converted =>
        throw IcebergWriterCompatException.notConvertible(
          converted.folder,
          converted.setting,
          converted.copy
        )
      }
    case _ =>
  }

  /** The byte code of the class with the call at the start of the method. */
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

  // The class that has this object's methods as static methods.
  private val forwarder = Weaving.internalName(getClass.getName.stripSuffix("$"))
}
