package org.icebergwritercompat.testing

import org.icebergwritercompat.contract.Contract
import org.icebergwritercompat.contracts.Contracts

/** Has the guard keep another contract in this JVM, as a line in `Contracts` would. */
object SecondContract {
  def add(contract: Contract): Unit = if (!Contracts.all.contains(contract)) Contracts.add(contract)
}
