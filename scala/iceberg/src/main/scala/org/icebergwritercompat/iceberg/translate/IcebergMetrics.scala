package org.icebergwritercompat.iceberg.translate

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node._
import org.apache.iceberg.types.Type.TypeID
import org.apache.iceberg.types.Types.{DecimalType, NestedField, TimestampType}
import org.apache.iceberg.types.{Conversions, Type}
import org.apache.iceberg.util.UnicodeUtil
import org.apache.iceberg.{Metrics, PartitionSpec, Schema, StructLike}
import org.apache.spark.sql.catalyst.util.SparkDateTimeUtils
import org.apache.spark.unsafe.types.UTF8String
import org.icebergwritercompat.model.{
  FileStatistics,
  PartitionValue,
  PhysicalNameTree,
  WriterCompat
}

import java.lang.{Integer => JInteger, Long => JLong}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.ZoneOffset
import java.util.{HashMap => JHashMap}
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

/**
 * Iceberg's metrics of files, from Delta's statistics and partition values.
 *
 * A bound may be wider than the values of a column, but never narrower, whichever writer wrote the
 * statistics; unknown values are omitted. Fields in lists and maps have no metrics.
 *
 * @param names
 *   the physical names of the table, if a caller asks for [[FileMeasures.plain]]
 */
