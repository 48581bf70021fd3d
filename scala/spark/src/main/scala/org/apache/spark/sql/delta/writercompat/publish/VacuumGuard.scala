package org.apache.spark.sql.delta.writercompat.publish

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.delta.Snapshot
import org.apache.spark.sql.delta.catalog.DeltaTableV2
import org.apache.spark.sql.delta.commands.{DeltaCommand, VacuumCommand, VacuumCommandImpl}
import org.apache.spark.sql.delta.writercompat.feature.Weaving
import org.apache.spark.util.{Clock, SerializableConfiguration}
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}
import org.apache.spark.sql.delta.writercompat.read.{MalformedLog, TableStates}

import scala.annotation.unused

/**
 * Keeps VACUUM from deleting files that Iceberg readers need.
 *
 * Every VACUUM of Delta, from SQL and from a program, asks one method which files must stay. The
 * byte code of the command is changed so that this call goes to [[VacuumGuard.validFiles]], with
 * the table as an additional argument.
 */
object VacuumGuard {

  private val method = "getValidFilesFromSnapshot"
  private val targetClass = "org.apache.spark.sql.delta.commands.VacuumCommand$"
  private val target = Weaving.internalName(targetClass)

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

  /** The files that must stay; VACUUM calls this instead of Delta's method. */
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
    // Delta's method refuses a retention that is too short, so it is called first.
    val valid = MalformedLog.explainedStep(spark, TableStates.nameOf(table), snapshot) {
      VacuumedFiles.valid(
        spark,
        basePath,
        snapshot,
        retentionMillis.asInstanceOf[Option[AnyRef]],
        hadoopConf,
        clock,
        config
      )
    }
    val deletedBefore = retentionMillis match {
      case Some(millis: Long) => clock.getTimeMillis() - millis
      case _                  => snapshot.minFileRetentionTimestamp
    }
    new PublishedFiles(spark, table).withNeeded(valid, deletedBefore, dryRun)
  }

  /** The class file of the command with that call changed. */
  private[writercompat] def weave(original: Array[Byte]): Array[Byte] = {
    var woven = 0
    val changed = Weaving.methods(original) { (access, _, desc, next) =>
      new MethodVisitor(Opcodes.ASM9, next) {
        override def visitMethodInsn(
            opcode: Int,
            owner: String,
            called: String,
            calledDesc: String,
            isInterface: Boolean
        ): Unit =
          if (owner != target || called != method)
            super.visitMethodInsn(opcode, owner, called, calledDesc, isInterface)
          else {
            woven += 1
            val isStatic = (access & Opcodes.ACC_STATIC) != 0
            super.visitVarInsn(Opcodes.ALOAD, parameter(desc, isStatic, tableType))
            super.visitVarInsn(Opcodes.ILOAD, parameter(desc, isStatic, Type.BOOLEAN_TYPE))
            super.visitMethodInsn(
              Opcodes.INVOKESTATIC,
              forwarder,
              "validFiles",
              extended(calledDesc),
              false
            )
          }
      }
    }
    if (woven != 1) throw new IllegalStateException(s"$targetClass has $woven calls of $method")
    changed
  }

  // The class that has static forwarders to the methods of this object.
  private val forwarder = Weaving.internalName(getClass.getName.stripSuffix("$"))

  private val tableType = Type.getType(classOf[DeltaTableV2])

  /** The local variable that holds the only parameter of this type. */
  private def parameter(descriptor: String, isStatic: Boolean, wanted: Type): Int = {
    val types = Type.getArgumentTypes(descriptor).toSeq
    if (types.count(_ == wanted) != 1)
      throw new IllegalStateException(s"$targetClass calls $method where $wanted is not told")
    (if (isStatic) 0 else 1) + types.takeWhile(_ != wanted).map(_.getSize).sum
  }

  // A static call has the receiver of the original call as its first argument.
  private def extended(descriptor: String): String = Type.getMethodDescriptor(
    Type.getReturnType(descriptor),
    Type.getObjectType(target) +: Type.getArgumentTypes(descriptor) :+ tableType :+
      Type.BOOLEAN_TYPE: _*
  )
}
