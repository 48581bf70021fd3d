package org.apache.spark.sql.delta.writercompat.install

import org.apache.xbean.asm9.{ClassReader, Handle, Opcodes, Type}
import org.apache.xbean.asm9.tree._
import org.icebergwritercompat.bytecode.{ClassFile, MethodText}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

/**
 * A reference of this project's class files to Delta: a class, or a member of one.
 *
 * @param member
 *   the kind of the member, its name and its descriptor; `None` for the class itself
 */
final case class DeltaReference(owner: String, member: Option[DeltaReference.Member]) {

  override def toString: String =
    (owner.replace('/', '.') +: member.map(_.toString).toSeq).mkString(" ")
}

object DeltaReference {

  /** A method or field, with the kind that the instruction using it expects. */
  final case class Member(kind: String, name: String, descriptor: String) {
    override def toString: String = s"$kind $name $descriptor"
  }

  /** Parses the texts of a class and its member. */
  def parse(owner: String, member: Option[String]): DeltaReference =
    DeltaReference(
      owner.replace('.', '/'),
      member.map { text =>
        val words = text.split(' ')
        Member(words(0), words(1), words(2))
      }
    )
}

/** Resolves references without loading classes. */
final class Linker(bytes: String => Option[Array[Byte]]) {

  private val nodes = mutable.Map.empty[String, Option[ClassNode]]

  private[writercompat] def node(name: String): Option[ClassNode] =
    nodes.getOrElseUpdate(
      name,
      bytes(name).map { found =>
        val node = new ClassNode
        new ClassReader(found).accept(
          node,
          ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES
        )
        node
      }
    )

  /** The references that cannot be resolved; for a missing class, only the class. */
  def missing(references: Seq[DeltaReference]): Seq[DeltaReference] = {
    val gone = references.map(_.owner).toSet.filter(node(_).isEmpty)
    references.filter { reference =>
      if (gone(reference.owner)) reference.member.isEmpty else !resolves(reference)
    }
  }

  /** Whether the class exists and has or inherits the member, with the same kind. */
  def resolves(reference: DeltaReference): Boolean =
    node(reference.owner).exists { owner =>
      reference.member.forall { member =>
        val isInterface = (owner.access & Opcodes.ACC_INTERFACE) != 0
        (member.kind.contains("field") || member.kind.contains("interface") == isInterface) &&
        found(owner, member)
      }
    }

  private def found(owner: ClassNode, member: DeltaReference.Member): Boolean = {
    val declared =
      if (member.kind.contains("field"))
        owner.fields.asScala.map(f => (f.name, f.desc, f.access))
      else owner.methods.asScala.map(m => (m.name, m.desc, m.access))
    declared.exists { case (name, descriptor, access) =>
      name == member.name && descriptor == member.descriptor && reachable(access, member)
    } || (member.name != "<init>" && parents(owner).flatMap(node).exists(found(_, member)))
  }

  private def reachable(access: Int, member: DeltaReference.Member): Boolean =
    (access & (Opcodes.ACC_PUBLIC | Opcodes.ACC_PROTECTED)) != 0 &&
      ((access & Opcodes.ACC_STATIC) != 0) == member.kind.startsWith("static")

  private[writercompat] def parents(of: ClassNode): Seq[String] =
    Option(of.superName).toSeq ++ of.interfaces.asScala
}

/** The references of class files to Delta. */
final class DeltaReferences(ours: Seq[ClassFile], compiledAgainst: Linker) {

  import DeltaReference.Member

  private val nodes = ours.map(file => file.name -> MethodText.parsed(file)).toMap

  /** The distinct references, sorted. */
  def all: Seq[DeltaReference] =
    nodes.values.toSeq
      .flatMap(of)
      .flatMap(reference => Seq(DeltaReference(reference.owner, None), reference))
      .distinct
      .sortBy(_.toString)

