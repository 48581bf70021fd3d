package org.apache.spark.sql.delta.writercompat.install

import org.apache.spark.SparkThrowable
import org.apache.spark.launcher.JavaModuleOptions
import org.apache.spark.sql.delta.writercompat.feature.Weaving
import org.apache.xbean.asm9.{ClassReader, ClassWriter, MethodVisitor, Opcodes}
import org.apache.xbean.asm9.tree.ClassNode
import org.icebergwritercompat.bench.Sessions

import java.io.File
import java.nio.file.{Files, Path}
import java.util.jar.{JarEntry, JarFile, JarOutputStream}
import scala.jdk.CollectionConverters._
import scala.util.Using

/** Delta's jar with some of its classes changed, and sessions on it in a JVM of their own. */
object ChangedDelta {

  type Change = (String, Array[Byte] => Option[Array[Byte]])

  private val classPath =
    System.getProperty("java.class.path").split(File.pathSeparatorChar).toSeq

  val jar: Path =
    classPath.map(Path.of(_)).filter(_.getFileName.toString.startsWith("delta-spark_")) match {
      case Seq(one) => one
      case found    => throw new IllegalStateException(s"Delta's jars are $found")
    }

  /** The jar says that it is another version. */
  def version(said: String): Change = "io/delta/package$" -> { bytes =>
    Some(Weaving.methods(bytes) { (_, _, _, next) =>
      new MethodVisitor(Opcodes.ASM9, next) {
        override def visitLdcInsn(value: Object): Unit =
          super.visitLdcInsn(if (value == io.delta.VERSION) said else value)
      }
    })
  }

  /** A method does something more, which changes nothing. */
  def body(owner: String, method: String): Change = owner -> { bytes =>
    Some(Weaving.methods(bytes) { (_, name, _, next) =>
      if (name != method) next
      else
        new MethodVisitor(Opcodes.ASM9, next) {
          override def visitCode(): Unit = {
            super.visitCode()
            super.visitInsn(Opcodes.ICONST_1)
            super.visitInsn(Opcodes.POP)
          }
        }
    })
  }

  /** A method is gone. */
  def without(owner: String, method: String): Change = owner -> { bytes =>
    val (node, writer) = (new ClassNode, new ClassWriter(0))
    new ClassReader(bytes).accept(node, 0)
    require(node.methods.removeIf(_.name == method))
    node.accept(writer)
    Some(writer.toByteArray)
  }

  /** A class is gone. */
  def withoutClass(owner: String): Change = owner -> (_ => None)

  /** Makes the jar. */
  def write(target: Path, changes: Change*): Path = {
    val byEntry = changes.map { case (owner, change) => s"$owner.class" -> change }.toMap
    Using.resource(new JarFile(jar.toFile)) { in =>
      require(byEntry.keys.forall(in.getEntry(_) != null))
      Using.resource(new JarOutputStream(Files.newOutputStream(target))) { out =>
        in.entries.asScala.filterNot(_.isDirectory).foreach { entry =>
          val bytes = Using.resource(in.getInputStream(entry))(_.readAllBytes())
          byEntry.get(entry.getName).fold(Option(bytes))(_(bytes)).foreach { changed =>
            out.putNextEntry(new JarEntry(entry.getName))
            out.write(changed)
            out.closeEntry()
          }
        }
      }
    }
    target
  }

  /** What a session says, in a JVM that has this jar of Delta's. */
  def session(delta: Path, folder: Path): Seq[String] = {
    val classes = classPath.map(entry => if (entry == jar.toString) delta.toString else entry)
    val command = Seq(s"${System.getProperty("java.home")}/bin/java", "-Xmx1g", "-cp") ++
      Seq(classes.mkString(File.pathSeparator)) ++
      JavaModuleOptions.defaultModuleOptions.trim.split("\\s+") ++
      Seq("org.apache.spark.sql.delta.writercompat.install.SessionOnDelta", folder.toString)
    val builder = new ProcessBuilder(command.asJava).redirectErrorStream(true)
    builder.directory(Files.createDirectories(folder).toFile)
    builder.environment.put("SPARK_LOCAL_IP", "127.0.0.1")
    val process = builder.start()
    val said = new String(process.getInputStream.readAllBytes())
    process.waitFor()
    said.linesIterator.toSeq
  }
}

/** Starts a guarded session, and makes a table with the feature, or says why not. */
object SessionOnDelta {

  def main(args: Array[String]): Unit =
    try {
      val spark = Sessions.start(Sessions.Guarded, args(0))
      val property = "TBLPROPERTIES ('delta.enableIcebergWriterCompatV1' = 'true')"
      spark.sql(s"CREATE TABLE t (a INT) USING delta $property")
      spark.sql("INSERT INTO t VALUES (7)")
      println(s"rows: ${spark.table("t").collect().mkString(" ")}")
      spark.stop()
    } catch {
      case e: SparkThrowable => println(s"refused: ${e.getCondition}\n$e")
    }
}
