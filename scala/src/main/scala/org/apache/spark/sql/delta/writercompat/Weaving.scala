package org.apache.spark.sql.delta.writercompat

import java.lang.invoke.MethodHandles
import scala.util.Using

/** Changes classes of Delta just before Delta's own class loader defines them. */
private[writercompat] object Weaving {

  /**
   * Defines a class by changed bytes.
   *
   * @param neighbour
   *   any class of the same package that is loaded without the target
   * @throws java.lang.LinkageError
   *   if Delta loaded the class before
   */
  def define(target: String, neighbour: Class[_])(change: Array[Byte] => Array[Byte]): Unit = {
    val resource = s"/${internalName(target)}.class"
    val bytes = change(Using.resource(neighbour.getResourceAsStream(resource))(_.readAllBytes()))
    MethodHandles.privateLookupIn(neighbour, MethodHandles.lookup()).defineClass(bytes)
    ()
  }

  /** The name of a class as class files have it. */
  def internalName(name: String): String = name.replace('.', '/')
}
