package org.icebergwritercompat.sql

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.connector.read.LocalScan
import org.apache.spark.sql.types.{DataType, StructField, StructType}

import scala.annotation.tailrec

/**
 * The columns of a result set of SQL.
 *
 * @param columns
 *   each with its value in a row; `None` is null
 * @tparam A
 *   what a row is made of
 */
private[sql] final class ResultSet[A](private val columns: Seq[(StructField, A => Any)]) {

  /** The names and types of the columns. */
  val schema: StructType = StructType(columns.map(_._1))

  /** The same columns and then one more. */
  def and(name: String, dataType: DataType)(value: A => Any): ResultSet[A] =
    new ResultSet(columns :+ (StructField(name, dataType) -> value))

  /** The same columns and then those of another result set. */
  def and(others: ResultSet[A]): ResultSet[A] = new ResultSet(columns ++ others.columns)

  /** The same columns and then those of a part, which are null where it is missing. */
  def andIf[B](part: A => Option[B], others: ResultSet[B]): ResultSet[A] =
    new ResultSet(columns ++ others.columns.map { case (field, value) =>
      field -> ((one: A) => part(one).map(value))
    })

  /** One row, as Spark shows it to programs. */
  def row(of: A): Row = Row.fromSeq(columns.map { case (_, value) =>
    ResultSet.plain(value(of))
  })

  /** A scan with one row for each of `all`, which is not evaluated before the scan is read. */
  def scan(name: String)(all: => Seq[A]): LocalScan = {
    lazy val made = all
    val convert = CatalystTypeConverters.createToCatalystConverter(schema)
    val shape = schema
    new LocalScan {
      override def readSchema: StructType = shape
      override def rows: Array[InternalRow] =
        made.map(one => convert(row(one)).asInstanceOf[InternalRow]).toArray
      override def description: String = name
    }
  }
}

private[sql] object ResultSet {

  @tailrec
  private def plain(value: Any): Any = value match {
    case Some(inner) => plain(inner)
    case None        => null
    case other       => other
  }

  /** A result set without columns, to which they are added. */
  def rowsOf[A]: ResultSet[A] = new ResultSet[A](Nil)
}
