package org.icebergwritercompat.bytecode

import org.apache.xbean.asm9.tree._
import org.apache.xbean.asm9.{ClassReader, Handle, Opcodes}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

/**
 * The byte code of methods as text that does not depend on line numbers, labels and the numbers in
 * the names of lambdas.
 *
 * Lambdas, local functions and anonymous classes are included where they are first used, because
 * their names are generated.
 */
final class MethodText(find: String => Option[ClassFile]) {

  private val nodes = mutable.Map.empty[String, Option[ClassNode]]

  private def node(name: String): Option[ClassNode] =
    nodes.getOrElseUpdate(name, find(name).map(MethodText.parsed))

  /** All methods of a name that a class declares; empty if there is none. */
  def of(owner: String, name: String): Seq[String] =
    node(owner).toSeq.flatMap(_.methods.asScala).filter(_.name == name).flatMap { method =>
      new Body().text(owner, method)
    }

  private final class Body {

    // At its second use, a method is named by its number.
    private val inside = mutable.LinkedHashMap.empty[String, Int]

    def text(owner: String, method: MethodNode): Seq[String] = {
      val labels = mutable.Map.empty[LabelNode, Int]
      def label(node: LabelNode) = s"L${labels.getOrElseUpdate(node, labels.size)}"
      val head = s"${stable(method.name)}${stable(method.desc)} ${method.access}"
      val steps = method.instructions.iterator.asScala.toSeq.flatMap(step(owner, label))
      val tries = method.tryCatchBlocks.asScala.toSeq.map { block =>
        s"try ${label(block.start)} ${label(block.end)} ${label(block.handler)} ${block.`type`}"
      }
      head +: (steps ++ tries)
    }

    private def step(owner: String, label: LabelNode => String)(
        instruction: AbstractInsnNode
    ): Seq[String] = {
      def line(operands: Any*) =
        Seq(
          s"${instruction.getOpcode} ${operands.map(x => stable(String.valueOf(x))).mkString(" ")}"
        )
      instruction match {
        case _: LineNumberNode | _: FrameNode => Nil
        case i: LabelNode                     => Seq(s"${label(i)}:")
        case i: IntInsnNode                   => line(i.operand)
        case i: VarInsnNode                   => line(i.`var`)
        case i: IincInsnNode                  => line(i.`var`, i.incr)
        case i: MultiANewArrayInsnNode        => line(i.desc, i.dims)
        case i: FieldInsnNode                 => line(i.owner, i.name, i.desc)
        case i: JumpInsnNode                  => Seq(s"${i.getOpcode} ${label(i.label)}")
        case i: LdcInsnNode                   => Seq(s"${i.getOpcode} ${i.cst.getClass} ${i.cst}")
        case i: TypeInsnNode                  => line(i.desc) ++ anonymous(owner, i)
        case i: MethodInsnNode                =>
          line(i.owner, i.name, i.desc, i.itf) ++ helper(owner, i.owner, i.name, i.desc)
        case i: InvokeDynamicInsnNode =>
          line(i.name, i.desc, i.bsm) ++ i.bsmArgs.toSeq.flatMap {
            case handle: Handle =>
              line(handle) ++ helper(owner, handle.getOwner, handle.getName, handle.getDesc)
            case other => line(other)
          }
        case i: TableSwitchInsnNode =>
          Seq(s"${i.getOpcode} ${i.min} ${i.max} ${(i.dflt +: i.labels.asScala).map(label)}")
        case i: LookupSwitchInsnNode =>
          Seq(s"${i.getOpcode} ${i.keys} ${(i.dflt +: i.labels.asScala).map(label)}")
        case _ => line()
      }
    }

    private def helper(owner: String, holder: String, name: String, desc: String): Seq[String] =
      if (holder != owner || !isNumbered(name)) Nil
      else
        node(owner).toSeq
          .flatMap(_.methods.asScala)
          .filter(method => method.name == name && method.desc == desc)
          .flatMap(method => once(s"$owner.$name$desc")(text(owner, method)))

    private def anonymous(owner: String, made: TypeInsnNode): Seq[String] =
      if (
        made.getOpcode != Opcodes.NEW || !made.desc.startsWith(s"${owner.stripSuffix("$")}$$$$anon")
      ) Nil
      else
        node(made.desc).toSeq.flatMap { found =>
          once(made.desc)(found.methods.asScala.toSeq.flatMap(text(made.desc, _)))
        }

    private def once(what: String)(text: => Seq[String]): Seq[String] =
      inside.get(what) match {
        case Some(number) => Seq(s"again $number")
        case None         =>
          inside(what) = inside.size
          "{" +: text :+ "}"
      }
  }

  private def isNumbered(name: String): Boolean = name.matches(".*\\$\\d+(\\$adapted)?")

  private def stable(text: String): String =
    text.replaceAll("\\$\\d+", "\\$n").replaceAll("liftedTree\\d+", "liftedTree")
}

object MethodText {

  /** A class file as a tree, without debug information. */
  def parsed(file: ClassFile): ClassNode = {
    val node = new ClassNode
    file.reader.accept(node, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES)
    node
  }
}
