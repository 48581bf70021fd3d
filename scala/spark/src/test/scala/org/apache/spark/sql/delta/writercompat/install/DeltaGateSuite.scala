package org.apache.spark.sql.delta.writercompat.install

import org.apache.spark.sql.delta.writercompat.feature.{Fingerprints, JoinPoints, Watched}
import org.apache.xbean.asm9.{ClassReader, ClassWriter, Handle, Opcodes}
import org.apache.xbean.asm9.tree.{ClassNode, InvokeDynamicInsnNode, MethodInsnNode}
import org.icebergwritercompat.bytecode.{ClassFile, ClassFiles}
import org.icebergwritercompat.model.BuildInfo
import org.icebergwritercompat.testing.{LoggedTable, SharedSpark}
import org.scalatest.funsuite.AnyFunSuite

/** Which Delta a session is started with, and which not. */
class DeltaGateSuite extends AnyFunSuite {

  private val delta = "org/apache/spark/sql/delta"
  private val implementation = s"$delta/OptimisticTransactionImpl"
  private val index = DeltaIndex.load()

  private lazy val classes = DeltaReferences.inMainJar(ClassFiles.in(ChangedDelta.jar))

  private def changed(names: String*)(change: Array[Byte] => Array[Byte]): Seq[ClassFile] = {
    assert(names.forall(name => classes.exists(_.name == name)))
    classes.map(file =>
      if (names.contains(file.name)) file.copy(bytes = change(file.bytes)) else file
    )
  }

  private def renumber(bytes: Array[Byte]): Array[Byte] = {
    def other(name: String) =
      if (name.startsWith("$anonfun$")) name.replaceAll("\\$(\\d+)", "\\$9$1") else name
    val (node, writer) = (new ClassNode, new ClassWriter(0))
    new ClassReader(bytes).accept(node, ClassReader.SKIP_DEBUG)
    node.methods.forEach { method =>
      method.name = other(method.name)
      method.instructions.forEach {
        case call: MethodInsnNode if call.owner == node.name => call.name = other(call.name)
        case dynamic: InvokeDynamicInsnNode                  =>
          dynamic.bsmArgs = dynamic.bsmArgs.map {
            case h: Handle if h.getOwner == node.name =>
              new Handle(h.getTag, h.getOwner, other(h.getName), h.getDesc, h.isInterface)
            case argument => argument
          }
        case _ =>
      }
    }
    node.accept(writer)
    writer.toByteArray
  }

  private def moved(other: Seq[ClassFile]): Seq[String] = {
    val (before, after) = (new Fingerprints(classes), new Fingerprints(other))
    JoinPoints.all.filter(point => before.of(point) != after.of(point)).map(_.id)
  }

  test("the index has this Delta as it is") {
    assert(BuildInfo.testedDeltas.contains(io.delta.VERSION))
    assert(index.fingerprints.keySet == JoinPoints.all.map(_.id).toSet)
    val fingerprints = new Fingerprints(classes)
    JoinPoints.all.foreach { point =>
      val known = index.fingerprints(point.id)
      assert(known.keySet == BuildInfo.testedDeltas.toSet, point.id)
      assert(known(io.delta.VERSION) == fingerprints.of(point), point.id)
    }
  }

  test("the index has what this project calls, inherits, extends and catches") {
    val all = index.allReferences.map(_.toString)
    assert(all.size > 300)
    Seq(
      s"$delta/OptimisticTransactionImpl static-interface-method prepareCommit$$ ",
      s"$delta/OptimisticTransaction method readVersion ()J",
      s"$delta/DeltaConfigs$$ static-field MODULE$$ ",
      s"$delta/OptimisticTransaction",
      "io/delta/exceptions/ConcurrentWriteException"
    ).map(_.replace('/', '.')).foreach(start => assert(all.exists(_.startsWith(start)), start))
    assert(!all.exists(_.contains(".writercompat.")))
  }

  test("whatever a join point watches is there") {
    val fingerprints = new Fingerprints(classes)
    // The join point watches that these have no callers.
    val noCallers = Set[Watched](
      Watched.Callers("commands/VacuumCommandImpl", "getValidFilesFromSnapshot"),
      Watched.Callers("io/delta/exceptions/MetadataChangedException", "catch"),
      Watched.Callers("io/delta/exceptions/ProtocolChangedException", "catch")
    )
    for (point <- JoinPoints.all; watched <- point.watched) {
      val seen = fingerprints.seen(watched)
      assert(!seen.exists(_.endsWith(" is gone")), s"${point.id}: $seen")
      assert(seen.isEmpty == noCallers.contains(watched), s"${point.id}: $watched")
    }
  }

