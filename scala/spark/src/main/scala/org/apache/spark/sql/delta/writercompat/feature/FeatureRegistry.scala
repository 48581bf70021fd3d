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
object FeatureRegistry
    extends WovenClass("org.apache.spark.sql.delta.TableFeature$", classOf[DeltaThrowable]) {

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

  private val mapType = Type.getType(classOf[Map[_, _]])

  // A call is added before each return of the method.
  override protected def changing(method: WovenMethod): MethodVisitor =
    if (!method.is("allSupportedFeaturesMap", mapType)) method.writer
    else
      new MethodVisitor(Opcodes.ASM9, method.writer) {
        override def visitInsn(opcode: Int): Unit = {
          // The call replaces a map on the stack by a map, so no frame changes.
          if (opcode == Opcodes.ARETURN) {
            method.changed()
            call(method.writer, "withWriterCompat", Type.getMethodDescriptor(mapType, mapType))
          }
          super.visitInsn(opcode)
        }
      }
}
