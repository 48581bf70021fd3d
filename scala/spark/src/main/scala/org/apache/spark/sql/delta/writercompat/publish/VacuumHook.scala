package org.apache.spark.sql.delta.writercompat.publish

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{DeltaCommand, VacuumCommand, VacuumCommandImpl}
import org.apache.spark.sql.delta.writercompat.feature.{WovenClass, WovenMethod}
import org.apache.spark.util.{Clock, SerializableConfiguration}
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}
import org.apache.spark.sql.delta.writercompat.read.{MalformedLog, TableStates}

import scala.annotation.unused

/**
 * Keeps VACUUM from what readers of Iceberg need.
 *
 * Delta's VACUUM in all its kinds, from SQL and from a program, asks one method which files must
 * stay. That one call goes to [[VacuumHook.validFiles]] instead, along with the table, by a change
 * to the bytes of the command.
 */
object VacuumHook
    extends WovenClass(
      "org.apache.spark.sql.delta.commands.VacuumCommand$",
      classOf[DeltaCommand]
    ) {

  private val replaced = "getValidFilesFromSnapshot"
  private val target = "org/apache/spark/sql/delta/commands/VacuumCommand$"

  /** Called by VACUUM in place of Delta's method for the files that must stay. */
  def validFiles(
      @unused command: VacuumCommand.type,
      spark: SparkSession,
      basePath: String,
      snapshot: Snapshot,
      retentionMillis: Option[Any],
      hadoopConf: Broadcast[SerializableConfiguration],
      clock: Clock,
      config: VacuumCommandImpl#ValidFilesConfig,
      table: DeltaTableV2,
      dryRun: Boolean
  ): VacuumCommand.ValidFilesResult = {
    // It refuses a retention that is too short, before anything is done.
    val valid = MalformedLog.explainedStep(spark, TableStates.nameOf(table), snapshot) {
      val files = DeltaValidFiles.valid(
        spark,
        basePath,
        snapshot,
        retentionMillis.asInstanceOf[Option[AnyRef]],
        hadoopConf,
        clock,
        config
      )
      MalformedLog.read(snapshot)
      files
    }
    val deletedBefore = retentionMillis match {
      case Some(millis: Long) => clock.getTimeMillis() - millis
      case _                  => snapshot.minFileRetentionTimestamp
    }
    new VacuumPreparation(spark, table).withNeeded(valid, deletedBefore, dryRun)
  }

  // One call goes here, with more arguments.
  override protected def changing(method: WovenMethod): MethodVisitor =
    new MethodVisitor(Opcodes.ASM9, method.writer) {
      override def visitMethodInsn(
          opcode: Int,
          owner: String,
          called: String,
          calledDescriptor: String,
          isInterface: Boolean
      ): Unit =
        if (owner != target || called != replaced)
          super.visitMethodInsn(opcode, owner, called, calledDescriptor, isInterface)
        else {
          method.changed()
          super.visitVarInsn(Opcodes.ALOAD, parameter(method, tableType))
          super.visitVarInsn(Opcodes.ILOAD, parameter(method, Type.BOOLEAN_TYPE))
          call(method.writer, "validFiles", extended(calledDescriptor))
        }
    }

  private val tableType = Type.getType(classOf[DeltaTableV2])

  /** Where the one parameter of this type is among the local variables. */
  private def parameter(method: WovenMethod, wanted: Type): Int = {
    val types = Type.getArgumentTypes(method.descriptor).toSeq
    if (types.count(_ == wanted) != 1)
      throw new IllegalStateException(s"$target calls $replaced where $wanted is not told")
    (if (method.isStatic) 0 else 1) + types.takeWhile(_ != wanted).map(_.getSize).sum
  }

  // What was the object of the call comes first.
  private def extended(descriptor: String): String = Type.getMethodDescriptor(
    Type.getReturnType(descriptor),
    Type.getObjectType(target) +: Type.getArgumentTypes(descriptor) :+ tableType :+
      Type.BOOLEAN_TYPE: _*
  )
}