  test("line numbers and the numbers of lambdas make no difference") {
    val renumbered = changed(implementation, s"$delta/files/TransactionalWrite")(renumber)
    assert(renumbered.map(_.bytes.length) != classes.map(_.bytes.length))
    assert(moved(renumbered) == Nil)
  }

  test("what a lambda of a watched method does makes a difference") {
    val name = "$anonfun$runPostCommitHooks$2"
    val (_, change) = ChangedDelta.body(implementation, name)
    assert(moved(changed(implementation)(change(_).get)) == Seq("post-commit-hooks"))
  }

  test("another way to a transaction makes a difference") {
    val writer = new ClassWriter(ClassWriter.COMPUTE_MAXS)
    writer.visit(Opcodes.V17, 0, s"$delta/Elsewhere", null, "java/lang/Object", null)
    val code = writer.visitMethod(Opcodes.ACC_STATIC, "start", "()V", null, null)
    code.visitCode()
    code.visitTypeInsn(Opcodes.NEW, s"$delta/OptimisticTransaction")
    code.visitInsn(Opcodes.POP)
    code.visitInsn(Opcodes.RETURN)
    code.visitMaxs(0, 0)
    code.visitEnd()
    writer.visitEnd()
    val more = classes :+ ClassFile(s"$delta/Elsewhere", writer.toByteArray)
    assert(moved(more) == Seq("start-transaction"))
  }

  private def sessionOn(changes: ChangedDelta.Change*): (Seq[String], LoggedTable) = {
    val folder = SharedSpark.freshFolder()
    java.nio.file.Files.createDirectories(folder)
    val jar = ChangedDelta.write(folder.resolve("delta-spark_changed.jar"), changes: _*)
    val said = ChangedDelta.session(jar, folder)
    (said, new LoggedTable(folder.resolve("warehouse").resolve("t")))
  }

  private def refused(changes: ChangedDelta.Change*): Seq[String] = {
    val (said, _) = sessionOn(ChangedDelta.version("4.4.9") +: changes: _*)
    assert(said.contains("refused: ICEBERG_WRITER_COMPAT_NOT_INSTALLED.DELTA_VERSION"), said)
    assert(!said.exists(_.startsWith("rows:")))
    assert(said.exists(_.endsWith(s"Run: pip install 'delta-spark==${BuildInfo.delta}'")))
    said.filter(_.startsWith("  - ")).map(_.stripPrefix("  - "))
  }

  private def warnings(said: Seq[String]): Seq[String] =
    said.filter(_.contains("was not tested with Iceberg Writer Compat"))

  test("a session on a tested Delta starts without a word") {
    val (said, table) = sessionOn()
    assert(said.contains("rows: [7]"), said)
    assert(warnings(said) == Nil)
    assert(table.writerFeatures("icebergWriterCompatV1"))
  }

  test(
    "a Delta that was not tested, but is one that was, gives a guarded session and one warning"
  ) {
    val (said, table) = sessionOn(ChangedDelta.version("4.4.9"))
    assert(said.contains("rows: [7]"), said)
    assert(warnings(said).size == 1)
    assert(warnings(said).head.contains("Delta Lake 4.4.9"))
    assert(table.writerFeatures("icebergWriterCompatV1"))
  }

  test("a Delta with another body at a join point is refused by the id of that join point") {
    val differences = refused(ChangedDelta.body(implementation, "prepareCommit"))
    assert(
      differences == Seq(
        "join point prepare-commit: OptimisticTransactionImpl.prepareCommit; otherwise ordinary " +
          "commits would not be checked"
      )
    )
  }

  test("a Delta without a member or a class that is used is refused by their names") {
    val differences = refused(
      ChangedDelta.without(s"$delta/actions/AddFile", "size"),
      ChangedDelta.withoutClass("io/delta/exceptions/ConcurrentWriteException")
    )
    assert(
      differences == Seq(
        "missing: io.delta.exceptions.ConcurrentWriteException",
        "missing: org.apache.spark.sql.delta.actions.AddFile method size ()J"
      )
    )
  }
}