final class IcebergMetrics(
    schema: Schema,
    spec: PartitionSpec,
    names: PhysicalNameTree = PhysicalNameTree(Map.empty)
) {

  import IcebergMetrics._

  private val leaves: Array[Leaf] = {
    val found = mutable.ArrayBuffer.empty[NestedField]
    def visit(fields: Iterable[NestedField]): Unit = fields.foreach { field =>
      if (field.`type`.isStructType) visit(field.`type`.asStructType.fields.asScala)
      else if (field.`type`.isPrimitiveType) found += field
    }
    visit(schema.columns.asScala)
    found
      .sortBy(_.fieldId)
      .zipWithIndex
      .map { case (field, i) =>
        new Leaf(field.fieldId, i, field.`type`)
      }
      .toArray
  }

  private val ids: Array[JInteger] = leaves.map(_.id)

  private val byId: Map[Int, Leaf] = leaves.map(leaf => leaf.id.intValue -> leaf).toMap

  // The keys are physical names, which the feature derives from the ids.
  private val byName = new JHashMap[String, Leaf]

  leaves.foreach(leaf => byName.put(WriterCompat.physicalName(leaf.id.longValue), leaf))

  private val leavesById: Array[Leaf] = {
    val few = leaves.filter(_.id < mostById)
    val all = new Array[Leaf](few.lastOption.fold(0)(_.id + 1))
    few.foreach(leaf => all(leaf.id) = leaf)
    all
  }

  // The id of the struct that a name is in, 0 for the table itself, -1 for a name that is not there.
  private val parentsById: Array[Int] = {
    val parents = mutable.HashMap.empty[Int, Int]
    def visit(tree: PhysicalNameTree, parent: Int): Unit = tree.fields.foreach {
      case (named(id), below) if id.toInt < mostById =>
        parents(id.toInt) = parent
        visit(below, id.toInt)
      case _ =>
    }
    visit(names, 0)
    Array.tabulate(parents.keys.maxOption.fold(0)(_ + 1))(parents.getOrElse(_, -1))
  }

  private val partitionLeaves: Array[Leaf] =
    spec.fields.asScala.map(field => byId.getOrElse(field.sourceId, null)).toArray

  /** The metrics of a file; `None` if the statistics have no row count. */
  def of(statistics: String, partition: StructLike): Option[Metrics] =
    read(statistics).flatMap(_.metrics(partition))

  /** Reads the statistics of a file in one pass; `None` if they are no JSON. */
  def read(statistics: String): Option[FileMeasures] =
    Option(statistics).flatMap(text => quickly(text).orElse(thoroughly(text)))

  private def quickly(text: String): Option[Found] = {
    val found = new Found
    Option.when(new PlainStatistics(text, found).read())(found)
  }

  private def thoroughly(text: String): Option[Found] = {
    val found = new Found
    Try(Using.resource(factory.createParser(text))(new Reading(_, found).all())).toOption
      .map(_ => found)
  }

  private def metrics(read: Found, partition: StructLike): Metrics = {
    val rows = read.rows
    val boxed = JLong.valueOf(rows)
    val nulls = read.nulls.entries
    // If bounds are not tight, all remaining values of the column may be null.
    if (!read.tight) {
      read.lower.entries.clear()
      read.upper.entries.clear()
    }
    var i = 0
    while (i < leaves.length) {
      val count = nulls.at(i)
      if (count != null) {
        val number = count.longValue
        val isSure = number == rows || number == 0 || (read.tight && number > 0 && number < rows)
        if (!isSure) nulls.set(i, null)
      }
      i += 1
    }
    var field = 0
    while (field < partitionLeaves.length) {
      val leaf = partitionLeaves(field)
      if (leaf != null) {
        val value = partition.get(field, classOf[Any])
        nulls.set(leaf.position, if (value == null) boxed else noNulls)
        partitionBounds(value).foreach { case (least, greatest) =>
          read.lower.entries.set(leaf.position, leaf.encode(least))
          read.upper.entries.set(leaf.position, leaf.encode(greatest))
        }
      }
      field += 1
    }
    new Metrics(rows, null, counts(boxed), nulls, null, read.lower.entries, read.upper.entries)
  }

  private def counts(rows: JLong): LeafMap[JLong] = {
    val counts = new LeafMap[JLong](ids)
    counts.fill(rows)
    counts
  }

  /** The values found in one pass over the statistics of a file; of duplicate keys the last. */
  private final class Found extends FileMeasures {

    var rows: Long = -1
    var tight = true
    var allNamesKnown = true
    var isRowCountPlain = true
    val nulls = new NullCounts
    val lower = new LowerBounds
    val upper = new UpperBounds

    override def plain: Option[FileStatistics] =
      Option.when(allNamesKnown && isRowCountPlain && rows >= 0)(
        FileStatistics(Some(rows), Set.empty)
      )

    override def metrics(partition: StructLike): Option[Metrics] =
      Option.when(rows >= 0)(IcebergMetrics.this.metrics(this, partition))
  }

  /** What is found of columns in one of the objects of the statistics. */
  private abstract class ByColumn[V <: AnyRef] {

    val entries = new LeafMap[V](ids)

    /** Null for a value that tells nothing. */
    protected def read(value: JsonNode, leaf: Leaf): V

    def see(leaf: Leaf, value: JsonNode): Unit = entries.set(leaf.position, read(value, leaf))

    def see(leaf: Leaf, number: Long): Unit = see(leaf, LongNode.valueOf(number))

    def see(leaf: Leaf, text: String): Unit = see(leaf, TextNode.valueOf(text))
  }

  private final class NullCounts extends ByColumn[JLong] {

    override protected def read(value: JsonNode, leaf: Leaf): JLong =
      if (value.isIntegralNumber) value.longValue else null

    override def see(leaf: Leaf, number: Long): Unit = entries.set(leaf.position, number)
  }

  private abstract class Bounds extends ByColumn[ByteBuffer] {

    // A number is its own bound on either side.
    final override def see(leaf: Leaf, number: Long): Unit =
      if (leaf.isLong) entries.set(leaf.position, long(number))
      else super.see(leaf, number)

    // So is a text that is too short to have been cut.
    final override def see(leaf: Leaf, text: String): Unit =
      if (leaf.isString && text.length < stringPrefix) entries.set(leaf.position, leaf.encode(text))
      else super.see(leaf, text)

    private def long(number: Long): ByteBuffer =
      ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, number)
  }

  private final class LowerBounds extends Bounds {
    override protected def read(value: JsonNode, leaf: Leaf): ByteBuffer =
      lowerBound(value, leaf.dataType).map(leaf.encode).orNull
  }

  private final class UpperBounds extends Bounds {
    override protected def read(value: JsonNode, leaf: Leaf): ByteBuffer =
      upperBound(value, leaf.dataType).map(leaf.encode).orNull
  }

  /**
   * Reads statistics in the form of Delta's writers: whole numbers, strings without escapes, and no
   * spaces. Other statistics are read by a parser from the beginning.
   */
  private final class PlainStatistics(text: String, found: Found) {

    private var at = 0

    /** Returns false if the text has another form; values found before are discarded. */
    def read(): Boolean =
      if (!is('{')) false
      else {
        var plain = true
        var more = true
        while (plain && more) {
          plain = if (name("numRecords")) {
            val known = isNumber
            if (known) found.rows = number()
            known
          } else if (name("minValues")) columns(found.lower)
          else if (name("maxValues")) columns(found.upper)
          else if (name("nullCount")) columns(found.nulls)
          else name("tightBounds") && (is("true", tight = true) || is("false", tight = false))
          more = plain && is(',')
        }
        // Text after the object is ignored.
        plain && is('}')
      }

    private def columns(all: ByColumn[_]): Boolean = {
      all.entries.clear()
      is('{') && below(all, 0)
    }

    private def below(all: ByColumn[_], parent: Int): Boolean = is('}') || {
      var plain = true
      var more = true
      while (plain && more) {
        plain = column(all, parent)
        more = plain && is(',')
      }
      plain && is('}')
    }

    private def column(all: ByColumn[_], parent: Int): Boolean =
      if (!text.startsWith(quotedPrefix, at)) false
      else {
        at += quotedPrefix.length
        val begin = at
        while (digit) at += 1
        if (at == begin || at - begin > 9 || text.charAt(begin) == '0' || !is('"') || !is(':'))
          false
        else {
          val id = JInteger.parseInt(text, begin, at - 2, 10)
          val leaf = if (id < leavesById.length) leavesById(id) else byId.getOrElse(id, null)
          if (id >= parentsById.length || parentsById(id) != parent) found.allNamesKnown = false
          if (isNumber) {
            val value = number()
            if (leaf != null) all.see(leaf, value)
            true
          } else if (is('"')) {
            val end = stringEnd()
            if (end < 0) false
            else {
              if (leaf != null) all.see(leaf, text.substring(at, end))
              at = end + 1
              true
            }
          } else is('{') && below(all, id)
        }
      }

    private def is(char: Char): Boolean = {
      val there = at < text.length && text.charAt(at) == char
      if (there) at += 1
      there
    }

    private def is(value: String, tight: Boolean): Boolean = {
      val there = text.startsWith(value, at)
      if (there) {
        at += value.length
        found.tight = tight
      }
      there
    }

    private def digit: Boolean = at < text.length && {
      val char = text.charAt(at)
      char >= '0' && char <= '9'
    }

    private def name(wanted: String): Boolean = {
      val there = at < text.length && text.charAt(at) == '"' && text.startsWith(wanted, at + 1) &&
        text.startsWith("\":", at + 1 + wanted.length)
      if (there) at += wanted.length + 3
      there
    }

    // A whole number in the range of long, at its end.
    private def isNumber: Boolean = {
      val begin = at
      if (at < text.length && text.charAt(at) == '-') at += 1
      val first = at
      while (digit) at += 1
      val end = at
      at = begin
      val digits = end - first
      val plain = digits > 0 && isLong(first, digits) &&
        (digits == 1 || text.charAt(first) != '0') && end < text.length && (text.charAt(
          end
        ) == ',' || text.charAt(end) == '}')
      if (plain) numberEnd = end
      plain
    }

    // The minimal long is left to the parser.
    private def isLong(first: Int, digits: Int): Boolean =
      digits < greatest.length || digits == greatest.length && {
        var i = 0
        while (i < digits && text.charAt(first + i) == greatest.charAt(i)) i += 1
        i == digits || text.charAt(first + i) < greatest.charAt(i)
      }

    private var numberEnd = 0

    private def number(): Long = {
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

  /** Reads all statistics that are valid JSON. */
  private final class Reading(parser: JsonParser, found: Found) {

    def all(): Unit =
      if (parser.nextToken() == JsonToken.START_OBJECT)
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          val field = parser.currentName
          val value = parser.nextToken()
          field match {
            case "numRecords" =>
              found.rows =
                if (value == JsonToken.VALUE_NUMBER_INT) parser.getNumberValue.longValue else -1
              if (
                value == JsonToken.VALUE_NUMBER_INT &&
                parser.getNumberType == JsonParser.NumberType.BIG_INTEGER
              ) found.isRowCountPlain = false
              parser.skipChildren()
            case "tightBounds" => found.tight = scalar(value).asBoolean(true)
            case "nullCount"   => columns(value, found.nulls)
            case "minValues"   => columns(value, found.lower)
            case "maxValues"   => columns(value, found.upper)
            case _             => parser.skipChildren()
          }
        }

    private def columns(value: JsonToken, all: ByColumn[_]): Unit = {
      all.entries.clear()
      if (value == JsonToken.START_OBJECT) below(all, Some(names)) else parser.skipChildren()
    }

    // Moves the parser to the end of the current object. Below a column without fields, and below a
    // name that is not there, no names are looked up, as in `FileStatistics.parse`.
    private def below(all: ByColumn[_], tree: Option[PhysicalNameTree]): Unit =
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        val leaf = byName.get(parser.currentName)
        val subtree = tree.flatMap(_.fields.get(parser.currentName))
        if (tree.isDefined && subtree.isEmpty) found.allNamesKnown = false
        val value = parser.nextToken()
        if (value == JsonToken.START_OBJECT) below(all, subtree.filter(_.fields.nonEmpty))
        else if (leaf == null) parser.skipChildren()
        else all.see(leaf, scalar(value))
      }

    // An object or array is ignored.
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
      case _                            =>
        parser.skipChildren()
        MissingNode.getInstance
    }
  }
}

