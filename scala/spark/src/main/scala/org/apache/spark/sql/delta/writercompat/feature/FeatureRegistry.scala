package org.apache.spark.sql.delta.writercompat.feature

import org.apache.spark.sql.delta._
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}

import java.util.Locale

/**
 * Adds the feature to Delta's fixed map of features.
 *
 * The map is built by a method of a final class. A call of [[FeatureRegistry.withWriterCompat]] is
 * added to the byte code of this method, before Delta's class loader defines the class; it adds the
 * feature to the result.
 */
object FeatureRegistry {

  private val method = "allSupportedFeaturesMap"
  private val targetClass = "org.apache.spark.sql.delta.TableFeature$"
  // The class that has this object's methods as static methods.
  private val forwarder = Weaving.internalName(getClass.getName.stripSuffix("$"))

  /** Called at the end of `TableFeature.allSupportedFeaturesMap`. */
  def withWriterCompat(features: Map[String, TableFeature]): Map[String, TableFeature] =
    features ++ WriterCompatTableFeature.all.map { feature =>
      feature.name.toLowerCase(Locale.ROOT) -> feature
    }

  /** Whether Delta has the feature; loads the class, so it must be called after `install`. */
  def isRegistered: Boolean =
    WriterCompatTableFeature.all.forall { feature =>
      TableFeature.featureNameToFeature(feature.name).contains(feature)
    }

  /**
   * Defines the changed class in Delta's class loader.
   *
   * @throws java.lang.LinkageError
   *   if Delta loaded the class before
   */
  def define(): Unit = Weaving.define(targetClass, classOf[DeltaThrowable])(weave)

  /** The byte code of the class with a call added before each return of the method. */
  private[writercompat] def weave(original: Array[Byte]): Array[Byte] = {
    val mapType = Type.getType(classOf[Map[_, _]])
    val descriptor = Type.getMethodDescriptor(mapType)
    var woven = 0
    val changed = Weaving.methods(original) { (_, name, desc, next) =>
      if (name != method || desc != descriptor) next
      else
        new MethodVisitor(Opcodes.ASM9, next) {
          override def visitInsn(opcode: Int): Unit = {
            // The call replaces a map on the stack by a map, so no frame changes.
            if (opcode == Opcodes.ARETURN) {
              woven += 1
              super.visitMethodInsn(
                Opcodes.INVOKESTATIC,
                forwarder,
                "withWriterCompat",
                Type.getMethodDescriptor(mapType, mapType),
                false
              )
            }
            super.visitInsn(opcode)
          }
        }
    }
    if (woven != 1) throw new IllegalStateException(s"$targetClass.$method has $woven returns")
    changed
  }

}
