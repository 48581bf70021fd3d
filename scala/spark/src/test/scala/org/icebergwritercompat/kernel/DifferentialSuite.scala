package org.icebergwritercompat.kernel

import org.icebergwritercompat.contracts.V1
import org.scalatest.funsuite.AnyFunSuite

/** What both checks say to a state. */
private[kernel] final case class CheckedState(state: State) {
  val kernel: KernelVerdict = KernelValidator.verdict(state.table)
  val broken: Seq[String] = V1.rules.check(state.table).map(_.rule.id).toSeq.distinct

  def differs: Boolean = kernel match {
    case KernelVerdict.Accepts    => broken.nonEmpty
    case KernelVerdict.Refuses(_) => broken.isEmpty
    case KernelVerdict.Mends(_)   => true
  }

  val classes: Seq[String] = Differences.all.filter(_.matches(state.table)).map(_.name)

  override def toString: String = {
    val of = kernel match {
      case KernelVerdict.Mends(_)     => "mends"
      case KernelVerdict.Refuses(why) => s"refuses ($why)"
      case KernelVerdict.Accepts      => "accepts"
    }
    s"${state.name}: Kernel $of, we find [${broken.mkString(", ")}], " +
      s"listed as [${classes.mkString(", ")}]"
  }
}

/** Kernel's check and ours, on the same versions of tables. */
class DifferentialSuite extends AnyFunSuite {

  private lazy val judged: Seq[CheckedState] = States.all(seed = 20261118L).map(CheckedState)

  private def none(found: Seq[CheckedState]): Unit =
    assert(found.isEmpty, found.take(40).mkString(s"\n${found.size} states:\n", "\n", "\n"))

  test("there are enough states, and each verdict has its share") {
    assert(judged.size >= 400)
    val byVerdicts =
      judged.groupMapReduce(j => (j.kernel.getClass.getSimpleName, j.broken.isEmpty))(_ => 1)(_ + _)
    byVerdicts.toSeq.sortBy(_._1).foreach { case ((kernel, accepted), count) =>
      info(
        f"$count%6d  Kernel ${kernel.stripSuffix("$").toLowerCase}, " +
          s"our rules ${if (accepted) "accept" else "refuse"}"
      )
    }
    assert(judged.count(j => j.kernel == KernelVerdict.Accepts && j.broken.isEmpty) >= 400)
    assert(judged.count(_.kernel.isInstanceOf[KernelVerdict.Refuses]) >= 400)
  }

  test("every state on which the checks differ is one of exactly one listed difference") {
    none(judged.filter(j => j.state.faults == 1 && j.differs && j.classes.size != 1))
  }

  test("no listed difference has a state on which the checks agree") {
    none(judged.filter(j => j.state.faults == 1 && !j.differs && j.classes.nonEmpty))
  }

  // Of two faults each may be a difference; and a fault that both see hides one that one sees.
  test("a state with two faults differs only if one of them is a listed difference") {
    none(judged.filter(j => j.state.faults > 1 && j.differs && j.classes.isEmpty))
  }

  Differences.all.foreach { difference =>
    test(s"this difference occurs: ${difference.name}") {
      val states = judged.filter(j => j.differs && j.classes.contains(difference.name))
      val kernel = states.map(_.kernel.getClass.getSimpleName.stripSuffix("$").toLowerCase).distinct
      val rules = states.filter(_.state.faults == 1).flatMap(_.broken).distinct.sorted
      info(
        f"${states.size}%6d states; Kernel ${kernel.mkString(" or ")}; " +
          s"our rules: ${if (rules.isEmpty) "accept" else rules.mkString(", ")}"
      )
      assert(states.nonEmpty)
    }
  }

  test("what Kernel fixes is then accepted by Kernel and by this project") {
    val mended = for {
      j <- judged if j.state.faults == 1
      instead <- Some(j.kernel).collect { case KernelVerdict.Mends(table) => table }
    } yield CheckedState(State(s"${j.state.name}, mended", instead, 1))
    assert(mended.nonEmpty)
    none(mended.filterNot(j => j.kernel == KernelVerdict.Accepts && j.broken.isEmpty))
  }
}
