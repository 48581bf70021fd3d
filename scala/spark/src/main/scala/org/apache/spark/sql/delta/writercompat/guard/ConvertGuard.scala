package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.commands.{ConvertToDeltaCommand, DeltaCommand}
import org.apache.spark.sql.delta.writercompat.feature.WovenClass
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}
import org.icebergwritercompat.errors.IcebergWriterCompatException

/**
 * Refuses CONVERT TO DELTA before it has done anything, where the table would have the feature.
 *
 * The statement and `DeltaTable.convertToDelta`, which is none, run the same command. It makes the
 * folder of the log before its transaction sees any metadata, so the command asks
 * [[ConvertGuard.beforeConvert]] first, by a change to its bytes.
 */
object ConvertGuard
    extends WovenClass(
      "org.apache.spark.sql.delta.commands.ConvertToDeltaCommandBase",
      classOf[DeltaCommand]
    ) {

  /** Called by the command before anything else. */
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

  private val session = Type.getType(classOf[SparkSession])

  // The method gets a call at its start.
  override protected def changing(
      access: Int,
      name: String,
      descriptor: String,
      next: MethodVisitor,
      changes: () => Unit
  ): MethodVisitor =
    if (
      name != "run" || descriptor != Type.getMethodDescriptor(Type.getType(classOf[Seq[_]]), session)
    ) next
    else
      new MethodVisitor(Opcodes.ASM9, next) {
        override def visitCode(): Unit = {
          changes()
          super.visitCode()
          super.visitVarInsn(Opcodes.ALOAD, 0)
          super.visitVarInsn(Opcodes.ALOAD, 1)
          call(
            next,
            "beforeConvert",
            Type.getMethodDescriptor(Type.VOID_TYPE, Type.getType(classOf[Object]), session)
          )
        }
      }
}
