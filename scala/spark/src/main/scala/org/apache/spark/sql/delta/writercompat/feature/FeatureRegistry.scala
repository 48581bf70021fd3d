package org.apache.spark.sql.delta.writercompat.feature

import org.apache.spark.sql.delta._
import org.apache.xbean.asm9.{MethodVisitor, Opcodes, Type}

import java.util.Locale

/**
 * Puts the feature into the fixed set of features Delta knows.
 *
 * The set is built in the body of one method of a final class, so that method's result is passed
 * through [[FeatureRegistry.withWriterCompat]] by one call added to its bytes before Delta's own
 * class loader defines the class.
 */
object FeatureRegistry {

  private val method = "allSupportedFeaturesMap"
  private val targetClass = "org.apache.spark.sql.delta.TableFeature$"
  // The class in which scalac puts this object's methods as static ones.
  private val forwarder = Weaving.internalName(getClass.getName.stripSuffix("$"))

  /** Added to the end of `TableFeature.allSupportedFeaturesMap`. */
  def withWriterCompat(features: Map[String, TableFeature]): Map[String, TableFeature] =
    features ++ WriterCompatTableFeature.all.map { feature =>
      feature.name.toLowerCase(Locale.ROOT) -> feature
    }

  /** Whether Delta knows the feature; asking loads the class, so ask only once it is defined. */
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

  /** The bytes of the class with one call added before each return of the method. */
  private[writercompat] def weave(original: Array[Byte]): Array[Byte] = {
    val mapType = Type.getType(classOf[Map[_, _]])
    val descriptor = Type.getMethodDescriptor(mapType)
    var woven = 0
    val changed = Weaving.methods(original) { (_, name, desc, next) =>
      if (name != method || desc != descriptor) next
      else
        new MethodVisitor(Opcodes.ASM9, next) {
          override def visitInsn(opcode: Int): Unit = {
            // One map is taken from the stack and one put back: no frame changes.
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
