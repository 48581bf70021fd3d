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

  /**
   * The contract that a table with these properties and features has, or is most likely to get: one
   * whose feature it supports already, otherwise the default.
   */
  def ofOrFor(properties: Map[String, String], features: Set[String]): Contract =
    of(properties)
      .orElse(known.find(contract => features(contract.feature)))
      .getOrElse(default)

  /** Whether a table with these properties has a contract. */
  def isEnabled(properties: Map[String, String]): Boolean = of(properties).isDefined

  /** The contract of this name: that of its feature. */
  def named(feature: String): Option[Contract] = known.find(_.feature.equalsIgnoreCase(feature))

  // A contract is a value in the list above. A test adds one while it runs.
  private[icebergwritercompat] def add(contract: Contract): Unit = synchronized {
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