  private def of(node: ClassNode): Seq[DeltaReference] =
    compiledAgainst.parents(node).flatMap(toClass) ++ node.methods.asScala.flatMap { method =>
      method.instructions.iterator.asScala.flatMap(of) ++
        method.tryCatchBlocks.asScala.flatMap(block => Option(block.`type`)).flatMap(toClass)
    }

  private def of(instruction: AbstractInsnNode): Seq[DeltaReference] = instruction match {
    case i: TypeInsnNode  => toClass(i.desc)
    case i: FieldInsnNode =>
      val static = Set(Opcodes.GETSTATIC, Opcodes.PUTSTATIC)(i.getOpcode)
      toMember(i.owner, Member(if (static) "static-field" else "field", i.name, i.desc))
    case i: MethodInsnNode =>
      toMethod(i.owner, i.name, i.desc, i.getOpcode == Opcodes.INVOKESTATIC, i.itf)
    case i: LdcInsnNode =>
      i.cst match {
        case t: Type => toClass(t.getInternalName)
        case _       => Nil
      }
    case i: InvokeDynamicInsnNode =>
      i.bsmArgs.toSeq.collect { case handle: Handle =>
        toMethod(
          handle.getOwner,
          handle.getName,
          handle.getDesc,
          handle.getTag == Opcodes.H_INVOKESTATIC,
          handle.isInterface
        )
      }.flatten
    case _ => Nil
  }

  private def toClass(name: String): Seq[DeltaReference] = {
    val element = name.dropWhile(_ == '[').stripSuffix(";")
    val plain = if (name.startsWith("[")) element.stripPrefix("L") else name
    Option.when(DeltaReferences.isDelta(plain))(DeltaReference(plain, None)).toSeq
  }

  private def toMethod(
      owner: String,
      name: String,
      descriptor: String,
      static: Boolean,
      interface: Boolean
  ): Seq[DeltaReference] = {
    val kind = Seq("static" -> static, "interface" -> interface).collect { case (k, true) => k }
    toMember(owner, Member((kind :+ "method").mkString("-"), name, descriptor))
  }

  private def toMember(owner: String, member: Member): Seq[DeltaReference] =
    if (DeltaReferences.isDelta(owner)) Seq(DeltaReference(owner, Some(member)))
    else nodes.get(owner).toSeq.flatMap(inherited(_, member).take(1))

  // A member that a class of this project inherits from Delta is a member of Delta's class.
  private def inherited(from: ClassNode, member: Member): Seq[DeltaReference] = {
    val declares =
      from.methods.asScala.exists(m => m.name == member.name && m.desc == member.descriptor) ||
        from.fields.asScala.exists(f => f.name == member.name && f.desc == member.descriptor)
    if (declares) Nil
    else
      compiledAgainst.parents(from).flatMap { parent =>
        if (DeltaReferences.isDelta(parent)) theirs(parent, member)
        else nodes.get(parent).toSeq.flatMap(inherited(_, member))
      }
  }

  private def theirs(parent: String, member: Member): Option[DeltaReference] = {
    val isInterface =
      compiledAgainst.node(parent).exists(node => (node.access & Opcodes.ACC_INTERFACE) != 0)
    val kind = member.kind.replace("interface-", "")
    val there = member.copy(kind =
      if (isInterface && kind == "method") "interface-method" else kind
    )
    Some(DeltaReference(parent, Some(there))).filter(compiledAgainst.resolves)
  }
}

object DeltaReferences {

  private val ours = "org/apache/spark/sql/delta/writercompat/"

  /** Whether the class with this internal name belongs to Delta. */
  def isDelta(name: String): Boolean =
    (name.startsWith("org/apache/spark/sql/delta/") && !name.startsWith(ours)) ||
      name.startsWith("io/delta/")

  // Classes of Delta's other jars, which may be merged with the first.
  private val elsewhere = Seq("io/delta/storage/", "io/delta/kernel/")

  /** The classes that are always in the first of Delta's jars. */
  def inMainJar(files: Seq[ClassFile]): Seq[ClassFile] =
    files.filter(file => isDelta(file.name) && !elsewhere.exists(file.name.startsWith))
}