/** What the statistics of a file tell. */
trait FileMeasures {

  /**
   * What the rules ask of the statistics; `None` where that was not found out on the way, and
   * `FileStatistics.parse` has to.
   */
  def plain: Option[FileStatistics]

  /** The metrics of the file in a partition; `None` if its number of rows is not told. */
  def metrics(partition: StructLike): Option[Metrics]
}

object IcebergMetrics {

  private val factory = new JsonFactory

  // The quote and the constant part of a physical name, such as `"col-5"`.
  private val quotedPrefix = "\"" + WriterCompat.PhysicalNamePrefix

  private val mostById = 10000

  private val named = s"${WriterCompat.PhysicalNamePrefix}([1-9]\\d{0,8})".r

  private val noNulls: JLong = 0L

  private val greatest = Long.MaxValue.toString

  /** A column that has metrics. */
  private final class Leaf(fieldId: Int, val position: Int, val dataType: Type) {

    val id: JInteger = fieldId

    val isLong: Boolean = dataType.typeId == TypeID.LONG

    val isString: Boolean = dataType.typeId == TypeID.STRING

    def encode(bound: Any): ByteBuffer = bound match {
      // As Iceberg does, but without a buffer of characters.
      case text: String if isString && !text.exists(Character.isSurrogate) =>
        ByteBuffer.wrap(text.getBytes(UTF_8))
      case other => Conversions.toByteBuffer(dataType, other)
    }
  }

