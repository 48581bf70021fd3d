package org.icebergwritercompat.docs

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.parquet.schema.MessageTypeParser
import org.apache.spark.sql.types.{DataType, StructType}
import org.icebergwritercompat.contract.{
  ChangeKind,
  ChangeRule,
  FileFormat,
  FooterRule,
  ProtocolState,
  Rule,
  TableChange,
  TableState,
  Violation
}
import org.icebergwritercompat.contracts.V1
import org.icebergwritercompat.errors.IcebergWriterCompatException
import org.icebergwritercompat.model.{
  Condition,
  DataAction,
  DataFile,
  FileStatistics,
  Location,
  SchemaNode
}
import org.icebergwritercompat.model.DataAction._
import org.icebergwritercompat.remedy.Remedy
import org.icebergwritercompat.rules.{CompliantTable, DataFiles}
import org.icebergwritercompat.rules.DataFiles.Changed

import scala.jdk.CollectionConverters._

/** One rule at work: something that it accepts, and something that it refuses. */
sealed trait RuleExample {
  def rule: Rule

  /** The language that the example is written in, as Markdown calls it. */
  def language: String

  /** What there is before, for both. */
  def setUp: Seq[String]

  /** The language of that. */
  def setUpLanguage: String = language

  /** What the rule accepts. */
  def passes: Seq[String]

  /** What the rule refuses. */
  def fails: Seq[String]

  /** The sub-condition of the refusal. */
  def condition: String

  /** What the refusal says, besides its condition and the sentence that is the same for all. */
  def says: String
}

/**
 * Statements a user types; the last of those that pass or fail is the one that is judged.
 *
 * The texts of conditions are where the product has them, and not repeated here.
 *
 * @param parameters
 *   what the text of the condition is filled with, besides the table and the rule
 * @param fix
 *   the statement that mends it
 * @param also
 *   which other rules the statement breaks
 */
final case class SqlExample(
    rule: Rule,
    setUp: Seq[String],
    passes: Seq[String],
    fails: Seq[String],
    condition: String,
    parameters: Map[String, String],
    fix: String,
    also: Seq[Violation] = Nil
) extends RuleExample {
  override val language = "sql"

  /** The same example, of a statement that breaks this rule, too. */
  def and(rule: String, condition: Condition)(parameters: (String, String)*): SqlExample = {
    val other =
      Violation(V1.rules(rule), condition, Location.Protocol, Remedy.Nothing, parameters.toMap)
    copy(also = also :+ other)
  }

  override def says: String = {
    val table = LogLines.compliant
    val refusal = new IcebergWriterCompatException(
      s"${IcebergWriterCompatException.Violation}.$condition",
      parameters ++ Map("table" -> table.name, "rule" -> rule.id),
      null,
      Remedy.RunAgain(fix),
      also.map { other =>
        s"rule ${other.rule.id}: ${IcebergWriterCompatException.explanation(table, other)}"
      }
    )
    RuleExample.particulars(refusal.getMessage)
  }
}

/**
 * Lines of a log, for what no statement can do.
 *
 * What a line leaves out is as in a table that keeps all rules; the schema and other JSON that the
 * log has as text is written as what it stands for.
 */
final case class LogExample(rule: Rule, setUp: Seq[String], passes: Seq[String], fails: Seq[String])
    extends RuleExample {

  override val language = "json"

  /** What the rules find in the lines that pass. */
  def foundInPassing: Seq[Violation] = judged(passes)._2

  /** What they find in those that fail. */
  def foundInFailing: Seq[Violation] = judged(fails)._2

  override def condition: String = foundInFailing.head.condition.name

  override def says: String = {
    val (table, found) = judged(fails)
    RuleExample.particulars(IcebergWriterCompatException.of(table, found.head).getMessage)
  }

  private def judged(lines: Seq[String]): (TableState, Seq[Violation]) = {
    val before = LogLines.table(LogLines.compliant, setUp)
    val after = LogLines.table(before, lines)
    val change =
      TableChange(before, after.copy(previous = Some(before)), ChangeKind.Ordinary)
    val ofActions = LogLines.actions(after, lines).flatMap(V1.rules.check(after, _))
    val found = V1.rules.check(after).toSeq ++ V1.rules.check(change) ++ ofActions
    // A rule on one version says nothing of the version before.
    val isChange = rule.isInstanceOf[ChangeRule]
    (after, if (isChange) found else found.filterNot(_.rule.isInstanceOf[ChangeRule]))
  }
}

/**
 * A data file: the line of the log that adds it, and its footer, with the schema as Parquet's own
 * tools write it. Without a line it is as the log says; without a footer it is not there.
 *
 * @param setUp
 *   lines of the log
 */
