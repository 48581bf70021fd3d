package org.icebergwritercompat.sql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.{
  ArrayType,
  BooleanType,
  DataType,
  IntegerType,
  LongType,
  StringType
}
import org.icebergwritercompat.errors.IcebergWriterCompatException.wrongOption

/**
 * A parameter of a procedure.
 *
 * @param default
 *   its value as an expression of SQL; `None` if a call has to name it
 * @param comment
 *   what it is, in one line
 */
private[sql] final case class Parameter(
    name: String,
    dataType: DataType,
    default: Option[String],
    comment: String
) {

  /** The same for Spark. */
  def declared: ProcedureParameter = {
    val builder = ProcedureParameter.in(name, dataType).comment(comment)
    default.fold(builder)(builder.defaultValue).build()
  }
}

private[sql] object Parameter {

  def needed(name: String, comment: String): Parameter =
    Parameter(name, StringType, None, comment)

  def text(name: String, comment: String, default: String = "NULL"): Parameter =
    Parameter(name, StringType, Some(default), comment)

  def texts(name: String, comment: String): Parameter =
    Parameter(name, ArrayType(StringType), Some("NULL"), comment)

  def flag(name: String, comment: String): Parameter =
    Parameter(name, BooleanType, Some("false"), comment)

  def number(name: String, comment: String): Parameter =
    Parameter(name, LongType, Some("NULL"), comment)

  def count(name: String, comment: String, default: Int): Parameter =
    Parameter(name, IntegerType, Some(default.toString), comment)
}

/** The arguments of a call; one that is null is as good as none. */
private[sql] final class Arguments(parameters: Seq[Parameter], values: InternalRow) {

  private def at[T](name: String)(value: Int => T): Option[T] = {
    val index = parameters.indexWhere(_.name == name)
    require(index >= 0, s"there is no parameter $name")
    Option.unless(values.isNullAt(index))(value(index))
  }

  /** A text, if there is one. */
  def text(name: String): Option[String] = at(name)(values.getUTF8String(_).toString)

  /** A text that has to be there. */
  def needed(name: String, what: String): String =
    text(name).getOrElse(throw wrongOption(name, "NULL", Seq(what)))

  /** The table that the call is about. */
  def table: String = needed("table", "the name or path of a table")

  /** Several texts. */
  def texts(name: String): Seq[String] = at(name)(values.getArray).toSeq.flatMap { array =>
    array.toObjectArray(StringType).toSeq.map(String.valueOf)
  }

  /** Whether something is asked for. */
  def flag(name: String): Boolean = at(name)(values.getBoolean).contains(true)

  /** A number that is not less than `least`, if there is one. */
  def number(name: String, least: Long): Option[Long] =
    at(name)(values.getLong).map(inRange(name, _, least))

  /** A small number that is not less than one; its default if there is none. */
  def count(name: String): Int =
    at(name)(values.getInt).fold(parameters.find(_.name == name).flatMap(_.default).get.toInt) {
      number => inRange(name, number.toLong, 1).toInt
    }

  private def inRange(name: String, number: Long, least: Long): Long =
    if (number >= least) number
    else throw wrongOption(name, number.toString, Seq(s"a number from $least"))
}