  /**
   * The columns in structs whose bounds may not be values of the table, so that the result of `min`
   * or `max` must not be taken from the bounds.
   */
  def looselyBounded(schema: Schema): Seq[String] = {
    def visit(fields: Iterable[NestedField], prefix: String): Seq[String] =
      fields.toSeq.flatMap { field =>
        val name = prefix + field.name
        field.`type`.typeId match {
          case TypeID.STRUCT => visit(field.`type`.asStructType.fields.asScala, s"$name.")
          case TypeID.TIMESTAMP | TypeID.FLOAT | TypeID.DOUBLE => Seq(name)
          case _                                               => Nil
        }
      }
    visit(schema.columns.asScala, "")
  }

  private def partitionBounds(value: Any): Option[(Any, Any)] = value match {
    case null           => None
    case number: Float  => floating(number).map(n => (below(n), above(n)))
    case number: Double => floating(number).map(n => (below(n), above(n)))
    case text: CharSequence if text.length >= stringPrefix => None
    case other                                             => Some((other, other))
  }

  /** A lower bound of the column. */
  private[iceberg] def lowerBound(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.FLOAT     => floatOf(value).map(below)
    case TypeID.DOUBLE    => doublesOf(value).map(numbers => below(numbers.min))
    case TypeID.TIMESTAMP => micros(value, leaf).map(time => minus(time, blur(value, time)))
    case _                => exact(value, leaf)
  }