final case class FooterExample(
    rule: FooterRule,
    setUp: Seq[String],
    passes: Seq[String],
    fails: Seq[String]
) extends RuleExample {

  override val language = "text"

  override val setUpLanguage = "json"

  private val table = LogLines.table(LogLines.compliant, setUp)

  /** What the rules find in the file that passes. */
  def foundInPassing: Seq[Violation] = judged(passes)

  /** What they find in the one that fails. */
  def foundInFailing: Seq[Violation] = judged(fails)

  override def condition: String = foundInFailing.head.condition.name

  override def says: String =
    RuleExample.particulars(
      IcebergWriterCompatException.of(table, foundInFailing.head).getMessage
    )

  private def judged(lines: Seq[String]): Seq[Violation] = {
    val (logged, footer) = lines.partition(_.startsWith("{"))
    val file = LogLines.actions(table, logged).collectFirst { case added: Added =>
      DataFiles
        .unreadable("it is not there", s"no file ${added.path}")
        .copy(
          path = added.path,
          partitionValues = added.partitionValues,
          rowCount = added.statistics.flatMap(_.rowCount)
        )
    }
    val read = Option.when(footer.nonEmpty) {
      val (counts, more) = footer.partition(_.startsWith(rowCount))
      val (facts, schema) = more.partition(line => line.contains(": ") && !line.contains("message"))
      val found = DataFiles.of(MessageTypeParser.parseMessageType(schema.mkString("\n")))
      val told = facts.foldLeft(found)(withFact)
      counts.foldLeft(told) { (file, count) =>
        file.withFooter(_.copy(rowCount = count.stripPrefix(rowCount).toLong))
      }
    }
    val whole = read.fold(file)(r => file.map(_.copy(footer = r.footer)).orElse(read))
    V1.rules.check(table, whole.get).toSeq
  }

  // The least and greatest value of a column, or a key of the footer.
  private def withFact(file: DataFile, line: String): DataFile = line match {
    case Values(column, least, greatest) =>
      file.withValues(column)(least.toInt, greatest.toInt)
    case Key(name, value) => file.withFooter(f => f.copy(keys = f.keys + (name -> value)))
    case other            => throw new IllegalArgumentException(other)
  }

  private lazy val Values = """values of (\S+): from (\S+) to (\S+)""".r

  private lazy val Key = """key (\S+): (.*)""".r

  private def rowCount: String = "row count: "
}

object RuleExample {

  private val opening = "as an Apache Iceberg table. "

  /** What a refusal says besides its condition and the sentence that is the same for all. */
  def particulars(message: String): String = {
    val at = message.indexOf(opening)
    require(at >= 0, message)
    message.substring(at + opening.length)
  }
}

/** Reads lines of a log as the rules see them. */
private[docs] object LogLines {

  private val mapper = new ObjectMapper

  /** A table that keeps all rules. */
  val compliant: TableState = CompliantTable.of("id INT").copy(name = "shop.sales")

  private def entries(lines: Seq[String]): Seq[(String, JsonNode)] =
    lines.map { line =>
      val entry = mapper.readTree(line).properties().asScala.head
      entry.getKey -> entry.getValue
    }

  /** The table that the lines leave, from what it was before. */
  def table(before: TableState, lines: Seq[String]): TableState =
    entries(lines).foldLeft(before) {
      case (table, ("protocol", protocol)) => table.copy(protocol = protocolOf(protocol))
      case (table, ("metaData", metadata)) => withMetadata(table, metadata)
      case (table, _)                      => table
    }

  private def protocolOf(node: JsonNode): ProtocolState =
    ProtocolState(
      node.get("minReaderVersion").asInt,
      node.get("minWriterVersion").asInt,
      Option(node.get("readerFeatures")).map(texts(_).toSet),
      Option(node.get("writerFeatures")).map(texts(_).toSet)
    )

  private def withMetadata(before: TableState, node: JsonNode): TableState = {
    val schema = Option(node.get("schemaString"))
      .map(json => DataType.fromJson(json.toString).asInstanceOf[StructType])
      .getOrElse(before.schema)
    val ids = SchemaNode.flatten(schema).flatMap(_.id)
    val highest = (before.maxColumnId +: ids).max
    val configuration = Option(node.get("configuration")).map(textsByKey).getOrElse(Map.empty)
    before.copy(
      schema = schema,
      properties = before.properties +
        ("delta.columnMapping.maxColumnId" -> highest.toString) ++ configuration,
      partitionColumns =
        Option(node.get("partitionColumns")).map(texts).getOrElse(before.partitionColumns),
      format = Option(node.get("format"))
        .map(f => FileFormat(f.get("provider").asText, textsByKey(f.get("options"))))
        .getOrElse(before.format)
    )
  }

  /** The other actions of the commit. */
  def actions(table: TableState, lines: Seq[String]): Seq[DataAction] = {
    val all = entries(lines)
    def pathOf(entry: (String, JsonNode)) = entry._2.path("path").asText
    all.zipWithIndex.collect {
      case (entry @ ("add", add), i) =>
        Added(
          pathOf(entry),
          textsByKey(add.get("partitionValues")),
          Option(add.get("stats")).flatMap(s =>
            FileStatistics.parse(s.toString, table.physicalNames)
          ),
          add.has("deletionVector"),
          repeated =
            all.take(i).exists(other => other._1 == "add" && pathOf(other) == pathOf(entry)),
          add.get("size").asLong
        )
      case (entry @ ("remove", remove), _) =>
        Removed(pathOf(entry), remove.get("dataChange").asBoolean)
      case (entry @ ("cdc", _), _)         => ChangeData(pathOf(entry))
      case (("domainMetadata", domain), _) =>
        val columns = domain.get("configuration").get("clusteringColumns")
        Clustered(columns.asScala.toSeq.map(texts))
    }
  }

  private def texts(list: JsonNode): Seq[String] = list.asScala.toSeq.map(_.asText)

  private def textsByKey(node: JsonNode): Map[String, String] =
    node.properties().asScala.map(entry => entry.getKey -> entry.getValue.asText).toMap
}
