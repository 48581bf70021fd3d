package org.apache.spark.sql.delta.writercompat.read

import org.apache.spark.sql.delta.actions.{Action, AddFile}

import java.lang.reflect.Constructor

/**
 * Makes Delta's case classes without naming their constructors, whose parameters differ from one
 * Delta release to the next.
 */
private[writercompat] object Copies {

  private val constructors = new ClassValue[Constructor[_]] {
    override def computeValue(of: Class[_]): Constructor[_] =
      of.getConstructors.maxBy(_.getParameterCount)
  }

  /** A copy with some of its fields changed, each given by its name. */
  def of[T <: Product](original: T, changes: (String, Any)*): T = {
    val changed = changes.toMap
    val names = original.productElementNames.toSeq
    require(changed.keySet.subsetOf(names.toSet), s"${original.getClass} has not all of $changed")
    val values = names.zip(original.productIterator).map { case (name, value) =>
      changed.getOrElse(name, value).asInstanceOf[AnyRef]
    }
    constructors.get(original.getClass).newInstance(values: _*).asInstanceOf[T]
  }

  /** A file as a commit adds it, with these fields and defaults for all others. */
  def addFile(path: String, partitionValues: Map[String, String], size: Long): AddFile = {
    val text = """{"add":{"path":"x","size":0,"modificationTime":0,"dataChange":true}}"""
    Action.fromJson(text) match {
      case file: AddFile =>
        val said = Seq("path" -> path, "partitionValues" -> partitionValues, "size" -> size)
        of(file, said :+ ("tags" -> null): _*)
      case other => throw new IllegalStateException(s"Delta reads $text as $other")
    }
  }
}
