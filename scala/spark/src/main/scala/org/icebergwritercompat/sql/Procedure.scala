package org.icebergwritercompat.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.procedures.{
  BoundProcedure,
  ProcedureParameter,
  UnboundProcedure
}
import org.apache.spark.sql.connector.read.{LocalScan, Scan}
import org.apache.spark.sql.types.StructType

import java.util.{Iterator => JIterator, List => JList}

/**
 * A procedure of SQL.
 *
 * @param what
 *   what it does, in one sentence
 * @param run
 *   does what is asked for at once, and has the result set
 */
private[sql] final class Procedure(
    override val name: String,
    what: String,
    val inputs: Seq[Parameter],
    run: (SparkSession, Arguments) => LocalScan
) extends UnboundProcedure {

  /** What it does, and its parameters, which Spark does not show by itself. */
  override val description: String = {
    val listed = inputs.map { one =>
      s"${one.name} ${one.dataType.sql}${one.default.fold("")(" = " + _)}"
    }
    s"$what Parameters: ${listed.mkString(", ")}"
  }

  override def bind(inputType: StructType): BoundProcedure = new Bound

  // Spark takes one that is both for bound before it has put the arguments in order.
  private final class Bound extends BoundProcedure {

    override def name: String = Procedure.this.name

    override def description: String = Procedure.this.description

    override def parameters: Array[ProcedureParameter] = inputs.map(_.declared).toArray

    override def isDeterministic: Boolean = false

    override def call(input: InternalRow): JIterator[Scan] =
      JList.of[Scan](run(SparkSession.active, new Arguments(inputs, input))).iterator
  }
}
