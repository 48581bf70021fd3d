package org.icebergwritercompat.model

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node._

import java.lang.{Long => JLong}
import java.math.{BigDecimal => JBigDecimal}
import java.util.{HashMap => JHashMap}
import scala.collection.mutable
import scala.util.Using
import scala.util.control.NonFatal

/**
 * Receives the values of columns from one object of the statistics, such as `minValues`. Of several
 * values for a column, the last counts.
 */
abstract class ColumnValues {

  /** Forgets all values. */
  def clear(): Unit

  /**
   * Takes the value of a column.
   *
   * @param column
   *   its number in the list that the decoder was made with
   * @param value
   *   a scalar, or a missing node where the statistics have an array or object
   */
  def take(column: Int, value: JsonNode): Unit

  /** The same for a whole number. */
  def take(column: Int, number: Long): Unit = take(column, LongNode.valueOf(number))

  /** The same for a text. */
  def take(column: Int, text: String): Unit = take(column, TextNode.valueOf(text))
}

/** Receives the values in the statistics of one file. */
abstract class StatisticsValues {

  /** The values of one of [[FileStatistics.ByColumn]]. */
  def of(field: String): ColumnValues

  /** Takes `tightBounds`; they are tight if the statistics do not say so. */
  def takeTight(areTight: Boolean): Unit
}

/**
 * Decodes the statistics of files in one pass. It may be used by several threads.
 *
 * Text in the form of Delta's writers (no spaces, no escapes) is read directly. Any other text is
 * read with a parser from the beginning, with the same result.
 */
final class StatisticsDecoder private (root: StatisticsDecoder.Column) {

  import StatisticsDecoder._

  /**
   * What the rules use of the statistics; `None` if they are not a JSON object.
   *
   * @param json
   *   the statistics; null if there are none
   * @param values
   *   receives the values of the columns; meaningless if the answer is `None`
   */
  def decode(json: String, values: StatisticsValues = NoValues): Option[FileStatistics] =
    if (json == null) None
    else {
      val direct = new Decoded(values)
      if (new Compact(json, direct).read(root)) Some(direct.result) else parsed(json, values)
    }

  private def parsed(json: String, values: StatisticsValues): Option[FileStatistics] =
    try {
      val decoded = new Decoded(values)
      val isObject =
        Using.resource(factory.createParser(json))(new Parsed(_, decoded).read(root))
      Option.when(isObject)(decoded.result)
    } catch { case NonFatal(_) => None }
}

object StatisticsDecoder {

  /** Decodes statistics without looking at the names of columns. */
  val ofRowCounts: StatisticsDecoder = new StatisticsDecoder(new Column("", true, -1, Nil, false))

  /**
   * A decoder that finds the names which the table does not have.
   *
   * @param names
   *   the names of the table; `None` if they are not to be compared
   * @param wanted
   *   the columns whose values are passed on, each as a path of names
   */
  def apply(
      names: Option[PhysicalNameTree],
      wanted: Seq[Seq[String]] = Nil
  ): StatisticsDecoder = {
    def column(
        name: String,
        tree: Option[PhysicalNameTree],
        all: Seq[(Seq[String], Int)],
        isRoot: Boolean
    ): Column = {
      val (here, below) = all.partition(_._1.isEmpty)
      val of = below.groupBy(_._1.head)
      val fields = tree.fold(Map.empty[String, PhysicalNameTree])(_.fields)
      // In the order of the values that are wanted, which is that of the schema.
      val order = below.map(_._1.head).distinct
      val columns = (order ++ fields.keys.filterNot(of.contains)).map { name =>
        val within = of.getOrElse(name, Nil).map { case (path, number) => path.tail -> number }
        column(name, fields.get(name), within, isRoot = false)
      }
      val compares = if (isRoot) tree.isDefined else fields.nonEmpty
      new Column(name, tree.isDefined, here.headOption.fold(-1)(_._2), columns, compares)
    }
    new StatisticsDecoder(column("", names, wanted.zipWithIndex, isRoot = true))
  }

  private val factory = new JsonFactory

  /**
   * A column in the statistics, or the object that contains all of them.
   *
   * @param isKnown
   *   whether the table has the name
   * @param number
   *   the number of the column among those that are wanted, or -1
   * @param compares
   *   whether the names below are compared with those of the table
   */
  private final class Column(
      val name: String,
      val isKnown: Boolean,
      val number: Int,
      columns: Seq[Column],
      val compares: Boolean
  ) {

    /** The name with its quotes and the colon. */
    val key: String = "\"" + name + "\":"

    val isPlain: Boolean = name.forall(c => c >= ' ' && c != '"' && c != '\\')

    val below: Array[Column] = columns.toArray

    /** Whether nothing below it is of interest. */
    val isEnd: Boolean = below.isEmpty && !compares

    private val byName = new JHashMap[String, Column]

    // The place of the column among those of its struct.
    private var place = -1

    below.indices.foreach { i =>
      below(i).place = i
      byName.put(below(i).name, below(i))
    }

    /** The place of the column after it in its struct. */
    def nextPlace: Int = place + 1

    /** The column of a name below; null if there is none. */
    def find(name: String): Column = byName.get(name)
  }

