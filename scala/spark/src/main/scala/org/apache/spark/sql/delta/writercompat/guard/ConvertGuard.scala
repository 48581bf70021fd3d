package org.apache.spark.sql.delta.writercompat.guard

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.commands.{ConvertToDeltaCommand, DeltaCommand}
import org.apache.spark.sql.delta.writercompat.feature.{WovenClass, WovenMethod}
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}
import org.icebergwritercompat.errors.IcebergWriterCompatException

/**
 * Refuses CONVERT TO DELTA before it writes anything, if the table would have the feature.
 *
 * The SQL statement and `DeltaTable.convertToDelta` run the same command. It creates the folder of
 * the log before its transaction has any metadata. A call of [[ConvertGuard.beforeConvert]] is
 * therefore added at the start of the command, by changing its byte code.
 */
object ConvertGuard
    extends WovenClass(
      "org.apache.spark.sql.delta.commands.ConvertToDeltaCommandBase",
      classOf[DeltaCommand]
    ) {

  /** Called by the command before it does anything. */
  def beforeConvert(command: Object, spark: SparkSession): Unit = command match {
    case convert: ConvertToDeltaCommand =>
      for (converted <- FilesToConvert.of(spark, convert); contract <- converted.contract)
        throw IcebergWriterCompatException.notConvertible(
          converted.folder,
          contract,
          converted.setting,
          converted.copyInto(contract)
        )
    case _ =>
  }

  private val session = Type.getType(classOf[SparkSession])

  // A call is added at the start of the method.
  override protected def changing(method: WovenMethod): MethodVisitor =
    if (!method.is("run", Type.getType(classOf[Seq[_]]), session)) method.writer
    else
      new MethodVisitor(Opcodes.ASM9, method.writer) {
        override def visitCode(): Unit = {
          method.changed()
          super.visitCode()
          super.visitVarInsn(Opcodes.ALOAD, 0)
          super.visitVarInsn(Opcodes.ALOAD, 1)
          call(
            method.writer,
            "beforeConvert",
            Type.getMethodDescriptor(Type.VOID_TYPE, Type.getType(classOf[Object]), session)
          )
        }
      }
}
