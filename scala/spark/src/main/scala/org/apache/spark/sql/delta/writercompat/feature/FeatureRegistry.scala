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
object FeatureRegistry
    extends WovenClass("org.apache.spark.sql.delta.TableFeature$", classOf[DeltaThrowable]) {

  private val method = "allSupportedFeaturesMap"

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

  private val mapType = Type.getType(classOf[Map[_, _]])

  // The result of the method goes through a call.
  override protected def changing(
      access: Int,
      name: String,
      descriptor: String,
      next: MethodVisitor,
      changes: () => Unit
  ): MethodVisitor =
    if (name != method || descriptor != Type.getMethodDescriptor(mapType)) next
    else
      new MethodVisitor(Opcodes.ASM9, next) {
        override def visitInsn(opcode: Int): Unit = {
          // One map is taken from the stack and one put back: no frame changes.
          if (opcode == Opcodes.ARETURN) {
            changes()
            call(next, "withWriterCompat", Type.getMethodDescriptor(mapType, mapType))
          }
          super.visitInsn(opcode)
        }
      }
}