  /** An upper bound of the column. */
  private[iceberg] def upperBound(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.FLOAT     => floatOf(value).map(above)
    case TypeID.DOUBLE    => doublesOf(value).map(numbers => above(numbers.max))
    case TypeID.TIMESTAMP =>
      // Statistics are truncated to milliseconds.
      micros(value, leaf).map(time => plus(time, blur(value, time) + microsPerMilli))
    case TypeID.STRING => text(value).flatMap(upperString)
    case _             => exact(value, leaf)
  }

  private def exact(value: JsonNode, leaf: Type): Option[Any] = leaf.typeId match {
    case TypeID.BOOLEAN => Option.when(value.isBoolean)(value.booleanValue)
    case TypeID.INTEGER => Option.when(value.canConvertToInt && whole(value))(value.intValue)
    case TypeID.LONG    => Option.when(value.canConvertToLong && whole(value))(value.longValue)
    case TypeID.DECIMAL =>
      val decimal = leaf.asInstanceOf[DecimalType]
      Option
        .when(value.isNumber)(value.decimalValue)
        .flatMap(number => Try(number.setScale(decimal.scale)).toOption)
        .filter(_.precision <= decimal.precision)
    case TypeID.STRING => text(value)
    case TypeID.DATE   =>
      text(value).flatMap(day => SparkDateTimeUtils.stringToDate(UTF8String.fromString(day)))
    case _ => None
  }

  private def whole(value: JsonNode): Boolean = value.isIntegralNumber

  private def text(value: JsonNode): Option[String] = Option.when(value.isTextual)(value.textValue)

  // Delta's writers truncate strings to this length. Spark's then appends a greater character, and
  // may use a longer prefix to find one; others may only truncate.
  private val stringPrefix = 32

  private def upperString(text: String): Option[String] =
    if (text.length < stringPrefix) Some(text)
    else {
      val cut = if (Character.isHighSurrogate(text.charAt(stringPrefix - 1))) 1 else 0
      val kept = text.codePointCount(0, stringPrefix - cut)
      // Only longer values are truncated, to a prefix that is then incremented.
      Option(UnicodeUtil.truncateStringMax(text + "x", kept))
    }

  // NaN is not a bound.
  private def floating(number: Float): Option[Float] = Option.unless(number.isNaN)(number)

  private def floating(number: Double): Option[Double] = Option.unless(number.isNaN)(number)

  private def floatOf(value: JsonNode): Option[Float] =
    numberText(value).flatMap(_.toFloatOption).flatMap(floating)

  // A file from before a column became a double has floats in their own shortest form, which is
  // another number as a double.
  private def doublesOf(value: JsonNode): Option[Seq[Double]] =
    numberText(value)
      .flatMap(text => text.toDoubleOption.zip(text.toFloatOption))
      .map { case (double, float) => Seq(double, float.toDouble) }
      .filterNot(_.exists(_.isNaN))

  private def numberText(value: JsonNode): Option[String] =
    Option.when(value.isNumber || value.isTextual)(value.asText)

  // The two zeros are equal in queries, but not in Iceberg.
  private def below(number: Float): Float = if (number == 0) -0.0f else number

  private def below(number: Double): Double = if (number == 0) -0.0d else number

  private def above(number: Float): Float = number + 0.0f

  private def above(number: Double): Double = number + 0.0d

  private val microsPerMilli = 1000L

  private def micros(value: JsonNode, leaf: Type): Option[Long] =
    text(value).map(UTF8String.fromString).flatMap { time =>
      if (leaf.asInstanceOf[TimestampType].shouldAdjustToUTC) PartitionValue.instant(time)
      else SparkDateTimeUtils.stringToTimestampWithoutTimeZone(time, allowTimeZone = true)
    }

  // Older offsets of time zones have seconds, which the text omits.
  private def blur(value: JsonNode, micros: Long): Long =
    if (micros < lastSeconds && !value.textValue.endsWith("Z")) microsPerMinute else 0

  private val microsPerMinute = 60L * 1000 * 1000

  private val lastSeconds =
    java.time.LocalDate.of(1972, 2, 1).atStartOfDay(ZoneOffset.UTC).toEpochSecond * 1000 * 1000

  private def plus(a: Long, b: Long): Long = Try(Math.addExact(a, b)).getOrElse(Long.MaxValue)

  private def minus(a: Long, b: Long): Long = Try(Math.subtractExact(a, b)).getOrElse(Long.MinValue)
}