  // What is below a name that the table does not have.
  private val nowhere = new Column("", false, -1, Nil, false)

  private object NoValues extends StatisticsValues {

    private object NoColumns extends ColumnValues {
      override def clear(): Unit = ()
      override def take(column: Int, value: JsonNode): Unit = ()
    }

    override def of(field: String): ColumnValues = NoColumns

    override def takeTight(areTight: Boolean): Unit = ()
  }

  private final class Decoded(val values: StatisticsValues) {

    /** Negative if there is none. */
    var rows: Long = -1

    private var unknown: mutable.Set[Vector[String]] = _

    FileStatistics.ByColumn.foreach(values.of(_).clear())
    values.takeTight(true)

    def addUnknown(path: List[String]): Unit = {
      if (unknown == null) unknown = mutable.HashSet.empty
      unknown += path.reverseIterator.toVector
      ()
    }

    def result: FileStatistics = FileStatistics(
      if (rows < 0) None else Some(rows),
      if (unknown == null) Set.empty else unknown.toSet
    )
  }

  /** Reads any JSON. */
  private final class Parsed(parser: JsonParser, decoded: Decoded) {

    /** Returns false if the JSON is not an object. */
    def read(root: Column): Boolean = {
      val isObject = parser.nextToken() == JsonToken.START_OBJECT
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        val field = parser.currentName
        val value = parser.nextToken()
        if (field == "numRecords")
          decoded.rows = if (value == JsonToken.VALUE_NUMBER_INT) parser.getLongValue else -1
        else if (field == "tightBounds")
          decoded.values.takeTight(scalar(value).asBoolean(true))
        else if (FileStatistics.ByColumn(field)) {
          val values = decoded.values.of(field)
          values.clear()
          if (value == JsonToken.START_OBJECT) columns(values, root, Nil)
        }
        parser.skipChildren()
      }
      isObject
    }

