package org.icebergwritercompat.bytecode

import org.apache.xbean.asm9.ClassReader

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.jar.JarFile
import scala.jdk.CollectionConverters._
import scala.util.Using

/** A class file, by its internal name. */
final case class ClassFile(name: String, bytes: Array[Byte]) {

  def reader: ClassReader = new ClassReader(bytes)

  private val textTag = 1
  private val classTag = 7
  private val stringTag = 8

  /** The string constants. */
  def strings: Set[String] = {
    val reader = this.reader
    val buffer = new Array[Char](reader.getMaxStringLength)
    items(reader)
      .filter(reader.readByte(_) == stringTag)
      .map(item => reader.readUTF8(item + 1, buffer))
      .toSet
  }

  /** The internal names of the classes that this one refers to, also in descriptors. */
  def references: Set[String] = {
    val reader = this.reader
    val buffer = new Array[Char](reader.getMaxStringLength)
    items(reader).flatMap { item =>
      reader.readByte(item) match {
        case `classTag` => Seq(reader.readUTF8(item + 1, buffer)).filterNot(_.startsWith("["))
        case `textTag`  => ClassFile.inDescriptor.findAllMatchIn(text(reader, item)).map(_.group(1))
        case _          => Nil
      }
    }.toSet
  }

  private def text(reader: ClassReader, item: Int): String =
    new String(bytes, item + 3, reader.readUnsignedShort(item + 1), UTF_8)

  /** Whether the constant pool contains a name or text; much faster than reading the methods. */
  def mentions(texts: String*): Boolean = {
    val reader = this.reader
    val byLength = texts.groupBy(_.length)
    items(reader).filter(reader.readByte(_) == textTag).exists { item =>
      val length = reader.readUnsignedShort(item + 1)
      byLength.getOrElse(length, Nil).exists { text =>
        (0 until length).forall(i => reader.readByte(item + 3 + i) == text.charAt(i).toInt)
      }
    }
  }

  // The offset of an item is that of its content; its tag is one byte before.
  private def items(reader: ClassReader): Iterator[Int] =
    (1 until reader.getItemCount).iterator.map(reader.getItem).filter(_ > 0).map(_ - 1)
}

object ClassFile {
  private val inDescriptor = "L([A-Za-z0-9_$]+(?:/[A-Za-z0-9_$]+)+);".r
}

/** The class files in jars and folders. */
object ClassFiles {

  /** The class files in the jar or folder of a class. */
  def inLocationOf(neighbour: Class[_]): Seq[ClassFile] =
    in(Path.of(neighbour.getProtectionDomain.getCodeSource.getLocation.toURI))

  /** The class files in the jars on the class path with this name prefix. */
  def inJarsNamed(prefix: String): Seq[ClassFile] =
    System
      .getProperty("java.class.path")
      .split(File.pathSeparatorChar)
      .toSeq
      .map(Path.of(_))
      .filter(path => path.getFileName.toString.startsWith(prefix))
      .flatMap(in)

  /** The class files in a jar or folder. */
  def in(location: Path): Seq[ClassFile] =
    if (Files.isDirectory(location))
      Using.resource(Files.walk(location)) { paths =>
        paths.iterator.asScala
          .filter(_.toString.endsWith(".class"))
          .map(path =>
            ClassFile(nameOf(location.relativize(path).toString), Files.readAllBytes(path))
          )
          .toVector
      }
    else
      Using.resource(new JarFile(location.toFile)) { jar =>
        jar.entries.asScala
          .filter(entry =>
            entry.getName.endsWith(".class") && !entry.getName.startsWith("META-INF")
          )
          .map { entry =>
            val bytes = Using.resource(jar.getInputStream(entry))(_.readAllBytes())
            ClassFile(nameOf(entry.getName), bytes)
          }
          .toVector
      }

  private def nameOf(file: String): String =
    file.stripSuffix(".class").replace(File.separatorChar, '/')
}
