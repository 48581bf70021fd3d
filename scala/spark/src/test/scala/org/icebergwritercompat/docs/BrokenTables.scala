package org.icebergwritercompat.docs

import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.parquet.example.data.Group
import org.apache.parquet.schema.{MessageType, MessageTypeParser, Type}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.icebergwritercompat.contract.{TableRule, TableState}
import org.icebergwritercompat.rules.ActionRules
import org.icebergwritercompat.testing.{ForeignFiles, TestTable}

import java.net.URI
import java.nio.file.{Files, Path}
import java.util.UUID
import scala.jdk.CollectionConverters._

/**
 * A fault that a table can have beside the one of an example.
 *
 * @param rule
 *   the id of the rule that it breaks
 */
sealed abstract class OtherFault(val rule: String)

object OtherFault {

  /**
   * In the properties or in the protocol.
   *
   * @param features
   *   what the protocol has to list for it
   */
  final case class InProperties(
      id: String,
      property: Option[(String, String)],
      features: Seq[String]
  ) extends OtherFault(id)

  /** A column too many. */
  final case class InColumns(id: String, name: String, dataType: String) extends OtherFault(id)

  val inProperties: Seq[OtherFault] = Seq(
    InProperties("B7", Some("delta.enableChangeDataFeed" -> "true"), Seq("changeDataFeed")),
    InProperties("B8", Some("delta.constraints.low" -> "1 = 1"), Seq("checkConstraints")),
    InProperties("A6", None, Seq("rowTracking", "domainMetadata"))
  )

  val inColumns: Seq[OtherFault] =
    Seq(InColumns("C7", "quantity", "short"), InColumns("N2", "_file", "string"))
}

/**
 * Real tables that break a rule as its example does: a writer that keeps no rules has written the
 * lines of the example to the log, and the file of the example.
 */
object BrokenTables {

  private val mapper = new ObjectMapper

  /** A user's own property and description, which have to stay whatever is done. */
  val Owner: (String, String) = "my.owner" -> "sales"
  val Description = "what is sold"

  /** The lines that an example breaks its rule by. */
  private def lines(example: RuleExample): Seq[String] = example.fails.filter(_.startsWith("{"))

  /**
   * Writes the first version of a table, with what the example needs.
   *
   * @param enabled
   *   whether the feature is switched on
   */
  def begin(table: TestTable, example: RuleExample, enabled: Boolean): Unit = {
    val state = LogLines.table(LogLines.compliant, begun(example))
    // The feature of what comes later is there before.
    val later = LogLines.table(state, lines(example))
    commit(table, 0)(
      protocolOf(state, used(later)),
      metadataOf(state, UUID.randomUUID.toString, enabled)
    )
  }

  // A rule on one version begins with what passes, so that its files fit the schema.
  private def begun(example: RuleExample): Seq[String] = example match {
    case log: LogExample
        if log.rule.isInstanceOf[TableRule] && !log.passes.exists(_.startsWith("{\"protocol\"")) =>
      log.setUp ++ log.passes.filter(_.startsWith("{\"metaData\""))
    case _ => example.setUp
  }

  /** Commits what the example breaks its rule by, as the next version. */
  def break(table: TestTable, example: RuleExample, enabled: Boolean): Unit =
    commit(table, table.log.version + 1)(actions(table, example, enabled): _*)

  /** The actions that break the rule of the example; their files are there. */
  def actions(table: TestTable, example: RuleExample, enabled: Boolean): Seq[JsonNode] = {
    val log = table.log
    val before = stateOf(table, example)
    val after = LogLines.table(before, lines(example))
    val all = lines(example) ++
      Some(addOf("part-0.parquet")).filter(_ => noFileYet(example))
    val entries = all.map { line =>
      val entry = mapper.readTree(line).properties().asScala.head
      entry.getKey match {
        case "protocol" => protocolOf(after)
        case "metaData" =>
          metadataOf(after, log.metadata.get("id").asText, enabled)
        case "add"            => added(table, entry.getValue.deepCopy[ObjectNode](), example)
        case "remove"         => removed(table, entry.getValue.deepCopy[ObjectNode]())
        case "domainMetadata" =>
          val domain = entry.getValue.deepCopy[ObjectNode]()
          domain.put("configuration", domain.get("configuration").toString)
          action("domainMetadata", domain)
        case kind => action(kind, entry.getValue)
      }
    }
    entries.distinct ++ repeated(entries)
  }