    // Moves the parser to the end of the current object.
    private def columns(values: ColumnValues, in: Column, path: List[String]): Unit =
      if (in.isEnd) { parser.skipChildren(); () }
      else
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          val name = parser.currentName
          val column = in.find(name)
          if (in.compares && (column == null || !column.isKnown)) decoded.addUnknown(name :: path)
          val value = parser.nextToken()
          if (column == null) parser.skipChildren()
          else {
            if (column.number >= 0) values.take(column.number, scalar(value))
            if (value == JsonToken.START_OBJECT) columns(values, column, name :: path)
            else parser.skipChildren()
          }
        }

    private def scalar(token: JsonToken): JsonNode = token match {
      case JsonToken.VALUE_STRING     => TextNode.valueOf(parser.getText)
      case JsonToken.VALUE_NUMBER_INT =>
        parser.getNumberType match {
          case JsonParser.NumberType.INT  => IntNode.valueOf(parser.getIntValue)
          case JsonParser.NumberType.LONG => LongNode.valueOf(parser.getLongValue)
          case _                          => BigIntegerNode.valueOf(parser.getBigIntegerValue)
        }
      case JsonToken.VALUE_NUMBER_FLOAT => DecimalNode.valueOf(parser.getDecimalValue)
      case JsonToken.VALUE_TRUE         => BooleanNode.TRUE
      case JsonToken.VALUE_FALSE        => BooleanNode.FALSE
      case _                            => MissingNode.getInstance
    }
  }

  /** Reads statistics in the form of Delta's writers. */
  private final class Compact(text: String, decoded: Decoded) {

    private var at = 0

    /** Returns false if the text has another form; the values found before are then void. */
    def read(root: Column): Boolean =
      is('{') && {
        var fits = true
        var more = true
        while (fits && more) {
          fits =
            if (is("\"numRecords\":")) readRows()
            else if (is("\"minValues\":")) readColumns("minValues", root)
            else if (is("\"maxValues\":")) readColumns("maxValues", root)
            else if (is("\"nullCount\":")) readColumns("nullCount", root)
            else is("\"tightBounds\":") && (readTight("true", true) || readTight("false", false))
          more = fits && is(',')
        }
        // Text after the object is ignored.
        fits && is('}')
      }

    private def readRows(): Boolean = {
      val isWhole = findNumber() && wholeNumber
      if (isWhole) decoded.rows = takeLong()
      isWhole
    }

    private def readTight(word: String, areTight: Boolean): Boolean = {
      val isThere = is(word)
      if (isThere) decoded.values.takeTight(areTight)
      isThere
    }

    private def readColumns(field: String, root: Column): Boolean = {
      val values = decoded.values.of(field)
      values.clear()
      is('{') && readBelow(values, root, Nil, 0)
    }

    private def readBelow(
        values: ColumnValues,
        in: Column,
        path: List[String],
        depth: Int
    ): Boolean = is('}') || depth < mostDepth && {
      // Writers keep the order of the columns, so the next one is the first guess.
      var next = 0
      var fits = true
      var more = true
      while (fits && more) {
        var column: Column = null
        if (next < in.below.length && in.below(next).isPlain && is(in.below(next).key)) {
          column = in.below(next)
          next += 1
          if (in.compares && !column.isKnown) decoded.addUnknown(column.name :: path)
        } else {
          val name = readName()
          fits = name != null
          if (fits) {
            column = in.find(name)
            if (column == null) column = nowhere
            else next = column.nextPlace
            if (in.compares && !column.isKnown) decoded.addUnknown(name :: path)
          }
        }
        fits = fits && readValue(values, column, path, depth)
        more = fits && is(',')
      }
      fits && is('}')
    }

    private def readValue(
        values: ColumnValues,
        column: Column,
        path: List[String],
        depth: Int
    ): Boolean =
      if (is('"')) {
        val end = stringEnd()
        val fits = end >= 0
        if (fits) {
          if (column.number >= 0) values.take(column.number, text.substring(at, end))
          at = end + 1
        }
        fits
      } else if (is('{')) {
        if (column.number >= 0) values.take(column.number, MissingNode.getInstance)
        readBelow(values, column, column.name :: path, depth + 1)
      } else if (!findNumber()) false
      else {
        if (column.number < 0) at = numberEnd
        else if (wholeNumber) values.take(column.number, takeLong())
        else {
          values.take(
            column.number,
            DecimalNode.valueOf(new JBigDecimal(text.substring(at, numberEnd)))
          )
          at = numberEnd
        }
        true
      }

    private def is(char: Char): Boolean = {
      val isThere = at < text.length && text.charAt(at) == char
      if (isThere) at += 1
      isThere
    }

    private def is(wanted: String): Boolean = {
      val isThere = text.startsWith(wanted, at)
      if (isThere) at += wanted.length
      isThere
    }

    // A name and its colon; null if it has escapes.
    private def readName(): String =
      if (!is('"')) null
      else {
        val begin = at
        val end = stringEnd()
        if (end < 0) null
        else {
          at = end + 1
          if (is(':')) text.substring(begin, end) else null
        }
      }

    private var numberEnd = 0

    // Whether the number that was found has no fraction.
    private var wholeNumber = false

    // Finds the end of a number that is in the range of long, or a fraction without exponent.
    private def findNumber(): Boolean = {
      val begin = if (at < text.length && text.charAt(at) == '-') at + 1 else at
      val whole = digitsEnd(begin)
      val digits = whole - begin
      wholeNumber = !(whole < text.length && text.charAt(whole) == '.')
      numberEnd = if (wholeNumber) whole else digitsEnd(whole + 1)
      digits > 0 && (digits == 1 || text.charAt(begin) != '0') &&
      (if (wholeNumber) isLong(begin, digits) else numberEnd > whole + 1) &&
      numberEnd < text.length && {
        val after = text.charAt(numberEnd)
        after == ',' || after == '}'
      }
    }

    private def digitsEnd(begin: Int): Int = {
      var end = begin
      while (end < text.length && { val char = text.charAt(end); char >= '0' && char <= '9' })
        end += 1
      end
    }

    // The minimal long is left to the parser.
    private def isLong(first: Int, digits: Int): Boolean =
      digits < greatestLong.length || digits == greatestLong.length &&
        text.substring(first, first + digits).compareTo(greatestLong) <= 0

    private def takeLong(): Long = {
      val value = JLong.parseLong(text, at, numberEnd, 10)
      at = numberEnd
      value
    }

    // The end of a string without escapes; -1 if it has escapes.
    private def stringEnd(): Int = {
      var end = at
      var char = ' '
      while (
        end < text.length && { char = text.charAt(end); char >= ' ' && char != '"' && char != '\\' }
      )
        end += 1
      if (end < text.length && char == '"') end else -1
    }
  }

  // Deeper statistics are left to the parser, which has a limit.
  private val mostDepth = 100

  private val greatestLong = Long.MaxValue.toString
}
