package org.icebergwritercompat.contracts

import org.apache.spark.sql.types.StructType
import org.icebergwritercompat.bytecode.ClassFiles
import org.icebergwritercompat.contract.{ProtocolState, Rule}
import org.icebergwritercompat.rules.{CompliantTable, ProtocolRules}
import org.scalatest.funsuite.AnyFunSuite

class V1Suite extends AnyFunSuite {

  /** Every rule object there is in the package, whether or not it is listed. */
  private val objects: Seq[Rule] = ClassFiles
    .inLocationOf(classOf[Rule])
    .map(_.name.replace('/', '.'))
    .filter(name =>
      name.startsWith(ProtocolRules.getClass.getPackageName + ".") && name.endsWith("$")
    )
    .map(Class.forName(_))
    .filter(classOf[Rule].isAssignableFrom)
    .map(_.getField("MODULE$").get(null).asInstanceOf[Rule])

  // The requirements of the first slice, and that on files when the feature is switched on.
  private val required = Set("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8") ++
    Set("B1", "B2", "B3", "B4", "B5", "B6") ++ Set("C1", "C2", "C3", "C5", "C7") + "E1"

  test("there is a rule object for each requirement") {
    assert(required.diff(objects.map(_.id).toSet) == Set.empty)
  }

  test("no two rule objects have the same id") {
    assert(objects.map(_.id).sorted == objects.map(_.id).distinct.sorted)
  }

  test("every rule object is in the one list, once") {
    assert(V1.rules.all.map(_.id).sorted == objects.map(_.id).sorted)
    assert(V1.rules.all.forall(rule => objects.exists(_ eq rule)))
  }

  objects.foreach { rule =>
    test(s"${rule.id} says what must hold, and where that is written") {
      assert(rule.statement.endsWith("."))
      assert(rule.clauses.nonEmpty)
      assert(rule.clauses.forall(_.section.nonEmpty))
    }
  }

  CompliantTable.shapes.foreach { shape =>
    test(s"a compliant table with ${shape.name} breaks no rule") {
      assert(V1.rules.check(CompliantTable.of(shape.schema)).toSeq == Nil)
    }
  }

  test("a plain table breaks the rules in the order of the list") {
    val plain = CompliantTable
      .of("a INT")
      .copy(
        protocol = ProtocolState(1, 2, None, None),
        properties = Map.empty,
        schema = StructType.fromDDL("a SMALLINT, l ARRAY<INT>")
      )
    assert(
      V1.rules.check(plain).map(_.rule.id).toSeq ==
        Seq("B1", "B2", "B3", "C7", "C1", "C1", "C5", "B4", "A1", "A2", "A3", "A3", "A3")
    )
  }

  test("after the first violation the remaining rules are not evaluated") {
    // The property rules come first and need no schema; reading this schema fails.
    val trap = CompliantTable.of("a INT").copy(properties = Map.empty, schema = null)
    assert(V1.rules.check(trap).next().rule.id == "B1")
    intercept[NullPointerException](V1.rules.check(trap).toSeq)
  }
}