  /** Adds another fault to a table, as the next version. */
  def also(table: TestTable, fault: OtherFault): Unit = {
    val log = table.log
    val metadata = log.metadata.deepCopy[ObjectNode]()
    val protocol = log.protocol.deepCopy[ObjectNode]()
    fault match {
      case OtherFault.InProperties(_, property, features) =>
        val configuration = metadata.withObject("/configuration")
        property.foreach { case (key, value) => configuration.put(key, value) }
        val listed = protocol.withArray("writerFeatures")
        features.filterNot(log.writerFeatures).foreach(feature => listed.add(feature))
      case OtherFault.InColumns(_, name, dataType) =>
        val schema = mapper.readTree(log.schemaString).deepCopy[ObjectNode]()
        // Above every id of the example, and without a change to what the example says of them.
        val id = math.max(log.properties.get(maxColumnId).fold(0L)(_.toLong), 100) + 1
        val field = schema.withArray("fields").addObject()
        field.put("name", name).put("type", dataType).put("nullable", true)
        field
          .putObject("metadata")
          .put("delta.columnMapping.id", id)
          .put("delta.columnMapping.physicalName", s"col-$id")
        metadata.put("schemaString", schema.toString)
        metadata.withObject("/configuration").put(maxColumnId, id.toString)
    }
    commit(table, log.version + 1)(action("protocol", protocol), action("metaData", metadata))
  }

  private val maxColumnId = "delta.columnMapping.maxColumnId"

  private def noFileYet(example: RuleExample): Boolean = example match {
    case _: FooterExample => lines(example).isEmpty
    case _                => false
  }

  // One action that is there twice is what some rule is about.
  private def repeated(entries: Seq[JsonNode]): Seq[JsonNode] = entries.diff(entries.distinct)

  private def addOf(path: String): String =
    s"""{"add": {"path": "$path", "partitionValues": {}, "size": 742, "modificationTime": 0,
       |  "dataChange": true, "stats": {"numRecords": 3}}}""".stripMargin

  // What the log had before, with the properties and the schema that it has now.
  private def stateOf(table: TestTable, example: RuleExample): TableState = {
    val first = LogLines.table(LogLines.compliant, begun(example))
    val maxColumnId = table.log.properties.get("delta.columnMapping.maxColumnId")
    first.copy(properties =
      first.properties ++ maxColumnId.map("delta.columnMapping.maxColumnId" -> _)
    )
  }

  private def protocolOf(state: TableState, more: Set[String] = Set.empty): JsonNode = {
    val node = mapper.createObjectNode()
    node.put("minReaderVersion", state.protocol.minReaderVersion)
    node.put("minWriterVersion", state.protocol.minWriterVersion)
    def list(name: String, features: Option[Set[String]]): Unit = features.foreach { all =>
      val names = node.putArray(name)
      all.toSeq.sorted.foreach(feature => names.add(feature))
    }
    list("readerFeatures", state.protocol.readerFeatures)
    list("writerFeatures", state.protocol.writerFeatures.map(_ ++ used(state) ++ more))
    action("protocol", node)
  }

  // Delta does not load a table whose metadata uses a feature that the protocol does not list.
  private def used(state: TableState): Set[String] = {
    val isConstrained = state.nodes.exists { node =>
      node.isField && (!node.nullable || node.metadata.contains("delta.invariants"))
    }
    Set("invariants").filter(_ => isConstrained) ++
      Set("appendOnly").filter(_ => state.properties.contains("delta.appendOnly"))
  }

