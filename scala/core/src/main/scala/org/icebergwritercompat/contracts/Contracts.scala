package org.icebergwritercompat.contracts

import org.icebergwritercompat.contract.Contract

/** The contracts that the guard enforces. */
object Contracts {

  @volatile private var known: Vector[Contract] = Vector(V1.contract)

  /** All contracts, the one for new tables first. */
  def all: Seq[Contract] = known

  /** The contract for tables that have none yet. */
  def default: Contract = known.head

  /** The contract of a table with these properties. */
  def of(properties: Map[String, String]): Option[Contract] = known.find(_.isEnabled(properties))

  /** Whether a table with these properties has a contract. */
  def isEnabled(properties: Map[String, String]): Boolean = of(properties).isDefined

  /** Adds a contract, which is enforced from now on. */
  def add(contract: Contract): Unit = synchronized {
    require(
      !known.exists(other =>
        other.feature == contract.feature || other.property == contract.property
      ),
      s"A contract with the feature ${contract.feature} or the property ${contract.property} " +
        "exists."
    )
    known = known :+ contract
  }
}