  private def metadataOf(state: TableState, id: String, enabled: Boolean): JsonNode = {
    val node = mapper.createObjectNode()
    node.put("id", id).put("description", Description).put("createdTime", 0L)
    val format = node.putObject("format").put("provider", state.format.provider)
    val options = format.putObject("options")
    state.format.options.foreach { case (key, value) => options.put(key, value) }
    node.put("schemaString", state.schema.json)
    val partitions = node.putArray("partitionColumns")
    state.partitionColumns.foreach(name => partitions.add(name))
    val configuration = node.putObject("configuration")
    val switched = if (enabled) state.properties else state.properties - state.contract.property
    (switched + Owner).toSeq.sorted.foreach { case (key, value) => configuration.put(key, value) }
    action("metaData", node)
  }

  // A file that the example says nothing of is a copy of one that is there.
  private def added(table: TestTable, add: ObjectNode, example: RuleExample): JsonNode = {
    val path = table.folder.resolve(new URI(add.get("path").asText).getPath).normalize
    val footer = example.fails.filterNot(_.startsWith("{"))
    val isMissing = example.isInstanceOf[FooterExample] && footer.isEmpty
    if (footer.nonEmpty) write(path, footer)
    else if (!isMissing && !Files.exists(path)) {
      Files.createDirectories(path.getParent)
      Files.copy(table.log.liveFiles.keys.minBy(_.toString), path)
    }
    if (Files.exists(path) && example.rule != ActionRules.SizesArePossible)
      add.put("size", Files.size(path))
    if (add.has("stats")) add.put("stats", add.get("stats").toString)
    action("add", add)
  }

  private def removed(table: TestTable, remove: ObjectNode): JsonNode = {
    val (path, _) = table.log.liveFiles.minBy(_._1.toString)
    remove.put("path", table.folder.relativize(path).toString)
    action("remove", remove)
  }

  private val value = """values of (\S+): from (\S+) to (\S+)""".r
  private val key = """key (\S+): (.*)""".r
  private val rowCount = """row count: (\d+)""".r

  private def write(path: Path, lines: Seq[String]): Unit = {
    val message = lines.mkString("\n")
    val schema = message.substring(message.indexOf('{') + 1, message.lastIndexOf('}'))
    val keys = lines.collect { case key(name, text) => name -> text }.toMap
    val count = lines.collectFirst { case rowCount(number) => number.toInt }.getOrElse(3)
    val bounds = lines.collect { case value(column, least, most) => column -> (least, most) }.toMap
    val parsed = MessageTypeParser.parseMessageType(s"message file {$schema}")
    val rows = (0 until count).map(i => (row: Group) => fill(row, parsed, bounds, i))
    ForeignFiles.writeWith(path, None, keys, schema)(rows: _*)
    ()
  }

  // Fields that may be null are null, but for the values that the example tells of.
  private def fill(
      row: Group,
      schema: MessageType,
      bounds: Map[String, (String, String)],
      number: Int
  ): Unit = schema.getFields.asScala.foreach { field =>
    val told = bounds.get(field.getName).map { case (least, most) =>
      if (number == 0) least else most
    }
    val isNeeded = field.isRepetition(Type.Repetition.REQUIRED)
    if (field.isPrimitive && (told.isDefined || isNeeded)) {
      val text = told.getOrElse("0")
      field.asPrimitiveType.getPrimitiveTypeName match {
        case PrimitiveTypeName.INT64 => row.append(field.getName, text.toLong)
        case _                       => row.append(field.getName, text.toInt)
      }
    }
  }

  private def action(kind: String, fields: JsonNode): JsonNode =
    mapper.createObjectNode().set[JsonNode](kind, fields)

  private def commit(table: TestTable, version: Long)(actions: JsonNode*): Unit = {
    val log = Files.createDirectories(table.folder.resolve("_delta_log"))
    Files.write(log.resolve(f"$version%020d.json"), actions.map(_.toString).asJava)
    ()
  }
}
